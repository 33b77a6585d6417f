import type { Db } from '../db/database.ts';
import type { Scope } from '../tenancy/caller.ts';

export type KvEntry = {
  id: string;
  userId: string;
  key: string;
  value: string;
  version: number;
  createdAt: Date;
  updatedAt: Date;
};

export type KvListEntry = KvEntry & { userEmail: string | null; userName: string | null };

/** Whose storage, and of which app and sandbox. */
export type KvOwner = Scope & { userId: string };

/** What the database adds to an entry that is written. */
type Written = Pick<KvEntry, 'id' | 'version' | 'createdAt' | 'updatedAt'>;

export type KvWrite = { id: string; key: string; value: string; userBytesMax: number };

export async function findEntry(db: Db, owner: KvOwner, key: string): Promise<KvEntry | undefined> {
  const [row] = await db<Omit<KvEntry, 'userId' | 'key'>[]>`
    select id, value, version, created_at, updated_at from kv_entries
    where app_id = ${owner.appId} and user_id = ${owner.userId} and key = ${key} and sandbox_id = ${owner.sandboxId}`;
  return row && { ...row, userId: owner.userId, key };
}

/** Everything that the user has, newest created first. */
export async function listUserEntries(db: Db, owner: KvOwner): Promise<KvEntry[]> {
  return db<KvEntry[]>`
    select id, user_id, key, value, version, created_at, updated_at from kv_entries
    where app_id = ${owner.appId} and user_id = ${owner.userId} and sandbox_id = ${owner.sandboxId}
    order by created_at desc, id desc`;
}

/**
 * Writes whether or not the key exists. Undefined when there is no such user. The condition on `set_config` hands the
 * quota to the table's triggers.
 */
export async function upsertEntry(db: Db, owner: KvOwner, write: KvWrite): Promise<KvEntry | undefined> {
  const [row] = await db<Written[]>`
    insert into kv_entries as e (app_id, sandbox_id, user_id, key, id, value)
    select u.app_id, u.sandbox_id, u.id, ${write.key}, ${write.id}, ${write.value} from users u
    where u.app_id = ${owner.appId} and u.id = ${owner.userId} and u.sandbox_id = ${owner.sandboxId}
      and set_config('quarry.kv_user_bytes_max', ${String(write.userBytesMax)}, true) is not null
    on conflict (app_id, user_id, key) do update
      set value = excluded.value, version = e.version + 1, updated_at = excluded.updated_at
    returning id, version, created_at, updated_at`;
  return row && { ...row, userId: owner.userId, key: write.key, value: write.value };
}

/** Writes a new key. Undefined when it exists already or there is no such user. */
export async function insertEntry(db: Db, owner: KvOwner, write: KvWrite): Promise<KvEntry | undefined> {
  const [row] = await db<Written[]>`
    insert into kv_entries (app_id, sandbox_id, user_id, key, id, value)
    select u.app_id, u.sandbox_id, u.id, ${write.key}, ${write.id}, ${write.value} from users u
    where u.app_id = ${owner.appId} and u.id = ${owner.userId} and u.sandbox_id = ${owner.sandboxId}
      and set_config('quarry.kv_user_bytes_max', ${String(write.userBytesMax)}, true) is not null
    on conflict (app_id, user_id, key) do nothing
    returning id, version, created_at, updated_at`;
  return row && { ...row, userId: owner.userId, key: write.key, value: write.value };
}

/** Overwrites exactly this state of an entry. Undefined when it has changed or gone in the meantime. */
export async function updateEntry(
  db: Db,
  owner: KvOwner,
  write: Omit<KvWrite, 'id'>,
  expected: Pick<KvEntry, 'id' | 'version'>,
): Promise<KvEntry | undefined> {
  const [row] = await db<Written[]>`
    update kv_entries set value = ${write.value}, version = version + 1, updated_at = now()
    where app_id = ${owner.appId} and user_id = ${owner.userId} and key = ${write.key}
      and id = ${expected.id} and version = ${expected.version}
      and set_config('quarry.kv_user_bytes_max', ${String(write.userBytesMax)}, true) is not null
    returning id, version, created_at, updated_at`;
  return row && { ...row, userId: owner.userId, key: write.key, value: write.value };
}

/** True when the entry was there; with `expected`, when it was there in exactly that state. */
export async function deleteEntry(
  db: Db,
  owner: KvOwner,
  key: string,
  expected?: Pick<KvEntry, 'id' | 'version'>,
): Promise<boolean> {
  const same = expected ? db`and id = ${expected.id} and version = ${expected.version}` : db``;
  const { count } = await db`
    delete from kv_entries
    where app_id = ${owner.appId} and user_id = ${owner.userId} and key = ${key} and sandbox_id = ${owner.sandboxId}
      ${same}`;
  return count > 0;
}

