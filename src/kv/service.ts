import type { Static } from 'typebox';
import { Batcher } from '../db/batcher.ts';
import { type Db, isDatabaseError, isForeignKeyViolation, isRefusedStatement } from '../db/database.ts';
import type { PageRequest } from '../http/route/pages.ts';
import { defined } from '../lib/defined.ts';
import { AppError, found, invalidField, notFound } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import { type Caller, canSeeWholeApp, type Scope, type UserCaller } from '../tenancy/caller.ts';
import { fieldId } from '../tenancy/references.ts';
import {
  applyOperations,
  type BatchResult,
  checkOperations,
  type KvOperation,
  notAnInteger,
  tooLarge,
} from './batch.ts';
import { requireKey } from './keys.ts';
import { targetOwner, userNotFound } from './owner.ts';
import type { Precondition } from './precondition.ts';
import type { createKvBody, incrementKvBody, kvBatchBody, putKvBody } from './schema.ts';
import {
  deleteEntries,
  deleteEntry,
  findEntries,
  findEntry,
  incrementEntries,
  insertEntry,
  type KvEntry,
  type KvIncrement,
  type KvListEntry,
  type KvListed,
  type KvOwner,
  type KvPosition,
  type KvWrite,
  listEntries,
  listEntriesByKey,
  listUserEntries,
  lockEntries,
  updateEntry,
  upsertEntries,
  userExists,
  writeEntries,
} from './store.ts';

export type KvLimits = { keyBytesMax: number; valueBytesMax: number; userBytesMax: number };

type KvListFilter = {
  user?: string | undefined;
  user_search?: string | undefined;
  key?: string | undefined;
};

export type KvService = ReturnType<typeof createKvService>;

/**
 * Key-value entries of users. Each operation takes the pool or a transaction. `user` is the one named in the request,
 * and ignored for end users.
 */
