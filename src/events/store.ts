/*
 * SQL for the numbered event logs: production and each sandbox have one.
 *
 * Triggers of events: events_heard notes whether a webhook or a stream takes the event; events_logged adds the job that
 * assigns its position.
 */
import type { Db } from '../db/database.ts';
import { isInUse } from '../db/fences.ts';
import type { Caller, Scope, UserCaller } from '../tenancy/caller.ts';
import { documentsVisible, eventVisible } from './visible.ts';

/** The positions that were assigned: `after` + 1 to `last`. */
export type Positions = { after: number; last: number };

/**
 * Assigns the next positions to committed events, in the order in which they were written, and locks the log until the
 * transaction ends. Returns undefined if the app or sandbox was deleted.
 */
export async function numberEvents(tx: Db, scope: Scope, rowsMax: number): Promise<Positions | undefined> {
  const after = await lockLog(tx, scope);
  if (after === undefined) return undefined;
  // A separate statement also sees events committed while the first one waited for the lock. The array keeps a plan that
  // was made for an empty table from reading the whole table.
  const [row] = await tx<[{ last: number }]>`
    with next as materialized (
      select id, place from events
      where app_id = ${scope.appId} and sandbox_id = ${scope.sandboxId} and heard and position is null
      order by place limit ${rowsMax}),
    numbered as (
      update events e set position = n.position
      from (select id, ${after}::bigint + row_number() over (order by place) as position from next) n
      where e.app_id = ${scope.appId} and e.id = any (array(select id from next)) and e.id = n.id
      returning 1)
    update event_logs set position = position + (select count(*) from numbered)
    where app_id = ${scope.appId} and sandbox_id = ${scope.sandboxId}
    returning position as last`;
  return { after, last: row.last };
}

/** Locks the log until the transaction ends. Returns its last position; undefined if app or sandbox was deleted. */
export async function lockLog(tx: Db, { appId, sandboxId }: Scope): Promise<number | undefined> {
  const [log] = await tx<{ position: number }[]>`
    insert into event_logs (app_id, sandbox_id)
    select app_id, id from sandboxes where app_id = ${appId} and id = ${sandboxId}
    on conflict (app_id, sandbox_id) do update set position = event_logs.position
    returning position`;
  return log?.position;
}

export type LoggedEvent = { position: number; id: string; name: string; payload: unknown; createdAt: Date };

/**
 * The log's last position, and the events after `after`, up to a limit; `events` is undefined if some of them are no
 * longer kept. Undefined if there is no log.
 */
export async function readEventLog(
  db: Db,
  { appId, sandboxId }: Scope,
  after: number | undefined,
  { rowsMax, bytesMax }: { rowsMax: number; bytesMax: number },
): Promise<{ position: number; events: LoggedEvent[] | undefined } | undefined> {
  const [log] = await db<{ position: number; keptAfter: number }[]>`
    select position, kept_after from event_logs where app_id = ${appId} and sandbox_id = ${sandboxId}`;
  if (log === undefined) return undefined;
  const { position, keptAfter } = log;
  if (after === undefined || after === position) return { position, events: [] };
  // A later position was never assigned.
  if (after < keptAfter || after > position) return { position, events: undefined };
  const events = await db<LoggedEvent[]>`
    select position, id, name, payload, created_at from (
      select e.*, sum(octet_length(e.payload::text)) over (order by e.position) - octet_length(e.payload::text) as bytes_before
      from (select position, id, name, payload, created_at from events
        where app_id = ${appId} and sandbox_id = ${sandboxId} and position > ${after}
        order by position limit ${rowsMax}) e) counted
    where bytes_before < ${bytesMax}
    order by position`;
  // The oldest events may have been deleted between the two statements.
  return { position, events: events[0]?.position === after + 1 ? events : undefined };
}

/** The positions of the events that are visible to the user. */
export async function listSeenPositions(db: Db, caller: UserCaller, positions: readonly number[]): Promise<number[]> {
  const rows = await db<{ position: number }[]>`
    select e.position from events e
    where e.position = any(${[...positions]}::bigint[]) and ${eventVisible(db, caller, 'e')}`;
  return rows.map(({ position }) => position);
}