export async function userExists(db: Db, owner: KvOwner): Promise<boolean> {
  const [row] = await db`
    select 1 from users
    where app_id = ${owner.appId} and id = ${owner.userId} and sandbox_id = ${owner.sandboxId}`;
  return row !== undefined;
}

export type KvFilter = {
  userId?: string | undefined;
  /** Literal substring of e-mail or name, in any case. */
  userSearch?: string | undefined;
  /** Literal prefix, and the first text in byte order that no longer begins with it. */
  keys?: { from: string; before: string | undefined } | undefined;
};

/** One page, newest created first, and the exact number of entries that match. */
export async function listEntries(
  db: Db,
  scope: Scope,
  filter: KvFilter,
  window: { limit: number; offset: number },
): Promise<{ entries: KvListEntry[]; total: number }> {
  const filtered = filter.userId ?? filter.userSearch ?? filter.keys;
  const rows = await (filtered === undefined ? listAll(db, scope, window) : listMatching(db, scope, filter, window));
  const total = rows[0]?.total ?? 0;
  return { entries: rows.filter((row): row is ListRow & KvListEntry => row.id !== null), total };
}

/** The outer join gives one row without an entry for a page past the end, which still carries the total. */
type ListRow = { total: number } & (KvListEntry | { id: null });

async function listAll(db: Db, scope: Scope, { limit, offset }: { limit: number; offset: number }) {
  return db<ListRow[]>`
    select counted.total, listed.* from
      (select coalesce(sum(entries), 0)::bigint as total from kv_counters
        where app_id = ${scope.appId} and sandbox_id = ${scope.sandboxId}) counted
      left join lateral (
        select e.id, e.user_id, e.key, e.value, e.version, e.created_at, e.updated_at,
          u.email as user_email, u.name as user_name
        from (select * from kv_entries
          where app_id = ${scope.appId} and sandbox_id = ${scope.sandboxId}
          order by created_at desc, id desc limit ${limit} offset ${offset}) e
        join users u on u.app_id = e.app_id and u.id = e.user_id) listed on true
    order by listed.created_at desc, listed.id desc`;
}

async function listMatching(
  db: Db,
  scope: Scope,
  filter: KvFilter,
  { limit, offset }: { limit: number; offset: number },
) {
  const { userId, userSearch, keys } = filter;
  const ofUser = userId === undefined ? db`` : db`and e.user_id = ${userId}`;
  const ofKeys = keys === undefined ? db`` : db`and e.key >= ${keys.from}`;
  const ofKeysBefore = keys?.before === undefined ? db`` : db`and e.key < ${keys.before}`;
  // Materialised, so that no plan walks all entries from the newest in the hope of meeting matches soon.
  return db<ListRow[]>`
    with matched as materialized (
      select e.user_id, e.key, e.id, e.created_at from kv_entries e
      ${userSearch === undefined ? db`` : db`join users u on u.app_id = e.app_id and u.id = e.user_id`}
      where e.app_id = ${scope.appId} and e.sandbox_id = ${scope.sandboxId}
        ${ofUser} ${ofKeys} ${ofKeysBefore}
        ${userSearch === undefined ? db`` : db`and ${userMatches(db, scope, userSearch)}`})
    select counted.total, listed.* from (select count(*) as total from matched) counted
      left join lateral (
        select e.id, e.user_id, e.key, e.value, e.version, e.created_at, e.updated_at,
          u.email as user_email, u.name as user_name
        from (select * from matched order by created_at desc, id desc limit ${limit} offset ${offset}) m
        join kv_entries e on e.app_id = ${scope.appId} and e.user_id = m.user_id and e.key = m.key
        join users u on u.app_id = e.app_id and u.id = e.user_id) listed on true
    order by listed.created_at desc, listed.id desc`;
}

/** The index finds users that have all the pieces; only the text itself says that they stand in a row. */
function userMatches(db: Db, scope: Scope, search: string) {
  const size = Math.min(3, [...search].length);
  return db`u.app_id = ${scope.appId} and u.sandbox_id = ${scope.sandboxId}
    and text_pieces(u.app_id, coalesce(u.email, '') || chr(10) || coalesce(u.name, ''), 1, 3)
      @> text_pieces(${scope.appId}, ${search}, ${size}::int, ${size}::int)
    and (position(lower(${search}) in lower(u.email)) > 0 or position(lower(${search}) in lower(u.name)) > 0)`;
}
