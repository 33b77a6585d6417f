import { randomBytes } from 'node:crypto';
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises';
import type { DatabaseTarget } from '../db/address.ts';
import { runForApp } from '../db/app-lane.ts';
import { type Database, nobody, openDatabase } from '../db/database.ts';
import { runForEveryApp } from '../db/fences.ts';
import type { Slots } from '../fairness/slots.ts';
import { contain, UncaughtError } from '../lib/contain.ts';
import type { Logger } from '../lib/log.ts';
import { isTracing, traceFrom } from '../tracing/trace.ts';
import type { HeldJob } from './held-job.ts';
import { JobSlots } from './job-slots.ts';
import { JobLoop, laneOf } from './loop.ts';
import { Presence } from './presence.ts';
import { addRecurringJob, type ClaimedJob, crashesMax, jobsChannel, type Recurring, releaseJobs } from './store.ts';
import type { JobContext, Task, WaitOutside } from './task.ts';
import { JobCrash, type Trial } from './trial.ts';
import type { WaitBounds, WaitingJobs } from './waiting-jobs.ts';

export type { JobContext, Recurring, Task, WaitOutside };

export type WorkersOptions = {
  /** A direct connection, because LISTEN and session locks do not work through a transaction pooler. */
  target: DatabaseTarget;
  /** How long a connection attempt may take, and how long PostgreSQL may be silent before it counts as unresponsive. */
  timeoutMs?: number;
  tasks: Record<string, Task>;
  recurring?: Recurring[];
  /** The maximum number of concurrent jobs of one app in this process. As many slots again are left for other apps. */
  concurrency: number;
  /** The slots of the process. By default, these workers have their own. */
  slots?: JobSlots;
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
  const { target, timeoutMs, tasks, recurring = [], concurrency, waits = {}, onCrash = () => {}, trial, log } = options;
  const { urgentWork = () => undefined, slots = new JobSlots(concurrency, { waits }) } = options;
  const db = openDatabase(target, {
    ...{ poolSize: countConnections(concurrency), applicationName: 'quarry-jobs', ...(timeoutMs && { timeoutMs }) },
  });
  const poolId = `worker-${randomBytes(9).toString('hex')}`;
  const running: Running = {
    ...{ db, poolId, tasks, recurring, log, onCrash, trial, stopping: new AbortController() },
    ...{ workSlots: slots.resumed, waiting: slots.waiting, sharesSlots: options.slots !== undefined },
  };
  let loop: JobLoop | undefined;
  try {
    for (const each of recurring) await addRecurringJob(db, each);
    await db.listen(
      jobsChannel,
      () => loop?.wake(),
      () => loop?.wake(),
    );
  } catch (error) {
    await db.end();
    throw error;
  }
  const presence = new Presence({ target, timeoutMs, poolId, onCrash, log });
  loop = new JobLoop({
    ...{ id: poolId, db, concurrency, slots, urgentWork, log, tasks: Object.keys(tasks) },
    workers: () => presence.workers,
    run: (held) => (isTracing() ? traceJob(held.job, () => runJob(running, held)) : runJob(running, held)),
  });
  let stopped: Promise<void> | undefined;
  return {
    stop(patienceMs) {
      stopped ??= stop(running, loop, presence, patienceMs);
      return stopped;
    },
  };
}

const endSeconds = 1;

/** An active job holds no connection: these fetch and finish jobs. */
function countConnections(concurrency: number): number {
  return Math.min(concurrency, 4);
}

type Running = {
  db: Database;
  poolId: string;
  tasks: Record<string, Task>;
  recurring: Recurring[];
  log: Logger;
  onCrash(task: string): void;
  trial: Trial | undefined;
  stopping: AbortController;
  /** Slots for jobs that resume after a wait. */
  workSlots: Slots;
  waiting: WaitingJobs;
  /** Whether other workers of the process use these slots, too. */
  sharesSlots: boolean;
};

