import type { Db, Statement } from '../../db/database.ts';
import { readWithTotal } from '../../db/pages.ts';
import type { PageRequest } from '../../http/route/pages.ts';
import { type Caller, canSeeWholeApp, type Scope } from '../../tenancy/caller.ts';
import type { KeyScope } from '../../tenancy/key-scopes.ts';
import type { RunRetention } from '../../tenancy/run-retention.ts';
import { inScope, ownedVisible } from '../../tenancy/visible.ts';
import type { Rate } from '../runs/rate-store.ts';

/** SQL for automations, their graphs, and the app's secrets. */

export type AutomationType = 'trigger' | 'scheduled' | 'invoked';
export type AutomationRow = {
  appId: string;
  id: string;
  sandboxId: string;
  name: string;
  lookupKey: string | null;
  description: string | null;
  type: AutomationType;
  status: 'draft' | 'running' | 'paused';
  trigger: string | null;
  filter: string | null;
  schedule: string | null;
  timezone: string;
  graphVersion: number | null;
  /** Whether the workflow is a program of the user. */
  program: boolean;
  inputSchema: unknown;
  invokeAuth: 'any' | 'secret_key' | 'user';
  runAsUserId: string | null;
  runAsAgentId: string | null;
  /** Set if the user or agent that it ran as was deleted; it cannot run until another is set. */
  identityGone: 'user' | 'agent' | null;
  orgId: string | null;
  teamId: string | null;
  userId: string | null;
  agentId: string | null;
  maxConcurrentRuns: number | null;
  maxPendingRuns: number | null;
  /** How many runs with the same value at this path of their payload may be active. */
  concurrency: { key: string; limit: number } | null;
  /** How many runs may start in a time, in all or with the same value in their payload. */
  rate: Rate | null;
  timeoutSeconds: number | null;
  /** How long its runs are kept; null: as the app says. */
  retention: RunRetention | null;
  metadata: Record<string, unknown>;
  nextTickAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
};
/** An automation with its current graph, and the scopes of the key that wrote it; null for full rights. */
export type FullAutomation = AutomationRow & { workflow: unknown; graphScopes: KeyScope[] | null };

export type AutomationValues = Omit<
  AutomationRow,
  'createdAt' | 'updatedAt' | 'agentId' | 'metadata' | 'inputSchema' | 'retention' | 'concurrency' | 'rate'
> & {
  metadata: string;
  retention: string | null;
  concurrency: string | null;
  rate: string | null;
  inputSchema: string | null;
};

const writable = [
  'name',
  'lookupKey',
  'description',
  'status',
  'trigger',
  'filter',
  'schedule',
  'timezone',
  'graphVersion',
  'program',
  'invokeAuth',
  'runAsUserId',
  'runAsAgentId',
  'identityGone',
  'maxConcurrentRuns',
  'maxPendingRuns',
  'timeoutSeconds',
  'nextTickAt',
] as const;

export async function insertAutomation(db: Db, row: AutomationValues): Promise<void> {
  await db`
    insert into automations (app_id, id, sandbox_id, name, lookup_key, description, type, status, trigger, filter, schedule,
      timezone, graph_version, input_schema, invoke_auth, run_as_user_id, run_as_agent_id, org_id, team_id, user_id,
      max_concurrent_runs, max_pending_runs, timeout_seconds, retention, concurrency, rate, metadata, next_tick_at)
    values (${row.appId}, ${row.id}, ${row.sandboxId}, ${row.name}, ${row.lookupKey}, ${row.description}, ${row.type},
      ${row.status}, ${row.trigger}, ${row.filter}, ${row.schedule}, ${row.timezone}, ${row.graphVersion},
      ${row.inputSchema}::text::json, ${row.invokeAuth}, ${row.runAsUserId}, ${row.runAsAgentId}, ${row.orgId},
      ${row.teamId}, ${row.userId}, ${row.maxConcurrentRuns}, ${row.maxPendingRuns}, ${row.timeoutSeconds},
      ${row.retention}::text::jsonb, ${row.concurrency}::text::jsonb, ${row.rate}::text::jsonb,
      ${row.metadata}::text::jsonb, ${row.nextTickAt})`;
}

