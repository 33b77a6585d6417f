import type { Db } from '../db/database.ts';
import { ownEventNames } from '../events/schema.ts';
import { findNearest } from '../lib/nearest.ts';
import type { Scope } from '../tenancy/caller.ts';
import { listRecentEventNames } from './store.ts';

export type EventWarning = { field: string; message: string };

/**
 * A warning for each name that is neither an event of Quarry nor among the latest events of the app: a program may
 * emit it later, but it may also be a slip.
 */
export async function findUnknownEvents(db: Db, scope: Scope, events: readonly string[]): Promise<EventWarning[]> {
  const isOwn = (name: string) => name === '*' || ownEventNames.includes(name);
  if (events.every(isOwn)) return [];
  const emitted = await listRecentEventNames(db, scope);
  const known = new Set([...ownEventNames, ...emitted]);
  return events.flatMap((name, at) => {
    if (isOwn(name) || known.has(name)) return [];
    const nearest = findNearest(name, known);
    const hint = nearest === undefined ? '' : ` Did you mean "${nearest}"?`;
    return [{ field: `events.${at}`, message: `Nothing has emitted an event "${name}" so far.${hint}` }];
  });
}
