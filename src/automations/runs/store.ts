/*
 * SQL for runs and their journals.
 * Triggers of automation_runs: schedule_wake writes when a run is due; delete_run_entries deletes its journal with it;
 * offer_program_run and end_program_work open and close the work on a run of a program.
 */
import { type Db, isDatabaseError, type Statement } from '../../db/database.ts';
import { announceChange, changeChannel } from '../../http/streams/sse.ts';
import { digestRunEntry, foldLinks } from '../../ledger/encoding.ts';
import { formatId, newUuid } from '../../lib/ids.ts';
import type { KeyScope } from '../../tenancy/key-scopes.ts';
import { sandboxIsThere } from '../../tenancy/visible.ts';
import { currentTraceparent } from '../../tracing/trace.ts';
import type { RunStatus } from '../engine/fold.ts';
import type { DraftEntry, JournalEntry } from '../engine/journal.ts';
import { filesNamedIn, nameFiles } from './file-store.ts';
import { secretsVersion } from './secret-store.ts';

export type RunRow = {
  appId: string;
  id: string;
  sandboxId: string;
  automationId: string;
  graphVersion: number | null;
  /** Whether the user's program executes the run. */
  program: boolean;
  /** What a program asked for that its journal does not have; null if it fits or none has tried. */
  workflowChanged: { expected: unknown; found: unknown } | null;
  type: 'trigger' | 'scheduled' | 'invoked';
  status: RunStatus;
  input: unknown;
  payload: unknown;
  participants: Record<string, string> | null;
  result: unknown;
  error: { code: string; message: string; node_id?: string } | null;
  eventId: string | null;
  scheduledAt: Date | null;
  depth: number;
  eventDepth: number;
  /** The first run of this run's tree; null if it is the first itself. */
  treeId: string | null;
  parentRunId: string | null;
  parentCommandId: string | null;
  retriedFrom: string | null;
  invokedByUserId: string | null;
  invokedByAgentId: string | null;
  actsAsUserId: string | null;
  actsAsAgentId: string | null;
  /** The scopes of the key that invoked a run which acts as its invoker; null if they do not bound the run. */
  scopes: KeyScope[] | null;
  orgId: string | null;
  teamId: string | null;
  userId: string | null;
  agentId: string | null;
  timeoutSeconds: number | null;
  /** The digest of the value of its payload that limits it together with others; null without such a limit. */
  concurrencyKey: Buffer | null;
  /** What the rate of its automation counts it with. */
  rateKey: Buffer | null;
  sequence: number;
  /** The link of the journal's entry `linked` (`src/ledger/`). */
  link: Buffer | null;
  linked: number;
  journalBytes: number;
  waiting: boolean;
  /** What a waiting run waits for. Only valid while it waits. */
  waitingFor: WaitingFor | null;
  wakeAt: Date | null;
  wakeTimer: WakeTimer | null;
  leaseUntil: Date | null;
  leaseSeconds: number | null;
  /** The claim of the external worker that executes a run without a workflow. */
  claim: string | null;
  /** The trace of the request or job that started the run. */
  traceparent: string | null;
  /** The number of states that streams show; `changes` are those after the first that are still kept. */
  version: number;
  changes: RunChange[];
  startedAt: Date | null;
  completedAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
};

/** What a run waits for, as responses show it: the first of its waits, and the number of others. */
export type WaitingFor = {
  kind: 'approval' | 'signal' | 'child' | 'time' | 'retry';
  node_id: string;
  approval?: string;
  name?: string;
  id?: string;
  until?: string;
  others?: number;
};

/** The timer that a sleeping run waits for, which its `timer_fired` entry names. */
export type WakeTimer = { node_id: string; command_id: string; timer_id: string | null; attempt: number };

/** A state of a run. Times are ISO 8601. */
export type RunChange = { version: number; status: RunStatus; at: string; lease_until: string | null };

export type EntryRow = {
  id: string;
  sequence: number;
  type: JournalEntry['type'];
  nodeId: string | null;
  commandId: string | null;
  timerId: string | null;
  record: JournalEntry['record'];
  createdAt: Date;
};