/** Runs a job, in its slot and outside it, unless there is no room for its waits. */
async function runJob(running: Running, held: HeldJob): Promise<void> {
  const { stopping, waiting, workSlots } = running;
  const { task } = held.job;
  const lane = laneOf(running.poolId, held.job.appId);
  if (!stopping.signal.aborted && !waiting.hasRoom(task, lane)) {
    waiting.askForRoom(task, lane);
    return held.release(waiting.retryMs());
  }
  const crowdedOut = new AbortController();
  let giveBack = (): void => {};
  const waitOutside: WaitOutside = async (wait) => {
    const waited = wait();
    // The job's failure reaches the caller below, after the job has released its slot.
    waited.catch(() => {});
    if (held.isDetached) {
      held.turn.rest();
      giveBack();
      // A job that cannot release its slot keeps it while it waits.
    } else if (!(await held.detach().catch(() => false))) return waited;
    waiting.note(task, lane, crowdedOut, 'wait');
    try {
      const result = await waited;
      // A loop whose waits are over at once would otherwise keep the process from everything else.
      await nextTurn();
      return result;
    } finally {
      waiting.note(task, lane, crowdedOut, 'work');
      giveBack = await workSlots.take(lane);
    }
  };
  try {
    await runTask(running, held, waitOutside, crowdedOut.signal);
  } finally {
    giveBack();
    waiting.forget(task, lane, crowdedOut);
  }
}

/** The job's span continues the trace of the code that added the job. */
function traceJob(job: ClaimedJob, run: () => Promise<void>): Promise<void> {
  const { traceparent } = job.payload as { traceparent?: string };
  const app = appOf(job);
  const attributes = {
    ...{ 'quarry.job': String(job.id), 'quarry.job.attempt': job.attempts, ...(app && { 'quarry.app': app }) },
  };
  return traceFrom(`job ${job.task}`, { kind: 'consumer', continues: traceparent, attributes }, run);
}

async function runTask(
  running: Running,
  held: HeldJob,
  waitOutside: WaitOutside,
  crowdedOut: AbortSignal,
): Promise<void> {
  const { job } = held;
  const { tasks, trial, waiting, recurring } = running;
  const { signal } = running.stopping;
  const log = running.log.child({ task: job.task, jobId: String(job.id) });
  const repeat = recurring.find((each) => each.task === job.task);
  let hasNext = repeat === undefined;
  try {
    // The job was fetched while the process was stopping: another process runs it.
    signal.throwIfAborted();
    const task = tasks[job.task];
    if (!task) throw new Error(`There is no task "${job.task}".`);
    const isCrowded = () => !waiting.hasRoom(job.task, laneOf(running.poolId, job.appId));
    const run = isSuspect(job) && trial !== undefined ? runInTrial(trial, job.task) : task;
    const giveWay = () => held.turn.giveWay(signal);
    const context = { ...describe(job), signal, log, waitOutside, isCrowded, giveWay, crowdedOut };
    const runIt = () => runForApp(appOf(job), () => run(job.payload, context));
    await contain(() => (repeat === undefined ? runIt() : runForEveryApp(runIt)));
    if (repeat !== undefined) hasNext = await held.repeat(repeat.everySeconds);
  } catch (error) {
    if (signal.aborted) {
      await held.release();
      log.info({ err: error }, 'Released a job because this process is stopping');
    } else {
      log.error({ err: error, attempt: job.attempts, attemptsMax: job.maxAttempts }, 'Job failed');
      if (error instanceof UncaughtError || error instanceof JobCrash) {
        running.onCrash(job.task);
        await held.noteCrash();
      }
    }
    throw error;
  } finally {
    if (repeat !== undefined && !hasNext) await addRecurringJob(running.db, repeat);
  }
}

/** The job would be set aside at the next crash. */
function isSuspect({ crashes }: ClaimedJob): boolean {
  return crashes >= crashesMax - 1;
}

/** The job waits in this process meanwhile, so the end of this process now does not count against it. */
function runInTrial(trial: Trial, task: string): Task {
  return async (payload, { jobId, attempt, isLastAttempt, signal, log, waitOutside }) => {
    log.warn({ attempt }, 'Running a job that was active in two crashes in a separate process');
    await waitOutside(() => trial({ task, payload, jobId, attempt, isLastAttempt }, signal));
  };
}

/** The app of the job, or '' for a job of no app. */
function appOf({ appId }: ClaimedJob): string {
  return appId === nobody ? '' : appId;
}

function describe(job: ClaimedJob): { jobId: string; attempt: number; isLastAttempt: boolean } {
  return { jobId: String(job.id), attempt: job.attempts, isLastAttempt: job.attempts >= job.maxAttempts };
}

async function stop(
  { db, poolId, stopping, workSlots, sharesSlots, log }: Running,
  loop: JobLoop,
  presence: Presence,
  patienceMs: number,
): Promise<void> {
  stopping.abort();
  if (!sharesSlots) workSlots.open();
  const finished = loop.stop().then(() => true);
  if (!(await Promise.race([finished, wait(patienceMs, false, { ref: false })]))) {
    log.warn('Released jobs that did not finish in time');
    await releaseJobs(db, poolId).catch(() => {});
  }
  await presence.stop();
  await db.end({ timeout: endSeconds });
}
