import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { abortMove, continueMove } from '../../../src/cells/move/move.ts';
import type { Database } from '../../../src/db/database.ts';
import { appTables } from '../../../src/db/tables.ts';
import { addJob } from '../../../src/jobs/queue.ts';
import { newUuid } from '../../../src/lib/ids.ts';
import { fillEveryTable, idOf } from '../../support/cells/every-table.ts';
import { createPair, rowsOfApp } from '../../support/cells/moves.ts';

const pair = await createPair();
after(() => pair.close());
const { source, target, directory } = pair;

/** An app with rows in every table, and another one beside it with the same ids. */
async function createApp(db: Database = source.db): Promise<string> {
  const [appId, developerId] = [newUuid(), newUuid()];
  await db`insert into developers (id, name) values (${developerId}, 'Dev')`;
  await fillEveryTable(db, appId, developerId);
  await db`update credentials set digest = digest || decode(replace(${appId}, '-', ''), 'hex') where app_id = ${appId}`;
  await db`delete from jobs where app_id = ${appId}`;
  await addJob(db, 'one', { appId, value: 1 }, { key: 'a key', maxAttempts: 7, priority: 3 });
  await addJob(db, 'two', { appId }, { inMs: 365 * 86_400_000 });
  return appId;
}

const emptied = (content: Record<string, string[]>) =>
  Object.fromEntries(Object.entries(content).map(([name]) => [name, [] as string[]]));

test('an app with rows in every table is moved with each of them, and leaves nothing behind', async () => {
  const appId = await createApp();
  const other = await createApp();
  const before = await rowsOfApp(source.db, appId);
  const others = await rowsOfApp(source.db, other);
  assert.deepEqual(
    appTables.filter((name) => before[name]?.length === 0),
    [],
    'every table of apps has rows',
  );
  // A worker of the target has added it late, after the app was there before.
  await addJob(target.db, 'late', { appId }, { key: 'a key', inMs: 365 * 86_400_000 });
  await pair.addMove(appId);
  const row = await continueMove({ directory, sourceKeptMs: 0, appId });
  assert.equal(row.step, 'done');
  assert.equal(await pair.cellOf(appId), 'two');
  assert.deepEqual(await rowsOfApp(target.db, appId), before);
  assert.deepEqual(await rowsOfApp(source.db, appId), emptied(before));
  assert.deepEqual(await rowsOfApp(source.db, other), others, 'the other app has not changed');
  await assertNoTrace(source.db);
  await assertNoTrace(target.db);
});

/** No trigger, function, fence or listed change of a move is left. */
async function assertNoTrace(db: Database): Promise<void> {
  const [left] = await db<[Record<string, number>]>`
    select (select count(*)::int from pg_trigger where tgname like 'a_move_%') as triggers,
      (select count(*)::int from pg_proc where proname like 'app_move_%') as functions,
      (select count(*)::int from app_fences) as fences, (select count(*)::int from app_changes) as changes,
      (select count(*)::int from app_held_jobs) as jobs,
      (select count(*)::int from doomed_blobs where app_id not in (select id from apps)) as doomed`;
  assert.deepEqual({ ...left }, { triggers: 0, functions: 0, fences: 0, changes: 0, jobs: 0, doomed: 0 });
}

