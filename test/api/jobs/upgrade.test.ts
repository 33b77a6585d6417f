import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Database, type Db, openDatabase } from '../../../src/db/database.ts';
import { migrate, readMigrations } from '../../../src/db/migrate.ts';
import { startWorkers } from '../../../src/jobs/workers.ts';
import { newUuid } from '../../../src/lib/ids.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { createEmptyDatabase, type TestDatabase } from '../../support/database.ts';
import { readProjectFile } from '../../support/source.ts';
import { until } from '../../support/until.ts';
import { loadRelease } from '../../support/upgrade/released-database.ts';

/*
 * Processes of release 0.1.0 keep running while a newer release brings their database up to date. The jobs in their
 * tables, and those that they still add there, become jobs here.
 */
const appId = newUuid();
const oldWorker = 'worker-of-0.1.0';
const ofRelease =
  loadRelease('0.1.0')
    .rows.jobs?.trim()
    .split('\n')
    .map((line) => line.split('\t')) ?? [];
let database: TestDatabase;
let db: Database;
/** The connections of a process of release 0.1.0. */
let old: Database;

before(async () => {
  database = await createEmptyDatabase();
  db = database.db;
  old = openDatabase(database.target, { poolSize: 3, applicationName: 'quarry' });
  const own = await readMigrations();
  const jobsMigration = own.findIndex(({ name }) => name.endsWith('_jobs.sql'));
  await migrate(db, own.slice(0, jobsMigration));
  const session = await db.reserve();
  await session.runScript(readProjectFile('test/support/upgrade/job-tables-0.1.0.sql'));
  session.release();
  for (const [task = '', payload = '', , runAt = '', maxAttempts = '', key = ''] of ofRelease)
    await old`select graphile_worker.add_job(${task}, ${payload}::json, run_at := ${runAt}::timestamptz,
      max_attempts := ${maxAttempts}::integer, job_key := ${key})`;
  for (const name of ['failed', 'set aside', 'ends', 'fails', 'is released', 'waits', 'dies']) await addOld(old, name);
  await addOld(old, 'is replaced while it moves', 'replaced');
  await old`update graphile_worker._private_jobs set attempts = 2, last_error = 'it failed', flags = '{"crashes": 1}'
    where payload ->> 'name' = 'failed'`;
  await old`update graphile_worker._private_jobs set attempts = max_attempts, last_error = 'it is poisoned'
    where payload ->> 'name' = 'set aside'`;
  await old`update graphile_worker._private_jobs set attempts = 1, locked_at = now(), locked_by = ${oldWorker}
    where payload ->> 'name' in ('ends', 'fails', 'is released', 'waits', 'dies')`;
  const upgraded = await upgradeWhileInUse();
  assert.equal(upgraded.length, own.length - jobsMigration);
});
after(async () => {
  await old?.end();
  await database?.drop();
});

function addOld(sql: Db, name: string, key?: string) {
  return sql`select graphile_worker.add_job('work', ${JSON.stringify({ appId, name })}::text::json, job_key := ${key ?? null})`;
}

/** Migrates while old transactions have added jobs, one with the key of a job that moves, and others add more. */
async function upgradeWhileInUse(): Promise<string[]> {
  const waiting = (event: string) =>
    db`select 1 from pg_stat_activity where datname = current_database() and wait_event = ${event}`;
  const isMigrationWaitingFor = (event: string) => until(async () => (await waiting(event)).length === 1);
  let migrating: Promise<string[]> | undefined;
  const replaced = Promise.withResolvers<void>();
  let replacing: Promise<void> | undefined;
  await old.begin(async (tx) => {
    await addOld(tx, 'added before the migration, committed during it');
    migrating = migrate(db);
    await isMigrationWaitingFor('relation');
    await addOld(old, 'added during the migration');
    replacing = old.begin(async (other) => {
      await addOld(other, 'replaces a job that moves', 'replaced');
      replaced.resolve();
      await isMigrationWaitingFor('transactionid');
    });
    await replaced.promise;
  });
  await replacing;
  return (await migrating) ?? [];
}

