import type { Db } from '../db/database.ts';
import { withTraceparent } from '../tracing/trace.ts';

/** A job's payload: ids and small facts. It is stored, so its member names are public API. */
export type JobPayload = object;

type AddJobOptions = {
  /** Only one job with this key can wait: adding another replaces it. An active job does not delay the new one. */
  key?: string;
  /** With a key: a job that already waits keeps its time. */
  keepRunAt?: boolean;
  runAt?: Date;
  /** Jobs of one queue run one at a time. Use few names: each costs one row forever. */
  queue?: string;
  /**
   * The number of attempts before the job is set aside; the waits grow as e^attempt seconds. Default 25, about three
   * days.
   */
  maxAttempts?: number;
  /** Smaller numbers run first. Default 0. */
  priority?: number;
};

/**
 * Adds a job. In a transaction, the job exists only if the transaction commits. An idle worker takes it within
 * milliseconds.
 */
export async function addJob(db: Db, task: string, payload: JobPayload, options: AddJobOptions = {}): Promise<void> {
  const { key = null, keepRunAt = false, runAt = null, queue = null, maxAttempts = null, priority = null } = options;
  await db`select graphile_worker.add_job(
    identifier := ${task}, payload := ${JSON.stringify(withTraceparent(payload))}::text::json, queue_name := ${queue},
    run_at := ${runAt}::timestamptz, max_attempts := ${maxAttempts}::integer, job_key := ${key},
    priority := ${priority}::integer, job_key_mode := ${keepRunAt ? 'preserve_run_at' : 'replace'})`;
}