export function createKvService({ limits }: { limits: KvLimits }) {
  const batchers = new WeakMap<Db, ReturnType<typeof createBatchers>>();

  /** Concurrent operations on one `db` share statements. */
  function batchersOf(db: Db): ReturnType<typeof createBatchers> {
    const known = batchers.get(db);
    if (known !== undefined) return known;
    const created = createBatchers(db);
    batchers.set(db, created);
    return created;
  }

  function newWrite(key: string, { value, ttl_seconds }: Static<typeof putKvBody>) {
    return { id: newUuid(), key, value, ttlSeconds: ttl_seconds ?? null, userBytesMax: limits.userBytesMax };
  }

  function checkValue(value: string): void {
    if (Buffer.byteLength(value) > limits.valueBytesMax)
      throw invalidField('value', `must be at most ${limits.valueBytesMax} bytes`);
  }

  /** Writes only if the entry is still in the state for which the precondition was checked. */
  async function putConditionally(
    db: Db,
    owner: KvOwner,
    key: string,
    input: Static<typeof putKvBody>,
    precondition: Precondition,
  ) {
    const current = await findEntry(db, owner, key);
    if (!current && !(await userExists(db, owner))) throw userNotFound();
    if (!precondition.holds(current)) throw preconditionFailed();
    const write = newWrite(key, input);
    const entry = await (current ? updateEntry(db, owner, write, current) : insertEntry(db, owner, write));
    if (!entry) throw preconditionFailed();
    return entry;
  }

  /** A statement is all or nothing, whichever requests share it, and holds its locks only until it has committed. */
  async function putAll(db: Db, owner: KvOwner, puts: KvOperation[]): Promise<BatchResult[]> {
    const writes = puts.map(({ key, value = '', ttl_seconds }) => ({
      ...owner,
      ...newWrite(key, { value, ...defined({ ttl_seconds }) }),
    }));
    const entries = await batchersOf(db).writes.add(nameOf(owner), writes);
    return entries.map((entry) => {
      if (entry === undefined) throw userNotFound();
      return { op: 'put', key: entry.key, entry };
    });
  }

  /** Takes no lock: one statement reads one snapshot. */
  async function readAll(db: Db, owner: KvOwner, gets: KvOperation[]): Promise<BatchResult[]> {
    const wanted = keysOf(gets).map((key) => ({ userId: owner.userId, key }));
    const found = (await findEntries(db, owner, wanted)).filter((entry) => entry !== undefined);
    if (found.length === 0 && !(await userExists(db, owner))) throw userNotFound();
    return applyOperations(gets, owner.userId, found, new Date(0)).results;
  }

  /**
   * One attempt at a batch, all or nothing. Undefined when a key was created concurrently: the next attempt finds it.
   */
  async function tryBatch(tx: Db, owner: KvOwner, operations: KvOperation[]): Promise<BatchResult[] | undefined> {
    const found = await lockEntries(tx, owner, keysOf(operations));
    if (found === undefined) throw userNotFound();
    const { entries: locked, now } = found;
    const { drafts, results } = applyOperations(operations, owner.userId, locked, now);
    const existed = new Set(locked.map(({ key }) => key));
    const changed = [...drafts].filter(([, draft]) => draft.changed);
    const deleted = changed.filter(([key, { entry }]) => entry === undefined && existed.has(key));
    if (deleted.length > 0)
      await deleteEntries(
        tx,
        owner,
        deleted.map(([key]) => key),
      );
    const written = changed.flatMap(([, { entry }]) => entry ?? []);
    if (written.length === 0) return results;
    const bounds = { lockedIds: locked.map(({ id }) => id), userBytesMax: limits.userBytesMax };
    return (await writeEntries(tx, owner, written, bounds)) === written.length ? results : undefined;
  }

  async function translateWriteErrors<T>(write: Promise<T>): Promise<T> {
    try {
      return await write;
    } catch (error) {
      // The user was deleted concurrently.
      if (isForeignKeyViolation(error)) throw userNotFound();
      if (!isDatabaseError(error, quotaExceeded)) throw error;
      throw new AppError(
        'quota_exceeded',
        `A user may store a total of ${limits.userBytesMax} bytes of keys and values.`,
        {
          fields: [{ field: 'value', message: "exceeds the user's storage limit" }],
          details: { user_bytes_max: limits.userBytesMax },
          cause: error,
        },
      );
    }
  }

  /** Adds the values omitted from the page. Entries deleted meanwhile are omitted. */
  async function* withValues(db: Db, scope: Scope, entries: KvListed[]): AsyncGenerator<KvListEntry> {
    for (let from = 0; from < entries.length; ) {
      const next = entries.slice(from, from + sizeOfPiece(entries, from));
      from += next.length;
      const missing = next.filter(({ value }) => value === null);
      const found = missing.length === 0 ? [] : await findEntries(db, scope, missing);
      const values = new Map(found.map((entry, index) => [missing[index], entry?.value]));
      for (const entry of next) {
        const value = entry.value ?? values.get(entry);
        if (value !== undefined) yield { ...entry, value };
      }
    }
  }

  return {
    limits,

    /** All entries of an end user, newest first. No connection is held between two reads. */
    async *listOwn(db: Db, caller: UserCaller): AsyncGenerator<KvEntry> {
      let after: KvPosition | undefined;
      for (;;) {
        const entries = await listUserEntries(db, caller, after, listBounds);
        yield* entries;
        after = entries.at(-1);
        if (after === undefined) return;
      }
    },

    /** A page of the entries of all users of the app. */
    async list(
      db: Db,
      caller: Caller,
      filter: KvListFilter,
      page: PageRequest,
    ): Promise<{ entries: AsyncIterable<KvListEntry>; total: number }> {
      if (!canSeeWholeApp(caller)) throw notFound();
      const userId = filter.user === undefined ? undefined : fieldId('user', 'user', filter.user);
      const userSearch = filter.user_search || undefined;
      const keys = filter.key ? { from: filter.key, before: firstTextAfterPrefix(filter.key) } : undefined;
      const window = { limit: page.pageSize, offset: page.offset, bytesMax: listBounds.bytesMax };
      const { entries, total } = await listEntries(db, caller, { userId, userSearch, keys }, window);
      return { entries: withValues(db, caller, entries), total };
    },

    async get(db: Db, caller: Caller, key: string, user: unknown): Promise<KvEntry> {
      const owner = targetOwner(caller, user);
      requireKey(key, 'look-up', limits.keyBytesMax);
      return found(await batchersOf(db).reads.add(nameOf(owner), { ...owner, key }));
    },

    /** 422 `already_exists` when the user has the key. */
    async create(db: Db, caller: Caller, input: Static<typeof createKvBody>): Promise<KvEntry> {
      const owner = targetOwner(caller, input.user);
      requireKey(input.key, 'write', limits.keyBytesMax);
      checkValue(input.value);
      const entry = await translateWriteErrors(insertEntry(db, owner, newWrite(input.key, input)));
      if (entry) return entry;
      if (!(await userExists(db, owner))) throw userNotFound();
      throw new AppError('already_exists', 'key: the user already has an entry with this key', {
        fields: [{ field: 'key', message: 'the user already has an entry with this key' }],
      });
    },

    /** Creates or overwrites, unless the precondition fails (412). */
    async put(
      db: Db,
      caller: Caller,
      key: string,
      input: Static<typeof putKvBody>,
      precondition: Precondition | undefined,
    ): Promise<KvEntry> {
      const owner = targetOwner(caller, input.user);
      requireKey(key, 'write', limits.keyBytesMax);
      checkValue(input.value);
      if (precondition) return translateWriteErrors(putConditionally(db, owner, key, input, precondition));
      const write = { ...owner, ...newWrite(key, input) };
      const [entry] = await translateWriteErrors(batchersOf(db).writes.add(nameOf(owner), [write]));
      if (!entry) throw userNotFound();
      return entry;
    },

    async delete(
      db: Db,
      caller: Caller,
      key: string,
      user: unknown,
      precondition: Precondition | undefined,
    ): Promise<void> {
      const owner = targetOwner(caller, user);
      requireKey(key, 'look-up', limits.keyBytesMax);
      if (!precondition) {
        found(await deleteEntry(db, owner, key));
        return;
      }
      const current = found(await findEntry(db, owner, key));
      if (!precondition.holds(current) || !(await deleteEntry(db, owner, key, current))) throw preconditionFailed();
    },

    /** Adds to an entry's integer; without an entry, to zero. */
    async increment(db: Db, caller: Caller, input: Static<typeof incrementKvBody>): Promise<KvEntry> {
      const owner = targetOwner(caller, input.user);
      const { key, by = 1, ttl_seconds: ttlSeconds } = input;
      requireKey(key, 'write', limits.keyBytesMax);
      const { userBytesMax } = limits;
      const increment = { ...owner, id: newUuid(), key, by: String(by), ttlSeconds: ttlSeconds ?? null, userBytesMax };
      try {
        const entry = await translateWriteErrors(batchersOf(db).increments.add(nameOf(owner), increment));
        if (entry) return entry;
      } catch (error) {
        if (!isDatabaseError(error, outOfRange)) throw error;
        // Either the sum or, with 19 digits, already the value itself.
        throw tooLarge('by');
      }
      throw (await userExists(db, owner)) ? notAnInteger('key') : userNotFound();
    },

    /** All operations or none, in their order. */
    async batch(db: Db, caller: Caller, input: Static<typeof kvBatchBody>): Promise<BatchResult[]> {
      const owner = targetOwner(caller, input.user);
      const { operations } = input;
      checkOperations(input, limits);
      if (operations.every(({ op }) => op === 'get')) return readAll(db, owner, operations);
      if (operations.every(isPlainPut) && keysOf(operations).length === operations.length)
        return translateWriteErrors(putAll(db, owner, operations));
      for (let tries = 0; tries < batchTriesMax; tries++) {
        const results = await translateWriteErrors(beginOrRollBack(db, (tx) => tryBatch(tx, owner, operations)));
        if (results !== undefined) return results;
      }
      throw new AppError('conflict', 'Other requests are creating the keys of the batch. Try again.');
    },

    /** The user's entries by key, and the key after which the next page continues. */
    async listByKey(
      db: Db,
      caller: Caller,
      query: { user?: unknown; prefix?: string | undefined; limit?: number | undefined },
      after: string | undefined,
    ): Promise<{ entries: KvEntry[]; next: string | undefined }> {
      const owner = targetOwner(caller, query.user);
      const prefix = query.prefix ?? '';
      const keys = { from: prefix, before: firstTextAfterPrefix(prefix), after };
      const rowsMax = query.limit ?? pageRowsDefault;
      const found = await listEntriesByKey(db, owner, keys, { rowsMax: rowsMax + 1, bytesMax: pageBytesMax });
      if (found.length === 0 && !(await userExists(db, owner))) throw userNotFound();
      const entries = found.slice(0, rowsMax);
      // A page may also end because of its bytes; then the next one may turn out to be empty.
      const bytes = entries.reduce((sum, { value }) => sum + Buffer.byteLength(value), 0);
      const more = found.length > rowsMax || bytes >= pageBytesMax;
      return { entries, next: more ? entries.at(-1)?.key : undefined };
    },
  };
}

