import type { Logger } from '../lib/log.ts';
import type { JobPayload } from './queue.ts';

export type JobContext = {
  jobId: string;
  /** 1 for the first attempt. */
  attempt: number;
  isLastAttempt: boolean;
  /**
   * Aborted when this process stops: save progress and throw. The job resumes in another process and does not count
   * as failed.
   */
  signal: AbortSignal;
  log: Logger;
  /**
   * Waits for an external response without holding one of this process's job slots, so thousands of jobs can wait. If
   * the process dies, the job is repeated elsewhere like any other.
   */
  waitOutside: WaitOutside;
  /** Whether this task has reached its limit of waiting jobs. A job that has waited long should then make room. */
  isCrowded(): boolean;
  /**
   * For a job that works for seconds: call it between two steps, while nothing is locked. Returns a promise to wait for
   * if it is the turn of other jobs of the app.
   */
  giveWay(): Promise<void> | undefined;
  /** Aborted when the job has waited long for one response, and others of its app and task have no room. */
  crowdedOut?: AbortSignal;
};

export type WaitOutside = <T>(wait: () => Promise<T>) => Promise<T>;

/** Runs one job. A job may run more than once, in rare cases concurrently, so it must be safe to repeat. */
export type Task = TaskShape['run'];
/** Declared as a method, so that a task can declare the members of its own payload. */
type TaskShape = { run(payload: JobPayload, context: JobContext): Promise<void> };
