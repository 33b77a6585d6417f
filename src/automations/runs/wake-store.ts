import type { Db } from '../../db/database.ts';
import { isInUse } from '../../db/fences.ts';
import { sandboxIsThere } from '../../tenancy/visible.ts';

/** SQL for waking runs that are due. */

/** Runs that one job advances if many are woken together. Such jobs have the lowest priority. */
const woken = { promptCount: 200, batchCount: 20, floodPriority: 1 };

/** Two wakers that start at opposite ends of the due runs do not read the same rows until they meet. */
export type WakeOrder = 'longest due first' | 'longest due last';

/**
 * Wakes due runs: one statement fires their timers in their journals and queues jobs that advance them. Returns the
 * number of runs woken, which is below `countMax` if no others are due.
 * A full batch does not wait for the disk: it is synced with the next commit, including those of the work that follows.
 * If the database crashes before that, its runs are due again.
 */
export async function wakeDueRuns(
  db: Db,
  now: Date,
  countMax: number,
  environment: { worker: string; version: string },
  order: WakeOrder = 'longest due first',
): Promise<number> {
  const timestamp = now.toISOString();
  const known = JSON.stringify({ payload: { fired_at: timestamp }, timestamp, environment });
  // Joining text takes half the time of building each record.
  const record = `${known.slice(0, -1)},"metadata":{"attempt":`;
  const [row] = await db<[{ count: number }]>`
    with due as materialized (
      select r.app_id, r.id, r.ctid as place, w.ctid as wake_place, r.wake_timer
      from automation_run_wakes w join automation_runs r on r.app_id = w.app_id and r.id = w.run_id
      where w.wake_at <= ${now} and r.wake_at <= ${now} and ${isInUse(db, 'w.app_id')}
      order by w.wake_at ${order === 'longest due last' ? db`desc` : db``}
      limit ${countMax} for update of r skip locked),
    -- By place, as an array: a join would read the whole table for each batch.
    updated as (
      update automation_runs r set wake_at = null, wake_timer = null, waiting = waiting and wake_timer is null,
        sequence = sequence + case when wake_timer is null then 0 else 1 end
      where ctid = any (array(select place from due)) and (app_id, id) in (select app_id, id from due)
        and wake_at is not null
      returning app_id, id, sequence),
    moved as materialized (select * from updated join due using (app_id, id)),
    -- A run that another process has changed meanwhile is not moved: it stays due.
    unscheduled as (delete from automation_run_wakes where ctid = any (array(select wake_place from moved))),
    fired as (
      insert into automation_run_entries (app_id, run_id, sequence, id, type, node_id, command_id, timer_id, record, created_at)
      select app_id, id, sequence, new_uuid(), 'timer_fired', node_id, command_id, timer_id,
        (${record}::text || attempt || '}}')::json, ${now}
      from moved, json_to_record(wake_timer) as timer (node_id text, command_id text, timer_id text, attempt integer)
      where wake_timer is not null),
    batches as (
      select app_id, json_agg(json_build_object('appId', app_id, 'runId', id)) as runs, max(total) as total
      from (select app_id, id, row_number() over (partition by app_id) as place, count(*) over () as total from moved) run
      group by app_id, case when total > ${woken.promptCount} then place / ${woken.batchCount} else place end),
    queued as (
      select add_job('advance_runs', json_build_object('appId', app_id, 'runs', runs),
        priority := case when total > ${woken.promptCount} then ${woken.floodPriority} else 0 end)
      from batches)
    select total as count, (select count(*) from queued) as queued,
      case when total = ${countMax} then set_config('synchronous_commit', 'off', true) end as unsynced
    from (select count(*) as total from due) counted`;
  if (row.count === 0) await removeStaleTimes(db, now);
  return row.count;
}

const staleTimesMax = 2_000;

/** Removes times of runs that are no longer due, the first of them: the next look finds the others. Both rows are locked, so that no new time is removed. */
async function removeStaleTimes(db: Db, now: Date): Promise<void> {
  await db`
    delete from automation_run_wakes where ctid = any (array(
      select w.ctid from automation_run_wakes w join automation_runs r on r.app_id = w.app_id and r.id = w.run_id
      where w.wake_at <= ${now} and r.wake_at is null and ${isInUse(db, 'w.app_id')}
      order by w.wake_at limit ${staleTimesMax} for update skip locked))`;
}

/** When a run, a schedule or the lease of a claim is due next, for a look at all of them with one statement. */
export async function findNextTimes(
  db: Db,
): Promise<{ wakeAt: Date | null; scheduleAt: Date | null; leaseUntil: Date | null }> {
  return db<[{ wakeAt: Date | null; scheduleAt: Date | null; leaseUntil: Date | null }]>`
    select
      (select wake_at from automation_run_wakes w where ${isInUse(db, 'w.app_id')} order by wake_at limit 1) as wake_at,
      (select next_tick_at from automations a where next_tick_at is not null and ${isInUse(db, 'a.app_id')}
        and ${sandboxIsThere(db, 'a.app_id', 'a.sandbox_id')}
        order by next_tick_at limit 1) as schedule_at,
      (select lease_until from automation_runs r where lease_until is not null and ${isInUse(db, 'r.app_id')}
        order by lease_until limit 1) as lease_until`.first();
}
