import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type Db, openDatabase } from '../../../src/db/database.ts';
import { numberEvents } from '../../../src/events/store.ts';
import { startKv } from '../../support/kv.ts';

const server = await startKv();
after(() => server.close());

test('numbering reads the events that it numbers, although its plan was made while there were none', async () => {
  const app = await server.provision.app();
  const scope = { appId: app.app.uuid, sandboxId: app.sandboxUuid };
  const db = openDatabase(server.services.directTarget, { poolSize: 1, applicationName: 'quarry-test-numbering' });
  const addEvents = async (count: number) => {
    await db`
      insert into events (app_id, sandbox_id, id, name, payload)
      select ${scope.appId}, ${scope.sandboxId}, gen_random_uuid(), 'test', 'null'
      from generate_series(1, ${count}::integer)`;
    await db`update events set heard = true where not heard`;
  };
  const countRows = async (tx: Db) => {
    const [{ rows }] = await tx<[{ rows: number }]>`
      select (seq_tup_read + idx_tup_fetch)::int as rows from pg_stat_xact_user_tables where relname = 'events'`;
    return rows;
  };
  const readRows = () =>
    db.begin(async (tx) => {
      const before = await countRows(tx);
      await numberEvents(tx, scope, 500);
      return (await countRows(tx)) - before;
    });
  try {
    // PostgreSQL keeps the plan that it makes at the sixth time.
    for (let n = 0; n < 7; n++) await addEvents(1).then(readRows);
    for (let n = 0; n < 8; n++) await addEvents(500).then(readRows);
    await addEvents(20);
    const rows = await readRows();
    assert.ok(rows <= 100, `it reads ${rows} rows for 20 events among 4,027`);
  } finally {
    await db.end();
  }
});
