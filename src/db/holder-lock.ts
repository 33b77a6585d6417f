import type { Statement } from './sql.ts';
import type { Db } from './types.ts';

/**
 * SQL that is true if no session holds the lock of `name`, an SQL expression: the process of that name has ended. The
 * lock is shared and lasts for the statement's transaction, so processes that ask about the same name do not take each
 * other for it.
 * @param space half of the advisory lock's key; the other half is the hash of the name.
 */
export function hasEnded(db: Db, space: number, name: Statement) {
  return db`pg_try_advisory_xact_lock_shared(${space}, hashtext(${name}))`;
}
