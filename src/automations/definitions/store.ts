import type { Db } from '../../db/database.ts';
import type { PageRequest } from '../../http/pages.ts';
import { type Caller, canSeeWholeApp, type Scope } from '../../tenancy/caller.ts';
import { inScope, ownedVisible } from '../../tenancy/visible.ts';
import type { RunStatus } from '../engine/fold.ts';
import type { RunRow } from '../runs/store.ts';

/** SQL for automations, invocations, secrets and lists of runs. */

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
  inputSchema: unknown;
  invokeAuth: 'any' | 'secret_key' | 'user';
  runAsUserId: string | null;
  runAsAgentId: string | null;
  /** The user or agent that it ran as was deleted; it cannot run until another is set. */
  identityGone: 'user' | 'agent' | null;
  orgId: string | null;
  teamId: string | null;
  userId: string | null;
  agentId: string | null;
  maxConcurrentRuns: number | null;
  timeoutSeconds: number | null;
  metadata: Record<string, unknown>;
  nextTickAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
};
/** With the current graph. */
export type FullAutomation = AutomationRow & { workflow: unknown };

export type AutomationValues = Omit<
  AutomationRow,
  'createdAt' | 'updatedAt' | 'agentId' | 'metadata' | 'inputSchema'
> & {
  metadata: string;
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
  'invokeAuth',
  'runAsUserId',
  'runAsAgentId',
  'identityGone',
  'maxConcurrentRuns',
  'timeoutSeconds',
  'nextTickAt',
] as const;

export async function insertAutomation(db: Db, row: AutomationValues): Promise<void> {
  await db`
    insert into automations (app_id, id, sandbox_id, name, lookup_key, description, type, status, trigger, filter, schedule,
      timezone, graph_version, input_schema, invoke_auth, run_as_user_id, run_as_agent_id, org_id, team_id, user_id,
      max_concurrent_runs, timeout_seconds, metadata, next_tick_at)
    values (${row.appId}, ${row.id}, ${row.sandboxId}, ${row.name}, ${row.lookupKey}, ${row.description}, ${row.type},
      ${row.status}, ${row.trigger}, ${row.filter}, ${row.schedule}, ${row.timezone}, ${row.graphVersion},
      ${row.inputSchema}::text::json, ${row.invokeAuth}, ${row.runAsUserId}, ${row.runAsAgentId}, ${row.orgId},
      ${row.teamId}, ${row.userId}, ${row.maxConcurrentRuns}, ${row.timeoutSeconds}, ${row.metadata}::text::jsonb,
      ${row.nextTickAt})`;
}

export async function updateAutomation(db: Db, row: AutomationValues): Promise<void> {
  const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const changed = Object.fromEntries(writable.map((name) => [snake(name), row[name]]));
  await db`
    update automations set ${db(changed)}, input_schema = ${row.inputSchema}::text::json,
      metadata = ${row.metadata}::text::jsonb, updated_at = now()
    where app_id = ${row.appId} and id = ${row.id}`;
}

export async function deleteAutomation(db: Db, scope: Scope, id: string): Promise<boolean> {
  const { count } = await db`
    delete from automations where app_id = ${scope.appId} and sandbox_id = ${scope.sandboxId} and id = ${id}`;
  return count > 0;
}

export async function insertGraph(
  db: Db,
  automation: { appId: string; id: string },
  version: number,
  graph: unknown,
): Promise<void> {
  await db`insert into automation_graphs (app_id, automation_id, version, graph)
    values (${automation.appId}, ${automation.id}, ${version}, ${JSON.stringify(graph)}::text::json)`;
}

/** The next version number of this automation's graph. */
export async function nextGraphVersion(db: Db, automation: { appId: string; id: string }): Promise<number> {
  const [row] = await db<[{ next: number }]>`
    select coalesce(max(version), 0) + 1 as next from automation_graphs
    where app_id = ${automation.appId} and automation_id = ${automation.id}`;
  return row.next;
}

