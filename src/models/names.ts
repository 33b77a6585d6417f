import type { Db } from '../db/database.ts';
import { AppError } from '../lib/errors.ts';
import type { Scope } from '../tenancy/caller.ts';
import { listNames } from './store.ts';

/** Names are unique among the models and aliases of a space. Others wait until the transaction ends. */
export async function requireFreeName(tx: Db, scope: Scope, name: string, own?: string): Promise<void> {
  await tx`select pg_advisory_xact_lock(hashtextextended(${`model-names/${scope.appId}/${scope.sandboxId}`}, 0))`;
  const names = await listNames(tx, scope);
  if (names.some((each) => each.name === name && each.id !== own))
    throw new AppError('already_exists', 'name: is the name of another model or alias', {
      fields: [{ field: 'name', message: 'is the name of another model or alias' }],
    });
}
