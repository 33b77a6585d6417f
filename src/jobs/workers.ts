import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { Job } from 'graphile-worker';
import type pg from 'pg';
import { contain, UncaughtError } from '../contain.ts';
import type { DatabaseTarget } from '../db/address.ts';
import { runForApp } from '../db/app-lane.ts';
import type { Logger } from '../log.ts';
import { isTracing, traceFrom } from '../tracing/trace.ts';
import { JobConnections } from './connection.ts';
import { crashesMax, HeldJob, releaseJobs } from './held-job.ts';
import { JobLoop } from './loop.ts';
import { Presence } from './presence.ts';
import type { JobPayload } from './queue.ts';
import type { JobContext, Task, WaitOutside } from './task.ts';
import { JobCrash, type Trial } from './trial.ts';
import { type WaitBounds, WaitingJobs } from './waiting-jobs.ts';
import { WorkSlots } from './work-slots.ts';

export type { JobContext, Task, WaitOutside };

/** A recurring task, which runs once per period across all processes. */
export type Recurring = { task: string; everySeconds: number };

export type WorkersOptions = {
  /** A direct connection, because LISTEN and session locks do not work through a transaction pooler. */
  target: DatabaseTarget;
  /** How long a connection attempt may take, and how long PostgreSQL may be silent before it counts as unresponsive. */
  timeoutMs?: number;
  tasks: Record<string, Task>;
  recurring?: Recurring[];
  /** The maximum number of concurrent jobs of one app in this process. As many slots again are left for other apps. */
  concurrency: number;
  /** The maximum number of jobs of each task that wait for external responses. Further jobs are retried later. */
  waits?: Record<string, WaitBounds>;
  /**
   * Work of this process that low-priority jobs wait for: resolves when the work ends; undefined while there is none.
   */
  urgentWork?: () => Promise<void> | undefined;
  /** Called for each job that crashed its process or threw an uncaught exception. */
  onCrash?: (task: string) => void;
  /** Runs a job that may have crashed its process in a separate process. */
  trial?: Trial;
  log: Logger;
};

export type Workers = {
  /** Stops taking jobs, lets active ones finish for `patienceMs`, and releases the rest. Safe to call again. */
  stop(patienceMs: number): Promise<void>;
};

/** Runs the jobs of these tasks until it is stopped. */
export async function startWorkers(options: WorkersOptions): Promise<Workers> {
  const { tasks, recurring = [], concurrency, waits = {}, onCrash = () => {}, trial, log } = options;
  const { urgentWork = () => undefined } = options;
  const connections = new JobConnections(options);
  const pool = connections.openPool(countConnections(concurrency));
  try {
    for (const each of recurring) await addNext(pool, each);
  } catch (error) {
    await pool.end();
    throw error;
  }
  const poolId = `worker-${randomBytes(9).toString('hex')}`;
  const running: Running = {
    ...{ pool, poolId, log, onCrash, trial, stopping: new AbortController() },
    workSlots: new WorkSlots(concurrency),
    waiting: new WaitingJobs(waits),
  };
  const presence = new Presence(connections, poolId, log, onCrash);
  const loop = new JobLoop({
    ...{ id: poolId, workers: () => presence.workers, urgentWork },
    ...{ pool, connections, concurrency, log, tasks: Object.keys(tasks) },
    run: async (job) => {
      const name = job.task_identifier;
      const task = tasks[name];
      if (!task) throw new Error(`There is no task "${name}".`);
      const repeat = recurring.find((each) => each.task === name);
      await startTask(running, { name, task, repeat }, job.payload as JobPayload, job);
    },
  });
  let stopped: Promise<void> | undefined;
  return {
    stop(patienceMs) {
      stopped ??= stop(running, loop, presence, patienceMs);
      return stopped;
    },
  };
}

const pollMs = 1_000;
const forceMs = 1_000;

/** One connection listens, the others fetch and finish jobs: an active job holds no connection. */
function countConnections(concurrency: number): number {
  return 1 + Math.min(concurrency, 4);
}

type Running = {
  pool: pg.Pool;
  poolId: string;
  log: Logger;
  onCrash(task: string): void;
  trial: Trial | undefined;
  stopping: AbortController;
  /** Slots for jobs that resume after a wait. */
  workSlots: WorkSlots;
  waiting: WaitingJobs;
};

type NamedTask = { name: string; task: Task; repeat: Recurring | undefined };

/** Resolves when the job has ended, or when it waits for an external response and its slot is free again. */
async function startTask(running: Running, named: NamedTask, payload: JobPayload, job: Job): Promise<void> {
  const { stopping, waiting } = running;
  const held = new HeldJob(running.pool, running.poolId, job);
  const app = appOf(payload);
  if (!stopping.signal.aborted && !waiting.hasRoom(named.name, app)) {
    await held.release(waiting.retryMs());
    throw new Error('This app has too many jobs waiting for external responses: the job is retried later.');
  }
  const left = Promise.withResolvers<void>();
  let isOutside = false;
  let giveBack = (): void => {};
  const waitOutside: WaitOutside = async (wait) => {
    const waited = wait();
    // The job's failure reaches the caller below, after the job has released its slot.
    waited.catch(() => {});
    if (!isOutside) {
      isOutside = await held.detach().catch(() => false);
      // A job that cannot release its slot keeps it while it waits.
      if (!isOutside) return waited;
      waiting.add(named.name, app, ended);
      left.resolve();
    } else giveBack();
    try {
      return await waited;
    } finally {
      giveBack = await running.workSlots.take(app);
    }
  };
  const run = () => runTask(running, named, payload, job, held, waitOutside);
  const ended = (isTracing() ? traceJob(named.name, job, run) : run())
    .then(
      async () => {
        if (isOutside) await retryUntilDone(running, () => held.complete());
      },
      async (error: unknown) => {
        if (!isOutside) throw error;
        if (!stopping.signal.aborted)
          await retryUntilDone(running, () => held.fail(error instanceof Error ? error.message : String(error)));
      },
    )
    .finally(() => {
      giveBack();
    });
  await Promise.race([ended, left.promise]);
}

