import type { Logger } from '../log.ts';
import type { JobPayload } from './queue.ts';

export type JobContext = {
  jobId: string;
  /** 1 for the first attempt. */
  attempt: number;
  isLastAttempt: boolean;
  /** Aborted when this process stops: save progress and throw. The job resumes elsewhere and does not count as failed. */
  signal: AbortSignal;
  log: Logger;
  /**
   * Waits for an external response without holding one of this process's job slots. Thousands of jobs can wait like
   * this. If the process dies, the job is repeated elsewhere, like any other.
   */
  waitOutside: WaitOutside;
  /** True when this task has reached its limit of waiting jobs: a job that has waited long should make room. */
  isCrowded(): boolean;
};

export type WaitOutside = <T>(wait: () => Promise<T>) => Promise<T>;

/** Runs one job. May run more than once for the same job, in rare cases concurrently: it must be safe to repeat. */
export type Task = TaskShape['run'];
/** A method, so that a task can declare the members of its own payload. */
type TaskShape = { run(payload: JobPayload, context: JobContext): Promise<void> };
