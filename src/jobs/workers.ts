import { setTimeout as wait } from 'node:timers/promises';
import { type Job, type JobHelpers, runTaskList, type TaskList, type WorkerPool } from 'graphile-worker';
import type pg from 'pg';
import type { DatabaseTarget } from '../db/address.ts';
import type { Logger } from '../log.ts';
import { openJobPool, workerLogger } from './connection.ts';
import { announceJobs, Presence } from './presence.ts';
import type { JobPayload } from './queue.ts';

export type JobContext = {
  jobId: string;
  /** 1 at the first try. */
  attempt: number;
  isLastAttempt: boolean;
  /** Aborted when this process stops: keep what is done and throw, and the job goes on elsewhere, not counted as failed. */
  signal: AbortSignal;
  log: Logger;
};

/** Does one job. May run more than once for the same job, also at the same time in rare cases: be safe to repeat. */
export type Task = TaskShape['run'];
/** Written as a method so that a task may name its own payload's members. */
type TaskShape = { run(payload: JobPayload, context: JobContext): Promise<void> };

/** A task that repeats: once every so many seconds for all processes together. */
export type Recurring = { task: string; everySeconds: number };

export type WorkersOptions = {
  /** A direct connection: LISTEN and session locks do not pass a transaction pooler. */
  target: DatabaseTarget;
  tasks: Record<string, Task>;
  recurring?: Recurring[];
  /** Jobs that this process runs at the same time. */
  concurrency: number;
  log: Logger;
};

export type Workers = {
  /** Takes no more jobs, lets those that run finish for `patienceMs`, and gives the rest back. Safe to call again. */
  stop(patienceMs: number): Promise<void>;
};

/** Runs jobs of these tasks until stopped. */
export async function startWorkers(options: WorkersOptions): Promise<Workers> {
  const { target, tasks, recurring = [], concurrency, log } = options;
  const stopping = new AbortController();
  const pool = openJobPool(target, connections(concurrency), log);
  try {
    for (const each of recurring) await addNext(pool, each);
  } catch (error) {
    await pool.end();
    throw error;
  }
  const release = (jobIds: string[] | undefined) => releaseJobs(pool, workerPool.id, jobIds);
  const taskList: TaskList = {};
  for (const [name, task] of Object.entries(tasks)) {
    const repeat = recurring.find((each) => each.task === name);
    taskList[name] = (payload, helpers) =>
      runTask({ name, task, repeat, pool, log, signal: stopping.signal, release }, payload, helpers);
  }
  const workerPool = runTaskList(
    { concurrency, pollInterval: pollMs, noHandleSignals: true, logger: workerLogger(log) },
    taskList,
    pool,
  );
  // A pool that gives up, say because the tables are of a newer release, must not end the process by a lost rejection.
  workerPool.promise.catch((error: unknown) => log.error({ err: error }, 'The job workers stopped'));
  const presence = new Presence(target, workerPool.id, log);
  let stopped: Promise<void> | undefined;
  return {
    stop(patienceMs) {
      stopped ??= stop(workerPool, pool, presence, stopping, patienceMs, log);
      return stopped;
    },
  };
}

/** Due jobs are seen by notification; this finds those that were due later, or whose notification was lost. */
const pollMs = 1_000;
const forceMs = 1_000;

/** One listens, the others fetch and finish jobs: a job that runs holds no connection. */
function connections(concurrency: number): number {
  return 1 + Math.min(concurrency, 4);
}

type TaskRun = {
  name: string;
  task: Task;
  repeat: Recurring | undefined;
  pool: pg.Pool;
  log: Logger;
  signal: AbortSignal;
  release(jobIds: string[]): Promise<void>;
};

async function runTask(run: TaskRun, payload: unknown, helpers: JobHelpers): Promise<void> {
  const { job } = helpers;
  const log = run.log.child({ task: run.name, jobId: job.id });
  try {
    // Fetched in the very moment of stopping: whoever has more time does it.
    run.signal.throwIfAborted();
    await run.task(payload as JobPayload, { ...describe(job), signal: run.signal, log });
  } catch (error) {
    if (run.signal.aborted) {
      await run.release([job.id]);
      log.info({ err: error }, 'Job given back, because this process stops');
    } else {
      log.error({ err: error, attempt: job.attempts, attemptsMax: job.max_attempts }, 'Job failed');
    }
    throw error;
  } finally {
    if (run.repeat) await addNext(run.pool, run.repeat);
  }
}

function describe(job: Job): { jobId: string; attempt: number; isLastAttempt: boolean } {
  return { jobId: job.id, attempt: job.attempts, isLastAttempt: job.attempts >= job.max_attempts };
}

/**
 * The next turn of a recurring task. Its key is the task's name, so there is one job for it whoever adds it, and its
 * time is a multiple of the period by the database's clock, so every process means the same turn.
 */
async function addNext(pool: pg.Pool, { task, everySeconds }: Recurring): Promise<void> {
  await pool.query(
    `select graphile_worker.add_job(
       identifier := $1, payload := '{}'::json, job_key := 'recurring/' || $1, job_key_mode := 'preserve_run_at',
       run_at := to_timestamp((floor(extract(epoch from clock_timestamp()) / $2::integer) + 1) * $2::integer))`,
    [task, everySeconds],
  );
}

/** Gives running jobs back as if they had not begun; all of this pool's when none are named. */
async function releaseJobs(pool: pg.Pool, poolId: string, jobIds: string[] | undefined): Promise<void> {
  await pool.query(
    `with released as (
       update graphile_worker._private_jobs set locked_at = null, locked_by = null, attempts = greatest(attempts - 1, 0)
       where locked_by = $1 and ($2::bigint[] is null or id = any ($2::bigint[])) returning job_queue_id)
     update graphile_worker._private_job_queues queues set locked_at = null, locked_by = null
     from released where queues.id = released.job_queue_id`,
    [poolId, jobIds ?? null],
  );
  await pool.query(announceJobs);
}

async function stop(
  workerPool: WorkerPool,
  pool: pg.Pool,
  presence: Presence,
  stopping: AbortController,
  patienceMs: number,
  log: Logger,
): Promise<void> {
  stopping.abort();
  const finished = Promise.resolve(workerPool.gracefulShutdown()).then(
    () => true,
    () => true,
  );
  if (!(await Promise.race([finished, wait(patienceMs, false, { ref: false })]))) {
    log.warn('Jobs did not finish in time and are given back');
    await releaseJobs(pool, workerPool.id, undefined).catch(() => {});
    const forced = Promise.resolve(workerPool.forcefulShutdown('The process stops')).catch(() => {});
    await Promise.race([forced, wait(forceMs, undefined, { ref: false })]);
  }
  await presence.stop();
  await Promise.race([pool.end(), wait(forceMs, undefined, { ref: false })]);
}