export type NewRun = Pick<RunRow, 'appId' | 'sandboxId' | 'automationId' | 'graphVersion' | 'type' | 'program'> & {
  id: string;
  payload: unknown;
  /** The value of `$` in the graph, unless it is the payload. */
  input?: unknown;
  participants?: Record<string, string> | null;
  eventId?: string | null;
  scheduledAt?: Date | null;
  depth?: number;
  eventDepth?: number;
  treeId?: string | null;
  parentRunId?: string | null;
  parentCommandId?: string | null;
  retriedFrom?: string | null;
  invokedByUserId?: string | null;
  invokedByAgentId?: string | null;
  actsAsUserId?: string | null;
  actsAsAgentId?: string | null;
  scopes?: readonly KeyScope[] | null;
  orgId?: string | null;
  teamId?: string | null;
  userId?: string | null;
  timeoutSeconds?: number | null;
  concurrencyKey?: Buffer | null;
  rateKey?: Buffer | null;
  /** For a run that failed before it started: the reason. */
  error?: { code: string; message: string } | null;
  createdAt: Date;
};

export function isTerminal({ status }: { status: RunStatus }): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled';
}

/** Inserts a run and the job that advances it, unless a program of the user executes it or it has already failed. */
export async function insertRun(db: Db, run: NewRun): Promise<RunRow> {
  const status = run.error ? 'failed' : 'pending';
  const payload = JSON.stringify(run.payload ?? null);
  const input = run.input === undefined ? null : JSON.stringify(run.input);
  return db<[RunRow]>`
    with made as (
      insert into automation_runs (app_id, id, sandbox_id, automation_id, graph_version, program, type, status, input,
        payload, participants, error, event_id, scheduled_at, depth, event_depth, tree_id, parent_run_id, parent_command_id, retried_from,
        invoked_by_user_id, invoked_by_agent_id, acts_as_user_id, acts_as_agent_id, scopes, org_id, team_id, user_id,
        timeout_seconds, concurrency_key, rate_key, traceparent, completed_at, created_at, updated_at)
      values (${run.appId}, ${run.id}, ${run.sandboxId}, ${run.automationId}, ${run.graphVersion}, ${run.program}, ${run.type}, ${status},
        ${input}::text::json, ${payload}::text::json,
        ${run.participants ? JSON.stringify(run.participants) : null}::text::json,
        ${run.error ? JSON.stringify(run.error) : null}::text::json,
        ${run.eventId ?? null}, ${run.scheduledAt ?? null}, ${run.depth ?? 0}, ${run.eventDepth ?? 0}, ${run.treeId ?? null},
        ${run.parentRunId ?? null}, ${run.parentCommandId ?? null}, ${run.retriedFrom ?? null},
        ${run.invokedByUserId ?? null}, ${run.invokedByAgentId ?? null}, ${run.actsAsUserId ?? null},
        ${run.actsAsAgentId ?? null}, ${run.scopes ? [...run.scopes] : null}::text[],
        ${run.orgId ?? null}, ${run.teamId ?? null}, ${run.userId ?? null}, ${run.timeoutSeconds ?? null},
        ${run.concurrencyKey ?? null}, ${run.rateKey ?? null}, ${currentTraceparent() ?? null}, ${run.error ? run.createdAt : null}, ${run.createdAt}, ${run.createdAt})
      returning *),
    ${nameFiles(db, 'made', filesNamedIn([payload, input]))}
    job as (
      select add_job('advance_run', json_strip_nulls(json_build_object('appId', made.app_id, 'runId', made.id,
        'traceparent', made.traceparent)))
      from made where made.graph_version is not null and not made.program and made.status = 'pending')
    select made.*, (select count(*) from job) as jobs from made`.first();
}

export async function findRun(db: Db, appId: string, id: string): Promise<RunRow | undefined> {
  return db<RunRow[]>`select * from automation_runs where app_id = ${appId} and id = ${id}`.first();
}

/**
 * A run as a worker loads it. `limited`: its automation limits concurrent runs. `inTree`: it is part of a tree.
 * `secretsVersion`: changes with every change of the secrets that it reads; null if there are none. `graphScopes`: those of the key that
 * wrote its graph; null for full rights.
 */
