/*
 * The log of changes for kv_watch. The triggers kv_log_added, kv_log_overwritten and kv_log_removed of kv_entries write
 * it, for users with a row in kv_watches.
 *
 * Triggers of kv_watches: kv_watches_ended ends the streams of a log that is deleted.
 */
import type { Db } from '../db/database.ts';
import type { KvOwner } from './store.ts';

export type KvChange = {
  position: number;
  kind: 'put' | 'delete' | 'expire';
  key: string;
  entryId: string;
  version: number;
  /** Null for what is not a put, and for a long value that has been overwritten since. */
  value: string | null;
  createdAt: Date;
  updatedAt: Date;
  expiresAt: Date | null;
};

/** The log's last position, and the changes after another one, up to a bound; undefined when some are not kept. */
type KvLog = { position: number; changes: KvChange[] | undefined };

/** Keeps the log of a watched user's changes. False when nothing is logged for the user yet. */
export async function renewWatch(db: Db, owner: KvOwner, keptSeconds: number): Promise<boolean> {
  const { count } = await db`
    update kv_watches set watched_until = now() + ${keptSeconds}::bigint * interval '1 second'
    where app_id = ${owner.appId} and user_id = ${owner.userId} and exists (
      select 1 from users
      where app_id = ${owner.appId} and id = ${owner.userId} and sandbox_id = ${owner.sandboxId})`;
  return count > 0;
}

/**
 * Starts the log. The user's row is locked against every writer, so that each write that has begun before is committed
 * before the log starts, and each later one finds it.
 */
export async function startWatch(tx: Db, owner: KvOwner, keptSeconds: number): Promise<boolean> {
  const [user] = await tx`
    select 1 from users
    where app_id = ${owner.appId} and id = ${owner.userId} and sandbox_id = ${owner.sandboxId} for update`;
  if (user === undefined) return false;
  await tx`
    insert into kv_watches (app_id, user_id, position, kept_after, watched_until)
    select ${owner.appId}::uuid, ${owner.userId}::uuid, start, start, now() + ${keptSeconds}::bigint * interval '1 second'
    from (select (extract(epoch from clock_timestamp()) * 1000000)::bigint as start) t
    on conflict do nothing`;
  return true;
}

/** Undefined when nothing is logged for the user. `after` undefined: only the position. */
export async function readLog(
  db: Db,
  owner: { appId: string; userId: string },
  after: number | undefined,
  { rowsMax, bytesMax }: { rowsMax: number; bytesMax: number },
): Promise<KvLog | undefined> {
  const [watch] = await db<{ position: number; keptAfter: number }[]>`
    select position, kept_after from kv_watches where app_id = ${owner.appId} and user_id = ${owner.userId}`;
  if (watch === undefined) return undefined;
  if (after === undefined || after === watch.position) return { position: watch.position, changes: [] };
  // A position from the future was never given.
  if (after < watch.keptAfter || after > watch.position) return { position: watch.position, changes: undefined };
  const changes = await db<KvChange[]>`
    select position, kind, key, entry_id, version, value, created_at, updated_at, expires_at from (
      select c.position, c.kind, c.key, c.entry_id, c.version, coalesce(c.value, e.value) as value,
        c.created_at, c.updated_at, c.expires_at,
        sum(octet_length(coalesce(c.value, e.value, ''))) over (order by c.position)
          - octet_length(coalesce(c.value, e.value, '')) as bytes_before
      from (select * from kv_changes
        where app_id = ${owner.appId} and user_id = ${owner.userId} and position > ${after}
        order by position limit ${rowsMax}) c
      left join kv_entries e on c.kind = 'put' and c.value is null and e.app_id = c.app_id and e.user_id = c.user_id
        and e.key = c.key and e.id = c.entry_id and e.version = c.version) counted
    where bytes_before < ${bytesMax}
    order by position`;
  // Between the two statements the log may have grown and lost its oldest changes.
  const [first] = changes;
  if (first?.position !== after + 1) return { position: watch.position, changes: undefined };
  return { position: watch.position, changes };
}

/** Ends logs that nobody has watched for a while. Returns how many. */
export async function endWatches(db: Db, rowsMax: number): Promise<number> {
  const { count } = await db`
    delete from kv_watches where (app_id, user_id) in (
      select app_id, user_id from kv_watches where watched_until <= now()
      order by watched_until limit ${rowsMax} for update skip locked)`;
  return count;
}
