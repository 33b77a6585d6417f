import { refuseDuplicate } from '../db/unique.ts';
import { AppError, invalidField } from '../lib/errors.ts';
import { looksLikeId } from '../lib/ids.ts';
import { Type } from '../lib/type.ts';
import { type Caller, canSeeWholeApp } from './caller.ts';

const text = Type.String({
  minLength: 1,
  maxLength: 200,
  description:
    'Your own name for it, unique in the app or sandbox. Must not look like an id. Only secret keys and developers set it.',
});

/** `lookup_key` of a body; null removes it. */
export const lookupKeyInput = Type.Optional(Type.Union([text, Type.Null()]));

/** `lookup_key` of a list. */
export const lookupKeyFilter = Type.Optional(
  Type.String({ minLength: 1, maxLength: 200, description: 'Only the one with this lookup key.' }),
);

/**
 * Refuses keys that look like ids, and callers who do not see the whole app: the key of a source that is hidden from them
 * would be taken, and a program that looks for its own source would find theirs.
 */
export function checkLookupKey(caller: Caller, lookupKey: string | null | undefined): void {
  if (lookupKey === undefined) return;
  if (!canSeeWholeApp(caller)) throw new AppError('forbidden', 'Only a secret key or a developer sets lookup_key.');
  if (lookupKey !== null && looksLikeId(lookupKey)) throw invalidField('lookup_key', 'must not look like an id');
}

/** Runs a write. 422 on `lookup_key` if it violates the named index. */
export function refuseDuplicateKey<T>(constraint: string, thing: string, write: () => Promise<T>): Promise<T> {
  const duplicate = { field: 'lookup_key', message: `Another ${thing} already uses this lookup key.` };
  return refuseDuplicate(constraint, duplicate, write);
}