export type WorkRow = RunRow & {
  limited: boolean;
  inTree: boolean;
  secretsVersion: string | null;
  graphScopes: KeyScope[] | null;
};

export async function findWork(db: Db, appId: string, id: string): Promise<WorkRow | undefined> {
  return db<WorkRow[]>`
    select r.*, (a.max_concurrent_runs is not null or a.concurrency is not null or a.rate is not null) as limited,
      r.tree_id is not null
        or exists (select 1 from automation_run_trees t where t.app_id = ${appId} and t.id = r.id) as in_tree,
      ${secretsVersion(db, 'r')} as secrets_version,
      (select g.scopes from automation_graphs g where g.app_id = ${appId} and g.automation_id = r.automation_id
        and g.version = r.graph_version) as graph_scopes
    from automation_runs r join automations a on a.app_id = r.app_id and a.id = r.automation_id
    where r.app_id = ${appId} and r.id = ${id} and ${sandboxIsThere(db, 'r.app_id', 'r.sandbox_id')}`.first();
}

/** The id of the tree that a run belongs to. */
export function treeOf(run: Pick<RunRow, 'id' | 'treeId'>): string {
  return run.treeId ?? run.id;
}

/**
 * Adds to a tree's count of runs and locks the count until the transaction ends. Returns the new count, including the
 * first run; undefined if the first run was deleted.
 */
export async function countTreeRuns(db: Db, appId: string, treeId: string, added: number): Promise<number | undefined> {
  const [row] = await db<{ runs: number }[]>`
    insert into automation_run_trees as tree (app_id, id, runs)
    select r.app_id, r.id, 1 + ${added}::integer from automation_runs r where r.app_id = ${appId} and r.id = ${treeId}
    on conflict (app_id, id) do update set runs = tree.runs + ${added}::integer
    returning tree.runs`;
  return row?.runs;
}

/** Counts the journal entries of all runs in a tree. */
export async function countTreeEntries(db: Db, appId: string, treeId: string): Promise<number> {
  const [{ count }] = await db<[{ count: number }]>`
    select (select coalesce(sum(sequence), 0) from automation_runs where app_id = ${appId} and tree_id = ${treeId})
      + (select coalesce(sum(sequence), 0) from automation_runs where app_id = ${appId} and id = ${treeId}) as count`;
  return Number(count);
}

export async function lockRun(db: Db, appId: string, id: string): Promise<RunRow | undefined> {
  return db<RunRow[]>`select * from automation_runs where app_id = ${appId} and id = ${id} for update`.first();
}

export async function findRuns(db: Db, appId: string, ids: readonly string[]): Promise<RunRow[]> {
  return db<RunRow[]>`select * from automation_runs where app_id = ${appId} and id = any(${[...ids]}::uuid[])`;
}

export async function listEntries(
  db: Db,
  run: { appId: string; id: string },
  after = 0,
  count = 2_147_483_647,
): Promise<EntryRow[]> {
  return db<EntryRow[]>`
    select id, sequence, type, node_id, command_id, timer_id, record, created_at
    from automation_run_entries where app_id = ${run.appId} and run_id = ${run.id} and sequence > ${after}
    order by sequence limit ${count}`;
}

/** Returns the indexes in this list of the runs that have newer entries or were deleted. */
export async function listChangedRuns(
  db: Db,
  runs: readonly { appId: string; id: string; sequence: number }[],
): Promise<number[]> {
  const rows = await db<{ place: number }[]>`
    select (given.place - 1)::integer as place
    from unnest(${runs.map((run) => run.appId)}::uuid[], ${runs.map((run) => run.id)}::uuid[],
      ${runs.map((run) => run.sequence)}::integer[]) with ordinality as given (app_id, id, sequence, place)
    left join automation_runs r on r.app_id = given.app_id and r.id = given.id
      and ${sandboxIsThere(db, 'r.app_id', 'r.sandbox_id')}
    where r.sequence is distinct from given.sequence`;
  return rows.map((row) => row.place);
}