/** By id or lookup key, without a visibility check; `lock` keeps it unchanged until the transaction ends. */
export async function findAutomation(
  db: Db,
  scope: Scope,
  name: { id: string } | { lookupKey: string },
  lock = false,
): Promise<FullAutomation | undefined> {
  const named = 'id' in name ? db`a.id = ${name.id}` : db`a.lookup_key = ${name.lookupKey}`;
  const [row] = await db<FullAutomation[]>`
    select a.*, g.graph as workflow from automations a
    left join automation_graphs g on g.app_id = a.app_id and g.automation_id = a.id and g.version = a.graph_version
    where ${inScope(db, scope, 'a')} and ${named} ${lock ? db`for update of a` : db``}`;
  return row;
}

/** The same, without the graph, for starting and listing runs. */
export async function findDefinition(
  db: Db,
  scope: Scope,
  name: { id: string } | { lookupKey: string },
): Promise<AutomationRow | undefined> {
  const named = 'id' in name ? db`a.id = ${name.id}` : db`a.lookup_key = ${name.lookupKey}`;
  const [row] = await db<AutomationRow[]>`select a.* from automations a where ${inScope(db, scope, 'a')} and ${named}`;
  return row;
}

/** True when the caller may see it: through its owner, or because it has no owner. */
export async function canSeeAutomation(db: Db, caller: Caller, id: string): Promise<boolean> {
  const [row] = await db`
    select 1 from automations a where a.id = ${id} and ${inScope(db, caller, 'a')} and (${ownedVisible(db, caller, 'a')}
      or num_nonnulls(a.org_id, a.team_id, a.user_id) = 0)`;
  return row !== undefined;
}

export type AutomationFilter = { type?: string | undefined; status?: string | undefined };

export async function listAutomations(
  db: Db,
  caller: Caller,
  filter: AutomationFilter,
  page: PageRequest,
): Promise<[FullAutomation[], number]> {
  const where = db`${inScope(db, caller, 'a')}
    and (${filter.type ?? null}::text is null or a.type = ${filter.type ?? null})
    and (${filter.status ?? null}::text is null or a.status = ${filter.status ?? null})`;
  const rows = await db<FullAutomation[]>`
    select a.*, g.graph as workflow from automations a
    left join automation_graphs g on g.app_id = a.app_id and g.automation_id = a.id and g.version = a.graph_version
    where ${where} order by a.created_at desc, a.id desc limit ${page.pageSize} offset ${page.offset}`;
  const [{ total }] = await db<[{ total: number }]>`select count(*) as total from automations a where ${where}`;
  return [rows, total];
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
  const rows = await db<AutomationRow[]>`
    select a.* from automations a where ${where}
    order by a.created_at desc, a.id desc limit ${page.pageSize} offset ${page.offset}`;
  const [{ total }] = await db<[{ total: number }]>`select count(*) as total from automations a where ${where}`;
  return [rows, total];
}

export async function findVisibleRun(db: Db, caller: Caller, id: string): Promise<RunRow | undefined> {
  const [row] = await db<RunRow[]>`
    select r.* from automation_runs r where r.id = ${id} and ${runVisible(db, caller)}`;
  return row;
}

/** Those of these runs that the caller sees. */
export async function filterVisibleRuns(db: Db, caller: Caller, ids: readonly string[]): Promise<string[]> {
  const rows = await db<{ id: string }[]>`
    select r.id from automation_runs r where r.id = any(${[...ids]}::uuid[]) and ${runVisible(db, caller)}`;
  return rows.map(({ id }) => id);
}

/** SQL: the caller sees the run `r`: as its invoker, or through its automation's owner. */
function runVisible(db: Db, caller: Caller) {
  const invoked = caller.kind === 'user' ? db`r.invoked_by_user_id = ${caller.userId}` : db`false`;
  return db`${inScope(db, caller, 'r')} and (${invoked} or ${ownedVisible(db, caller, 'r')})`;
}

export async function listRuns(
  db: Db,
  caller: Caller,
  automationId: string,
  status: string | undefined,
  page: PageRequest,
): Promise<[RunRow[], number]> {
  const where = db`${inScope(db, caller, 'r')} and r.automation_id = ${automationId}
    and (${status ?? null}::text is null or r.status = ${status ?? null})`;
  const rows = await db<RunRow[]>`
    select r.* from automation_runs r where ${where}
    order by r.created_at desc, r.id desc limit ${page.pageSize} offset ${page.offset}`;
  const [{ total }] = await db<[{ total: number }]>`select count(*) as total from automation_runs r where ${where}`;
  return [rows, total];
}

