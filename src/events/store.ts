/*
 * The numbered log of events, of production or of one sandbox.
 *
 * Triggers of events: events_heard notes whether a webhook or a stream takes the event, events_logged adds the job that
 * gives it a position.
 */
import type { Db } from '../db/database.ts';
import type { Scope } from '../tenancy/caller.ts';

/** Positions that were given: from `after` + 1 to `last`. */
export type Positions = { after: number; last: number };

/**
 * Gives the next positions to committed events, in the order of writing, and holds the log until the transaction ends.
 * Undefined when the app or sandbox is gone.
 */
export async function numberEvents(tx: Db, scope: Scope, rowsMax: number): Promise<Positions | undefined> {
  const after = await lockLog(tx, scope);
  if (after === undefined) return undefined;
  // A statement of its own, which sees what committed while the lock was awaited.
  const [row] = await tx<[{ last: number }]>`
    with numbered as (
      update events e set position = n.position
      from (select id, ${after}::bigint + row_number() over (order by place) as position
        from (select id, place from events
          where app_id = ${scope.appId} and sandbox_id = ${scope.sandboxId} and heard and position is null
          order by place limit ${rowsMax}) next) n
      where e.app_id = ${scope.appId} and e.id = n.id
      returning 1)
    update event_logs set position = position + (select count(*) from numbered)
    where app_id = ${scope.appId} and sandbox_id = ${scope.sandboxId}
    returning position as last`;
  return { after, last: row.last };
}

/** Holds the log until the transaction ends. Returns its last position; undefined when the app or sandbox is gone. */
export async function lockLog(tx: Db, { appId, sandboxId }: Scope): Promise<number | undefined> {
  const [log] = await tx<{ position: number }[]>`
    insert into event_logs (app_id, sandbox_id)
    select app_id, id from sandboxes where app_id = ${appId} and id = ${sandboxId}
    on conflict (app_id, sandbox_id) do update set position = event_logs.position
    returning position`;
  return log?.position;
}

/** Ends the logs' promise to keep the oldest events from before this time, and those beyond the newest `eventsMax`. */
export async function releaseOldEvents(db: Db, before: Date, eventsMax: number, rowsMax: number): Promise<void> {
  await db`
    update event_logs l set kept_after = old.position
    from (select app_id, sandbox_id, max(position) as position
      from (select app_id, sandbox_id, position from events
        where created_at < ${before} and position is not null order by created_at limit ${rowsMax}) oldest
      group by app_id, sandbox_id) old
    where l.app_id = old.app_id and l.sandbox_id = old.sandbox_id and l.kept_after < old.position`;
  await db`
    update event_logs set kept_after = position - ${eventsMax}::bigint
    where kept_after < position - ${eventsMax}::bigint`;
}

/** Deletes events that their logs need not keep. Returns how many. */
export async function deleteReleasedEvents(db: Db, rowsMax: number): Promise<number> {
  const { count } = await db`
    delete from events where (app_id, id) in (
      select e.app_id, e.id from event_logs l
      join events e on e.app_id = l.app_id and e.sandbox_id = l.sandbox_id and e.position <= l.kept_after
      where e.dispatched_at is not null
      limit ${rowsMax} for update of e skip locked)`;
  return count;
}
