import type { Db, Statement } from '../db/database.ts';
import { lane } from './lane-queue.ts';

/** An index for listing the jobs that are set aside without reading the others. */
export const setAsideIndex = `
  create index if not exists quarry_jobs_set_aside on graphile_worker._private_jobs ((${lane}), updated_at)
  where attempts >= max_attempts and locked_at is null`;

/** A job that is no longer retried, because it failed or crashed its process too often. */
type SetAsideJob = {
  id: string;
  task: string;
  payload: unknown;
  /** How often the job crashed its process or threw an uncaught exception. */
  crashes: number;
  reason: string;
  since: Date;
};

/** Lists the jobs that are set aside, newest first. */
export function listSetAside(db: Db, countMax: number): Promise<SetAsideJob[]> {
  return db<SetAsideJob[]>`
    select jobs.id::text, tasks.identifier as task, jobs.payload, coalesce((jobs.flags ->> 'crashes')::integer, 0) as crashes,
      coalesce(jobs.last_error, '') as reason, jobs.updated_at as since
    from graphile_worker._private_jobs jobs join graphile_worker._private_tasks tasks on tasks.id = jobs.task_id
    where jobs.attempts >= jobs.max_attempts and jobs.locked_at is null
    order by jobs.updated_at desc, jobs.id desc limit ${countMax}`;
}

/** Retries a job that is set aside, from its first attempt. Returns false if there is no such job. */
export async function retrySetAside(db: Db, id: string): Promise<boolean> {
  const rows = await db`
    update graphile_worker._private_jobs set attempts = 0, run_at = now(), flags = flags - 'crashes' - 'waits',
      job_queue_id = null
    where id = ${id}::bigint and attempts >= max_attempts and locked_at is null returning 1`;
  if (rows.length > 0) await db`select pg_notify('jobs:insert', '{"r":' || random()::text || ',"count":1}')`;
  return rows.length > 0;
}

/** SQL condition: the job with this key is set aside. */
export function isSetAside(db: Db, key: Statement): Statement {
  return db`exists (select from graphile_worker._private_jobs jobs
    where jobs.key = ${key} and jobs.attempts >= jobs.max_attempts and jobs.locked_at is null)`;
}
