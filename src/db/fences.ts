import { AsyncLocalStorage } from 'node:async_hooks';
import { isDatabaseError } from './errors.ts';
import type { Statement } from './sql.ts';
import type { Db } from './types.ts';

/*
 * While an app is moved to another database, its rows in this one may be a copy that is not in use. Triggers refuse to
 * write them (migrations/0064_moves.sql), so work for all apps passes over them.
 */

const work = new AsyncLocalStorage<true>();

/** Runs work for all apps: a statement that would write rows of an app on the move leaves them as they are. */
export function runForEveryApp<T>(run: () => T): T {
  return work.run(true, run);
}

export function isForEveryApp(): boolean {
  return work.getStore() === true;
}

/** SQL: whether the rows of this app may be written here. */
export function isInUse(db: Db, appColumn: string): Statement {
  return db`not exists (select from app_fences fence where fence.app_id = ${db(appColumn)} and fence.frozen)`;
}

/** True for a write of an app that is being moved, or was moved away. */
export function isRefusedByMove(error: unknown): boolean {
  return isDatabaseError(error, 'QM001');
}
