import { setTimeout as wait } from 'node:timers/promises';
import type { Job } from 'graphile-worker';
import type pg from 'pg';
import { contain, UncaughtError } from '../contain.ts';
import type { DatabaseTarget } from '../db/address.ts';
import type { Logger } from '../log.ts';
import { openJobPool } from './connection.ts';
import { HeldJob, releaseJobs } from './held-job.ts';
import { JobLoop } from './loop.ts';
import { Presence } from './presence.ts';
import type { JobPayload } from './queue.ts';
import { type WaitBounds, WaitingJobs } from './waiting-jobs.ts';
import { WorkSlots } from './work-slots.ts';

export type JobContext = {
  jobId: string;
  /** 1 at the first try. */
  attempt: number;
  isLastAttempt: boolean;
  /** Aborted when this process stops: keep what is done and throw, and the job resumes elsewhere and does not count as failed. */
  signal: AbortSignal;
  log: Logger;
  /**
   * Waits for what happens elsewhere without holding a place among the jobs that this process runs. Thousands may wait
   * so; a process that dies loses the job like any other, and it is done again elsewhere.
   */
  waitOutside: WaitOutside;
  /** Whether as many jobs of this task wait outside as may: one that has had its time should make room. */
  isCrowded(): boolean;
};

export type WaitOutside = <T>(wait: () => Promise<T>) => Promise<T>;

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
  /** Jobs of one app that this process runs at the same time; as many more for other apps. */
  concurrency: number;
  /** By task: how many of its jobs may wait outside at the same time. One that is over is taken up again later. */
  waits?: Record<string, WaitBounds>;
  /** Hears of each job that ended its process, or would have. */
  onCrash?: (task: string) => void;
  log: Logger;
};

export type Workers = {
  /** Takes no more jobs, lets those that run finish for `patienceMs`, and gives the rest back. Safe to call again. */
  stop(patienceMs: number): Promise<void>;
};

/** Runs jobs of these tasks until stopped. */
export async function startWorkers(options: WorkersOptions): Promise<Workers> {
  const { target, tasks, recurring = [], concurrency, waits = {}, onCrash = () => {}, log } = options;
  const pool = openJobPool(target, connections(concurrency), log);
  try {
    for (const each of recurring) await addNext(pool, each);
  } catch (error) {
    await pool.end();
    throw error;
  }
  const running: Running = {
    ...{ pool, log, onCrash, stopping: new AbortController() },
    poolId: () => loop.id,
    workSlots: new WorkSlots(concurrency),
    waiting: new WaitingJobs(waits),
  };
  const loop = new JobLoop({
    ...{ pool, target, concurrency, log, tasks: Object.keys(tasks) },
    run: async (job) => {
      const name = job.task_identifier;
      const task = tasks[name];
      if (!task) throw new Error(`There is no task "${name}".`);
      const repeat = recurring.find((each) => each.task === name);
      await startTask(running, { name, task, repeat }, job.payload as JobPayload, job);
    },
  });
  const presence = new Presence(target, loop.id, log, onCrash);
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

/** One listens, the others fetch and finish jobs: a job that runs holds no connection. */
function connections(concurrency: number): number {
  return 1 + Math.min(concurrency, 4);
}

type Running = {
  pool: pg.Pool;
  poolId(): string;
  log: Logger;
  onCrash(task: string): void;
  stopping: AbortController;
  /** For jobs that go on after a wait. */
  workSlots: WorkSlots;
  waiting: WaitingJobs;
};

type NamedTask = { name: string; task: Task; repeat: Recurring | undefined };

/** Resolves when the job has ended, or when it waits outside and the loop may take the next one. */
async function startTask(running: Running, named: NamedTask, payload: JobPayload, job: Job): Promise<void> {
  const { stopping, waiting } = running;
  const held = new HeldJob(running.pool, running.poolId(), job);
  const app = appOf(payload);
  if (!stopping.signal.aborted && !waiting.hasRoom(named.name, app)) {
    await held.release(waiting.retryMs());
    throw new Error('As many jobs of this app wait outside as may: this one is taken up later.');
  }
  const left = Promise.withResolvers<void>();
  let isOutside = false;
  let giveBack = (): void => {};
  const waitOutside: WaitOutside = async (wait) => {
    const waited = wait();
    // The caller learns of a failure below, after the job has left its place.
    waited.catch(() => {});
    if (!isOutside) {
      isOutside = await held.detach().catch(() => false);
      // A job that cannot leave its place waits in it.
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
  const ended = runTask(running, named, payload, job, held, waitOutside)
    .then(
      async () => {
        if (isOutside) await untilDone(running, () => held.complete());
      },
      async (error: unknown) => {
        if (!isOutside) throw error;
        if (!stopping.signal.aborted)
          await untilDone(running, () => held.fail(error instanceof Error ? error.message : String(error)));
      },
    )
    .finally(() => {
      giveBack();
    });
  await Promise.race([ended, left.promise]);
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
    // Fetched in the very moment of stopping: a process that has more time does it.
    signal.throwIfAborted();
    const isCrowded = () => !running.waiting.hasRoom(name, appOf(payload));
    await contain(() => task(payload, { ...describe(job), signal, log, waitOutside, isCrowded }));
  } catch (error) {
    if (signal.aborted) {
      await held.release();
      log.info({ err: error }, 'Job given back, because this process stops');
    } else {
      log.error({ err: error, attempt: job.attempts, attemptsMax: job.max_attempts }, 'Job failed');
      if (error instanceof UncaughtError) {
        running.onCrash(name);
        await held.noteCrash(error.message);
      }
    }
    throw error;
  } finally {
    if (repeat) await addNext(running.pool, repeat);
  }
}

/** The app that a job is for, as its payload names it. */
function appOf(payload: JobPayload): string {
  const { appId, app_id } = payload as { appId?: string; app_id?: string };
  return appId ?? app_id ?? '';
}

/** A job that has ended must not stay locked because the database was away at that moment. */
async function untilDone({ stopping, log }: Running, write: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await write();
    } catch (error) {
      if (stopping.signal.aborted) return;
      log.warn({ err: error }, 'The end of a job could not be written');
      await wait(pollMs, undefined, { ref: false });
    }
  }
}

function describe(job: Job): { jobId: string; attempt: number; isLastAttempt: boolean } {
  return { jobId: job.id, attempt: job.attempts, isLastAttempt: job.attempts >= job.max_attempts };
}

/**
 * The next turn of a recurring task. Its key is the task's name, so there is one job for it however many processes add it, and its
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

async function stop(
  { pool, stopping, workSlots, waiting, log }: Running,
  loop: JobLoop,
  presence: Presence,
  patienceMs: number,
): Promise<void> {
  stopping.abort();
  workSlots.open();
  const finished = Promise.allSettled([loop.stop(), waiting.ended()]).then(() => true);
  if (!(await Promise.race([finished, wait(patienceMs, false, { ref: false })]))) {
    log.warn('Jobs did not finish in time and are given back');
    await releaseJobs(pool, loop.id, undefined).catch(() => {});
  }
  await presence.stop();
  await Promise.race([pool.end(), wait(forceMs, undefined, { ref: false })]);
}
