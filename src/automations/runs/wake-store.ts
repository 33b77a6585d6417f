import type { Db, Statement } from '../../db/database.ts';

/* SQL for the times at which runs are due. The trigger schedule_wake of automation_runs writes them. */

/** SQL: removes the time of the run in `moved` when it is no longer due. */
export function deleteWake(db: Db): Statement {
  return db`
    delete from automation_run_wakes w using moved
    where moved.wake_at is null and moved.wake_before is not null and w.app_id = moved.app_id and w.run_id = moved.id`;
}

/** How many runs one job advances when many are woken together; those jobs have the lowest priority. */
const woken = { promptCount: 200, batchCount: 20, floodPriority: 1 };

/**
 * Wakes the due runs, the longest due first: one statement fires their timers in their journals and queues jobs that
 * advance them. Returns how many; fewer than `countMax` when no others are left.
 */
export async function wakeDueRuns(
  db: Db,
  now: Date,
  countMax: number,
  environment: { worker: string; version: string },
): Promise<number> {
  const [row] = await db<[{ count: number }]>`
    with due as materialized (
      select r.app_id, r.id, r.ctid as place, w.ctid as wake_place, r.wake_at, r.wake_timer
      from automation_run_wakes w join automation_runs r on r.app_id = w.app_id and r.id = w.run_id
      where w.wake_at <= ${now} order by w.wake_at limit ${countMax} for update skip locked),
    -- By place, as an array: a join would read the whole table for each batch.
    updated as (
      update automation_runs r set wake_at = null, wake_timer = null, waiting = waiting and wake_timer is null,
        sequence = sequence + case when wake_timer is null then 0 else 1 end
      where ctid = any (array(select place from due)) and (app_id, id) in (select app_id, id from due)
        and wake_at is not null
      returning app_id, id, sequence),
    moved as materialized (select * from updated join due using (app_id, id)),
    -- A run that another process has changed meanwhile is not moved: it stays due. One without a time was stale.
    unscheduled as (
      delete from automation_run_wakes where ctid = any (array(
        select wake_place from moved union all select wake_place from due where wake_at is null))),
    fired as (
      insert into automation_run_entries (app_id, run_id, sequence, id, type, node_id, command_id, timer_id, record, created_at)
      select app_id, id, sequence, new_uuid(), 'timer_fired', wake_timer ->> 'node_id', wake_timer ->> 'command_id',
        wake_timer ->> 'timer_id', json_build_object('payload', json_build_object('fired_at', ${now.toISOString()}::text),
          'metadata', json_build_object('attempt', wake_timer -> 'attempt'), 'timestamp', ${now.toISOString()}::text,
          'environment', ${JSON.stringify(environment)}::text::json), ${now}
      from moved where wake_timer is not null),
    batches as (
      select app_id, json_agg(json_build_object('appId', app_id, 'runId', id)) as runs, max(total) as total
      from (select app_id, id, row_number() over (partition by app_id) as place, count(*) over () as total from moved) run
      group by app_id, case when total > ${woken.promptCount} then place / ${woken.batchCount} else place end),
    queued as (
      select graphile_worker.add_jobs(array_agg(('advance_runs', json_build_object('appId', app_id, 'runs', runs), null, null, null, null,
        case when total > ${woken.promptCount} then ${woken.floodPriority} else 0 end, null)::graphile_worker.job_spec))
      from batches having count(*) > 0)
    select (select count(*) from due) as count, (select count(*) from queued) as queued`;
  return row.count;
}

/** When the next run is due. */
export async function findNextWake(db: Db): Promise<Date | undefined> {
  const [row] = await db<{ wakeAt: Date }[]>`select wake_at from automation_run_wakes order by wake_at limit 1`;
  return row?.wakeAt;
}
