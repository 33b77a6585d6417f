/*
 * Triggers of kv_entries: kv_entries_added, kv_entries_resized and kv_entries_removed count an app's entries and the
 * bytes of each user, and reject a write that would exceed the user's quota (SQLSTATE QK001).
 */
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

/** Without its value when the values before it fill the page. */
export type KvListed = Omit<KvListEntry, 'value'> & { value: string | null; valueBytes: number };

/** The owner of entries, with app and sandbox. */
export type KvOwner = Scope & { userId: string };

/** The columns that the database sets on a write. */
type Written = Pick<KvEntry, 'id' | 'version' | 'createdAt' | 'updatedAt'>;

export type KvWrite = { id: string; key: string; value: string; userBytesMax: number };

export async function findEntry(db: Db, owner: KvOwner, key: string): Promise<KvEntry | undefined> {
  const [row] = await db<Omit<KvEntry, 'userId' | 'key'>[]>`
    select id, value, version, created_at, updated_at from kv_entries
    where app_id = ${owner.appId} and user_id = ${owner.userId} and key = ${key} and sandbox_id = ${owner.sandboxId}`;
  return row && { ...row, userId: owner.userId, key };
}

/** The entries of many owners of one scope, in the order of the requests; undefined where there is none. */
export async function findEntries(
  db: Db,
  scope: Scope,
  wanted: { userId: string; key: string }[],
): Promise<(KvEntry | undefined)[]> {
  const found: (KvEntry | undefined)[] = new Array(wanted.length).fill(undefined);
  const rows = await db<(Written & { place: number; value: string })[]>`
    select w.place, e.* from
      unnest(${wanted.map((w) => w.userId)}::uuid[], ${wanted.map((w) => w.key)}::text[])
        with ordinality w (user_id, key, place)
      cross join lateral (
        select id, value, version, created_at, updated_at from kv_entries
        where app_id = ${scope.appId} and user_id = w.user_id and key = w.key and sandbox_id = ${scope.sandboxId}
        offset 0) e`;
  for (const { place, ...row } of rows) {
    const asked = wanted[place - 1];
    if (asked) found[place - 1] = { ...row, userId: asked.userId, key: asked.key };
  }
  return found;
}

/** The position after which a list continues. The time is PostgreSQL's text, accurate to the microsecond. */
export type KvPosition = { createdAtText: string; id: string };

type ListBounds = { rowsMax: number; bytesMax: number };

/**
 * The user's entries after a position, newest first: at least one, and as many more as the limits allow. Each is read
 * in its current state.
 */
export async function listUserEntries(
  db: Db,
  owner: KvOwner,
  after: KvPosition | undefined,
  { rowsMax, bytesMax }: ListBounds,
): Promise<(KvEntry & KvPosition)[]> {
  const further =
    after === undefined ? db`` : db`and (created_at, id) < (${after.createdAtText}::text::timestamptz, ${after.id})`;
  return db<(KvEntry & KvPosition)[]>`
    select id, user_id, key, value, version, created_at, updated_at, created_at::text as created_at_text from (
      select *, sum(octet_length(value)) over (order by created_at desc, id desc) - octet_length(value) as bytes_before
      from (select * from kv_entries
        where app_id = ${owner.appId} and user_id = ${owner.userId} and sandbox_id = ${owner.sandboxId} ${further}
        order by created_at desc, id desc limit ${rowsMax}) next) counted
    where bytes_before < ${bytesMax}
    order by created_at desc, id desc`;
}

/**
 * Upserts entries; no key of a user may occur twice. Returns the entries in the order of the writes, undefined where the
 * user does not exist. `settings` passes the quota to the table's triggers. It also limits the lock wait of a batch, so
 * that one locked row does not delay the rest: the statement then fails (SQLSTATE 55P03), and the caller writes each
 * entry separately. Rows are locked in a fixed order, users before entries (as when a user is deleted), to avoid
 * deadlocks.
 */
export async function upsertEntries(
  db: Db,
  scope: Scope,
  writes: (KvWrite & { userId: string })[],
): Promise<(KvEntry | undefined)[]> {
  const [first] = writes;
  if (first === undefined) return [];
  const column = (pick: (write: KvWrite & { userId: string }) => string) => writes.map(pick);
  const lockTimeout = writes.length > 1 ? '50ms' : '0';
  const rows = await db<(Written & { userId: string; key: string })[]>`
    with settings as materialized (
      select set_config('quarry.kv_user_bytes_max', ${String(first.userBytesMax)}, true),
        set_config('lock_timeout', ${lockTimeout}, true)),
    owners as materialized (
      select id from users cross join settings
      where app_id = ${scope.appId} and sandbox_id = ${scope.sandboxId}
        and id = any(${[...new Set(column((w) => w.userId))]}::uuid[])
      order by id for key share of users)
    insert into kv_entries as e (app_id, sandbox_id, user_id, key, id, value)
    select ${scope.appId}, ${scope.sandboxId}, o.id, w.key, w.id, w.value
    from unnest(${column((w) => w.userId)}::uuid[], ${column((w) => w.key)}::text[], ${column((w) => w.id)}::uuid[],
        ${column((w) => w.value)}::text[]) w (user_id, key, id, value)
      join owners o on o.id = w.user_id
    order by o.id, w.key collate "C"
    on conflict (app_id, user_id, key) do update
      set value = excluded.value, version = e.version + 1, updated_at = excluded.updated_at
    returning user_id, key, id, version, created_at, updated_at`;
  const written = new Map(rows.map((row) => [`${row.userId}${row.key}`, row]));
  return writes.map(({ userId, key, value }) => {
    const row = written.get(`${userId}${key}`);
    return row && { ...row, value };
  });
}

