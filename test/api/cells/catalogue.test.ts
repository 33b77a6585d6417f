import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { catalogue, sequences } from '../../../src/cells/move/catalogue.ts';
import { dropSession, openSession } from '../../../src/cells/move/session.ts';
import { listAppTables } from '../../../src/cells/move/tables.ts';
import { createTestDatabase } from '../../support/database.ts';

const database = await createTestDatabase();
after(() => database.drop());
const { db } = database;

/** What the database has and the catalogue does not name, or the other way round. */
function findDifferences(existing: readonly string[], known: Readonly<Record<string, unknown>>): string[] {
  return [
    ...existing.filter((name) => !(name in known)).map((name) => `${name} has no line`),
    ...Object.keys(known)
      .filter((name) => !existing.includes(name))
      .map((name) => `${name} does not exist`),
  ];
}

const listRelations = async (kinds: string[]) =>
  (
    await db<{ name: string }[]>`
      select relname as name from pg_class where relnamespace = 'public'::regnamespace
        and relkind = any (${kinds}::text[]::"char"[]) and not relispartition`
  ).map(({ name }) => name);

test('every table and every sequence has a line in the catalogue of moves', async () => {
  const advice = 'Say in src/cells/move/catalogue.ts what a move of an app does with it.';
  assert.deepEqual(findDifferences(await listRelations(['r', 'p']), catalogue), [], advice);
  assert.deepEqual(findDifferences(await listRelations(['S']), sequences), [], advice);
});

test('the rule finds a table without a line', async () => {
  await db`create table new_things (app_id uuid not null, id uuid not null, primary key (app_id, id))`;
  try {
    assert.deepEqual(findDifferences(await listRelations(['r', 'p']), catalogue), ['new_things has no line']);
    const session = await openSession(database.target, 'quarry-test');
    await assert.rejects(listAppTables(session), /not Quarry's: new_things/);
    dropSession(session);
  } finally {
    await db`drop table new_things`;
  }
});

test('what is copied belongs to apps and is logged, and what stays does not belong to one', async () => {
  const tables = await db<{ name: string; hasApp: boolean; persistence: string }[]>`
    select relname as name, relpersistence::text as persistence,
      exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'app_id') as has_app
    from pg_class c where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition`;
  const ofMoves = ['app_fences', 'app_changes', 'app_held_jobs', 'cell_moves', 'ledger_inheritance', 'cell_apps'];
  for (const { name, hasApp, persistence } of tables) {
    const kind = catalogue[name];
    if (kind === 'app') assert.ok((hasApp || name === 'apps') && persistence === 'p', name);
    if (kind === 'rebuilt') assert.ok(hasApp && persistence === 'u', name);
    if (kind === 'stays' || kind === 'shared') assert.ok(!hasApp || ofMoves.includes(name), name);
  }
});