export async function updateAutomation(db: Db, row: AutomationValues): Promise<void> {
  const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const changed = Object.fromEntries(writable.map((name) => [snake(name), row[name]]));
  await db`
    update automations set ${db(changed)}, input_schema = ${row.inputSchema}::text::json,
      retention = ${row.retention}::text::jsonb, concurrency = ${row.concurrency}::text::jsonb,
      rate = ${row.rate}::text::jsonb,
      metadata = ${row.metadata}::text::jsonb, updated_at = now()
    where app_id = ${row.appId} and id = ${row.id}`;
}

export async function insertGraph(
  db: Db,
  automation: { appId: string; id: string },
  version: number,
  graph: unknown,
  scopes: readonly KeyScope[] | undefined,
): Promise<void> {
  await db`insert into automation_graphs (app_id, automation_id, version, graph, scopes)
    values (${automation.appId}, ${automation.id}, ${version}, ${JSON.stringify(graph)}::text::json,
      ${scopes === undefined ? null : [...scopes]}::text[])`;
}

/** The next version number of this automation's graph. */
export async function nextGraphVersion(db: Db, automation: { appId: string; id: string }): Promise<number> {
  const [row] = await db<[{ next: number }]>`
    select coalesce(max(version), 0) + 1 as next from automation_graphs
    where app_id = ${automation.appId} and automation_id = ${automation.id}`;
  return row.next;
}

/** Finds by id or lookup key, without a visibility check; `lock` locks the row until the transaction ends. */
export async function findAutomation(
  db: Db,
  scope: Scope,
  name: { id: string } | { lookupKey: string },
  lock = false,
): Promise<FullAutomation | undefined> {
  const named = 'id' in name ? db`a.id = ${name.id}` : db`a.lookup_key = ${name.lookupKey}`;
  return db<FullAutomation[]>`
    select a.*, g.graph as workflow, g.scopes as graph_scopes from automations a
    left join automation_graphs g on g.app_id = a.app_id and g.automation_id = a.id and g.version = a.graph_version
    where ${inScope(db, scope, 'a')} and ${named} ${lock ? db`for update of a` : db``}`.first();
}

/** Like `findAutomation`, without the graph: enough to start and list runs. */
export async function findDefinition(
  db: Db,
  scope: Scope,
  name: { id: string } | { lookupKey: string },
): Promise<AutomationRow | undefined> {
  const named = 'id' in name ? db`a.id = ${name.id}` : db`a.lookup_key = ${name.lookupKey}`;
  return db<AutomationRow[]>`select a.* from automations a where ${inScope(db, scope, 'a')} and ${named}`.first();
}

/** Those with one of these ids or lookup keys, in no order. */
export function listDefinitions(
  db: Db,
  scope: Scope,
  { ids, lookupKeys }: { ids: readonly string[]; lookupKeys: readonly string[] },
): Promise<AutomationRow[]> {
  return db<AutomationRow[]>`
    select a.* from automations a where ${inScope(db, scope, 'a')}
      and (a.id = any(${[...ids]}::uuid[]) or a.lookup_key = any(${[...lookupKeys]}::text[]))`;
}

/** True when the caller may see it: through its owner, or because it has no owner. */
export async function canSeeAutomation(db: Db, caller: Caller, id: string): Promise<boolean> {
  return db`
    select 1 from automations a where a.id = ${id} and ${inScope(db, caller, 'a')} and (${ownedVisible(db, caller, 'a')}
      or num_nonnulls(a.org_id, a.team_id, a.user_id) = 0)`.any();
}

export type AutomationFilter = {
  type?: string | undefined;
  status?: string | undefined;
  search?: string | undefined;
};

/** SQL: the text is part of the automation's name or lookup key. */
export function automationNamed(db: Db, text: string): Statement {
  return db`(strpos(lower(a.name), lower(${text})) > 0 or strpos(lower(coalesce(a.lookup_key, '')), lower(${text})) > 0)`;
}

