import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Db } from '../../src/db/database.ts';
import { newUuid, parseId } from '../../src/lib/ids.ts';
import { killInWrite } from '../support/kill-in-write.ts';
import { startKillableServer } from '../support/killable-server.ts';
import { until } from '../support/until.ts';

const entries = 3_000;
const server = await startKillableServer('sandboxes');
after(() => server.close());
const { db, send, appId } = server;

test('a purge of a sandbox whose server is killed in a batch is continued by the next one', async () => {
  const made = await send<{ id: string }>('POST', '/sandboxes', { name: 'Large' });
  const sandboxId = parseId('sandbox', made.body.id) ?? '';
  const userId = newUuid();
  await db`insert into users (app_id, id, sandbox_id, name) values (${appId}, ${userId}, ${sandboxId}, 'Ada')`;
  await db`
    insert into kv_entries (app_id, user_id, key, sandbox_id, id, value)
    select ${appId}::uuid, ${userId}::uuid, 'k' || n, ${sandboxId}::uuid, gen_random_uuid(), 'v'
    from generate_series(1, ${entries}::integer) n`;
  const left = async () => (await db`select from kv_entries where user_id = ${userId}`).count;
  const isThere = async () => (await db`select from sandboxes where id = ${sandboxId}`).count;
  // The second batch.
  const when = (each: Db) => each`old.entries < 3000`;
  const remove = async () => {
    assert.equal((await send('DELETE', `/sandboxes/${made.body.id}`)).status, 204);
  };
  await killInWrite(db, server.serve, { table: 'kv_counters', column: 'entries', when }, remove);
  assert.equal(await left(), entries - 500, 'one batch is deleted, the other is not');
  assert.equal(await isThere(), 1);
  await server.restart();
  assert.equal((await send('GET', `/sandboxes/${made.body.id}`)).status, 404);
  await until(async () => (await isThere()) === 0);
  assert.equal(await left(), 0);
});
