import type { Db, Statement } from '../db/database.ts';

/** What other rows are deleted with. */
export type Owner = { appId: string; kind: OwnerKind; id: string };
export type OwnerKind =
  | 'sandbox'
  | 'org'
  | 'user'
  | 'agent'
  | 'team'
  | 'source'
  | 'installation'
  | 'automation'
  | 'webhook';

/** The columns by which the rows of a table name who owns them, by the kind of owner. */
const ownerColumns: Partial<Record<OwnerKind, string>> = {
  user: 'user_id',
  agent: 'agent_id',
  team: 'team_id',
  installation: 'installation_id',
};
const ofAnyOwner: readonly OwnerKind[] = ['user', 'agent', 'team'];
const ownersOf: Readonly<Record<string, readonly OwnerKind[]>> = {
  agents: ['user', 'team'],
  automations: ofAnyOwner,
  configs: ofAnyOwner,
  extractions: ofAnyOwner,
  files: ofAnyOwner,
  knowledge_sources: [...ofAnyOwner, 'installation'],
  kv_changes: ['user'],
  kv_entries: ['user'],
  openai_responses: ['user'],
  refresh_tokens: ['user'],
  team_memberships: ofAnyOwner,
  threads: ofAnyOwner,
  uploads: ['user'],
};

/** The tables of what an org has itself, and whether their rows may belong to an agent. */
const ofOrgs: Readonly<Record<string, boolean>> = {
  ...{ agents: false, automations: false, configs: true, extractions: true, files: true, knowledge_sources: true },
  threads: true,
};
/** What names the org of its owner, and stays with that owner when the org is deleted. */
const withOrg = [...Object.keys(ofOrgs), 'approvals', 'teams', 'users'];

/** SQL: the row belongs to the org itself. Its logo is deleted with the org. */
function isOfOrg(db: Db, table: string, alias: string, { appId, id }: Owner): Statement {
  const column = (name: string) => db(`${alias}.${name}`);
  const noAgent = ofOrgs[table] ? db`and ${column('agent_id')} is null` : db``;
  const noLogo =
    table === 'files'
      ? db`and ${column('id')} is distinct from (select logo_file_id from orgs where app_id = ${appId} and id = ${id})`
      : db``;
  return db`(${column('org_id')} = ${id} and ${column('team_id')} is null and ${column('user_id')} is null
    ${noAgent} ${noLogo})`;
}

/** The agents of an owner: what belongs to them goes with it. */
export async function agentsOf(db: Db, owner: Owner): Promise<string[]> {
  const { appId, kind, id } = owner;
  if (kind === 'agent') return [id];
  if (kind !== 'org' && kind !== 'user' && kind !== 'team') return [];
  const own = kind === 'org' ? isOfOrg(db, 'agents', 't', owner) : db`${db(`t.${ownerColumns[kind]}`)} = ${id}`;
  const rows = await db<{ id: string }[]>`select t.id from agents t where t.app_id = ${appId} and ${own}`;
  return rows.map((row) => row.id);
}

/** What loses its org, and stays: the rows of users, teams and agents whose org is deleted. */
export function losesOrg(db: Db, { kind, id }: Owner): Record<string, Statement> {
  return kind === 'org' ? Object.fromEntries(withOrg.map((table) => [table, db`t.org_id = ${id}`])) : {};
}

/**
 * What an owner has many rows of, children before parents, so that no row takes an unknown number of others along.
 * @param agents those of the owner
 */
