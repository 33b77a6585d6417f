import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { dropSession, openSession } from '../../../src/cells/move/session.ts';
import { listAppTables } from '../../../src/cells/move/tables.ts';
import { tables } from '../../../src/db/tables.ts';
import { createTestDatabase } from '../../support/database.ts';

const database = await createTestDatabase();
after(() => database.drop());
const { db } = database;

test('a database with a table that is not in the catalogue is refused', async () => {
  await db`create table new_things (app_id uuid not null, id uuid not null, primary key (app_id, id))`;
  const session = await openSession(database.target, 'quarry-test');
  try {
    await assert.rejects(listAppTables(session), /not Quarry's: new_things/);
  } finally {
    dropSession(session);
    await db`drop table new_things`;
  }
});

test('what is copied belongs to apps and is logged, and what stays does not belong to one', async () => {
  const found = await db<{ name: string; hasApp: boolean; persistence: string }[]>`
    select relname as name, relpersistence::text as persistence,
      exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'app_id') as has_app
    from pg_class c where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition`;
  const ofMoves = ['app_fences', 'app_changes', 'app_held_jobs', 'cell_moves', 'ledger_inheritance', 'cell_apps'];
  for (const { name, hasApp, persistence } of found) {
    const kind = tables[name]?.move;
    if (kind === 'app') assert.ok((hasApp || name === 'apps') && persistence === 'p', name);
    if (kind === 'rebuilt') assert.ok(hasApp && persistence === 'u', name);
    if (kind === 'stays' || kind === 'shared') assert.ok(!hasApp || ofMoves.includes(name), name);
  }
});