/** Whether the caller may learn of an event; with `documents`, whether none of its documents is hidden from them. */
export async function maySee(db: Db, caller: Caller, id: string, what: 'resource' | 'documents'): Promise<boolean> {
  const visible = what === 'resource' ? eventVisible(db, caller, 'e') : documentsVisible(db, caller, 'e');
  const { length } = await db`select 1 from events e where e.app_id = ${caller.appId} and e.id = ${id} and ${visible}`;
  return length > 0;
}

/** Extends the time for which events are logged for streams. False if they are not logged, or only for a minute. */
export async function renewFollowing(db: Db, scope: Scope, keptSeconds: number): Promise<boolean> {
  const { count } = await db`
    update event_logs set followed_until = now() + ${keptSeconds}::bigint * interval '1 second'
    where app_id = ${scope.appId} and sandbox_id = ${scope.sandboxId} and followed_until > now() + interval '1 minute'`;
  return count > 0;
}

/** Starts to log events for streams. Earlier events were not all written, so no stream can continue from before. */
export async function startFollowing(db: Db, scope: Scope, keptSeconds: number): Promise<void> {
  await db`
    insert into event_logs (app_id, sandbox_id, followed_until)
    values (${scope.appId}, ${scope.sandboxId}, now() + ${keptSeconds}::bigint * interval '1 second')
    on conflict (app_id, sandbox_id) do update set followed_until = excluded.followed_until,
      kept_after = case when event_logs.followed_until > now() + interval '1 minute' then event_logs.kept_after
        else event_logs.position end`;
}

/**
 * The ids of transactions in this database that have written something and are still open. Copies of an app that is being
 * moved here may take hours, and write no new events.
 */
export async function listOpenWriters(db: Db, among?: readonly string[]): Promise<string[]> {
  const rows = await db<{ xid: string }[]>`
    select backend_xid::text as xid from pg_stat_activity
    where datname = current_database() and backend_xid is not null and pid <> pg_backend_pid()
      and application_name not like 'quarry-move%'
      and (${among === undefined} or backend_xid::text = any(${[...(among ?? [])]}::text[]))`;
  return rows.map(({ xid }) => xid);
}

/** Releases the oldest events: those from before this time, and those beyond the newest `eventsMax` of each log. */
export async function releaseOldEvents(db: Db, before: Date, eventsMax: number, rowsMax: number): Promise<void> {
  await db`
    update event_logs l set kept_after = old.position
    from (select app_id, sandbox_id, max(position) as position
      from (select e.app_id, e.sandbox_id, e.position from events e
        where e.created_at < ${before} and e.position is not null and ${isInUse(db, 'e.app_id')}
        order by e.created_at limit ${rowsMax}) oldest
      group by app_id, sandbox_id) old
    where l.app_id = old.app_id and l.sandbox_id = old.sandbox_id and l.kept_after < old.position`;
  await db`
    update event_logs set kept_after = position - ${eventsMax}::bigint
    where (app_id, sandbox_id) in (
      select l.app_id, l.sandbox_id from event_logs l
      where l.kept_after < l.position - ${eventsMax}::bigint and ${isInUse(db, 'l.app_id')}
      limit ${rowsMax} for update skip locked)`;
}

/**
 * Deletes released events, `rowsMax` at most. Returns their number. One with deliveries stays until it is old itself: the
 * beginning of a stream releases recent events too.
 */
export async function deleteReleasedEvents(db: Db, before: Date, eventsMax: number, rowsMax: number): Promise<number> {
  const { count } = await db`
    delete from events where (app_id, id) in (
      select e.app_id, e.id from event_logs l
      join events e on e.app_id = l.app_id and e.sandbox_id = l.sandbox_id and e.position <= l.kept_after
      where e.dispatched_at is not null and ${isInUse(db, 'e.app_id')}
        and (e.created_at < ${before} or e.position <= l.position - ${eventsMax}::bigint or not exists (
          select 1 from webhook_deliveries d where d.app_id = e.app_id and d.event_id = e.id))
      limit ${rowsMax} for update of e skip locked)`;
  return count;
}