/** Inserts a new key. Undefined when it already exists or the user does not exist. */
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

/** Overwrites exactly this state of an entry. Undefined when it was changed or deleted meanwhile. */
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

/** True when the entry existed; with `expected`, in exactly that state. */
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
  /** Literal substring of e-mail or name, case-insensitive. */
  userSearch?: string | undefined;
  /** Literal prefix, and the first text in byte order after all texts with it. */
  keys?: { from: string; before: string | undefined } | undefined;
};

/** One page, newest first, with the first values up to `bytesMax`, and the exact number of matching entries. */
export async function listEntries(
  db: Db,
  scope: Scope,
  filter: KvFilter,
  window: Window,
): Promise<{ entries: KvListed[]; total: number }> {
  const filtered = filter.userId ?? filter.userSearch ?? filter.keys;
  const rows = await (filtered === undefined ? listAll(db, scope, window) : listMatching(db, scope, filter, window));
  const total = rows[0]?.total ?? 0;
  return { entries: rows.filter((row): row is ListRow & KvListed => row.id !== null), total };
}

/** The outer join gives one row without an entry for a page past the end, which still carries the total. */
type ListRow = { total: number } & (KvListed | { id: null });

type Window = { limit: number; offset: number; bytesMax: number };

/** The columns of a listed entry; as many values as the bound allows. */
const listedColumns = (db: Db, bytesMax: number) => db`
  counted.total, listed.id, listed.user_id, listed.key, listed.version, listed.created_at, listed.updated_at,
  listed.user_email, listed.user_name, octet_length(listed.value) as value_bytes,
  case when sum(octet_length(listed.value)) over (order by listed.created_at desc, listed.id desc) <= ${bytesMax}
    then listed.value end as value`;

async function listAll(db: Db, scope: Scope, { limit, offset, bytesMax }: Window) {
  return db<ListRow[]>`
    select ${listedColumns(db, bytesMax)} from
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

async function listMatching(db: Db, scope: Scope, filter: KvFilter, { limit, offset, bytesMax }: Window) {
  const { userId, userSearch, keys } = filter;
  const ofUser = userId === undefined ? db`` : db`and e.user_id = ${userId}`;
  const ofKeys = keys === undefined ? db`` : db`and e.key >= ${keys.from}`;
  const ofKeysBefore = keys?.before === undefined ? db`` : db`and e.key < ${keys.before}`;
  // Materialized, so that the planner does not scan all entries from the newest, expecting early matches.
  return db<ListRow[]>`
    with matched as materialized (
      select e.user_id, e.key, e.id, e.created_at from kv_entries e
      ${userSearch === undefined ? db`` : db`join users u on u.app_id = e.app_id and u.id = e.user_id`}
      where e.app_id = ${scope.appId} and e.sandbox_id = ${scope.sandboxId}
        ${ofUser} ${ofKeys} ${ofKeysBefore}
        ${userSearch === undefined ? db`` : db`and ${userMatches(db, scope, userSearch)}`})
    select ${listedColumns(db, bytesMax)} from (select count(*) as total from matched) counted
      left join lateral (
        select e.id, e.user_id, e.key, e.value, e.version, e.created_at, e.updated_at,
          u.email as user_email, u.name as user_name
        from (select * from matched order by created_at desc, id desc limit ${limit} offset ${offset}) m
        join kv_entries e on e.app_id = ${scope.appId} and e.user_id = m.user_id and e.key = m.key
        join users u on u.app_id = e.app_id and u.id = e.user_id) listed on true
    order by listed.created_at desc, listed.id desc`;
}

/** The index finds users that have all the trigrams; the text itself decides whether they are adjacent. */
function userMatches(db: Db, scope: Scope, search: string) {
  const size = Math.min(3, [...search].length);
  return db`u.app_id = ${scope.appId} and u.sandbox_id = ${scope.sandboxId}
    and text_pieces(u.app_id, coalesce(u.email, '') || chr(10) || coalesce(u.name, ''), 1, 3)
      @> text_pieces(${scope.appId}, ${search}, ${size}::int, ${size}::int)
    and (position(lower(${search}) in lower(u.email)) > 0 or position(lower(${search}) in lower(u.name)) > 0)`;
}