/** A stored entry as the engine reads it. */
export function readEntry(row: EntryRow): JournalEntry {
  return {
    sequence: row.sequence,
    type: row.type,
    record: row.record,
    ...(row.nodeId === null ? {} : { nodeId: row.nodeId }),
    ...(row.commandId === null ? {} : { commandId: row.commandId }),
    ...(row.timerId === null ? {} : { timerId: row.timerId }),
  };
}

/** The link of the journal's entry `sequence`, null before the first one, and the bytes of all entries. */
export type LastLink = { sequence: number; link: Buffer | null; bytes: number };

export type Append = {
  run: { appId: string; id: string };
  /** The automation's id, for the event of a run's end. */
  automation: string;
  /** The journal's highest sequence as the writer knows it. */
  expected: number;
  entries: readonly DraftEntry[];
  /** The run's last link as the writer knows it; it is updated. A wrong one costs only time. */
  last?: LastLink;
  /**
   * Whether nothing else follows in the transaction of the entries, which then commits with them. If they cannot be
   * written, the transaction has failed.
   */
  isLast?: boolean;
  /** The run's status after these entries. */
  status: RunStatus;
  /** Whether a run that was pending shows that it was running before it ended. */
  wasRunning?: boolean;
  result?: unknown;
  error?: unknown;
  /** Whether the run only waits now, and until when at most. */
  waiting: boolean;
  waitingFor?: WaitingFor | null;
  wakeAt: Date | null;
  /** The timer that fires then, if nothing else has to be decided. */
  wakeTimer: WakeTimer | null;
  now: Date;
};

/**
 * Writes entries after the expected sequence and the resulting state of the run, in one statement. Returns false and
 * writes nothing if another process has written to the journal or the run has ended.
 * The end of a run also wakes its parent run, and the next run of an automation with a limit.
 */
