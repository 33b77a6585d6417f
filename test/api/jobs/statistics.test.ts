import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Db, openDatabase } from '../../../src/db/database.ts';
import { deleteJobs, type JobPlace, lockJobs } from '../../../src/jobs/store.ts';
import { newUuid } from '../../../src/lib/ids.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
before(async () => {
  database = await createTestDatabase();
});
after(() => database.drop());

test('claims and ends of jobs read these jobs, although their plans were made while there were none', async () => {
  const db = openDatabase(database.target, { poolSize: 1, applicationName: 'quarry-test-jobs' });
  const app = newUuid();
  const addJobs = (count: number) => db<JobPlace[]>`
    insert into jobs (task, payload) select 'work', json_build_object('appId', ${app}::text)
    from generate_series(1, ${count}::integer) returning app_id, id`;
  const countRows = async (tx: Db) => {
    const [{ rows }] = await tx<[{ rows: number }]>`
      select (seq_tup_read + idx_tup_fetch)::int as rows from pg_stat_xact_user_tables where relname = 'jobs'`;
    return rows;
  };
  const readRows = (work: (tx: Db) => Promise<unknown>) =>
    db.begin(async (tx) => {
      const before = await countRows(tx);
      await work(tx);
      return (await countRows(tx)) - before;
    });
  try {
    await db`alter table jobs set (autovacuum_enabled = false)`;
    // PostgreSQL keeps the plan that it makes at the sixth time.
    for (let n = 0; n < 7; n++) {
      const jobs = await addJobs(1);
      await lockJobs(db, 'pool', jobs);
      await deleteJobs(db, 'pool', jobs);
    }
    await addJobs(5_000);
    const jobs = await addJobs(20);
    const locked = await readRows((tx) => lockJobs(tx, 'pool', jobs));
    const deleted = await readRows((tx) => deleteJobs(tx, 'pool', jobs));
    assert.ok(locked <= 100 && deleted <= 100, `it reads ${locked} and ${deleted} rows for 20 jobs among 5,020`);
  } finally {
    await db.end();
  }
});
