import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openDatabase } from '../../src/db/database.ts';
import { findEmbeddedPostgres } from '../../src/db/embedded.ts';
import { addJob } from '../../src/jobs/queue.ts';
import { runQuarry } from '../support/command.ts';
import { type ServedProcess, startServe } from '../support/serve.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-jobs-test-'));
const env = { QUARRY_DATA_DIR: dataDir, QUARRY_LOG_LEVEL: 'silent' };
const serve: ServedProcess = await startServe({ ...env, QUARRY_JOB_WORKERS: '0' });
const target = findEmbeddedPostgres(dataDir);
assert.ok(target);
const db = openDatabase(target, { poolSize: 1, applicationName: 'quarry-test' });
after(async () => {
  await db.end();
  await serve.stop();
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
});

test('the operator sees why a job is set aside, and has it tried again', async () => {
  assert.match((await runQuarry(['jobs'], { env })).stdout, /No job is set aside/);
  await addJob(db, 'crawl', { app_id: 'a', crawl_id: 'c' });
  await db`
    update graphile_worker._private_jobs set attempts = max_attempts, last_error = 'it is poisoned', flags = '{"crashes": 3}'
    where payload ->> 'crawl_id' = 'c'`;
  const shown = await runQuarry(['jobs', '--json'], { env });
  const [job] = JSON.parse(shown.stdout) as { id: string; task: string; reason: string; crashes: number }[];
  assert.deepEqual([job?.task, job?.reason, job?.crashes], ['crawl', 'it is poisoned', 3]);
  assert.match((await runQuarry(['jobs'], { env })).stdout, /crawl .*\n +it is poisoned/);
  assert.match((await runQuarry(['doctor'], { env })).stdout, /1 set aside.*quarry jobs/s);

  assert.equal((await runQuarry(['jobs', 'retry', '999999'], { env })).code, 1);
  assert.equal((await runQuarry(['jobs', 'retry', 'x'], { env })).code, 2);
  assert.equal((await runQuarry(['jobs', 'retry', job?.id ?? ''], { env })).code, 0);
  assert.match((await runQuarry(['jobs'], { env })).stdout, /No job is set aside/);
  const due = await db`
    select 1 from graphile_worker._private_jobs where payload ->> 'crawl_id' = 'c' and is_available and run_at <= now()
      and not flags ? 'crashes'`;
  assert.equal(due.length, 1);
});
