import type { Db } from '../db/database.ts';
import { announceChange } from '../http/streams/sse.ts';
import type { Scope } from '../tenancy/caller.ts';
import { numberEvents, type Positions } from './store.ts';

/** The topic of the event log in notifications. */
export const eventsTopic = 'events';

/** Additional work in the transaction that logs events. */
export type OnLogged = (tx: Db, scope: Scope, positions: Positions) => Promise<void>;

const batchMax = 500;

/** Assigns positions to committed events. Returns whether there may be more. */
export async function logEvents(tx: Db, scope: Scope, onLogged: OnLogged): Promise<boolean> {
  const positions = await numberEvents(tx, scope, batchMax);
  if (positions === undefined || positions.last === positions.after) return false;
  await onLogged(tx, scope, positions);
  await announceChange(tx, eventsTopic, scope.appId, scope.sandboxId);
  return positions.last - positions.after === batchMax;
}