export async function appendEntries(db: Db, append: Append): Promise<boolean> {
  const { run, expected, entries, status, now, last } = append;
  const ended = isTerminal(append);
  const written = entries.map(({ type, nodeId, commandId, timerId, record }, index) => ({
    ...{ id: newUuid(), sequence: expected + index + 1, type, record: JSON.stringify(record) },
    ...{ nodeId: nodeId ?? null, commandId: commandId ?? null, timerId: timerId ?? null },
  }));
  const bytes = written.reduce((sum, { record }) => sum + Buffer.byteLength(record), 0);
  const digests = written.map((entry) => digestRunEntry({ ...entry, appId: run.appId, runId: run.id, at: now }));
  const links = last?.sequence === expected && entries.length > 0 ? foldLinks(last.link, digests) : null;
  const wasRunning = (then: Statement) => (append.wasRunning ? db`when old.status = 'pending' then ${then}` : db``);
  const statement = db<{ links: Buffer }[]>`
    with chained as materialized (
      select old.*, case when ${links}::bytea is not null and old.linked = ${expected} and old.link is not distinct from ${last?.link ?? null}
        then ${links} else link_run_entries(old.app_id, old.id, old.link, old.linked, ${expected}, ${Buffer.concat(digests)}) end as links
      from (select app_id, id, status, wake_at, link, linked from automation_runs
        where app_id = ${run.appId} and id = ${run.id} and sequence = ${expected}
          and status in ('pending', 'running') for update) old),
    moved as (
      update automation_runs r set
        link = substr(old.links, length(old.links) - 31), linked = r.sequence + ${entries.length},
        sequence = r.sequence + ${entries.length}, journal_bytes = r.journal_bytes + ${bytes}, status = ${status}, waiting = ${append.waiting},
        waiting_for = ${toJson(append.waitingFor ?? null)}::text::json, wake_at = ${append.wakeAt}, wake_timer = ${toJson(append.wakeTimer)}::text::json, lease_until = null,
        result = coalesce(${append.result === undefined ? null : JSON.stringify(append.result)}::text::json, r.result),
        error = coalesce(${append.error === undefined ? null : JSON.stringify(append.error)}::text::json, r.error),
        -- It has not started, so a rate does not count it.
        rate_key = case when old.status = 'pending' and ${status} = 'cancelled' then null else r.rate_key end,
        started_at = case when ${status} = 'pending' then r.started_at else coalesce(r.started_at, ${now}) end,
        completed_at = ${ended ? now : null},
        version = r.version + case when old.status = ${status} then 0 ${wasRunning(db`2`)} else 1 end,
        changes = case when old.status = ${status} then r.changes
          ${wasRunning(db`note_change(note_change(r.changes, r.version + 1, 'running', ${now}, null), r.version + 2, ${status}, ${now}, null)`)}
          else note_change(r.changes, r.version + 1, ${status}, ${now}, null) end,
        updated_at = case when old.status = ${status} then r.updated_at else ${now} end
      from chained old
      where r.app_id = old.app_id and r.id = old.id
      returning r.app_id, r.id, r.sandbox_id, r.automation_id, r.sequence, r.link, old.links, r.parent_run_id, r.event_depth,
        r.tree_id, r.org_id, r.team_id, r.user_id, r.result, r.error,
        r.traceparent, r.wake_at, old.status as status_before, old.wake_at as wake_before),
    unscheduled as (${deleteWake(db)}),
    ${ended || append.waiting ? anchorRun(db, now) : db``}
    ${ended ? endRun(db, append) : db``}
    ${nameFiles(db, 'moved', filesNamedIn(written.map(({ record }) => record)))}
    written as (
      insert into automation_run_entries (app_id, run_id, sequence, id, type, node_id, command_id, timer_id, record, created_at, link)
      select moved.app_id, moved.id, ${expected}::integer + e.place::integer, e.id, e.type, e.node_id, e.command_id, e.timer_id,
        e.record::json, ${now}, substr(moved.links, 32 * e.place::integer - 31, 32)
      from moved, unnest(${written.map(({ id }) => id)}::uuid[], ${written.map(({ type }) => type)}::text[],
        ${written.map(({ nodeId }) => nodeId)}::text[], ${written.map(({ commandId }) => commandId)}::text[],
        ${written.map(({ timerId }) => timerId)}::text[], ${written.map(({ record }) => record)}::text[])
        with ordinality as e (id, type, node_id, command_id, timer_id, record, place)      -- Without entries there is still a link: the last one.
      where e.id is not null)
    select moved.links, ${append.isLast ? db`1 / (select count(*) from moved) as is_found,` : db``}
      ${ended ? wakeOthers(db) : db``}
      case when moved.status_before <> ${status}
        then pg_notify(${changeChannel}, 'run/' || moved.app_id || '/' || moved.id) end as told
    from ${append.isLast ? db`(select) always left join moved on true` : db`moved`}`;
  const [row] = await (append.isLast ? db.runLast(statement).catch(noRows) : statement);
  if (row === undefined) return false;
  const end = { sequence: expected + entries.length, link: row.links.subarray(-32) };
  if (last) Object.assign(last, { ...end, bytes: last.bytes + bytes });
  return true;
}

/** Nothing was found, so the statement has divided by zero. */
function noRows(error: unknown): [] {
  if (isDatabaseError(error, '22012')) return [];
  throw error;
}

/** SQL: part of a `with` that notes the link of the run in `moved`, which rests or has ended. */
function anchorRun(db: Db, now: Date): Statement {
  return db`anchored as (
      insert into run_anchors (app_id, run_id, sequence, sandbox_id, automation_id, link, at)
      select app_id, id, sequence, sandbox_id, automation_id, link, ${now} from moved where sequence > 0),`;
}

/**
 * SQL: part of a `with` for the run in `moved`, which has ended. No node waits any longer for its approvals, and its
 * event is written if somebody listens.
 */
function endRun(db: Db, { run, automation, status, now }: Append): Statement {
  const event = `automation_run.${status}`;
  return db`closed as (
      update approvals p set status = 'cancelled', closed_at = ${now}
      from moved where p.app_id = moved.app_id and p.run_id = moved.id and p.status = 'waiting'),
    listened as (
      insert into events (app_id, id, sandbox_id, name, payload, depth, tree_id, org_id, team_id, user_id, traceparent)
      select moved.app_id, ${newUuid()}::uuid, moved.sandbox_id, ${event}::text,
        json_build_object('run', ${formatId('automationRun', run.id)}::text, 'automation', ${automation}::text,
          'status', ${status}::text, 'result', moved.result, 'error', moved.error),
        moved.event_depth + 1, coalesce(moved.tree_id, moved.id), moved.org_id, moved.team_id, moved.user_id, moved.traceparent
      from moved where exists (select 1 from automations a where a.app_id = ${run.appId}
          and a.sandbox_id = moved.sandbox_id and a.trigger = ${event} and a.type = 'trigger' and a.status = 'running')
        or event_is_heard(moved.app_id, moved.sandbox_id, ${event})
      returning app_id, id),`;
}

