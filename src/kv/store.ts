/*
 * Triggers of kv_entries: kv_entries_added, kv_entries_resized and kv_entries_removed count an app's entries and the
 * bytes of each user, and reject a write that would exceed the user's quota (SQLSTATE QK001). kv_log_added,
 * kv_log_overwritten and kv_log_removed log the changes that are watched: see watch-store.ts.
 *
 * An expired entry does not exist, although its row stays until the sweep. Every statement checks that, by the
 * database's clock.
 *
 * Statements that requests share take their arrays from subqueries, which hide the lengths from the planner, and pages
 * their bounds. While it expects fewer rows from the values at hand than from unknown ones, it plans a statement again each
 * time it runs.
 */
import type { Db, Statement } from '../db/database.ts';
import { isInUse } from '../db/fences.ts';
import type { Scope } from '../tenancy/caller.ts';

export type KvEntry = {
  id: string;
  userId: string;
  key: string;
  value: string;
  version: number;
  createdAt: Date;
  updatedAt: Date;
  expiresAt: Date | null;
};

export type KvListEntry = KvEntry & { userEmail: string | null; userName: string | null };

/** Without its value when the values before it fill the page. */
export type KvListed = Omit<KvListEntry, 'value'> & { value: string | null; valueBytes: number };

/** The owner of entries, with app and sandbox. */
export type KvOwner = Scope & { userId: string };

/** The columns that the database sets on a write. */
type Written = Pick<KvEntry, 'id' | 'version' | 'createdAt' | 'updatedAt' | 'expiresAt'>;

export type KvWrite = {
  id: string;
  key: string;
  value: string;
  /** Null: never expires. */
  ttlSeconds: number | null;
  userBytesMax: number;
};

const isLive = (db: Db) => db`(expires_at is null or expires_at > now())`;
const expiryAfter = (db: Db, ttlSeconds: number | null) => db`now() + ${ttlSeconds}::bigint * interval '1 second'`;

/** What ON CONFLICT sets: the next version, or a new entry where the old one has expired. */
const overwritten = (db: Db) => db`
  id = case when e.expires_at <= now() then excluded.id else e.id end,
  version = case when e.expires_at <= now() then 1 else e.version + 1 end,
  created_at = case when e.expires_at <= now() then excluded.created_at else e.created_at end,
  updated_at = excluded.updated_at`;

