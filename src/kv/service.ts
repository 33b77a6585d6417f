import type { Static } from 'typebox';
import { Batcher } from '../db/batcher.ts';
import type { Db } from '../db/database.ts';
import { isDatabaseError, isForeignKeyViolation, isRefusedStatement } from '../db/database.ts';
import { AppError, invalidField, notFound } from '../errors.ts';
import type { PageRequest } from '../http/pages.ts';
import { stringProblem } from '../http/unicode.ts';
import { newUuid, parseId } from '../ids.ts';
import { type Caller, canSeeWholeApp, type Scope, type UserCaller } from '../tenancy/caller.ts';
import { fieldId } from '../tenancy/references.ts';
import { requireKey } from './keys.ts';
import type { Precondition } from './precondition.ts';
import type { createKvBody, putKvBody } from './schema.ts';
import {
  deleteEntry,
  findEntries,
  findEntry,
  insertEntry,
  type KvEntry,
  type KvListEntry,
  type KvListed,
  type KvOwner,
  type KvPosition,
  type KvWrite,
  listEntries,
  listUserEntries,
  updateEntry,
  upsertEntries,
  userExists,
} from './store.ts';

type KvLimits = { keyBytesMax: number; valueBytesMax: number; userBytesMax: number };

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

  function newWrite(key: string, value: string) {
    return { id: newUuid(), key, value, userBytesMax: limits.userBytesMax };
  }

  function checkValue(value: string): void {
    if (Buffer.byteLength(value) > limits.valueBytesMax)
      throw invalidField('value', `must be at most ${limits.valueBytesMax} bytes`);
  }

  /** Writes only over the state for which the precondition was checked. */
  async function putConditionally(db: Db, owner: KvOwner, key: string, value: string, precondition: Precondition) {
    const current = await findEntry(db, owner, key);
    if (!current && !(await userExists(db, owner))) throw userNotFound();
    if (!precondition.holds(current)) throw preconditionFailed();
    const write = newWrite(key, value);
    const entry = await (current ? updateEntry(db, owner, write, current) : insertEntry(db, owner, write));
    if (!entry) throw preconditionFailed();
    return entry;
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
      const entry = await batchersOf(db).reads.add(nameOf(owner), { ...owner, key });
      if (!entry) throw notFound();
      return entry;
    },

    /** 422 `already_exists` when the user has the key. */
    async create(db: Db, caller: Caller, input: Static<typeof createKvBody>): Promise<KvEntry> {
      const owner = targetOwner(caller, input.user);
      requireKey(input.key, 'write', limits.keyBytesMax);
      checkValue(input.value);
      const entry = await translateWriteErrors(insertEntry(db, owner, newWrite(input.key, input.value)));
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
      if (precondition) return translateWriteErrors(putConditionally(db, owner, key, input.value, precondition));
      const write = { ...owner, ...newWrite(key, input.value) };
      const entry = await translateWriteErrors(batchersOf(db).writes.add(nameOf(owner), write));
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
        if (!(await deleteEntry(db, owner, key))) throw notFound();
        return;
      }
      const current = await findEntry(db, owner, key);
      if (!current) throw notFound();
      if (!precondition.holds(current) || !(await deleteEntry(db, owner, key, current))) throw preconditionFailed();
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
  const writes = new Batcher<KvOwner & KvWrite, KvEntry | undefined>({
    run: (written) => upsertEntries(db, scopeOf(written), written),
    itemsMax: batchItemsMax,
    bytesMax: batchBytesMax,
    sizeOf: ({ value }) => value.length,
    nameOf: ({ userId, key }) => userId + key,
    batchesMax: writeBatchesMax,
    failsForOne: isRefusedStatement,
  });
  return { reads, writes };
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

/** SQLSTATE raised by kv_use. */
const quotaExceeded = 'QK001';

/** The owner that the request names. 400 when a developer or server names none, 422 for an invalid id, 404 for an agent. */
function targetOwner(caller: Caller, user: unknown): KvOwner {
  const { appId, sandboxId } = caller;
  if (caller.kind === 'user') return { appId, sandboxId, userId: caller.userId };
  if (!canSeeWholeApp(caller)) throw new AppError('not_found', 'An agent has no key-value entries.');
  if (user === undefined) throw new AppError('user_required', 'Name the owner of the entry in `user`.');
  const userId = typeof user === 'string' && stringProblem(user) === undefined ? parseId('user', user) : undefined;
  if (userId === undefined) throw invalidField('user', 'is not an id of the right type');
  return { appId, sandboxId, userId };
}

/** The first text after all texts with the prefix, in code point order (UTF-8's byte order). */
export function firstTextAfterPrefix(prefix: string): string | undefined {
  const points = Array.from(prefix, (character) => character.codePointAt(0) ?? 0);
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    if (last === 0x10ffff) continue;
    const next = last === 0xd7ff ? 0xe000 : last + 1;
    return String.fromCodePoint(...points, next);
  }
  return undefined;
}

function userNotFound(): AppError {
  return new AppError('not_found', 'The user does not exist in this app.');
}

function preconditionFailed(): AppError {
  return new AppError('precondition_failed', 'The entry does not match If-Match or If-None-Match.');
}