function createBatchers(db: Db) {
  const reads = new Batcher<KvOwner & { key: string }, KvEntry | undefined>({
    run: (wanted) => findEntries(db, scopeOf(wanted), wanted),
    itemsMax: batchItemsMax,
    bytesMax: Number.POSITIVE_INFINITY,
    batchesMax: readBatchesMax,
  });
  // If an entry is locked, the batcher writes each request's entries separately.
  const lockTimeoutMs = (items: unknown[]) => (items.length > 1 ? sharedLockTimeoutMs : 0);
  const shared = { itemsMax: batchItemsMax, batchesMax: writeBatchesMax, failsForOne: isRefusedStatement };
  /** The entries of each request are written together, or none of them. */
  const writes = new Batcher<(KvOwner & KvWrite)[], (KvEntry | undefined)[]>({
    ...shared,
    async run(requests) {
      const written = requests.flat();
      const entries = await upsertEntries(db, scopeOf(written), written, lockTimeoutMs(requests));
      return requests.map(({ length }) => entries.splice(0, length));
    },
    bytesMax: batchBytesMax,
    sizeOf: (request) => request.reduce((sum, { value }) => sum + value.length + entryBytes, 0),
    namesOf: (request) => request.map(({ userId, key }) => userId + key),
  });
  const increments = new Batcher<KvOwner & KvIncrement, KvEntry | undefined>({
    ...shared,
    run: (items) => incrementEntries(db, scopeOf(items), items, lockTimeoutMs(items)),
    bytesMax: Number.POSITIVE_INFINITY,
    namesOf: ({ userId, key }) => [userId + key],
  });
  return { reads, writes, increments };
}