/** The entry with this key; undefined if there is none or it has expired. */
export async function findEntry(db: Db, owner: KvOwner, key: string): Promise<KvEntry | undefined> {
  const [row] = await db<Omit<KvEntry, 'userId' | 'key'>[]>`
    select id, value, version, created_at, updated_at, expires_at from kv_entries
    where app_id = ${owner.appId} and user_id = ${owner.userId} and key = ${key} and sandbox_id = ${owner.sandboxId}
      and ${isLive(db)}`;
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
      unnest((select ${wanted.map((w) => w.userId)}::uuid[]), (select ${wanted.map((w) => w.key)}::text[]))
        with ordinality w (user_id, key, place)
      cross join lateral (
        select id, value, version, created_at, updated_at, expires_at from kv_entries
        where app_id = ${scope.appId} and user_id = w.user_id and key = w.key and sandbox_id = ${scope.sandboxId}
          and ${isLive(db)}
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
    select id, user_id, key, value, version, created_at, updated_at, expires_at, created_at::text as created_at_text
    from (
      select *, sum(octet_length(value)) over (order by created_at desc, id desc) - octet_length(value) as bytes_before
      from (select * from kv_entries
        where app_id = ${owner.appId} and user_id = ${owner.userId} and sandbox_id = ${owner.sandboxId} ${further}
          and ${isLive(db)}
        order by created_at desc, id desc limit ${rowsMax}) next) counted
    where bytes_before < ${bytesMax}
    order by created_at desc, id desc`;
}

/**
 * Upserts entries; no key of a user may occur twice. Returns the entries in the order of the writes, undefined where the
 * user does not exist. `settings` passes the quota to the table's triggers. `lockTimeoutMs` limits the wait for locks, so
 * that one locked row does not delay the entries of others: the statement then fails (SQLSTATE 55P03). To avoid
 * deadlocks, rows are locked in a fixed order, users before entries, as when a user is deleted.
 */
export async function upsertEntries(
  db: Db,
  scope: Scope,
  writes: (KvWrite & { userId: string })[],
  lockTimeoutMs = 0,
): Promise<(KvEntry | undefined)[]> {
  const rows = await writeRows(db, scope, writes, lockTimeoutMs, {
    changes: db`value = excluded.value, expires_at = excluded.expires_at, ${overwritten(db)}`,
    more: db``,
  });
  return rows.map((row, place) => row && { ...row, value: writes[place]?.value ?? '' });
}

type WrittenRow = Written & { userId: string; key: string };

/** Inserts the writes. `changes` is what ON CONFLICT sets, and where; `more` adds to the columns that are returned. */
async function writeRows<Row extends WrittenRow>(
  db: Db,
  scope: Scope,
  writes: (KvWrite & { userId: string })[],
  lockTimeoutMs: number,
  { changes, more }: Record<'changes' | 'more', Statement>,
): Promise<(Row | undefined)[]> {
  const [first] = writes;
  if (first === undefined) return [];
  const column = (pick: (write: KvWrite & { userId: string }) => string) => writes.map(pick);
  const rows = await db<Row[]>`
    with settings as materialized (
      select set_config('quarry.kv_user_bytes_max', ${String(first.userBytesMax)}, true)
        ${lockTimeoutMs > 0 ? db`, set_config('lock_timeout', ${`${lockTimeoutMs}ms`}, true)` : db``}),
    owners as materialized (
      select id from users cross join settings
      where app_id = ${scope.appId} and sandbox_id = ${scope.sandboxId}
        and id = any((select ${[...new Set(column((w) => w.userId))]}::uuid[])::uuid[])
      order by id for key share of users)
    insert into kv_entries as e (app_id, sandbox_id, user_id, key, id, value, expires_at)
    select ${scope.appId}, ${scope.sandboxId}, o.id, w.key, w.id, w.value, now() + w.ttl_seconds * interval '1 second'
    from unnest((select ${column((w) => w.userId)}::uuid[]), (select ${column((w) => w.key)}::text[]),
        (select ${column((w) => w.id)}::uuid[]), (select ${column((w) => w.value)}::text[]),
        (select ${writes.map((w) => w.ttlSeconds)}::bigint[]))
        w (user_id, key, id, value, ttl_seconds)
      join owners o on o.id = w.user_id
    order by o.id, w.key collate "C"
    on conflict (app_id, user_id, key) do update set ${changes}
    returning user_id, key, id, version, created_at, updated_at, expires_at ${more}`;
  const written = new Map(rows.map((row) => [`${row.userId}${row.key}`, row]));
  return writes.map(({ userId, key }) => written.get(`${userId}${key}`));
}

/** Inserts a new key. Undefined when it already exists or the user does not exist. */
export async function insertEntry(db: Db, owner: KvOwner, write: KvWrite): Promise<KvEntry | undefined> {
  const [row] = await db<Written[]>`
    insert into kv_entries as e (app_id, sandbox_id, user_id, key, id, value, expires_at)
    select u.app_id, u.sandbox_id, u.id, ${write.key}, ${write.id}, ${write.value}, ${expiryAfter(db, write.ttlSeconds)}
    from users u
    where u.app_id = ${owner.appId} and u.id = ${owner.userId} and u.sandbox_id = ${owner.sandboxId}
      and set_config('quarry.kv_user_bytes_max', ${String(write.userBytesMax)}, true) is not null
    for key share of u
    on conflict (app_id, user_id, key) do update
      set value = excluded.value, expires_at = excluded.expires_at, ${overwritten(db)}
      where e.expires_at <= now()
    returning id, version, created_at, updated_at, expires_at`;
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
    with owner as materialized (${lockOwner(db, owner)})
    update kv_entries set value = ${write.value}, version = version + 1, updated_at = now(),
      expires_at = ${expiryAfter(db, write.ttlSeconds)}
    from owner
    where app_id = ${owner.appId} and user_id = owner.owner_id and key = ${write.key}
      and kv_entries.id = ${expected.id} and version = ${expected.version} and ${isLive(db)}
      and set_config('quarry.kv_user_bytes_max', ${String(write.userBytesMax)}, true) is not null
    returning kv_entries.id, version, created_at, updated_at, expires_at`;
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
    with owner as materialized (${lockOwner(db, owner)})
    delete from kv_entries using owner
    where app_id = ${owner.appId} and user_id = owner.owner_id and key = ${key} and sandbox_id = ${owner.sandboxId}
      and ${isLive(db)} ${same}`;
  return count > 0;
}

/** Locks the user's row like a foreign key does. The lock conflicts with that of startWatch in watch-store.ts. */
const lockOwner = (db: Db, owner: KvOwner) => db`
  select id as owner_id from users
  where app_id = ${owner.appId} and id = ${owner.userId} and sandbox_id = ${owner.sandboxId} for key share`;

/** An addition to an entry's integer. `ttlSeconds` null keeps the expiry as it is. */
export type KvIncrement = Omit<KvWrite, 'value'> & { by: string };

/**
 * Adds to the decimal integers that are the entries' values, or creates entries with `by`; no key of a user may occur
 * twice. Returns the entries in the order of the increments, undefined where the user does not exist or the value is not
 * a 64-bit integer; SQLSTATE 22003 when a result does not fit into 64 bits. Settings and locks are those of
 * upsertEntries.
 */
export async function incrementEntries(
  db: Db,
  scope: Scope,
  increments: (KvIncrement & { userId: string })[],
  lockTimeoutMs = 0,
): Promise<(KvEntry | undefined)[]> {
  const writes = increments.map(({ by, ...increment }) => ({ ...increment, value: by }));
  return writeRows<KvEntry>(db, scope, writes, lockTimeoutMs, {
    changes: db`value = case when e.expires_at <= now() then excluded.value
          else (e.value::bigint + excluded.value::bigint)::text end,
        expires_at = case when e.expires_at <= now() then excluded.expires_at
          else coalesce(excluded.expires_at, e.expires_at) end,
        ${overwritten(db)}
      where e.expires_at <= now() or case when e.value ~ '^(0|-?[1-9][0-9]{0,18})$'
        then e.value::numeric between -9223372036854775808 and 9223372036854775807 else false end`,
    more: db`, value`,
  });
}

/**
 * The user's entries of these keys, locked until the transaction ends, and its time. The user's row is locked first, as
 * by every writer. Expired entries are omitted. Undefined when there is no such user.
 */
export async function lockEntries(
  db: Db,
  owner: KvOwner,
  keys: string[],
): Promise<{ entries: KvEntry[]; now: Date } | undefined> {
  const rows = await db<({ now: Date } & (KvEntry | { id: null }))[]>`
    with owner as materialized (${lockOwner(db, owner)}),
    locked as materialized (
      select id, user_id, key, value, version, created_at, updated_at, expires_at from kv_entries
      where app_id = ${owner.appId} and user_id = (select owner_id from owner) and key = any(${keys}::text[])
        and sandbox_id = ${owner.sandboxId} and ${isLive(db)}
      order by key for update)
    select now(), locked.* from owner left join locked on true`;
  const [first] = rows;
  return first && { now: first.now, entries: rows.flatMap(({ now: _now, ...row }) => (row.id === null ? [] : [row])) };
}

/** Writes these entries over the locked ones. Returns fewer when one of the keys was created concurrently. */
export async function writeEntries(
  db: Db,
  owner: KvOwner,
  entries: KvEntry[],
  { lockedIds, userBytesMax }: { lockedIds: string[]; userBytesMax: number },
): Promise<number> {
  const column = <T>(pick: (entry: KvEntry) => T) => entries.map(pick);
  const { count } = await db`
    with settings as materialized (select set_config('quarry.kv_user_bytes_max', ${String(userBytesMax)}, true))
    insert into kv_entries as e
      (app_id, sandbox_id, user_id, key, id, value, version, created_at, updated_at, expires_at)
    select ${owner.appId}::uuid, ${owner.sandboxId}::uuid, ${owner.userId}::uuid, w.*
    from settings cross join unnest(${column((e) => e.key)}::text[], ${column((e) => e.id)}::uuid[],
      ${column((e) => e.value)}::text[], ${column((e) => e.version)}::bigint[],
      ${column((e) => e.createdAt)}::timestamptz[], ${column((e) => e.updatedAt)}::timestamptz[],
      ${column((e) => e.expiresAt)}::timestamptz[])
      w (key, id, value, version, created_at, updated_at, expires_at)
    order by w.key collate "C"
    on conflict (app_id, user_id, key) do update
      set id = excluded.id, value = excluded.value, version = excluded.version, updated_at = excluded.updated_at,
        expires_at = excluded.expires_at,
        created_at = case when e.id = excluded.id then e.created_at else excluded.created_at end
      where e.id = any(${lockedIds}::uuid[]) or e.expires_at <= now()`;
  return count;
}

/** Deletes entries that this transaction has locked. */
export async function deleteEntries(db: Db, owner: KvOwner, keys: string[]): Promise<void> {
  await db`
    delete from kv_entries
    where app_id = ${owner.appId} and user_id = ${owner.userId} and key = any(${keys}::text[])
      and sandbox_id = ${owner.sandboxId}`;
}

/** An entry without what tags consist of. */
export type KvContent = Omit<KvEntry, 'id' | 'version'>;

/** The entries of one user with keys from `from` on and before `before`, by key: as many as the bounds allow. */
export type KvPage = KvOwner & { from: string; before: string | undefined } & ListBounds;

/** Greater than every key: none is longer than 2,048 bytes (`QUARRY_KV_KEY_BYTES_MAX`). */
const afterAllKeys = (db: Db) => db`repeat(chr(1114111), 513)`;

/** The entries of a page. One that is larger than `bytesMax` is read by itself. */
export async function listEntriesByKey(db: Db, page: KvPage): Promise<KvContent[]> {
  const rows = await db<Omit<KvContent, 'userId'>[]>`
    select key, value, created_at, updated_at, expires_at from (
      select *, sum(octet_length(value)) over (order by key rows unbounded preceding) - octet_length(value) as bytes_before
      from (select key, value, created_at, updated_at, expires_at from kv_entries
        where app_id = ${page.appId} and user_id = ${page.userId} and sandbox_id = ${page.sandboxId}
          and key >= (select ${page.from}::text)
          and key < coalesce((select ${page.before ?? null}::text), ${afterAllKeys(db)}) and ${isLive(db)}
        order by key limit (select ${page.rowsMax}::bigint)) next) counted
    where bytes_before < ${page.bytesMax}
    order by key`;
  return rows.map((row) => ({ ...row, userId: page.userId }));
}

/** Larger values are not read by statements that pages share. */
const sharedValueBytesMax = 8 * 1024;

/**
 * The entries of many pages of one scope, in the order of the pages. Undefined for a page with a large value, so that its
 * bytes must be counted: such a page is read alone.
 */
export async function listPages(db: Db, scope: Scope, pages: KvPage[]): Promise<(KvContent[] | undefined)[]> {
  const column = <T>(pick: (page: KvPage) => T) => pages.map(pick);
  const rows = await db<(Omit<KvContent, 'userId' | 'value'> & { place: number; value: string | null })[]>`
    select w.place, e.* from
      unnest((select ${column((p) => p.userId)}::uuid[]), (select ${column((p) => p.from)}::text[]),
        (select ${column((p) => p.before ?? null)}::text[]), (select ${column((p) => p.rowsMax)}::bigint[]),
        (select ${column((p) => Math.min(sharedValueBytesMax, Math.floor(p.bytesMax / p.rowsMax)))}::bigint[]))
        with ordinality w (user_id, first, before, rows_max, value_bytes_max, place)
      cross join lateral (
        select key, case when octet_length(value) <= w.value_bytes_max then value end as value, created_at, updated_at,
          expires_at
        from kv_entries
        where app_id = ${scope.appId} and user_id = w.user_id and sandbox_id = ${scope.sandboxId}
          and key >= w.first and key < coalesce(w.before, ${afterAllKeys(db)}) and ${isLive(db)}
        order by key limit w.rows_max) e
    order by w.place, e.key`;
  const found: (KvContent[] | undefined)[] = pages.map(() => []);
  for (const { place, key, value, createdAt, updatedAt, expiresAt } of rows) {
    const page = pages[place - 1];
    if (page === undefined) continue;
    if (value === null) found[place - 1] = undefined;
    else found[place - 1]?.push({ userId: page.userId, key, value, createdAt, updatedAt, expiresAt });
  }
  return found;
}

/** Deletes expired entries. Returns how many. */
export async function sweepExpired(db: Db, rowsMax: number): Promise<number> {
  const { count } = await db`
    with expired as (
      select l.app_id, l.user_id, l.key from kv_entries l where l.expires_at <= now() and ${isInUse(db, 'l.app_id')}
      order by l.expires_at limit ${rowsMax} for update skip locked)
    delete from kv_entries e using expired x
    where e.app_id = x.app_id and e.user_id = x.user_id and e.key = x.key`;
  return count;
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
  listed.expires_at, listed.user_email, listed.user_name, octet_length(listed.value) as value_bytes,
  case when sum(octet_length(listed.value)) over (order by listed.created_at desc, listed.id desc) <= ${bytesMax}
    then listed.value end as value`;

async function listAll(db: Db, scope: Scope, { limit, offset, bytesMax }: Window) {
  return db<ListRow[]>`
    select ${listedColumns(db, bytesMax)} from
      (select coalesce(sum(entries), 0)::bigint - (
          select count(*) from kv_entries
          where app_id = ${scope.appId} and sandbox_id = ${scope.sandboxId} and expires_at <= now()) as total
        from kv_counters where app_id = ${scope.appId} and sandbox_id = ${scope.sandboxId}) counted
      left join lateral (
        select e.id, e.user_id, e.key, e.value, e.version, e.created_at, e.updated_at, e.expires_at,
          u.email as user_email, u.name as user_name
        from (select * from kv_entries
          where app_id = ${scope.appId} and sandbox_id = ${scope.sandboxId} and ${isLive(db)}
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
      where e.app_id = ${scope.appId} and e.sandbox_id = ${scope.sandboxId} and ${isLive(db)}
        ${ofUser} ${ofKeys} ${ofKeysBefore}
        ${userSearch === undefined ? db`` : db`and ${userMatches(db, scope, userSearch)}`})
    select ${listedColumns(db, bytesMax)} from (select count(*) as total from matched) counted
      left join lateral (
        select e.id, e.user_id, e.key, e.value, e.version, e.created_at, e.updated_at, e.expires_at,
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
