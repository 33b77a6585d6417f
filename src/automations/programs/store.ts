/*
 * SQL for the work on runs of programs.
 * The trigger offer_program_run of automation_runs adds the row of a new run, and end_program_work closes it.
 *
 * Triggers of automation_program_work: wake_program_hosts_first and wake_program_hosts add the job that wakes functions,
 * and note_woken_program ends the failures of a webhook whose function has written something.
 */
import type { Db } from '../../db/database.ts';
import type { ProgramEntry } from './state.ts';

export type ProgramWork = {
  readyAt: Date | null;
  claim: string | null;
  leaseSeconds: number | null;
  leaseUntil: Date | null;
  codeVersion: string | null;
  refusedVersions: string[];
  seen: number;
  batchAfter: number | null;
  batchDigest: Buffer | null;
  /** The webhook whose function has or had the claim, and the event that offered it. */
  wokenBy: string | null;
  wakeEvent: string | null;
  /** How often a function was woken since it last wrote something, and when it may be woken again. */
  wakes: number;
  wakeAfter: Date | null;
};

export async function findWorkOf(db: Db, run: { appId: string; id: string }): Promise<ProgramWork | undefined> {
  return db<ProgramWork[]>`
    select ready_at, claim, lease_seconds, lease_until, code_version, refused_versions, seen, batch_after, batch_digest,
      woken_by, wake_event, wakes, wake_after
    from automation_program_work where app_id = ${run.appId} and run_id = ${run.id}`.first();
}

export async function saveWorkOf(db: Db, run: { appId: string; id: string }, work: ProgramWork): Promise<void> {
  await db`
    update automation_program_work set ready_at = ${work.readyAt}, claim = ${work.claim}, lease_seconds = ${work.leaseSeconds},
      lease_until = ${work.leaseUntil}, code_version = ${work.codeVersion},
      refused_versions = ${work.refusedVersions}::text[], seen = ${work.seen}, batch_after = ${work.batchAfter},
      batch_digest = ${work.batchDigest}, woken_by = ${work.wokenBy}, wake_event = ${work.wakeEvent},
      wakes = ${work.wakes}, wake_after = ${work.wakeAfter}
    where app_id = ${run.appId} and run_id = ${run.id}`;
}

/**
 * The runs that may be claimed now, those ready for longest first. Nothing is locked.
 * @param full automations that may not start another run now
 */
export async function findReadyRuns(
  db: Db,
  app: { appId: string },
  wanted: { automations: readonly string[]; full: readonly string[]; codeVersion: string; skip: readonly string[] },
  now: Date,
  count: number,
): Promise<{ runId: string; automationId: string }[]> {
  return db`
    select w.run_id, w.automation_id
    from automation_program_work w join automation_runs r on r.app_id = w.app_id and r.id = w.run_id
    where w.app_id = ${app.appId} and w.automation_id = any(${[...wanted.automations]}::uuid[]) and w.ready_at <= ${now}
      and w.run_id <> all(${[...wanted.skip]}::uuid[]) and ${wanted.codeVersion} <> all(w.refused_versions)
      and (r.status = 'running' or r.status = 'pending' and w.automation_id <> all(${[...wanted.full]}::uuid[]))
    order by w.ready_at, w.run_id limit ${count}`;
}

/** When the next claim on a run of these automations expires, if there is one. */
export async function findNextExpiry(
  db: Db,
  app: { appId: string },
  automations: readonly string[],
  now: Date,
): Promise<Date | undefined> {
  const [row] = await db<{ readyAt: Date }[]>`
    select ready_at from automation_program_work
    where app_id = ${app.appId} and automation_id = any(${[...automations]}::uuid[]) and ready_at > ${now}
    order by ready_at limit 1`;
  return row?.readyAt;
}

/** What the state of a run needs of its entries after `after`: not the outputs, which may be large. */
export async function listFacts(db: Db, run: { appId: string; id: string }, after: number): Promise<ProgramEntry[]> {
  const rows = await db<
    (Omit<ProgramEntry, 'record' | 'nodeId' | 'commandId' | 'timerId'> & {
      nodeId: string | null;
      commandId: string | null;
      timerId: string | null;
      timestamp: string;
      metadata: NonNullable<ProgramEntry['record']['metadata']> | null;
      payload: unknown;
    })[]
  >`
    select sequence, type, node_id, command_id, timer_id, record->'timestamp' as timestamp, record->'metadata' as metadata,
      case when type in ('timer_started', 'signal_waiting', 'child_run_started', 'node_retry_scheduled') then record->'payload'
        when type = 'signal_received' then json_build_object('name', record->'payload'->'name') end as payload
    from automation_run_entries where app_id = ${run.appId} and run_id = ${run.id} and sequence > ${after}
    order by sequence`;
  return rows.map(({ sequence, type, nodeId, commandId, timerId, timestamp, metadata, payload }) => ({
    sequence,
    type,
    ...(nodeId === null ? {} : { nodeId }),
    ...(commandId === null ? {} : { commandId }),
    ...(timerId === null ? {} : { timerId }),
    record: { timestamp, payload, ...(metadata === null ? {} : { metadata }) },
  }));
}

/** The payload of one entry. */
export async function findPayload(db: Db, run: { appId: string; id: string }, sequence: number): Promise<unknown> {
  const [row] = await db<{ payload: unknown }[]>`
    select record->'payload' as payload from automation_run_entries
    where app_id = ${run.appId} and run_id = ${run.id} and sequence = ${sequence}`;
  return row?.payload;
}

export async function insertFragments(
  db: Db,
  run: { appId: string; id: string },
  fragments: readonly { sequence: number; secrets: Buffer }[],
): Promise<void> {
  for (const { sequence, secrets } of fragments)
    await db`insert into automation_entry_fragments (app_id, run_id, sequence, secrets)
      values (${run.appId}, ${run.id}, ${sequence}, ${secrets})`;
}

export async function listFragments(
  db: Db,
  run: { appId: string; id: string },
  after: number,
  last: number,
): Promise<{ sequence: number; secrets: Buffer }[]> {
  return db`
    select sequence, secrets from automation_entry_fragments
    where app_id = ${run.appId} and run_id = ${run.id} and sequence > ${after} and sequence <= ${last}`;
}

/** Stores why the code does not fit the journal; null when it fits. */
export async function setWorkflowChanged(
  db: Db,
  run: { appId: string; id: string },
  changed: { expected: unknown; found: unknown } | null,
): Promise<void> {
  await db`
    update automation_runs set workflow_changed = ${changed === null ? null : JSON.stringify(changed)}::text::json
    where app_id = ${run.appId} and id = ${run.id}`;
}
