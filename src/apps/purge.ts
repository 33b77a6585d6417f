import type { Db, Statement } from '../db/database.ts';
import { isInUse } from '../db/fences.ts';
import type { Scope } from '../tenancy/caller.ts';

/*
 * A deleted sandbox may have millions of rows. It is gone for every caller as soon as its row says so; what it leaves is
 * deleted here, each batch in a transaction of its own: new event streams of all apps and vacuum wait for long ones.
 */

const sandboxesBatch = 20;
/** Rows that one statement deletes. Automations take more rows along than others. */
const batchRows = 500;
const batchAutomations = 50;
/** Runs take their entries along. Apart from its last run, a batch has at most this many. */
const batchRuns = 50;
const batchEntries = 10_000;

/** Deletes what deleted sandboxes have left. Any number of processes may do so; a killed one is continued. */
export async function purgeSandboxes(db: Db, signal: AbortSignal): Promise<void> {
  for (;;) {
    const removed = await db<Scope[]>`
      select app_id, id as sandbox_id from sandboxes s
      where s.removed_at is not null and ${isInUse(db, 's.app_id')} limit ${sandboxesBatch}`;
    if (removed.length === 0) return;
    for (const scope of removed) await purgeSandbox(db, scope, signal);
  }
}

async function purgeSandbox(db: Db, scope: Scope, signal: AbortSignal): Promise<void> {
  for (const [table, where] of Object.entries(contentsOf(db, scope))) {
    const rows = table === 'automations' ? batchAutomations : batchRows;
    const deleteNext = () =>
      table === 'automation_runs' ? deleteRuns(db, scope) : deleteBatch(db, scope.appId, table, where, rows);
    while (await deleteNext()) signal.throwIfAborted();
  }
  // The rest are a few rows of settings, and what was written meanwhile.
  await db`
    delete from sandboxes where app_id = ${scope.appId} and id = ${scope.sandboxId} and removed_at is not null`;
}

/** Returns whether there may be more. */
async function deleteBatch(db: Db, appId: string, table: string, where: Statement, rows: number): Promise<boolean> {
  const { count } = await db`
    delete from ${db(table)} where app_id = ${appId} and ctid = any(array(
      select t.ctid from ${db(table)} t where t.app_id = ${appId} and ${where} limit ${rows}))`;
  return count === rows;
}

async function deleteRuns(db: Db, { appId, sandboxId }: Scope): Promise<boolean> {
  const { count } = await db`
    delete from automation_runs where app_id = ${appId} and id = any(array(
      select id from (
        select id, sum(sequence) over (order by id rows unbounded preceding) - sequence as before
        from (select id, sequence from automation_runs
          where app_id = ${appId} and sandbox_id = ${sandboxId} order by id limit ${batchRuns}) first) counted
      where before < ${batchEntries}))`;
  return count > 0;
}

/** What a sandbox has many rows of, children before parents, so that no row takes an unknown number of others along. */
export function contentsOf(db: Db, { appId, sandboxId }: Scope): Record<string, Statement> {
  const own = db`t.sandbox_id = ${sandboxId}`;
  const below = (column: string, table: string) =>
    db`${db(`t.${column}`)} in (select p.id from ${db(table)} p where p.app_id = ${appId} and p.sandbox_id = ${sandboxId})`;
  const ofSource = below('source_id', 'knowledge_sources');
  const sources = db`select p.id from knowledge_sources p where p.app_id = ${appId} and p.sandbox_id = ${sandboxId}`;
  const extractions = db`select p.id from extractions p where p.app_id = ${appId} and p.sandbox_id = ${sandboxId}`;
  return {
    webhook_deliveries: below('webhook_id', 'webhooks'),
    automation_runs: own,
    automation_invocations: below('automation_id', 'automations'),
    events: own,
    model_calls: own,
    openai_responses: own,
    // Deleted sources leave their index to a job of its own.
    knowledge_versions: ofSource,
    knowledge_documents: own,
    knowledge_sync_items: ofSource,
    knowledge_syncs: ofSource,
    knowledge_tombstones: ofSource,
    inbound_messages: ofSource,
    knowledge_ingestion_items: db`t.ingestion_id in (
      select i.id from knowledge_ingestions i where i.app_id = ${appId} and i.source_id in (${sources}))`,
    knowledge_ingestions: ofSource,
    knowledge_sources: own,
    crawl_pages: below('crawl_id', 'crawls'),
    crawls: own,
    crawled_pages: own,
    extraction_parts: db`t.output_id in (
      select o.id from extraction_outputs o where o.app_id = ${appId} and o.extraction_id in (${extractions}))`,
    extraction_outputs: db`t.extraction_id in (${extractions})`,
    extractions: own,
    config_versions: below('config_id', 'configs'),
    configs: own,
    threads: own,
    kv_entries: own,
    kv_changes: below('user_id', 'users'),
    uploads: own,
    file_grants: below('file_id', 'files'),
    files: own,
    external_accounts: own,
    refresh_tokens: below('user_id', 'users'),
    installations: own,
    automations: own,
    agents: own,
    users: own,
    groups: own,
    knowledge_acls: own,
    teams: own,
    orgs: own,
  };
}
