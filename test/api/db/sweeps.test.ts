import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { deleteBatch } from '../../../src/db/delete-batch.ts';
import { deleteInboundMessages } from '../../../src/knowledge/sources/inbound-store.ts';
import { deleteOldTombstones } from '../../../src/knowledge/syncs/store.ts';
import { parseId } from '../../../src/lib/ids.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import { startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

/* Sweeps delete old rows of all apps, a few at a time, beside everything else that happens. */

const server = await startTestServer({ env: { QUARRY_JOB_WORKERS: '0' } });
after(() => server.close());
const { db, provision } = server;

/** An app with one old row in each of these tables. */
async function makeOld() {
  const app = await provision.app();
  const appId = app.app.uuid;
  const org = (await provision.org(app)).id;
  const source = parseId('source', await knowledgeOf(server, { key: app.secretKey }).createSource({ org })) ?? '';
  await db`
    insert into knowledge_tombstones (app_id, source_id, external_id, external_order, deleted_at)
    values (${appId}, ${source}, 'd', 1, '2020-01-01')`;
  await db`
    insert into inbound_messages (app_id, source_id, digest, ingestion_id, sent_at, received_at)
    values (${appId}, ${source}, '\\x01', gen_random_uuid(), '2020-01-01', '2020-01-01')`;
  return { appId };
}

const before = new Date('2021-01-01');
const sweeps = {
  knowledge_tombstones: { sweep: deleteOldTombstones, refresh: 'deleted_at' },
  inbound_messages: { sweep: deleteInboundMessages, refresh: 'sent_at' },
} as const;
const isWaiting = () =>
  db`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.any();

for (const [table, { sweep, refresh }] of Object.entries(sweeps)) {
  test(`a row of ${table} that is refreshed while a sweep runs stays`, async () => {
    const { appId } = await makeOld();
    let swept: Promise<number> | undefined;
    await db.begin(async (tx) => {
      await tx`update ${tx(table)} set ${tx(refresh)} = now() where app_id = ${appId}`;
      let isOver = false;
      swept = sweep(db, before, 10).finally(() => {
        isOver = true;
      });
      await until(async () => isOver || (await isWaiting()));
    });
    await swept;
    assert.equal((await db`select from ${db(table)} where app_id = ${appId}`).count, 1);
    await sweep(db, before, 10);
    assert.equal((await db`select from ${db(table)} where app_id = ${appId}`).count, 1);
  });

  test(`a sweep of ${table} leaves the rows of an app that is being moved, and they keep no other app waiting`, async () => {
    const [moving, other] = [await makeOld(), await makeOld()];
    await db`
      insert into app_fences (app_id, move_id, side, frozen) values (${moving.appId}, gen_random_uuid(), 'source', true)`;
    assert.equal(await sweep(db, before, 1), 1);
    const left = async ({ appId }: { appId: string }) =>
      (await db`select from ${db(table)} where app_id = ${appId}`).count;
    assert.deepEqual([await left(moving), await left(other)], [1, 0]);
    await db`delete from app_fences where app_id = ${moving.appId}`;
    assert.equal(await sweep(db, before, 1), 1);
  });
}

test('a batch finds a row that another transaction changes, and deletes it with the next statement', async () => {
  const { appId } = await makeOld();
  const next = () =>
    deleteBatch(db, { appId, table: 'knowledge_tombstones', where: db`t.external_order > 0`, limit: 10 });
  let deleted: ReturnType<typeof next> | undefined;
  await db.begin(async (tx) => {
    await tx`update knowledge_tombstones set external_order = 2 where app_id = ${appId}`;
    deleted = next();
    await until(isWaiting);
  });
  assert.deepEqual({ ...(await deleted) }, { found: 1, deleted: 0 });
  assert.deepEqual({ ...(await next()) }, { found: 1, deleted: 1 });
  assert.deepEqual({ ...(await next()) }, { found: 0, deleted: 0 });
});
