import type { Static } from 'typebox';
import type { Db } from '../db/database.ts';
import { defined } from '../lib/defined.ts';
import { AppError } from '../lib/errors.ts';
import type { Caller } from '../tenancy/caller.ts';
import { applyOperations, type BatchResult, checkOperations, type KvOperation } from './batch.ts';
import { targetOwner, userNotFound } from './owner.ts';
import type { kvBatchBody } from './schema.ts';
import { nameOf, sharedStatements } from './shared-statements.ts';
import { deleteEntries, findEntries, type KvOwner, lockEntries, userExists, writeEntries } from './store.ts';
import { type KvLimits, newWrite, translateWriteErrors } from './writes.ts';

const batchTriesMax = 5;

/** All operations or none, in their order. */
export async function runBatch(
  db: Db,
  caller: Caller,
  input: Static<typeof kvBatchBody>,
  limits: KvLimits,
): Promise<BatchResult[]> {
  const owner = targetOwner(caller, input.user);
  const { operations } = input;
  checkOperations(input, limits);
  if (operations.every(({ op }) => op === 'get')) return readAll(db, owner, operations);
  if (operations.every(isPlainPut) && keysOf(operations).length === operations.length)
    return translateWriteErrors(limits, putAll(db, owner, operations, limits));
  for (let tries = 0; tries < batchTriesMax; tries++) {
    const results = await translateWriteErrors(
      limits,
      beginOrRollBack(db, (tx) => tryBatch(tx, owner, operations, limits)),
    );
    if (results !== undefined) return results;
  }
  throw new AppError('conflict', 'Other requests are creating the keys of the batch. Try again.');
}

/** A statement is all or nothing, whichever requests share it, and holds its locks only until it has committed. */
async function putAll(db: Db, owner: KvOwner, puts: KvOperation[], limits: KvLimits): Promise<BatchResult[]> {
  const writes = puts.map(({ key, value = '', ttl_seconds }) => ({
    ...owner,
    ...newWrite(limits, key, { value, ...defined({ ttl_seconds }) }),
  }));
  const entries = await sharedStatements(db).writes.add(nameOf(owner), writes);
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
async function tryBatch(
  tx: Db,
  owner: KvOwner,
  operations: KvOperation[],
  { userBytesMax }: KvLimits,
): Promise<BatchResult[] | undefined> {
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
  const bounds = { lockedIds: locked.map(({ id }) => id), userBytesMax };
  return (await writeEntries(tx, owner, written, bounds)) === written.length ? results : undefined;
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
