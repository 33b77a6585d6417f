import { type Database, type Db, nobody, type Statement } from '../db/database.ts';
import { isInUse } from '../db/fences.ts';
import { hasEnded } from '../db/holder-lock.ts';
import { storableText } from '../lib/storable-text.ts';

/** How often a job may crash its process or throw an uncaught exception before it is set aside. */
export const crashesMax = 3;
/** Half of a 64-bit advisory lock key; the other half is the hash of the worker pool's name. */
export const presenceLockSpace = 7_130_241;
/** The channel on which `add_job` announces due jobs. Processes of release 0.1.0 listen on it as well. */
export const jobsChannel = 'jobs:insert';
/** An error may quote what another server sent. */
const reasonCharactersMax = 10_000;
/** Where the first read of the lanes starts. Jobs without an app are in this lane. */
export const firstLane = nobody;
/** The number of lanes in one read. The next read starts after them. */
const lanesMax = 200;
/** The default priority. Larger numbers run later. */
const usualPriority = 0;
const anyPriority = 32_767;
/** Processes claim jobs one after another, so that each sees what the others hold. */
const claimLock = 7_130_241_004;

/** A recurring task, which runs once per period across all processes. */
export type Recurring = { task: string; everySeconds: number };
export type JobPlace = { appId: string; id: number };
export type ClaimedJob = JobPlace & {
  task: string;
  payload: object;
  attempts: number;
  maxAttempts: number;
  crashes: number;
};

type DueFilter = { tasks: string[]; lowPriority: boolean; ofLaneMax: number; after: string };

/**
 * The first due jobs of each lane from `after` on, in order. Without `lowPriority`, jobs below the default priority are
 * left out. `last` is where the next read starts; `isFull` tells that a lane may have more.
 */
export async function findDueJobs(
  db: Db,
  { tasks, lowPriority, ofLaneMax, after }: DueFilter,
): Promise<{ due: JobPlace[]; last: string; isFull: boolean }> {
  const rows = await db<{ id: number | null; appId: string; place: number }[]>`
    with recursive lanes as (
      (select app_id, 1 as place from jobs
        where locked_by is null and attempts < max_attempts and app_id >= ${after} order by app_id limit 1)
      union all
      select (select app_id from jobs
        where locked_by is null and attempts < max_attempts and app_id > lanes.app_id order by app_id limit 1),
        lanes.place + 1
      from lanes where lanes.app_id is not null and lanes.place < ${lanesMax})
    select first.id, lanes.app_id, lanes.place
    from lanes left join lateral (
      select id from jobs
      where locked_by is null and attempts < max_attempts and app_id = lanes.app_id
        and priority <= ${lowPriority ? anyPriority : usualPriority} and run_at <= now() and task = any (${tasks})
      order by priority, run_at, id limit ${ofLaneMax}) first on ${isInUse(db, 'lanes.app_id')}
    where lanes.app_id is not null
    order by lanes.place`;
  const end = rows.at(-1);
  // The jobs of a lane are adjacent.
  const isFull = rows.some(({ appId }, at) => rows[at + ofLaneMax - 1]?.appId === appId);
  return {
    due: rows.flatMap(({ id, appId }) => (id === null ? [] : [{ id, appId }])),
    last: end !== undefined && end.place === lanesMax ? end.appId : firstLane,
    isFull,
  };
}

/**
 * Locks the jobs that `choose` returns. `choose` gets the number of jobs that each lane holds in the slots of other
 * processes, and no process claims jobs between that count and the lock.
 */
export function claimJobs(
  db: Database,
  poolId: string,
  choose: (heldElsewhere: Map<string, number>) => JobPlace[],
): Promise<ClaimedJob[]> {
  let chosen: JobPlace[] | undefined;
  return db.begin(async (tx) => {
    // One round trip: the statements are sent without waiting for each other.
    const [, rows] = await Promise.all([
      tx`select pg_advisory_xact_lock(${claimLock}::bigint)`,
      tx<{ appId: string; held: number }[]>`
        select app_id, count(*) as held from jobs
        where locked_by is not null and not waits and locked_by <> ${poolId} group by app_id`,
    ]);
    chosen ??= choose(new Map(rows.map(({ appId, held }) => [appId, held])));
    return chosen.length === 0 ? [] : lockJobs(tx, poolId, chosen);
  });
}

/**
 * Locks these jobs for a worker pool, except those taken or postponed in the meantime. The commit does not wait for the
 * disk: a claim that the database loses in a crash does no harm, because it was committed before anything that the job
 * wrote.
 */
