import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { type Db, production } from '../../src/db/database.ts';
import { parseId } from '../../src/lib/ids.ts';
import { killInWrite } from '../support/kill-in-write.ts';
import { startKillableServer } from '../support/killable-server.ts';
import { until } from '../support/until.ts';

const entries = 5_000;
const runs = 300;
const mark = 'zyxwmarkcrash';
/** Further kills at any moment, after one in the middle of a batch that follows others. */
const rounds = Number(process.env.CRASH_ROUNDS ?? 0);

const server = await startKillableServer('erasures');
after(() => server.close());
const { db, send, appId, dataDir } = server;

type Erasure = { id: string; status: string; removed: Record<string, number> };

test('an erasure whose server is killed in and between its batches deletes everything and counts it once', async () => {
  const user = (await send<{ id: string }>('POST', '/users', { name: mark, email: 'a@example.com' })).body.id;
  for (let file = 0; file < 3; file += 1) {
    const data = Buffer.from(`${mark} ${file}`).toString('base64');
    const body = { filename: 'a.txt', content_type: 'text/plain', data, user };
    assert.equal((await send('POST', '/files', body)).status, 201);
  }
  await db`
      insert into kv_entries (app_id, user_id, key, sandbox_id, id, value)
      select ${appId}::uuid, ${parseId('user', user)}::uuid, 'k' || n, ${production}::uuid, gen_random_uuid(),
        to_json(${mark}::text)::text
      from generate_series(1, ${entries}::integer) n`;
  await db`
      with automation as (
        insert into automations (app_id, id, sandbox_id, name, type)
        values (${appId}, gen_random_uuid(), ${production}, 'of the app', 'invoked') returning id)
      insert into automation_runs (app_id, id, sandbox_id, automation_id, type, status, payload, invoked_by_user_id)
      select ${appId}, gen_random_uuid(), ${production}, automation.id, 'invoked', 'completed',
        json_build_object('mark', ${mark}::text), ${parseId('user', user)}::uuid
      from automation, generate_series(1, ${runs}::integer)`;

  let id = '';
  const order = async () => {
    id = (await send<Erasure>('POST', '/erasures', { user })).body.id;
  };
  const when = (each: Db) => each`old.counts ? 'key_value_entries'`;
  await killInWrite(db, server.serve, { table: 'erasures', column: 'counts', when }, order);
  const find = async () => {
    const [row] = await db<{ status: string; counts: Record<string, number> }[]>`
        select status, counts from erasures where app_id = ${appId} and id = ${parseId('erasure', id)}`;
    assert.ok(row);
    return { ...row, total: Object.values(row.counts).reduce((sum, count) => sum + count, 0) };
  };
  const { counts } = await find();
  const [left] = await db<[{ rows: number }]>`select count(*)::integer as rows from kv_entries`;
  assert.equal(left.rows + (counts.key_value_entries ?? 0), entries, 'a batch and its count are kept or lost together');
  assert.ok(left.rows > 0 && left.rows < entries);
  for (let round = 0; round < rounds; round += 1) {
    const before = await find();
    await server.restart();
    await until(async () => (await find()).total > before.total || (await find()).status === 'done');
    await server.serve.kill();
  }

  await server.restart();
  await until(async () => (await find()).status === 'done');
  const { removed } = (await send<Erasure>('GET', `/erasures/${id}`)).body;
  assert.deepEqual([removed.users, removed.files, removed.key_value_entries, removed.runs], [1, 3, entries, runs]);
  type Certificate = { statement: { removed: unknown } };
  const certificate = (await send<Certificate>('GET', `/erasures/${id}/certificate`)).body;
  assert.deepEqual(certificate.statement.removed, removed);
  for (const table of ['users', 'files', 'kv_entries', 'automation_runs', 'doomed_blobs']) {
    const [left] = await db<[{ rows: number }]>`
        select count(*)::integer as rows from ${db(table)} t where t.app_id = ${appId} and t::text like ${`%${mark}%`}`;
    assert.equal(left.rows, 0, table);
  }
  const blobs = readdirSync(join(dataDir, 'blobs'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .filter((entry) => readFileSync(join(entry.parentPath, entry.name)).includes(mark));
  assert.deepEqual(blobs, []);
  await send('GET', '/ledger');
  const verified = await send<{ problems: { kind: string }[] }>('GET', '/ledger/verification');
  assert.deepEqual(verified.body.problems, []);
});
