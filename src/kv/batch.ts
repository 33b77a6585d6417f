import type { Static } from 'typebox';
import { AppError, type ErrorCode, invalidField } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import { requireKey } from './keys.ts';
import { readPrecondition } from './precondition.ts';
import type { kvBatchBody, kvOperation } from './schema.ts';
import type { KvEntry } from './store.ts';

export type KvOperation = Static<typeof kvOperation>;

export type BatchResult = {
  op: KvOperation['op'];
  key: string;
  /** The entry after the operation, if there is one. */
  entry?: KvEntry | undefined;
  deleted?: boolean;
};

/** An entry as the batch has changed it so far. */
type Draft = { entry: KvEntry | undefined; changed: boolean };

type Limits = { keyBytesMax: number; valueBytesMax: number };

const membersOf: Record<KvOperation['op'], readonly string[]> = {
  get: [],
  put: ['value', 'ttl_seconds'],
  delete: [],
  increment: ['by', 'ttl_seconds'],
};
const optional = ['value', 'ttl_seconds', 'by'] as const;

/** Checks each operation by itself. Throws 422 that names the operation. */
export function checkOperations({ operations }: Static<typeof kvBatchBody>, limits: Limits): void {
  for (const [index, operation] of operations.entries()) {
    const { op, key, value } = operation;
    const field = (name: string) => `operations.${index}.${name}`;
    for (const name of optional)
      if (operation[name] !== undefined && !membersOf[op].includes(name))
        throw invalidField(field(name), `is not a member of ${op}`);
    if (op === 'put' && value === undefined) throw invalidField(field('value'), 'is required');
    if (value !== undefined && Buffer.byteLength(value) > limits.valueBytesMax)
      throw invalidField(field('value'), `must be at most ${limits.valueBytesMax} bytes`);
    withOperationPath(index, () => requireKey(key, 'write', limits.keyBytesMax));
    withOperationPath(index, () => preconditionOf(operation));
  }
}

/**
 * Applies the operations to these entries, in order: each sees the results of those before it. Throws 412 that names the
 * operation whose condition fails, and 422 for an increment of a value that is not an integer.
 */
export function applyOperations(operations: KvOperation[], userId: string, entries: KvEntry[], now: Date) {
  const drafts = new Map<string, Draft>();
  for (const entry of entries) drafts.set(entry.key, { entry, changed: false });
  const results = operations.map((operation, index): BatchResult => {
    const { op, key } = operation;
    const draft: Draft = drafts.get(key) ?? { entry: undefined, changed: false };
    drafts.set(key, draft);
    const { entry } = draft;
    if (preconditionOf(operation)?.holds(entry) === false) throw conditionFailed(index);
    if (op === 'get') return { op, key, entry };
    draft.changed = true;
    if (op === 'delete') {
      draft.entry = undefined;
      return { op, key, deleted: entry !== undefined };
    }
    const value = op === 'put' ? (operation.value ?? '') : addTo(entry, operation.by ?? 1, index);
    const start = { id: newUuid(), userId, key, version: 0, createdAt: now };
    const ttl = operation.ttl_seconds;
    const keptExpiry = op === 'put' ? null : (entry?.expiresAt ?? null);
    const expiresAt = ttl === undefined ? keptExpiry : new Date(now.getTime() + ttl * 1_000);
    const before = entry ?? start;
    draft.entry = { ...before, value, version: before.version + 1, updatedAt: now, expiresAt };
    return { op, key, entry: draft.entry };
  });
  return { drafts, results };
}

const integer = /^(?:0|-?[1-9][0-9]{0,18})$/;
const integerMax = 2n ** 63n;

function addTo(entry: KvEntry | undefined, by: number, index: number): string {
  if (entry !== undefined && !integer.test(entry.value)) throw notAnInteger(`operations.${index}.key`);
  const before = BigInt(entry?.value ?? 0);
  const sum = before + BigInt(by);
  if (!fits(before)) throw notAnInteger(`operations.${index}.key`);
  if (!fits(sum)) throw tooLarge(`operations.${index}.by`);
  return sum.toString();
}

const fits = (value: bigint) => value >= -integerMax && value < integerMax;

export function notAnInteger(field: string): AppError {
  return invalidField(field, 'its value is not a 64-bit integer');
}

export function tooLarge(field: string): AppError {
  return invalidField(field, 'the sum does not fit into 64 bits');
}

function preconditionOf({ if_match, if_none_match }: KvOperation) {
  return readPrecondition({ 'if-match': if_match, 'if-none-match': if_none_match });
}

function conditionFailed(index: number): AppError {
  return new AppError('precondition_failed', `operations.${index}: the entry does not match its condition.`, {
    details: { operation: index },
  });
}

/** Runs a check. In its errors, the fields get the path of the operation: `operations.3.key`. */
function withOperationPath(index: number, check: () => unknown): void {
  try {
    check();
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const fields = error.fields?.map(({ field, message }) => ({
      field: `operations.${index}.${field.replaceAll('-', '_')}`,
      message,
    }));
    const [first] = fields ?? [];
    throw first === undefined
      ? error
      : new AppError(error.code as ErrorCode, `${first.field}: ${first.message}`, { fields: fields ?? [] });
  }
}