/** What lists of runs show of one; payload and result are read run by run. */
export type RunSummaryRow = Omit<RunRow, 'payload' | 'input' | 'participants' | 'result'> & { automationName: string };

export type RunFilter = {
  status?: RunStatus | 'waiting' | undefined;
  automationId?: string | undefined;
  since?: Date | undefined;
  until?: Date | undefined;
  /** The id of a run, or else a part of the name or lookup key of its automation. */
  search?: { runId: string } | { text: string } | undefined;
};

/** The runs of all automations that the caller may see, newest first, from before this one. */
export async function listVisibleRuns(
  db: Db,
  caller: Caller,
  filter: RunFilter,
  before: string | undefined,
  count: number,
): Promise<RunSummaryRow[]> {
  const { status, automationId, since, until, search } = filter;
  const inState = status === 'waiting' ? db`r.status = 'running' and r.waiting` : db`r.status = ${status ?? ''}`;
  return db<RunSummaryRow[]>`
    select r.app_id, r.id, r.sandbox_id, r.automation_id, a.name as automation_name, r.graph_version, r.type, r.status,
      r.error, r.event_id, r.parent_run_id, r.retried_from, r.invoked_by_user_id, r.invoked_by_agent_id, r.org_id,
      r.team_id, r.user_id, r.sequence, r.waiting, r.lease_until, r.started_at, r.completed_at, r.created_at, r.updated_at
    from automation_runs r join automations a on a.app_id = r.app_id and a.id = r.automation_id
    where ${runVisible(db, caller)}
      ${before === undefined ? db`` : db`and r.id < ${before}`}
      ${status === undefined ? db`` : db`and ${inState}`}
      ${automationId === undefined ? db`` : db`and r.automation_id = ${automationId}`}
      ${since === undefined ? db`` : db`and r.created_at >= ${since}`}
      ${until === undefined ? db`` : db`and r.created_at < ${until}`}
      ${search === undefined ? db`` : db`and ${matches(db, search)}`}
    order by r.id desc limit ${count}`;
}

function matches(db: Db, search: NonNullable<RunFilter['search']>) {
  if ('runId' in search) return db`r.id = ${search.runId}`;
  return db`(strpos(lower(a.name), lower(${search.text})) > 0
    or strpos(lower(coalesce(a.lookup_key, '')), lower(${search.text})) > 0)`;
}

export type GraphRow = { version: number; graph: unknown; createdAt: Date };

/** The versions of an automation's graph, newest first. */
export async function listGraphs(
  db: Db,
  automation: { appId: string; id: string },
  page: PageRequest,
): Promise<[GraphRow[], number]> {
  const where = db`app_id = ${automation.appId} and automation_id = ${automation.id}`;
  const rows = await db<GraphRow[]>`
    select version, graph, created_at from automation_graphs where ${where}
    order by version desc limit ${page.pageSize} offset ${page.offset}`;
  const [{ total }] = await db<[{ total: number }]>`select count(*) as total from automation_graphs where ${where}`;
  return [rows, total];
}

export async function findGraphVersion(
  db: Db,
  automation: { appId: string; id: string },
  version: number,
): Promise<GraphRow | undefined> {
  const [row] = await db<GraphRow[]>`
    select version, graph, created_at from automation_graphs
    where app_id = ${automation.appId} and automation_id = ${automation.id} and version = ${version}`;
  return row;
}

export type InvocationRow = { requestDigest: Buffer; runId: string };

/** Reserves an idempotency key for a run. Returns the earlier invocation when another one already holds the key. */
export async function claimInvocation(
  db: Db,
  invocation: {
    appId: string;
    automationId: string;
    caller: string;
    idempotencyKey: string;
    requestDigest: Buffer;
    runId: string;
  },
): Promise<InvocationRow | undefined> {
  const { appId, automationId, caller, idempotencyKey, requestDigest, runId } = invocation;
  const inserted = await db`
    insert into automation_invocations (app_id, automation_id, caller, idempotency_key, request_digest, run_id)
    values (${appId}, ${automationId}, ${caller}, ${idempotencyKey}, ${requestDigest}, ${runId})
    on conflict do nothing returning 1`;
  return inserted.length === 1 ? undefined : findInvocation(db, invocation);
}

