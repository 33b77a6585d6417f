import type { Db } from '../../db/database.ts';
import { found } from '../../lib/errors.ts';
import { parseId } from '../../lib/ids.ts';
import type { Scope } from '../../tenancy/caller.ts';
import { unknownReference } from '../../tenancy/references.ts';
import * as store from './store.ts';

/** The automation that a path names by id or lookup key. Throws 404 if there is none. */
export async function getAutomation(db: Db, scope: Scope, name: string): Promise<store.FullAutomation> {
  return found(await findByName(name, (key) => store.findAutomation(db, scope, key)));
}

/** Like `getAutomation`, but without the graph; undefined if there is none. */
export function findDefinition(db: Db, scope: Scope, name: string): Promise<store.AutomationRow | undefined> {
  return findByName(name, (key) => store.findDefinition(db, scope, key));
}

/** The automations that the member `automations` of a body names by id or lookup key. Throws 422 if there is none. */
export async function listNamed(db: Db, scope: Scope, names: readonly string[]): Promise<store.AutomationRow[]> {
  const ids = names.map((name) => parseId('automation', name));
  const known = ids.filter((id) => id !== undefined);
  const rows = await store.listDefinitions(db, scope, { ids: known, lookupKeys: names });
  const byId = new Map(rows.map((row) => [row.id, row]));
  const byKey = new Map(rows.map((row) => [row.lookupKey, row]));
  return names.map((name, index) => {
    const row = byId.get(ids[index] ?? '') ?? byKey.get(name);
    if (row === undefined) throw unknownReference(`automations.${index}`);
    return row;
  });
}

export async function getDefinition(db: Db, scope: Scope, name: string): Promise<store.AutomationRow> {
  return found(await findDefinition(db, scope, name));
}

async function findByName<T>(
  name: string,
  find: (key: { id: string } | { lookupKey: string }) => Promise<T | undefined>,
): Promise<T | undefined> {
  const id = parseId('automation', name);
  return (id === undefined ? undefined : await find({ id })) ?? (await find({ lookupKey: name }));
}