test('what is written while the app is copied is there, and nothing is written to the source once it is frozen', async () => {
  const appId = await createApp();
  await pair.addMove(appId);
  const written = new Map<string, string>();
  const [userId, otherUserId] = [idOf(1), idOf(2)];
  let refused = 0;
  /** Writes of every kind, as requests make them; their outcome counts only when they are acknowledged. */
  const write = async (n: number) => {
    const key = `key ${n % 40}`;
    try {
      if (n % 5 === 4) {
        await source.db`delete from kv_entries where app_id = ${appId} and user_id = ${userId} and key = ${key}`;
        written.delete(key);
      } else {
        await source.db`
          insert into kv_entries (app_id, user_id, key, sandbox_id, id, value)
          values (${appId}, ${userId}, ${key}, ${idOf(0)}, ${newUuid()}, ${String(n)})
          on conflict (app_id, user_id, key) do update set value = excluded.value, version = kv_entries.version + 1`;
        written.set(key, String(n));
      }
      // Two rows exchange what only one of them may have.
      await source.db.begin(async (tx) => {
        await tx`update users set email = null where app_id = ${appId} and id = ${userId}`;
        await tx`update users set email = ${`a${n}@example.com`} where app_id = ${appId} and id = ${otherUserId}`;
        await tx`update users set email = ${`a${n - 1}@example.com`} where app_id = ${appId} and id = ${userId}`;
      });
    } catch (error) {
      // Once the copy on the source is deleted, a foreign key refuses the entry.
      assert.match((error as { code?: string }).code ?? '', /^(QM001|23503)$/, String(error));
      refused += 1;
    }
  };
  let isOver = false;
  const writer = (async () => {
    for (let n = 0; !isOver; n++) await write(n);
  })();
  const row = await continueMove({ directory, sourceKeptMs: 0, appId });
  isOver = true;
  await writer;
  assert.equal(row.step, 'done');
  assert.ok(written.size > 10 && refused > 0, `${written.size} entries, ${refused} refusals`);
  const entries = await target.db<{ key: string; value: string }[]>`
    select key, value from kv_entries where app_id = ${appId} and user_id = ${userId} and key like 'key %' and key not like '%"'`;
  assert.deepEqual(new Map(entries.map(({ key, value }) => [key, value])), written);
});

test('an app of another transaction that writes during the freeze does not notice it', async () => {
  const appId = await createApp();
  const other = await createApp();
  await pair.addMove(appId);
  await continueMove({
    directory,
    sourceKeptMs: 0,
    appId,
    async onPoint(point) {
      if (point !== 'frozen') return;
      await assert.rejects(source.db`update users set name = 'late' where app_id = ${appId}`, { code: 'QM001' });
      await source.db`update users set name = 'on time' where app_id = ${other}`;
      // A sweep over all apps passes over the rows of the frozen one.
      await source.db.begin(async (tx) => {
        await tx`set local quarry.every_app = 'on'`;
        const { count } = await tx`update users set name = 'swept' where app_id in (${appId}, ${other})`;
        assert.equal(count, 3);
      });
      // So does a worker that claims jobs.
      await addJob(source.db, 'one', { appId: other });
      const { count } = await source.db`update jobs set locked_by = 'a worker' where app_id in (${appId}, ${other})`;
      assert.equal(count, 3);
      await assert.rejects(addJob(source.db, 'one', { appId }), { code: 'QM001' });
      await assert.rejects(target.db`update users set name = 'early' where app_id = ${appId}`, { code: 'QM001' });
    },
  });
  const names = await target.db`select distinct name from users where app_id = ${appId}`;
  assert.equal(names.length, 3);
});

test('a transaction that stays open is ended, and what it wrote is neither acknowledged nor copied', async () => {
  const appId = await createApp();
  await pair.addMove(appId);
  const paused = await source.db.reserve();
  await paused.runScript(`begin; update users set name = 'paused' where app_id = '${appId}'`).catch(() => {});
  const moved = continueMove({
    directory,
    sourceKeptMs: 0,
    appId,
    onPoint: async (point) => {
      // The writes before the move have ended; this one begins during it.
      if (point === 'copying')
        await paused.runScript(`begin; update users set name = 'paused' where app_id = '${appId}'`);
    },
  });
  await paused.runScript('rollback');
  assert.equal((await moved).step, 'done');
  await assert.rejects(paused.runScript('commit'));
  paused.release();
  const names = await target.db`select 1 from users where app_id = ${appId} and name = 'paused'`;
  assert.equal(names.length, 0);
});