export async function findInvocation(
  db: Db,
  invocation: { appId: string; automationId: string; caller: string; idempotencyKey: string },
): Promise<InvocationRow | undefined> {
  const [row] = await db<InvocationRow[]>`
    select request_digest, run_id from automation_invocations
    where app_id = ${invocation.appId} and automation_id = ${invocation.automationId}
      and caller = ${invocation.caller} and idempotency_key = ${invocation.idempotencyKey}`;
  return row;
}

/** Deletes idempotency keys and dispatched events from before this time. Logged events are kept for longer. */
export async function deleteOldInvocations(db: Db, before: Date): Promise<void> {
  await db`delete from automation_invocations where created_at < ${before}`;
  await db`delete from events where created_at < ${before} and dispatched_at is not null and not heard`;
}

/** The oldest run that waits for an external worker, now claimed. */
export async function claimRun(
  db: Db,
  automation: { appId: string; id: string },
  now: Date,
  leaseSeconds: number,
): Promise<RunRow | undefined> {
  const leaseUntil = new Date(now.getTime() + leaseSeconds * 1_000);
  const [row] = await db<RunRow[]>`
    update automation_runs r set status = 'running', lease_until = ${leaseUntil}, lease_seconds = ${leaseSeconds},
      version = r.version + 1, changes = note_change(r.changes, r.version + 1, 'running', ${now}, ${leaseUntil}),
      started_at = coalesce(r.started_at, ${now}), updated_at = ${now}
    from (select app_id, id from automation_runs
      where app_id = ${automation.appId} and automation_id = ${automation.id} and status = 'pending'
        and graph_version is null
      order by created_at, id limit 1 for update skip locked) oldest
    where r.app_id = oldest.app_id and r.id = oldest.id
    returning r.*`;
  return row;
}

export async function setLease(db: Db, run: { appId: string; id: string }, until: Date): Promise<void> {
  await db`update automation_runs set lease_until = ${until} where app_id = ${run.appId} and id = ${run.id}`;
}

/** Sets runs with an expired claim back to pending and returns them. */
export async function releaseExpiredLeases(
  db: Db,
  now: Date,
  countMax: number,
): Promise<{ appId: string; id: string }[]> {
  return db`
    update automation_runs r set status = 'pending', lease_until = null, version = r.version + 1,
      changes = note_change(r.changes, r.version + 1, 'pending', ${now}, null), updated_at = ${now}
    from (select app_id, id from automation_runs where lease_until <= ${now}
      order by lease_until limit ${countMax} for update skip locked) late
    where r.app_id = late.app_id and r.id = late.id and r.status = 'running'
    returning r.app_id, r.id`;
}

export async function listChildRuns(db: Db, run: { appId: string; id: string }): Promise<string[]> {
  const rows = await db<{ id: string }[]>`
    select id from automation_runs
    where app_id = ${run.appId} and parent_run_id = ${run.id} and status in ('pending', 'running')`;
  return rows.map((row) => row.id);
}

export type SecretRow = { name: string; createdAt: Date; updatedAt: Date };

/** Undefined when the scope already has `countMax` secrets and this would add one. */
export async function upsertSecret(
  db: Db,
  scope: Scope,
  name: string,
  value: Buffer,
  countMax: number,
): Promise<SecretRow | undefined> {
  const [row] = await db<SecretRow[]>`
    with present as (
      select name from app_secrets where app_id = ${scope.appId} and sandbox_id = ${scope.sandboxId})
    insert into app_secrets (app_id, sandbox_id, name, value)
    select ${scope.appId}, ${scope.sandboxId}, ${name}, ${value}
    where (select count(*) from present) < ${countMax} or exists (select from present where name = ${name})
    on conflict (app_id, sandbox_id, name) do update set value = excluded.value, updated_at = now()
    returning name, created_at, updated_at`;
  return row;
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
