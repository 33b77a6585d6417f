import { fork } from 'node:child_process';
import type { DatabaseTarget } from '../db/address.ts';
import { contain, UncaughtError } from '../lib/contain.ts';
import type { Logger } from '../lib/log.ts';
import type { JobPayload } from './queue.ts';
import type { Task } from './task.ts';

/*
 * A job that was active in two crashes runs in a separate process. If that process ends and this one does not, the
 * job is the cause. If both end, the server was killed, and the job is not to blame.
 */

/** The job as sent to the process that runs it. */
type TrialJob = {
  target: DatabaseTarget;
  baseUrl: string;
  task: string;
  payload: JobPayload;
  jobId: string;
  attempt: number;
  isLastAttempt: boolean;
};

/** Runs a job in a separate process. Rejects with the job's error, or with JobCrash. */
export type Trial = (job: Omit<TrialJob, 'target' | 'baseUrl'>, signal: AbortSignal) => Promise<void>;

/** The job threw an uncaught exception, or its separate process ended. */
export class JobCrash extends Error {}

type Report = { state: 'started' | 'done' } | { state: 'failed' | 'crashed'; message: string };

const trialMsMax = 60 * 60_000;

/**
 * Returns a Trial that runs one job at a time, because each costs a whole process.
 * @param file a program that calls `serveTrial`
 */
export function createTrial(file: string, facts: () => Pick<TrialJob, 'target' | 'baseUrl'>): Trial {
  let last: Promise<unknown> = Promise.resolve();
  return (job, signal) => {
    const ended = last.then(() => runAlone(file, { ...facts(), ...job }, signal));
    last = ended.catch(() => {});
    return ended;
  };
}

async function runAlone(file: string, job: TrialJob, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const child = fork(file, [], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const end = Promise.withResolvers<Report | undefined>();
  let hasStarted = false;
  child.on('message', (report: Report) => {
    if (report.state === 'started') hasStarted = true;
    else end.resolve(report);
  });
  child.once('exit', () => end.resolve(undefined));
  child.on('error', end.reject);
  const giveUp = (): void => end.reject(signal.reason);
  signal.addEventListener('abort', giveUp, { once: true });
  const late = new Error('The job did not end within an hour in a separate process.');
  const timer = setTimeout(() => end.reject(late), trialMsMax);
  try {
    child.send(job, () => {});
    const report = await end.promise;
    if (report === undefined)
      throw hasStarted
        ? new JobCrash('The job ended a process that ran nothing else.')
        : new Error('The separate process for this job did not start.');
    if (report.state === 'crashed') throw new JobCrash(report.message);
    if (report.state === 'failed') throw new Error(report.message);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', giveUp);
    child.kill('SIGKILL');
  }
}

/** Runs in the separate process: executes the one job that the parent sends, and ends with the parent. */
export function serveTrial(open: (job: TrialJob) => Promise<{ run: Task; log: Logger }>): void {
  const report = (message: Report): void => void process.send?.(message);
  process.on('disconnect', () => process.exit(1));
  process.once('message', async (job: TrialJob) => {
    const { run, log } = await open(job);
    report({ state: 'started' });
    const { jobId, attempt, isLastAttempt } = job;
    const context = {
      ...{ jobId, attempt, isLastAttempt, log, signal: new AbortController().signal },
      ...{ waitOutside: <T>(wait: () => Promise<T>) => wait(), isCrowded: () => false, giveWay: () => undefined },
    };
    try {
      await contain(() => run(job.payload, context));
      report({ state: 'done' });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      report({ state: error instanceof UncaughtError ? 'crashed' : 'failed', message });
    }
  });
}
