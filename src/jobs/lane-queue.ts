import type { Job } from 'graphile-worker';
import type pg from 'pg';

/** SQL for taking jobs by lane. There is one lane for each app, and one for jobs without an app. */

/** The app in the job's payload. */
export const lane = `coalesce(payload->>'appId', payload->>'app_id', '')`;
/** The default priority. Larger numbers run later. */
const usualPriority = 0;
/** The number of lanes in one read. The next read starts after them. */
const lanesMax = 200;

export type DueJob = { id: string; lane: string };

/** An index for reading the first jobs of each lane without scanning the others. */
export const laneIndex = `
  create index if not exists quarry_jobs_by_lane on graphile_worker._private_jobs ((${lane}), priority, run_at)
  where is_available`;

/** For counting the few jobs that hold a slot without reading the waiting ones. */
const holdsSlot = `locked_by is not null and not coalesce(flags ? 'waits', false)`;
export const slotIndex = `
  create index if not exists quarry_jobs_in_slots on graphile_worker._private_jobs ((${lane}), locked_by) where ${holdsSlot}`;

/** Processes claim jobs one after another, so that each sees what the others hold. */
const claimLock = 'pg_advisory_xact_lock(7130241004)';

/** The ids of these tasks in the job queue's tables. */
export async function findTaskIds(pool: pg.Pool, tasks: string[]): Promise<Map<number, string>> {
  await pool.query(
    `insert into graphile_worker._private_tasks (identifier) select unnest($1::text[]) on conflict do nothing`,
    [tasks],
  );
  const { rows } = await pool.query<{ id: number; identifier: string }>(
    'select id, identifier from graphile_worker._private_tasks where identifier = any ($1)',
    [tasks],
  );
  return new Map(rows.map(({ id, identifier }) => [id, identifier]));
}

type DueFilter = { taskIds: number[]; lowPriority: boolean; ofLaneMax: number; after: string };

/**
 * The first due jobs of each lane after `after`, in order. Without `lowPriority`, jobs below the default priority are
 * left out. `last` is where the next read starts.
 */
export async function findDueJobs(
  pool: pg.Pool,
  { taskIds, lowPriority, ofLaneMax, after }: DueFilter,
): Promise<{ due: DueJob[]; last: string }> {
  const { rows } = await pool.query<{ id: string | null; lane: string; place: string }>({
    name: 'find-due-jobs',
    text: `
      with recursive lanes as (
        (select ${lane} as lane, 1 as place from graphile_worker._private_jobs
          where is_available and ${lane} >= $3 order by ${lane} limit 1)
        union all
        select (select ${lane} from graphile_worker._private_jobs
          where is_available and ${lane} > lanes.lane order by ${lane} limit 1), lanes.place + 1
        from lanes where lanes.lane is not null and lanes.place < ${lanesMax})
      select first.id, lanes.lane, lanes.place
      from lanes left join lateral (
        select id from graphile_worker._private_jobs jobs
        where is_available and ${lane} = lanes.lane and priority <= $4 and run_at <= now() and task_id = any ($1)
          and (job_queue_id is null or exists (
            select 1 from graphile_worker._private_job_queues queues
            where queues.id = jobs.job_queue_id and queues.is_available))
        order by priority, run_at limit $2) first on true
      where lanes.lane is not null
      order by lanes.place`,
    values: [taskIds, ofLaneMax, after, lowPriority ? 32_767 : usualPriority],
  });
  const end = rows.at(-1);
  return {
    due: rows.flatMap(({ id, lane: name }) => (id === null ? [] : [{ id, lane: name }])),
    last: Number(end?.place ?? 0) < lanesMax ? '' : (end?.lane ?? ''),
  };
}

/**
 * Locks the jobs that `choose` returns. `choose` gets the number of jobs that each lane holds in the slots of other
 * processes, and no process claims jobs between that count and the lock. A claim that the database loses in a crash
 * does no harm: it was committed before anything that the job wrote.
 */
export async function claimJobs(
  pool: pg.Pool,
  poolId: string,
  choose: (heldElsewhere: Map<string, number>) => string[],
): Promise<LockedJob[]> {
  const client = await pool.connect();
  let failure: Error | undefined;
  try {
    // One round trip. For several statements, the driver returns an array of results, which its types do not declare.
    const results: unknown = await client.query(
      `begin; set local synchronous_commit = off; select ${claimLock};
       select ${lane} as lane, count(*)::integer as held from graphile_worker._private_jobs
       where ${holdsSlot} and locked_by <> ${client.escapeLiteral(poolId)} group by 1`,
    );
    const rows = (results as pg.QueryResult<{ lane: string; held: number }>[]).at(-1)?.rows ?? [];
    const ids = choose(new Map(rows.map((row) => [row.lane, row.held])));
    const jobs = ids.length === 0 ? [] : await lockJobs(client, poolId, ids);
    await client.query('commit');
    return jobs;
  } catch (error) {
    failure = error instanceof Error ? error : new Error(String(error));
    throw error;
  } finally {
    // The connection of a failed transaction is closed.
    client.release(failure);
  }
}

type LockedJob = Omit<Job, 'task_identifier'>;

/** Locks these jobs for a worker pool, except those taken in the meantime, and at most one of each named queue. */
export async function lockJobs(db: pg.Pool | pg.PoolClient, poolId: string, ids: string[]): Promise<LockedJob[]> {
  const { rows } = await db.query<LockedJob>({
    name: 'lock-jobs',
    text: `
      with free as (
        select id from graphile_worker._private_job_queues where is_available and id in (
          select job_queue_id from graphile_worker._private_jobs where id = any ($2) and job_queue_id is not null)
        for update skip locked),
      open as (
        select id, job_queue_id, row_number() over (partition by job_queue_id order by priority, run_at) as place
        from (select id, job_queue_id, priority, run_at from graphile_worker._private_jobs
          where id = any ($2) and is_available and (job_queue_id is null or job_queue_id in (select id from free))
          for update skip locked) jobs),
      chosen as (select id, job_queue_id from open where job_queue_id is null or place = 1),
      queues as (
        update graphile_worker._private_job_queues queues set locked_by = $1, locked_at = now()
        from chosen where queues.id = chosen.job_queue_id)
      update graphile_worker._private_jobs jobs
      set attempts = jobs.attempts + 1, locked_by = $1, locked_at = now()
      from chosen where jobs.id = chosen.id
      returning jobs.*`,
    values: [poolId, ids],
  });
  return rows;
}