export function lockJobs(db: Db, poolId: string, jobs: JobPlace[]): Promise<ClaimedJob[]> {
  return db<ClaimedJob[]>`
    with settings as materialized (select set_config('synchronous_commit', 'off', true))
    update jobs set attempts = jobs.attempts + 1, locked_by = ${poolId}, locked_at = now()
    from (
      select app_id, id from jobs cross join settings
      where (app_id, id) in (select * from unnest(${jobs.map(({ appId }) => appId)}::uuid[],
          ${jobs.map(({ id }) => id)}::bigint[]))
        and locked_by is null and attempts < max_attempts and run_at <= now()
      for update of jobs skip locked) open
    where jobs.app_id = open.app_id and jobs.id = open.id
    returning jobs.app_id, jobs.id, task, payload, attempts, max_attempts, crashes`;
}

/** Whether a job of the same task and app, with the same members in its payload, was taken before this one and is active. */
export async function isBehind(db: Db, { appId, id }: JobPlace, same: Record<string, string | null>): Promise<boolean> {
  const { count } = await db`
    select from jobs mine join jobs other on other.app_id = mine.app_id and other.task = mine.task
    where mine.app_id = ${appId} and mine.id = ${id} and other.locked_by is not null
      and not exists (
        select from json_each_text(${JSON.stringify(same)}::text::json) as wanted(member, value)
        where other.payload ->> wanted.member is distinct from wanted.value)
      and (other.locked_at, other.id) < (mine.locked_at, mine.id)
    limit 1`;
  return count > 0;
}

/** Marks a job as waiting outside the slots. False if the pool has lost it. */
export async function markWaiting(db: Db, poolId: string, { appId, id }: JobPlace): Promise<boolean> {
  const { count } = await db`
    update jobs set waits = true where app_id = ${appId} and id = ${id} and locked_by = ${poolId}`;
  return count > 0;
}

/**
 * Deletes jobs of a worker pool, except those whose rows another transaction has locked: the statement would keep the
 * locks of the others while it waits. Returns which of the jobs are gone. The arrays keep a plan that was made for an
 * empty table from reading the whole table.
 */
export async function deleteJobs(db: Db, poolId: string, jobs: JobPlace[]): Promise<boolean[]> {
  const [apps, ids] = [jobs.map(({ appId }) => appId), jobs.map(({ id }) => id)];
  const rows = await db<{ id: number }[]>`
    with open as materialized (
      select app_id, id from jobs
      where app_id = any (${[...new Set(apps)]}::uuid[]) and id = any (${ids}::bigint[]) and locked_by = ${poolId}
        and (app_id, id) in (select * from unnest(${apps}::uuid[], ${ids}::bigint[]))
      for update of jobs skip locked)
    delete from jobs
    where app_id = any (array(select app_id from open)) and id = any (array(select id from open))
      and (app_id, id) = any (array(select open from open))
    returning id`;
  const gone = new Set(rows.map(({ id }) => id));
  return jobs.map(({ id }) => gone.has(id));
}

/** Deletes a job of a worker pool, however long another transaction has its row locked. */
export async function deleteJob(db: Db, poolId: string, { appId, id }: JobPlace): Promise<void> {
  await db`delete from jobs where app_id = ${appId} and id = ${id} and locked_by = ${poolId}`;
}

/**
 * Adds the next run of a recurring task. The task's name is the job's key, so only one job exists however many
 * processes add it.
 */
export async function addRecurringJob(db: Db, { task, everySeconds }: Recurring): Promise<void> {
  await db`
    select add_job(${task}, '{}', key := 'recurring/' || ${task}, keep_run_at := true,
      run_at := ${nextPeriod(db, everySeconds)})`;
}

/**
 * Ends a run of a recurring job by making it wait for the next one. False if the pool has lost the job, another process
 * has added the next one, or the job has another key: somebody asked for the task once.
 */
export async function repeatJob(
  db: Db,
  poolId: string,
  { appId, id }: JobPlace,
  everySeconds: number,
): Promise<boolean> {
  const { count } = await db`
    update jobs set locked_by = null, locked_at = null, waits = false, attempts = 0, crashes = 0, last_error = null,
      updated_at = now(), run_at = ${nextPeriod(db, everySeconds)}
    where app_id = ${appId} and id = ${id} and locked_by = ${poolId} and key = 'recurring/' || task`;
  return count > 0;
}

