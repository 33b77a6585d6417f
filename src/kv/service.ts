import type { Static } from 'typebox';
import { type Db, isDatabaseError } from '../db/database.ts';
import { AppError, found, invalidField } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import type { Caller } from '../tenancy/caller.ts';
import { type BatchResult, notAnInteger, tooLarge } from './batch.ts';
import { requireKey } from './keys.ts';
import { list, listByKey, listOwn } from './lists.ts';
import { targetOwner, userNotFound } from './owner.ts';
import type { Precondition } from './precondition.ts';
import { runBatch } from './run-batch.ts';
import type { createKvBody, incrementKvBody, kvBatchBody, putKvBody } from './schema.ts';
import { nameOf, sharedStatements } from './shared-statements.ts';
import { deleteEntry, findEntry, insertEntry, type KvEntry, type KvOwner, updateEntry, userExists } from './store.ts';
import { type KvLimits, newWrite, translateWriteErrors } from './writes.ts';

/** SQLSTATE of a number that does not fit its type. */
const outOfRange = '22003';

export type KvService = ReturnType<typeof createKvService>;

/**
 * Key-value entries of users. Each operation takes the pool or a transaction. `user` is the one named in the request,
 * and ignored for end users.
 */
export function createKvService({ limits }: { limits: KvLimits }) {
  return {
    limits,
    listOwn,
    list,
    listByKey,

    async get(db: Db, caller: Caller, key: string, user: unknown): Promise<KvEntry> {
      const owner = targetOwner(caller, user);
      requireKey(key, 'look-up', limits.keyBytesMax);
      return found(await sharedStatements(db).reads.add(nameOf(owner), { ...owner, key }));
    },

    /** 422 `already_exists` when the user has the key. */
    async create(db: Db, caller: Caller, input: Static<typeof createKvBody>): Promise<KvEntry> {
      const owner = targetOwner(caller, input.user);
      requireKey(input.key, 'write', limits.keyBytesMax);
      checkValue(limits, input.value);
      const entry = await translateWriteErrors(limits, insertEntry(db, owner, newWrite(limits, input.key, input)));
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
      checkValue(limits, input.value);
      if (precondition)
        return translateWriteErrors(limits, putConditionally(db, owner, key, input, precondition, limits));
      const write = { ...owner, ...newWrite(limits, key, input) };
      const [entry] = await translateWriteErrors(limits, sharedStatements(db).writes.add(nameOf(owner), [write]));
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
    increment: (db: Db, caller: Caller, input: Static<typeof incrementKvBody>) => increment(db, caller, input, limits),

    /** All operations or none, in their order. */
    batch: (db: Db, caller: Caller, input: Static<typeof kvBatchBody>): Promise<BatchResult[]> =>
      runBatch(db, caller, input, limits),
  };
}

function checkValue(limits: KvLimits, value: string): void {
  if (Buffer.byteLength(value) > limits.valueBytesMax)
    throw invalidField('value', `must be at most ${limits.valueBytesMax} bytes`);
}

async function increment(
  db: Db,
  caller: Caller,
  input: Static<typeof incrementKvBody>,
  limits: KvLimits,
): Promise<KvEntry> {
  const owner = targetOwner(caller, input.user);
  const { key, by = 1, ttl_seconds: ttlSeconds } = input;
  requireKey(key, 'write', limits.keyBytesMax);
  const { userBytesMax } = limits;
  const added = { ...owner, id: newUuid(), key, by: String(by), ttlSeconds: ttlSeconds ?? null, userBytesMax };
  try {
    const entry = await translateWriteErrors(limits, sharedStatements(db).increments.add(nameOf(owner), added));
    if (entry) return entry;
  } catch (error) {
    if (!isDatabaseError(error, outOfRange)) throw error;
    // Either the sum or, with 19 digits, already the value itself.
    throw tooLarge('by');
  }
  throw (await userExists(db, owner)) ? notAnInteger('key') : userNotFound();
}

/** Writes only if the entry is still in the state for which the precondition was checked. */
async function putConditionally(
  db: Db,
  owner: KvOwner,
  key: string,
  input: Static<typeof putKvBody>,
  precondition: Precondition,
  limits: KvLimits,
) {
  const current = await findEntry(db, owner, key);
  if (!current && !(await userExists(db, owner))) throw userNotFound();
  if (!precondition.holds(current)) throw preconditionFailed();
  const write = newWrite(limits, key, input);
  const entry = await (current ? updateEntry(db, owner, write, current) : insertEntry(db, owner, write));
  if (!entry) throw preconditionFailed();
  return entry;
}

function preconditionFailed(): AppError {
  return new AppError('precondition_failed', 'The entry does not match If-Match or If-None-Match.');
}
