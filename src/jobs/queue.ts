import type { Db } from '../db/database.ts';
import { withTraceparent } from '../tracing/trace.ts';

/** A job's payload: ids and small facts. It is stored, so its member names are public API. `appId` is the job's app. */
export type JobPayload = object;

type AddJobOptions = {
  /** Only one job with this key can wait in its app: adding another replaces it. An active job does not delay the new one. */
  key?: string;
  /** With a key: a job that already waits keeps its time. */
  keepRunAt?: boolean;
  /** When the job is due, from now. Default 0. Counted by the database's clock, which decides what is due. */
  inMs?: number | undefined;
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
  const { key = null, keepRunAt = false, inMs = null, maxAttempts = null, priority = null } = options;
  await db`select add_job(${task}, ${JSON.stringify(withTraceparent(payload))}::text::json, ${key}, ${keepRunAt},
    now() + ${inMs}::float8 * interval '1 millisecond', ${maxAttempts}::integer, ${priority}::integer)`;
}
