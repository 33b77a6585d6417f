import type { Pair } from './copy.ts';
import { bypassTriggers, copyRows, inTransaction, literal, type Session } from './session.ts';

/*
 * Jobs of a frozen app are held apart, so that no worker of either side takes one. A job that was running is held as if
 * it had not started: its writes are refused from the freeze on, and it runs again where the app is opened.
 */

const columns = 'app_id, id, task, payload, key, priority, run_at, attempts, max_attempts, last_error, crashes';

/** Takes the jobs of the app out of the queue. */
export async function holdJobs(session: Session, appId: string): Promise<void> {
  await inTransaction(session, async () => {
    await bypassTriggers(session);
    await session.query(
      `with held as (delete from jobs where app_id = $1 returning *)
       insert into app_held_jobs (${columns})
       select app_id, id, task, payload, key, priority, run_at,
         case when locked_by is null then attempts else greatest(attempts - 1, 0) end, max_attempts, last_error, crashes
       from held`,
      [appId],
    );
  });
}

/** Copies the held jobs to the target, which still holds them. */
export async function sendHeldJobs({ source, target }: Pair, appId: string): Promise<void> {
  await inTransaction(target, async () => {
    await discardHeldJobs(target, appId);
    await copyRows(
      { session: source, query: `select ${columns} from app_held_jobs where app_id = ${literal(appId)}` },
      { session: target, table: 'app_held_jobs', columns: columns.split(', ') },
    );
  });
}

/** Puts the held jobs back into the queue, in their order, and opens the app, in one commit. */
export async function returnHeldJobs(session: Session, appId: string): Promise<void> {
  await inTransaction(session, async () => {
    await session.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`move/${appId}`]);
    await bypassTriggers(session);
    await session.query(
      `insert into jobs (task, payload, key, priority, run_at, attempts, max_attempts, last_error, crashes)
       select task, payload, key, priority, run_at, attempts, max_attempts, last_error, crashes
       from app_held_jobs where app_id = $1 order by id`,
      [appId],
    );
    await discardHeldJobs(session, appId);
    await session.query('update app_fences set frozen = false, sealed = false where app_id = $1', [appId]);
    await session.query("select pg_notify('jobs:insert', ''), pg_notify('quarry_tenancy', '')");
  });
}

export async function discardHeldJobs(session: Session, appId: string): Promise<void> {
  await session.query('delete from app_held_jobs where app_id = $1', [appId]);
}