/** Entries that a list reads per query. */
const listBounds = { rowsMax: 500, bytesMax: 256 * 1024 };

/** The number of entries from here on that fit into one piece: at least one. */
function sizeOfPiece(entries: KvListed[], from: number): number {
  let bytes = 0;
  let to = from;
  do bytes += entries[to++]?.valueBytes ?? 0;
  while (to < entries.length && bytes + (entries[to]?.valueBytes ?? 0) <= listBounds.bytesMax);
  return to - from;
}

const batchItemsMax = 64;
const batchBytesMax = 1024 * 1024;
/** What an entry counts beside its value, so that a statement writes a bounded number of entries. */
const entryBytes = 512;
const readBatchesMax = 2;
const writeBatchesMax = 4;

/** The key of a scope's batches. */
function nameOf({ appId, sandboxId }: Scope): string {
  return `${appId}/${sandboxId}`;
}

/** All entries of a batch belong to one scope. */
function scopeOf(items: KvOwner[]): Scope {
  const [first] = items;
  if (first === undefined) throw new Error('The batch is empty.');
  return first;
}

/** Runs work in a transaction, which is rolled back if the work returns undefined. */
async function beginOrRollBack<T>(db: Db, work: (tx: Db) => Promise<T | undefined>): Promise<T | undefined> {
  const rolledBack = new Error('The transaction is rolled back.');
  try {
    return await db.begin(async (tx) => {
      const result = await work(tx);
      if (result === undefined) throw rolledBack;
      return result;
    });
  } catch (error) {
    if (error === rolledBack) return undefined;
    throw error;
  }
}

function keysOf(operations: KvOperation[]): string[] {
  return [...new Set(operations.map(({ key }) => key))];
}

/** Whether the operation is a put that does not depend on the current entry. */
function isPlainPut({ op, if_match, if_none_match }: KvOperation): boolean {
  return op === 'put' && if_match === undefined && if_none_match === undefined;
}

const sharedLockTimeoutMs = 50;
const batchTriesMax = 5;
const pageRowsDefault = 100;
const pageBytesMax = 4 * 1024 * 1024;

/** SQLSTATE of a number that does not fit its type. */
const outOfRange = '22003';

/** SQLSTATE raised by kv_use. */
const quotaExceeded = 'QK001';

/** The first text after all texts with the prefix, in code point order (UTF-8's byte order). */
export function firstTextAfterPrefix(prefix: string): string | undefined {
  let end = prefix.length;
  // The last character that has a successor; what follows it is dropped.
  for (;;) {
    if (end === 0) return undefined;
    const last = prefix.codePointAt(end - 2) ?? 0;
    const point = last > 0xffff ? last : prefix.charCodeAt(end - 1);
    end -= point > 0xffff ? 2 : 1;
    if (point === 0x10ffff) continue;
    return prefix.slice(0, end) + String.fromCodePoint(point === 0xd7ff ? 0xe000 : point + 1);
  }
}

function preconditionFailed(): AppError {
  return new AppError('precondition_failed', 'The entry does not match If-Match or If-None-Match.');
}
