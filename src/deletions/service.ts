import { type Database, type Db, runApart } from '../db/database.ts';
import { addJob } from '../jobs/queue.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { Scope } from '../tenancy/caller.ts';
import { inScope } from '../tenancy/visible.ts';
import { deleteContents, hasMuch } from './batches.ts';
import { agentsOf, contentsOf, type Owner } from './contents.ts';

const tables = {
  org: 'orgs',
  user: 'users',
  agent: 'agents',
  team: 'teams',
  source: 'knowledge_sources',
  installation: 'installations',
  automation: 'automations',
  webhook: 'webhooks',
} as const;

type OwnerKind = keyof typeof tables;
/** What the job is told. */
export type DeletedOwner = Owner & { kind: OwnerKind };

/** If the process of a request is killed, a job continues after this time. */
const continueAfterMs = 120_000;

/**
 * Deletes an owner and everything that belongs to it. If that is much, it is deleted in batches before, while the
 * owner is still there. Returns false if there is none in the app and sandbox.
 */
export async function deleteOwner(db: Database, scope: Scope, kind: OwnerKind, id: string): Promise<boolean> {
  const { appId } = scope;
  const owner = { appId, kind, id };
  const wasThere = await runApart(async () => {
    if (!(await hasMuch(db, owner)) || !(await db.begin((tx) => decide(tx, scope, owner)))) return false;
    await deleteContents(db, owner);
    return true;
  });
  const { count } = await db`delete from ${db(tables[kind])} t where ${inScope(db, scope, 't')} and t.id = ${id}`;
  return count > 0 || wasThere;
}

/** Continues the deletion of an owner whose request was killed. Does nothing if the owner is gone. */
export async function continueDeletion(db: Database, owner: DeletedOwner, signal: AbortSignal): Promise<void> {
  const { appId, kind, id } = owner;
  const of = db`app_id = ${appId} and id = ${id}`;
  if (!(await db`select from ${db(tables[kind])} where ${of}`.any())) return;
  await deleteContents(db, owner, signal);
  await db`delete from ${db(tables[kind])} where ${of}`;
}

/** From here on, the owner will be deleted. It leaves every search, and its schedules stop. */
async function decide(tx: Db, scope: Scope, owner: DeletedOwner): Promise<boolean> {
  const { appId, kind, id } = owner;
  const isThere = await tx`
    select from ${tx(tables[kind])} t where ${inScope(tx, scope, 't')} and t.id = ${id} for update`.any();
  if (!isThere) return false;
  const contents = contentsOf(tx, owner, await agentsOf(tx, owner));
  const ofKind = (table: string, own: OwnerKind) => (kind === own ? tx`t.id = ${id}` : (contents[table] ?? tx`false`));
  const isSource = ofKind('knowledge_sources', 'source');
  // Without its retention, deleted documents leave no versions.
  await tx`
    update knowledge_sources t set version_retention_days = null, next_pull_at = null
    where t.app_id = ${appId} and ${isSource}`;
  await tx`
    delete from knowledge_indexes where app_id = ${appId} and source_id in (
      select t.id from knowledge_sources t where t.app_id = ${appId} and ${isSource})`;
  await tx`
    update automations t set status = case t.status when 'running' then 'paused' else t.status end, next_tick_at = null
    where t.app_id = ${appId} and ${ofKind('automations', 'automation')}`;
  await addJob(tx, taskNames.deleteOwner, owner, { key: `delete_owner/${id}`, inMs: continueAfterMs });
  return true;
}