/** SQL: the next multiple of the period by the database's clock, so that all processes agree on it. */
function nextPeriod(db: Db, everySeconds: number): Statement {
  return db`to_timestamp(
    (floor(extract(epoch from clock_timestamp()) / ${everySeconds}::integer) + 1) * ${everySeconds}::integer)`;
}

/** Schedules the next attempt. After the last one, the job is set aside. */
export async function failJob(db: Db, poolId: string, { appId, id }: JobPlace, reason: string): Promise<void> {
  await db`
    update jobs set last_error = ${storableText(reason.slice(0, reasonCharactersMax))}, locked_by = null, locked_at = null, waits = false, updated_at = now(),
      run_at = greatest(now(), run_at) + exp(least(attempts, 10)) * interval '1 second'
    where app_id = ${appId} and id = ${id} and locked_by = ${poolId}`;
}

/** Records an uncaught exception of a job. After the last allowed one, the job is not retried. */
export async function noteCrash(db: Db, poolId: string, { appId, id }: JobPlace): Promise<void> {
  await db`
    update jobs set crashes = crashes + 1,
      attempts = case when crashes + 1 >= ${crashesMax} then max_attempts else attempts end
    where app_id = ${appId} and id = ${id} and locked_by = ${poolId}`;
}

/** Releases jobs of a worker pool as if they had never started: all, or the named ones. They are due after `delayMs`. */
export async function releaseJobs(
  db: Db,
  poolId: string,
  { only, except = [], delayMs = 0 }: { only?: number[]; except?: number[]; delayMs?: number } = {},
): Promise<void> {
  const { count } = await db`
    update jobs set locked_by = null, locked_at = null, waits = false, attempts = greatest(attempts - 1, 0),
      run_at = greatest(run_at, now() + ${delayMs} * interval '1 millisecond')
    from (
      select app_id, id from jobs
      where locked_by = ${poolId} and (id = any (${only ?? null}::bigint[])) is not false
        and id <> all (${except}::bigint[])
      order by app_id, id for update) held
    where jobs.app_id = held.app_id and jobs.id = held.id`;
  if (count > 0 && delayMs === 0) await announceJobs(db);
}

/**
 * The number of living worker pools, and those other than this one that hold jobs and whose process does not hold its
 * lock.
 */
export async function checkPools(db: Db, poolId: string): Promise<{ workers: number; missing: string[] }> {
  return db<[{ workers: number; missing: string[] }]>`
    select ${livingPools(db)} as workers, array(
      select holders.locked_by
      from (select distinct locked_by from jobs where locked_by is not null offset 0) holders
      where holders.locked_by <> ${poolId}
        and ${hasEnded(db, presenceLockSpace, db`holders.locked_by`)}) as missing`.first();
}

/**
 * Releases the jobs of worker pools whose process has died, and returns the tasks of those that may have caused it. A
 * waiting job did not, so it gets its attempt back. Neither did a suspect, which never runs in the process of its pool.
 * Another job keeps at least one attempt, because only a failure may be the last one.
 */
export async function releaseDeadPools(db: Db, poolIds: string[]): Promise<string[]> {
  const rows = await db<{ task: string; crashed: boolean }[]>`
    with held as (
      select app_id, id, waits or crashes >= ${crashesMax - 1} as innocent from jobs
      where locked_by = any (${poolIds}) order by app_id, id for update)
    update jobs set locked_by = null, locked_at = null, waits = false,
      attempts = case when innocent then greatest(attempts - 1, 0) else least(attempts, max_attempts - 1) end,
      crashes = case when innocent then crashes else crashes + 1 end,
      last_error = case when innocent then last_error else 'The process died while it ran this job.' end
    from held where jobs.app_id = held.app_id and jobs.id = held.id
    returning task, not innocent as crashed`;
  await announceJobs(db);
  return rows.filter(({ crashed }) => crashed).map(({ task }) => task);
}

export async function countWorkers(db: Db): Promise<number> {
  const [row] = await db<[{ count: number }]>`select ${livingPools(db)} as count`;
  return row.count;
}

/** SQL: the number of living worker pools. Each holds a session lock. */
function livingPools(db: Db): Statement {
  return db`(select count(distinct objid) from pg_locks
    where locktype = 'advisory' and classid = ${presenceLockSpace}::bigint::oid and objsubid = 2 and granted
      and database = (select oid from pg_database where datname = current_database()))`;
}

export async function announceJobs(db: Db): Promise<void> {
  await db`select pg_notify(${jobsChannel}, '')`;
}
