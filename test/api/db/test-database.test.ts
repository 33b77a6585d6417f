import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { createTestDatabase } from '../../support/database.ts';

const [one, two] = await Promise.all([createTestDatabase(), createTestDatabase()]);
after(() => Promise.all([one.drop(), two.drop()]));

test('each test file has its own migrated database', async () => {
  await one.db`create table only_here (id int)`;
  const [here] = await one.db`select to_regclass('only_here') is not null as present`;
  const [there] = await two.db`
    select to_regclass('only_here') is not null as present, to_regclass('apps') is not null as migrated`;
  assert.deepEqual(here, { present: true });
  assert.deepEqual(there, { present: false, migrated: true });
});
