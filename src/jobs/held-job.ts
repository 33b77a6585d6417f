import type { Job } from 'graphile-worker';
import type pg from 'pg';

/** How often a job may crash its process or throw an uncaught exception before it is set aside. */
export const crashesMax = 3;
/** Jobs that were active in two crashes run one at a time, to find the one that causes them. */
export const suspectsQueue = 'suspects';

/** A job that this process holds: its row in the queue, locked in the name of its worker pool. */
export class HeldJob {
  readonly #pool: pg.Pool;
  readonly #poolId: string;
  #id: string;

  constructor(pool: pg.Pool, poolId: string, job: Job) {
    this.#pool = pool;
    this.#poolId = poolId;
    this.#id = job.id;
  }

  /**
   * Detaches the job from the library by changing its id, so that the library does not end the job with the task. The
   * job stays locked, so it is recovered if the process dies. Returns false for a job in a named queue and for one
   * that was lost.
   */
  async detach(): Promise<boolean> {
    const { rows } = await this.#pool.query<{ id: string }>(
      `with freed as (
         update graphile_worker._private_job_queues queues set locked_at = null, locked_by = null
         from graphile_worker._private_jobs jobs
         where jobs.id = $1 and jobs.locked_by = $2 and queues.id = jobs.job_queue_id and queues.queue_name = $3
         returning queues.id)
       update graphile_worker._private_jobs jobs
       set id = default, job_queue_id = null, flags = coalesce(flags, '{}') || '{"waits": true}'
       where id = $1 and locked_by = $2 and (job_queue_id is null or job_queue_id in (select id from freed))
       returning id`,
      [this.#id, this.#poolId, suspectsQueue],
    );
    const [row] = rows;
    if (row === undefined) return false;
    this.#id = row.id;
    return true;
  }

  async complete(): Promise<void> {
    await this.#end('delete from graphile_worker._private_jobs where id = $1 and locked_by = $2', []);
  }

  /** Schedules the next attempt, as the library does. */
  async fail(message: string): Promise<void> {
    await this.#end(
      `update graphile_worker._private_jobs set last_error = $3, locked_at = null, locked_by = null, flags = flags - 'waits',
         run_at = greatest(now(), run_at) + exp(least(attempts, 10)) * interval '1 second'
       where id = $1 and locked_by = $2`,
      [message],
    );
  }

  /** Ends the attempt and unlocks the job's named queue. */
  async #end(statement: string, values: string[]): Promise<void> {
    await this.#pool.query(
      `with ended as (${statement} returning job_queue_id)
       update graphile_worker._private_job_queues queues set locked_at = null, locked_by = null
       from ended where queues.id = ended.job_queue_id and queues.locked_by = $2`,
      [this.#id, this.#poolId, ...values],
    );
  }

  /** Releases the job as if it had never started. It becomes due after `delayMs`. */
  async release(delayMs = 0): Promise<void> {
    await releaseJobs(this.#pool, this.#poolId, [this.#id], delayMs);
  }

  /** Records an uncaught exception of the job. The third one sets it aside. */
  async noteCrash(reason: string): Promise<void> {
    await this.#pool.query(
      `update graphile_worker._private_jobs set ${crashColumns} where id = $1 and locked_by = $2`,
      [this.#id, this.#poolId, reason],
    );
  }
}

/**
 * SQL that records one more crash of jobs; $3 is the reason. After the last allowed crash, a job is not retried. The
 * caller adds the `update` of `jobs` and the condition.
 */
export const crashColumns = `
  flags = coalesce(flags, '{}') - 'waits' || jsonb_build_object('crashes', coalesce((flags->>'crashes')::integer, 0) + 1),
  attempts = case when coalesce((flags->>'crashes')::integer, 0) + 1 >= ${crashesMax} then max_attempts else attempts end,
  last_error = $3`;

/** Releases jobs as if they had never started: the named jobs, or all jobs of this pool. */
export async function releaseJobs(
  pool: pg.Pool,
  poolId: string,
  jobIds: string[] | undefined,
  delayMs = 0,
): Promise<void> {
  await pool.query(
    `with released as (
       update graphile_worker._private_jobs set locked_at = null, locked_by = null, attempts = greatest(attempts - 1, 0),
         flags = flags - 'waits', run_at = greatest(run_at, now() + $3 * interval '1 millisecond')
       where locked_by = $1 and ($2::bigint[] is null or id = any ($2::bigint[])) returning job_queue_id)
     update graphile_worker._private_job_queues queues set locked_at = null, locked_by = null
     from released where queues.id = released.job_queue_id`,
    [poolId, jobIds ?? null, delayMs],
  );
  if (delayMs === 0) await pool.query(announceJobs);
}

/** Releases jobs that a claim with a lost response locked for this pool: all jobs except those that the pool knows. */
export async function releaseOtherJobs(pool: pg.Pool, poolId: string, knownIds: string[]): Promise<void> {
  const { rows } = await pool.query<{ id: string }>(
    `select id from graphile_worker._private_jobs
     where locked_by = $1 and not coalesce(flags ? 'waits', false) and id <> all ($2::bigint[])`,
    [poolId, knownIds],
  );
  if (rows.length > 0)
    await releaseJobs(
      pool,
      poolId,
      rows.map(({ id }) => id),
    );
}

/** Wakes idle workers, as the library does when a job is added. */
export const announceJobs = `select pg_notify('jobs:insert', '{"r":' || random()::text || ',"count":100}')`;
