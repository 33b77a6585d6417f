import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { addJob } from '../../src/jobs/queue.ts';
import { newUuid } from '../../src/lib/ids.ts';
import { operatorOf } from '../support/operator.ts';
import { startTestServer } from '../support/server.ts';

const server = await startTestServer({ env: { QUARRY_JOB_WORKERS: '0' } });
const { quarry, close } = await operatorOf(server);
const { db } = server;
after(async () => {
  await close();
  await server.close();
});

test('the operator sees why a job is set aside, and has it tried again', async () => {
  assert.match((await quarry('jobs')).stdout, /No job is set aside/);
  await addJob(db, 'crawl', { app_id: newUuid(), crawl_id: 'c' });
  await db`
    update jobs set attempts = max_attempts, last_error = 'it is poisoned', crashes = 3
    where payload ->> 'crawl_id' = 'c'`;
  const shown = await quarry('jobs', '--json');
  const [job] = JSON.parse(shown.stdout) as { id: string; task: string; reason: string; crashes: number }[];
  assert.deepEqual([job?.task, job?.reason, job?.crashes], ['crawl', 'it is poisoned', 3]);
  assert.match((await quarry('jobs')).stdout, /crawl .*\n +it is poisoned/);
  assert.match((await quarry('doctor')).stdout, /1 set aside.*quarry jobs/s);

  assert.equal((await quarry('jobs', 'retry', '999999')).code, 1);
  assert.equal((await quarry('jobs', 'retry', 'x')).code, 2);
  assert.equal((await quarry('jobs', 'retry', job?.id ?? '')).code, 0);
  assert.match((await quarry('jobs')).stdout, /No job is set aside/);
  const due = await db`
    select 1 from jobs where payload ->> 'crawl_id' = 'c' and attempts = 0 and run_at <= now()
      and crashes = 0`;
  assert.equal(due.length, 1);
});