type Row = { attempts: number; crashes: number; lastError: string | null; lockedBy: string | null };
const find = async (name: string): Promise<Row | undefined> =>
  (await db<Row[]>`select attempts, crashes, last_error, locked_by from jobs where payload ->> 'name' = ${name}`)[0];
const byOld = (name: string) => old`locked_by = ${oldWorker} and payload ->> 'name' = ${name}`;

test('all waiting jobs of the recorded database move with their keys, times and attempts', async () => {
  assert.ok(ofRelease.length > 5);
  for (const [task = '', payload = '', , runAt = '', maxAttempts = '', key = ''] of ofRelease) {
    const [row] = await db`select payload, run_at, max_attempts from jobs where task = ${task} and key = ${key}`;
    assert.deepEqual(
      { ...row },
      { payload: JSON.parse(payload), runAt: new Date(runAt), maxAttempts: Number(maxAttempts) },
    );
  }
  assert.deepEqual({ ...(await find('failed')) }, { attempts: 2, crashes: 1, lastError: 'it failed', lockedBy: null });
  assert.equal((await find('set aside'))?.lastError, 'it is poisoned');
});

test('no job that an old process adds during or after the migration is lost', async () => {
  await addOld(old, 'added afterwards');
  await old`select graphile_worker.add_jobs(array[('work', ${JSON.stringify({ appId, name: 'added in a batch' })}::text::json,
    null, null, null, null, null, null)::graphile_worker.job_spec])`;
  for (const name of [
    ...['added before the migration, committed during it', 'added during the migration'],
    ...['added afterwards', 'added in a batch', 'replaces a job that moves'],
  ])
    assert.equal((await find(name))?.lockedBy, null, name);
  await old`select graphile_worker.add_job('sweep_blobs', '{}'::json, job_key := 'recurring/sweep_blobs', job_key_mode := 'preserve_run_at')`;
  assert.equal(await find('is replaced while it moves'), undefined);
  const [count] = await db`select count(*) as jobs from jobs where key = 'recurring/sweep_blobs'`;
  assert.equal(count?.jobs, 1);
});

test('jobs that an old process held end, fail, wait and are released there', async () => {
  assert.equal((await find('ends'))?.lockedBy, oldWorker);
  await old`delete from graphile_worker._private_jobs where ${byOld('ends')}`;
  assert.equal(await find('ends'), undefined);
  await old`update graphile_worker._private_jobs set locked_by = null, locked_at = null, last_error = 'no answer',
    run_at = now() + interval '3 seconds' where ${byOld('fails')}`;
  assert.deepEqual({ ...(await find('fails')) }, { attempts: 1, crashes: 0, lastError: 'no answer', lockedBy: null });
  await old`update graphile_worker._private_jobs set locked_by = null, locked_at = null, attempts = attempts - 1
    where ${byOld('is released')}`;
  assert.deepEqual({ ...(await find('is released')) }, { attempts: 0, crashes: 0, lastError: null, lockedBy: null });
  await old`update graphile_worker._private_jobs set id = default, flags = '{"waits": true}' where ${byOld('waits')}`;
  const [waits] = await db`select waits from jobs where payload ->> 'name' = 'waits'`;
  assert.equal(waits?.waits, true);
  await old`delete from graphile_worker._private_jobs where ${byOld('waits')}`;
  assert.equal(await find('waits'), undefined);
});

test('workers of this release run all of them, and those of an old process that has died', async () => {
  const ran = new Set<string>();
  const workers = await startWorkers({
    target: database.target,
    tasks: { work: async (payload) => void ran.add((payload as { name: string }).name) },
    ...{ concurrency: 2, log: createLogger('silent') },
  });
  const expected = [
    ...['failed', 'fails', 'is released', 'dies', 'added in a batch', 'added afterwards'],
    ...['added before the migration, committed during it', 'added during the migration', 'replaces a job that moves'],
  ];
  await until(() => expected.every((name) => ran.has(name)));
  await workers.stop(1_000);
  assert.deepEqual([...ran].sort(), expected.sort());
});