/** The job's span continues the trace of the code that added the job. */
function traceJob(task: string, job: Job, run: () => Promise<void>): Promise<void> {
  const { traceparent } = job.payload as { traceparent?: string };
  const app = appOf(job.payload as JobPayload);
  const attributes = { 'quarry.job': job.id, 'quarry.job.attempt': job.attempts, ...(app && { 'quarry.app': app }) };
  return traceFrom(`job ${task}`, { kind: 'consumer', continues: traceparent, attributes }, run);
}

async function runTask(
  running: Running,
  { name, task, repeat }: NamedTask,
  payload: JobPayload,
  job: Job,
  held: HeldJob,
  waitOutside: WaitOutside,
): Promise<void> {
  const { signal } = running.stopping;
  const log = running.log.child({ task: name, jobId: job.id });
  try {
    // The job was fetched while the process was stopping: another process runs it.
    signal.throwIfAborted();
    const isCrowded = () => !running.waiting.hasRoom(name, appOf(payload));
    const run = isSuspect(job) && running.trial !== undefined ? runInTrial(running.trial, name) : task;
    const context = { ...describe(job), signal, log, waitOutside, isCrowded };
    await contain(() => runForApp(appOf(payload), () => run(payload, context)));
  } catch (error) {
    if (signal.aborted) {
      await held.release();
      log.info({ err: error }, 'Released a job because this process is stopping');
    } else {
      log.error({ err: error, attempt: job.attempts, attemptsMax: job.max_attempts }, 'Job failed');
      if (error instanceof UncaughtError || error instanceof JobCrash) {
        running.onCrash(name);
        await held.noteCrash(error.message);
      }
    }
    throw error;
  } finally {
    if (repeat) await addNext(running.pool, repeat);
  }
}

/** The job would be set aside at the next crash. */
function isSuspect({ flags }: Job): boolean {
  return Number((flags as { crashes?: number } | null)?.crashes ?? 0) >= crashesMax - 1;
}

/** The job waits in this process meanwhile, so the end of this process now does not count against it. */
function runInTrial(trial: Trial, task: string): Task {
  return async (payload, { jobId, attempt, isLastAttempt, signal, log, waitOutside }) => {
    log.warn({ attempt }, 'Running a job that was active in two crashes in a separate process');
    await waitOutside(() => trial({ task, payload, jobId, attempt, isLastAttempt }, signal));
  };
}

/** The app in the job's payload. */
function appOf(payload: JobPayload): string {
  const { appId, app_id } = payload as { appId?: string; app_id?: string };
  return appId ?? app_id ?? '';
}

/** Retries the write, so that a finished job does not stay locked because the database was briefly unavailable. */
async function retryUntilDone({ stopping, log }: Running, write: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await write();
    } catch (error) {
      if (stopping.signal.aborted) return;
      log.warn({ err: error }, 'Could not store the outcome of a job');
      await wait(pollMs, undefined, { ref: false });
    }
  }
}

function describe(job: Job): { jobId: string; attempt: number; isLastAttempt: boolean } {
  return { jobId: job.id, attempt: job.attempts, isLastAttempt: job.attempts >= job.max_attempts };
}

/**
 * Adds the next run of a recurring task. The task's name is the job's key, so only one job exists however many
 * processes add it. Its time is a multiple of the period by the database's clock, so all processes agree on it.
 */
async function addNext(pool: pg.Pool, { task, everySeconds }: Recurring): Promise<void> {
  await pool.query(
    `select graphile_worker.add_job(
       identifier := $1, payload := '{}'::json, job_key := 'recurring/' || $1, job_key_mode := 'preserve_run_at',
       run_at := to_timestamp((floor(extract(epoch from clock_timestamp()) / $2::integer) + 1) * $2::integer))`,
    [task, everySeconds],
  );
}

async function stop(
  { pool, poolId, stopping, workSlots, waiting, log }: Running,
  loop: JobLoop,
  presence: Presence,
  patienceMs: number,
): Promise<void> {
  stopping.abort();
  workSlots.open();
  const finished = Promise.allSettled([loop.stop(), waiting.ended()]).then(() => true);
  if (!(await Promise.race([finished, wait(patienceMs, false, { ref: false })]))) {
    log.warn('Released jobs that did not finish in time');
    await releaseJobs(pool, poolId, undefined).catch(() => {});
  }
  await presence.stop();
  await Promise.race([pool.end(), wait(forceMs, undefined, { ref: false })]);
}
