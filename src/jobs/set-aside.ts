import type { Db, Statement } from '../db/database.ts';
import { announceJobs } from './store.ts';

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
    select id::text, task, payload, crashes, coalesce(last_error, '') as reason, updated_at as since
    from jobs where locked_by is null and attempts >= max_attempts
    order by updated_at desc, id desc limit ${countMax}`;
}

/** Retries a job of the app, or of any app, that is set aside, from its first attempt. False if there is no such job. */
export async function retrySetAside(db: Db, id: string, appId: string | null = null): Promise<boolean> {
  const { count } = await db`
    update jobs set attempts = 0, crashes = 0, run_at = now()
    where id = ${id}::bigint and (${appId}::uuid is null or app_id = ${appId}) and attempts >= max_attempts and locked_by is null`;
  if (count > 0) await announceJobs(db);
  return count > 0;
}

/** SQL condition: the job of the app with this key is set aside. */
export function isSetAside(db: Db, appId: Statement, key: Statement): Statement {
  return db`exists (select from jobs
    where jobs.app_id = ${appId} and jobs.key = ${key} and jobs.attempts >= jobs.max_attempts and jobs.locked_by is null)`;
}
