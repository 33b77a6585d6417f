import { stringProblem } from '../http/body/unicode.ts';
import { AppError, invalidField } from '../lib/errors.ts';
import { parseId } from '../lib/ids.ts';
import { type Caller, canSeeWholeApp } from '../tenancy/caller.ts';
import type { KvOwner } from './store.ts';

/** The owner that the request names. 400 when a developer or server names none, 422 for an invalid id, 404 for an agent. */
export function targetOwner(caller: Caller, user: unknown): KvOwner {
  const { appId, sandboxId } = caller;
  if (caller.kind === 'user') return { appId, sandboxId, userId: caller.userId };
  if (!canSeeWholeApp(caller)) throw new AppError('not_found', 'An agent has no key-value entries.');
  if (user === undefined) throw new AppError('user_required', 'Name the owner of the entry in `user`.');
  const userId = typeof user === 'string' && stringProblem(user) === undefined ? parseId('user', user) : undefined;
  if (userId === undefined) throw invalidField('user', 'is not an id of the right type');
  return { appId, sandboxId, userId };
}

export function userNotFound(): AppError {
  return new AppError('not_found', 'The user does not exist in this app.');
}