/** SQL: columns that queue the jobs for the listeners of a run that has ended, and for its parent. */
function wakeOthers(db: Db): Statement {
  return db`(select add_job('dispatch_event', json_strip_nulls(json_build_object('appId', listened.app_id,
        'eventId', listened.id, 'traceparent', moved.traceparent)))
        from listened) as event,
      case when moved.parent_run_id is not null then add_job(
        'advance_run', json_strip_nulls(json_build_object('appId', moved.app_id, 'runId', moved.parent_run_id,
          'traceparent', moved.traceparent))) end as parent,`;
}

function toJson(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}

/** Records what a run waits for if there is nothing else to write. False if another process has written meanwhile. */
export async function sleepRun(
  db: Db,
  run: { appId: string; id: string },
  expected: number,
  sleep: { waiting: boolean; waitingFor?: WaitingFor | null; wakeAt: Date | null; wakeTimer: WakeTimer | null },
): Promise<boolean> {
  const rows = await db`
    with moved as (
      update automation_runs r set waiting = ${sleep.waiting}, waiting_for = ${toJson(sleep.waitingFor ?? null)}::text::json,
        wake_at = ${sleep.wakeAt},
        wake_timer = ${toJson(sleep.wakeTimer)}::text::json
      from (select app_id, id, wake_at from automation_runs
        where app_id = ${run.appId} and id = ${run.id} and sequence = ${expected}
          and status in ('pending', 'running') for update) old
      where r.app_id = old.app_id and r.id = old.id
      returning r.app_id, r.id, r.wake_at, old.wake_at as wake_before),
    unscheduled as (${deleteWake(db)})
    select 1 from moved`;
  return rows.length === 1;
}

/** SQL: deletes the wake time of the run in `moved` if the run is no longer due at any time. */
function deleteWake(db: Db): Statement {
  return db`
    delete from automation_run_wakes w using moved
    where moved.wake_at is null and moved.wake_before is not null and w.app_id = moved.app_id and w.run_id = moved.id`;
}

/** Notifies the streams of a run that it has changed. */
export async function announceRun(db: Db, run: { appId: string; id: string }): Promise<void> {
  await announceChange(db, 'run', run.appId, run.id);
}

/** Queues the job that advances a run. Call it in the transaction of the change that the run must see. */
export async function queueAdvance(db: Db, run: { appId: string; id: string }): Promise<void> {
  await db`
    select add_job('advance_run', json_strip_nulls(json_build_object('appId', app_id, 'runId', id,
      'traceparent', traceparent)))
    from automation_runs where app_id = ${run.appId} and id = ${run.id}`;
}

export async function findGraph(db: Db, appId: string, automationId: string, version: number): Promise<unknown> {
  const [row] = await db<{ graph: unknown }[]>`
    select graph from automation_graphs
    where app_id = ${appId} and automation_id = ${automationId} and version = ${version}`;
  return row?.graph;
}

export async function insertChild(
  db: Db,
  run: { appId: string; id: string },
  child: { kind: string; id: string },
  commandId: string,
): Promise<void> {
  await db`
    insert into automation_run_children (app_id, child_kind, child_id, run_id, command_id)
    values (${run.appId}, ${child.kind}, ${child.id}, ${run.id}, ${commandId})
    on conflict do nothing`;
}

/** The ids of a run's children that have not ended. */
export async function listChildRuns(db: Db, run: { appId: string; id: string }): Promise<string[]> {
  const rows = await db<{ id: string }[]>`
    select id from automation_runs
    where app_id = ${run.appId} and parent_run_id = ${run.id} and status in ('pending', 'running')`;
  return rows.map((row) => row.id);
}
