import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { production } from '../../../src/db/database.ts';
import { deleteBatch } from '../../../src/db/delete-batch.ts';
import type { Task } from '../../../src/jobs/task.ts';
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

/** Rows that one statement of a sweep deletes at most. */
const batchRows = 1_000;

/** An app with so many old rows in each of these tables. */
async function makeOld(count = 1) {
  const app = await provision.app();
  const appId = app.app.uuid;
  const org = (await provision.org(app)).id;
  const source = parseId('source', await knowledgeOf(server, { key: app.secretKey }).createSource({ org })) ?? '';
  await db`
    insert into knowledge_tombstones (app_id, source_id, external_id, external_order, deleted_at)
    select ${appId}, ${source}, 'd' || n, 1, '2020-01-01' from generate_series(1, ${count}::integer) n`;
  await db`
    insert into inbound_messages (app_id, source_id, digest, ingestion_id, sent_at, received_at)
    select ${appId}, ${source}, int4send(n), gen_random_uuid(), '2020-01-01', '2020-01-01'
    from generate_series(1, ${count}::integer) n`;
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
    let swept: Promise<void> | undefined;
    await db.begin(async (tx) => {
      await tx`update ${tx(table)} set ${tx(refresh)} = now() where app_id = ${appId}`;
      let isOver = false;
      swept = sweep(db, before).finally(() => {
        isOver = true;
      });
      await until(async () => isOver || (await isWaiting()));
    });
    await swept;
    assert.equal((await db`select from ${db(table)} where app_id = ${appId}`).count, 1);
    await sweep(db, before);
    assert.equal((await db`select from ${db(table)} where app_id = ${appId}`).count, 1);
  });

  test(`a sweep of ${table} leaves the rows of an app that is being moved, and they keep no other app waiting`, async () => {
    const [moving, other] = [await makeOld(batchRows), await makeOld()];
    await db`
      insert into app_fences (app_id, move_id, side, frozen) values (${moving.appId}, gen_random_uuid(), 'source', true)`;
    await sweep(db, before);
    const left = async ({ appId }: { appId: string }) =>
      (await db`select from ${db(table)} where app_id = ${appId}`).count;
    assert.deepEqual([await left(moving), await left(other)], [batchRows, 0]);
    await db`delete from app_fences where app_id = ${moving.appId}`;
    await sweep(db, before);
    assert.equal(await left(moving), 0);
  });
}

test('a sweep deletes any number of rows, a thousand in each transaction', async () => {
  const app = await provision.app();
  const appId = app.app.uuid;
  const user = parseId('user', (await provision.user(app)).id) ?? '';
  const numbers = db`generate_series(1, ${2 * batchRows + 1}::integer) n`;
  await db`
    insert into refresh_tokens (app_id, digest, family_id, user_id, session_epoch, expires_at)
    select ${appId}, int4send(n), gen_random_uuid(), ${user}, 0, '2020-01-01' from ${numbers}`;
  await db`
    insert into sign_in_failures (bucket, id, at) select 'b' || n, gen_random_uuid(), '2020-01-01' from ${numbers}`;
  await db`
    insert into credential_uses (app_id, sandbox_id, day, kind, credential_id, first_at, last_at, requests, refused)
    select ${appId}, ${production}, '2020-01-01', 'secret_key', gen_random_uuid(), now(), now(), 1, 0 from ${numbers}`;
  await db`
    insert into app_usage (app_id, sandbox_id, measure, period, part, used)
    select ${appId}, ${production}, 'pages', '2020-01-01', n, 1 from ${numbers}`;
  const tables = ['refresh_tokens', 'sign_in_failures', 'credential_uses', 'app_usage'];
  await recordDeletions(tables);
  const tasks: Record<string, Task> = server.server.work.tasks;
  for (const task of ['sweep_auth', 'sweep_audit', 'sweep_usage']) await tasks[task]?.({}, {} as never);
  for (const table of tables) {
    const rows = await db<{ count: number }[]>`
      select sum(count)::integer as count from deletions where of = ${table} group by txid order by min(place)`;
    assert.deepEqual(
      rows.map(({ count }) => count),
      [batchRows, batchRows, 1],
      table,
    );
  }
});

/** Makes triggers write down how many rows each transaction deletes. */
async function recordDeletions(tables: string[]): Promise<void> {
  await db`create table deletions (place serial, txid xid8 default pg_current_xact_id(), of text, count bigint)`;
  await db`
    create function record_deletion() returns trigger language plpgsql as $$
    begin insert into deletions (of, count) select tg_table_name, count(*) from gone; return null; end $$`;
  for (const table of tables)
    await db`
      create trigger recorded after delete on ${db(table)} referencing old table as gone
      for each statement execute function record_deletion()`;
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
