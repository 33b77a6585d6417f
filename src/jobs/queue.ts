import type { Db } from '../db/database.ts';

/** What a job carries: ids and small facts. It is stored, so treat names and members as public. */
export type JobPayload = object;

type AddJobOptions = {
  /** At most one job with this key waits: adding another replaces it. One that runs already is not held back. */
  key?: string;
  /** With a key: a job that waits already keeps its time. */
  keepRunAt?: boolean;
  runAt?: Date;
  /** Jobs of one queue run one after the other. Few names only: each costs a row for ever. */
  queue?: string;
  /** How often it is tried before it is given up; the waits grow as e^attempt seconds. Default 25, about three days. */
  maxAttempts?: number;
  /** Smaller runs first. Default 0. */
  priority?: number;
};

/**
 * Adds a job. In a transaction it starts when that commits, and never was when that rolls back. An idle worker has it
 * within milliseconds.
 */
export async function addJob(db: Db, task: string, payload: JobPayload, options: AddJobOptions = {}): Promise<void> {
  const { key = null, keepRunAt = false, runAt = null, queue = null, maxAttempts = null, priority = null } = options;
  await db`select graphile_worker.add_job(
    identifier := ${task}, payload := ${JSON.stringify(payload)}::text::json, queue_name := ${queue},
    run_at := ${runAt}::timestamptz, max_attempts := ${maxAttempts}::integer, job_key := ${key},
    priority := ${priority}::integer, job_key_mode := ${keepRunAt ? 'preserve_run_at' : 'replace'})`;
}
