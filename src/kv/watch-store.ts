/*
 * The log of changes for kv_watch. The triggers kv_log_added, kv_log_overwritten and kv_log_removed of kv_entries write
 * it, for users with a row in kv_watches.
 *
 * Triggers of kv_watches: kv_watches_ended ends the streams of a log that is deleted.
 */
import type { Db } from '../db/database.ts';
import { sweepRows } from '../db/delete-batch.ts';
import type { KvOwner } from './store.ts';

export type KvChange = {
  position: number;
  kind: 'put' | 'delete' | 'expire';
  key: string;
  entryId: string;
  version: number;
  /** Null for other changes than a put, and for a long value that was overwritten since. */
  value: string | null;
  createdAt: Date;
  updatedAt: Date;
  expiresAt: Date | null;
};

/** The last position of a log, and the changes after another one, up to a limit; undefined if some of them are deleted. */
type KvLog = { position: number; changes: KvChange[] | undefined };

/** Extends the life of the user's log by `keptSeconds` from now. False when the user has no log. */
export async function renewWatch(db: Db, owner: KvOwner, keptSeconds: number): Promise<boolean> {
  const { count } = await db`
    update kv_watches set watched_until = now() + ${keptSeconds}::bigint * interval '1 second'
    where app_id = ${owner.appId} and user_id = ${owner.userId} and exists (
      select 1 from users
      where app_id = ${owner.appId} and id = ${owner.userId} and sandbox_id = ${owner.sandboxId})`;
  return count > 0;
}

/**
 * Starts the log. False if there is no such user. The lock on the user's row waits for every write in progress and delays
 * later ones until the log exists, so the log misses none.
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

/**
 * The logs of these users, in their order; undefined where nothing is logged for a user. `after` undefined: only the
 * position. `rowsMax` and `bytesMax` limit the changes of all logs together; a later read returns the rest. At least one
 * change is returned.
 */
export async function readLogs(
  db: Db,
  appId: string,
  reads: readonly { id: string; after: number | undefined }[],
  { rowsMax, bytesMax }: { rowsMax: number; bytesMax: number },
): Promise<(KvLog | undefined)[]> {
  const watches = await db<{ userId: string; position: number; keptAfter: number }[]>`
    select user_id, position, kept_after from kv_watches
    where app_id = ${appId} and user_id = any(${[...new Set(reads.map(({ id }) => id))]}::uuid[])`;
  const watchOf = new Map(watches.map((watch) => [watch.userId, watch]));
  const found = reads.map(({ id, after }, index) => ({ index, id, after, watch: watchOf.get(id) }));
  const behind = found.flatMap(({ index, id, after, watch }) =>
    watch !== undefined && after !== undefined && after >= watch.keptAfter && after < watch.position
      ? [{ index, id, after }]
      : [],
  );
  const changes = behind.length === 0 ? [] : await readChanges(db, appId, behind, { rowsMax, bytesMax });
  const changesOf = Map.groupBy(changes, ({ index }) => index);
  return found.map(({ index, after, watch }) => {
    if (watch === undefined) return undefined;
    const { position, keptAfter } = watch;
    if (after === undefined || after === position) return { position, changes: [] };
    // The log never returned a position beyond its end.
    if (after < keptAfter || after > position) return { position, changes: undefined };
    const own = changesOf.get(index) ?? [];
    // Between the two statements the log may have grown and lost its oldest changes.
    return { position, changes: own[0] === undefined || own[0].position === after + 1 ? own : undefined };
  });
}

function readChanges(
  db: Db,
  appId: string,
  reads: readonly { index: number; id: string; after: number }[],
  { rowsMax, bytesMax }: { rowsMax: number; bytesMax: number },
) {
  const rowsEach = Math.max(1, Math.floor(rowsMax / reads.length));
  return db<(KvChange & { index: number })[]>`
    select index, position, kind, key, entry_id, version, value, created_at, updated_at, expires_at from (
      select r.index, c.position, c.kind, c.key, c.entry_id, c.version, coalesce(c.value, e.value) as value,
        c.created_at, c.updated_at, c.expires_at,
        sum(octet_length(coalesce(c.value, e.value, ''))) over (order by r.index, c.position)
          - octet_length(coalesce(c.value, e.value, '')) as bytes_before
      from unnest(
        ${reads.map(({ index }) => index)}::int[],
        ${reads.map(({ id }) => id)}::uuid[],
        ${reads.map(({ after }) => after)}::bigint[]
      ) r (index, user_id, after)
      cross join lateral (select * from kv_changes
        where app_id = ${appId} and user_id = r.user_id and position > r.after
        order by position limit ${rowsEach}) c
      left join kv_entries e on c.kind = 'put' and c.value is null and e.app_id = c.app_id and e.user_id = c.user_id
        and e.key = c.key and e.id = c.entry_id and e.version = c.version) counted
    where bytes_before < ${bytesMax}
    order by index, position`;
}

/** Deletes logs whose time has passed. */
export async function endWatches(db: Db): Promise<void> {
  await sweepRows(db, { table: 'kv_watches', order: 'watched_until', where: db`t.watched_until <= now()` });
}