export function contentsOf(db: Db, owner: Owner, agents: readonly string[] = []): Record<string, Statement> {
  const { appId, kind, id } = owner;
  const owned = (table: string, alias = 't'): Statement | undefined => {
    if (kind === 'sandbox') return db`${db(`${alias}.sandbox_id`)} = ${id}`;
    if (table === `knowledge_${kind}s` || table === `${kind}s`) return db`${db(`${alias}.id`)} = ${id}`;
    const own = ownersOf[table]?.includes(kind) === true ? ownerColumns[kind] : undefined;
    const byAgent = agents.length > 0 && ownersOf[table]?.includes('agent') === true;
    const conditions = [
      ...(kind === 'org' && table in ofOrgs ? [isOfOrg(db, table, alias, owner)] : []),
      ...(own === undefined ? [] : [db`${db(`${alias}.${own}`)} = ${id}`]),
      ...(byAgent ? [db`${db(`${alias}.agent_id`)} = any(${[...agents]}::uuid[])`] : []),
      ...(byAgent && table === 'knowledge_sources'
        ? [
            db`${db(`${alias}.installation_id`)} in (
            select n.id from installations n where n.app_id = ${appId} and n.agent_id = any(${[...agents]}::uuid[]))`,
          ]
        : []),
    ];
    const [first, ...others] = conditions;
    return first && db`(${others.reduce((all, condition) => db`${all} or ${condition}`, first)})`;
  };
  const idsOf = (table: string) => {
    const own = owned(table, 'p');
    return own && db`select p.id from ${db(table)} p where p.app_id = ${appId} and ${own}`;
  };
  const below = (column: string, table: string) => {
    const ids = idsOf(table);
    return ids && db`${db(`t.${column}`)} in (${ids})`;
  };
  const lower = (column: string, table: string, parent: string, above: string) => {
    const ids = idsOf(above);
    return (
      ids &&
      db`${db(`t.${column}`)} in (select m.id from ${db(table)} m
      where m.app_id = ${appId} and ${db(`m.${parent}`)} in (${ids}))`
    );
  };
  const ofSandbox = kind === 'sandbox' ? owned('') : undefined;
  const ofSource = below('source_id', 'knowledge_sources');
  const contents: Record<string, Statement | undefined> = {
    webhook_deliveries: below('webhook_id', 'webhooks'),
    automation_runs: ofSandbox ?? below('automation_id', 'automations'),
    automation_invocations: below('automation_id', 'automations'),
    events: ofSandbox,
    model_calls: ofSandbox,
    openai_responses: owned('openai_responses'),
    // Deleted sources leave their index to a job of its own.
    knowledge_documents: ofSandbox ?? ofSource,
    // After the documents, which may leave versions.
    knowledge_versions: ofSource,
    knowledge_sync_items: ofSource,
    knowledge_syncs: ofSource,
    knowledge_tombstones: ofSource,
    inbound_messages: ofSource,
    knowledge_ingestion_items: lower('ingestion_id', 'knowledge_ingestions', 'source_id', 'knowledge_sources'),
    knowledge_ingestions: ofSource,
    knowledge_sources: kind === 'source' ? undefined : owned('knowledge_sources'),
    crawl_pages: ofSandbox && below('crawl_id', 'crawls'),
    crawls: ofSandbox,
    crawled_pages: ofSandbox,
    extraction_parts: lower('output_id', 'extraction_outputs', 'extraction_id', 'extractions'),
    extraction_outputs: below('extraction_id', 'extractions'),
    extractions: owned('extractions'),
    config_versions: below('config_id', 'configs'),
    configs: owned('configs'),
    threads: owned('threads'),
    kv_entries: owned('kv_entries'),
    kv_changes: ofSandbox ? below('user_id', 'users') : owned('kv_changes'),
    uploads: owned('uploads'),
    file_grants: below('file_id', 'files'),
    files: owned('files'),
    external_accounts: ofSandbox,
    refresh_tokens: ofSandbox ? below('user_id', 'users') : owned('refresh_tokens'),
    team_memberships: ofSandbox ? below('team_id', 'teams') : owned('team_memberships'),
    installations: ofSandbox,
    automations: kind === 'automation' ? undefined : owned('automations'),
    agents: kind === 'agent' ? undefined : owned('agents'),
    users: ofSandbox,
    groups: ofSandbox,
    knowledge_acls: ofSandbox,
    teams: ofSandbox,
    orgs: ofSandbox,
  };
  return Object.fromEntries(
    Object.entries(contents).flatMap(([table, where]) => (where === undefined ? [] : [[table, where]])),
  );
}