export async function listAutomations(
  db: Db,
  caller: Caller,
  filter: AutomationFilter,
  page: PageRequest,
): Promise<[FullAutomation[], number]> {
  const where = db`${inScope(db, caller, 'a')}
    and (${filter.type ?? null}::text is null or a.type = ${filter.type ?? null})
    and (${filter.status ?? null}::text is null or a.status = ${filter.status ?? null})
    ${filter.search === undefined ? db`` : db`and ${automationNamed(db, filter.search)}`}`;
  return readWithTotal(
    db<FullAutomation[]>`
      select a.*, g.graph as workflow, g.scopes as graph_scopes from automations a
      left join automation_graphs g on g.app_id = a.app_id and g.automation_id = a.id and g.version = a.graph_version
      where ${where} order by a.created_at desc, a.id desc limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from automations a where ${where}`,
  );
}

/** The automations that the caller may invoke now. */
export async function listInvocable(db: Db, caller: Caller, page: PageRequest): Promise<[AutomationRow[], number]> {
  const isWhole = canSeeWholeApp(caller);
  const auth = ['any', ...(isWhole ? ['secret_key'] : []), ...(caller.kind === 'user' ? ['user'] : [])];
  const seen = isWhole
    ? db`true`
    : db`(${ownedVisible(db, caller, 'a')} or num_nonnulls(a.org_id, a.team_id, a.user_id) = 0)`;
  const where = db`${inScope(db, caller, 'a')} and a.type = 'invoked' and a.status = 'running'
    and a.invoke_auth = any(${auth}::text[]) and ${seen}`;
  return readWithTotal(
    db<AutomationRow[]>`
      select a.* from automations a where ${where}
      order by a.created_at desc, a.id desc limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from automations a where ${where}`,
  );
}

export type GraphRow = { version: number; graph: unknown; scopes: KeyScope[] | null; createdAt: Date };

/** The versions of an automation's graph, newest first. */
export async function listGraphs(
  db: Db,
  automation: { appId: string; id: string },
  page: PageRequest,
): Promise<[GraphRow[], number]> {
  const where = db`app_id = ${automation.appId} and automation_id = ${automation.id}`;
  return readWithTotal(
    db<GraphRow[]>`
      select version, graph, scopes, created_at from automation_graphs where ${where}
      order by version desc limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from automation_graphs where ${where}`,
  );
}

export async function findGraphVersion(
  db: Db,
  automation: { appId: string; id: string },
  version: number,
): Promise<GraphRow | undefined> {
  return db<GraphRow[]>`
    select version, graph, scopes, created_at from automation_graphs
    where app_id = ${automation.appId} and automation_id = ${automation.id} and version = ${version}`.first();
}

export type SecretRow = { name: string; createdAt: Date; updatedAt: Date };

/** The number of secrets with other names. */
export async function countOtherSecrets(db: Db, scope: Scope, name: string): Promise<number> {
  const [row] = await db<[{ count: number }]>`
    select count(*) as count from app_secrets
    where app_id = ${scope.appId} and sandbox_id = ${scope.sandboxId} and name <> ${name}`;
  return row.count;
}

export async function upsertSecret(db: Db, scope: Scope, name: string, value: Buffer): Promise<SecretRow> {
  return db<[SecretRow]>`
    insert into app_secrets (app_id, sandbox_id, name, value)
    values (${scope.appId}, ${scope.sandboxId}, ${name}, ${value})
    on conflict (app_id, sandbox_id, name) do update set value = excluded.value, updated_at = excluded.updated_at
    returning name, created_at, updated_at`.first();
}

export async function listSecrets(db: Db, scope: Scope): Promise<(SecretRow & { value: Buffer })[]> {
  return db`
    select name, value, created_at, updated_at from app_secrets
    where app_id = ${scope.appId} and sandbox_id = ${scope.sandboxId} order by name`;
}

export async function deleteSecret(db: Db, scope: Scope, name: string): Promise<boolean> {
  const { count } = await db`
    delete from app_secrets where app_id = ${scope.appId} and sandbox_id = ${scope.sandboxId} and name = ${name}`;
  return count > 0;
}
