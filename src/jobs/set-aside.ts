import type { Db } from '../db/database.ts';
import { lane } from './lane-queue.ts';

/** For listing the jobs of an app that are set aside without reading the others. */
export const setAsideIndex = `
  create index if not exists quarry_jobs_set_aside on graphile_worker._private_jobs ((${lane}), updated_at)
  where attempts >= max_attempts and locked_at is null`;

/** A job that is not tried any more, because it failed too often or because its process ended under it. */
type SetAsideJob = {
  id: string;
  task: string;
  payload: unknown;
  /** How often it was at work when its process ended, or threw what nobody caught. */
  crashes: number;
  reason: string;
  since: Date;
};

/** The jobs that are set aside, the newest first. */
export function listSetAside(db: Db, countMax: number): Promise<SetAsideJob[]> {
  return db<SetAsideJob[]>`
    select jobs.id::text, tasks.identifier as task, jobs.payload, coalesce((jobs.flags ->> 'crashes')::integer, 0) as crashes,
      coalesce(jobs.last_error, '') as reason, jobs.updated_at as since
    from graphile_worker._private_jobs jobs join graphile_worker._private_tasks tasks on tasks.id = jobs.task_id
    where jobs.attempts >= jobs.max_attempts and jobs.locked_at is null
    order by jobs.updated_at desc, jobs.id desc limit ${countMax}`;
}

/** Has a job that is set aside tried again from the start. False when there is no such job. */
export async function retrySetAside(db: Db, id: string): Promise<boolean> {
  const rows = await db`
    update graphile_worker._private_jobs set attempts = 0, run_at = now(), flags = flags - 'crashes' - 'waits',
      job_queue_id = null
    where id = ${id}::bigint and attempts >= max_attempts and locked_at is null returning 1`;
  if (rows.length > 0) await db`select pg_notify('jobs:insert', '{"r":' || random()::text || ',"count":1}')`;
  return rows.length > 0;
}