test('numbers of rows and segments continue on the target', async () => {
  const appId = await createApp();
  await source.db`select setval('events_place_seq', 500000), setval('knowledge_segment_numbers', 900000)`;
  await pair.addMove(appId);
  await continueMove({ directory, sourceKeptMs: 0, appId });
  const [next] = await target.db`
    select nextval('knowledge_segment_numbers') as segment, nextval('events_place_seq') as place`;
  assert.deepEqual({ ...next }, { segment: 900_001, place: 500_001 });
});

for (const stop of ['target fenced', 'copying', 'copied files', 'round', 'freezing', 'frozen', 'jobs sent', 'compared'])
  test(`a move that is aborted at "${stop}" leaves the app where it was, with its jobs`, async () => {
    const appId = await createApp();
    const before = await rowsOfApp(source.db, appId);
    await pair.addMove(appId);
    await assert.rejects(
      continueMove({
        directory,
        sourceKeptMs: 0,
        appId,
        onPoint: (point) => (point === stop ? Promise.reject(new Error('stopped')) : undefined),
      }),
      /stopped/,
    );
    await assert.rejects(pair.addMove(appId), /already being moved to two/);
    assert.equal((await abortMove({ directory, appId })).step, 'aborted');
    assert.deepEqual(await rowsOfApp(source.db, appId), before);
    assert.deepEqual(await rowsOfApp(target.db, appId), emptied(before));
    await source.db`update users set name = 'here' where app_id = ${appId}`;
    await assertNoTrace(source.db);
    await assertNoTrace(target.db);
    // It can be moved later.
    if (stop !== 'compared') return;
    await pair.addMove(appId);
    assert.equal((await continueMove({ directory, sourceKeptMs: 0, appId })).step, 'done');
  });

test('after the switch, a move can only be continued', async () => {
  const appId = await createApp();
  const before = await rowsOfApp(source.db, appId);
  await pair.addMove(appId);
  const stopAt = (stop: string) => (point: string) =>
    point === stop ? Promise.reject(new Error('stopped')) : undefined;
  for (const stop of ['switched', 'opened', 'target unfenced']) {
    await assert.rejects(continueMove({ directory, sourceKeptMs: 0, appId, onPoint: stopAt(stop) }), /stopped/);
    await assert.rejects(abortMove({ directory, appId }), /belongs to two already/);
    await assert.rejects(source.db`update apps set name = 'late' where id = ${appId}`, { code: 'QM001' });
  }
  await assert.rejects(
    continueMove({ directory, sourceKeptMs: 0, appId, onPoint: stopAt('deleted files') }),
    /stopped/,
  );
  assert.equal((await continueMove({ directory, sourceKeptMs: 0, appId })).step, 'done');
  assert.deepEqual(await rowsOfApp(target.db, appId), before);
});

test('a move that cannot succeed is refused with the reason', async () => {
  const appId = await createApp();
  await assert.rejects(pair.addMove(appId, 'one'), /in one already/);
  await assert.rejects(pair.addMove(appId, 'six'), /no cell six/);
  await assert.rejects(pair.addMove(appId, 'three'), /No server has opened three yet/);
  await assert.rejects(pair.addMove(appId, 'four'), /four is being drained/);
  await assert.rejects(pair.addMove(appId, 'five'), /five is full/);
  await assert.rejects(pair.addMove(newUuid()), /no such app/);
  await assert.rejects(continueMove({ directory, appId }), /not being moved/);
  await assert.rejects(abortMove({ directory, appId }), /not being moved/);
  await pair.addMove(appId);
  await assert.rejects(pair.addMove(appId), /already being moved to two/);
  await target.db`update schema_migrations set checksum = checksum || 'x' where version = 1`;
  await assert.rejects(continueMove({ directory, appId }), /different schemas/);
  await target.db`update schema_migrations set checksum = left(checksum, -1) where version = 1`;
  let second: Promise<unknown> | undefined;
  await continueMove({
    directory,
    sourceKeptMs: 0,
    appId,
    onPoint: async () => {
      second ??= assert.rejects(continueMove({ directory, appId }), /Another process is working on the move/);
      await second;
    },
  });
});
