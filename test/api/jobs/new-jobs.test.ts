import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { type NewClaim, NewJobs } from '../../../src/jobs/new-jobs.ts';
import { addJob } from '../../../src/jobs/queue.ts';
import { startWorkers, type Task, type Workers } from '../../../src/jobs/workers.ts';
import { newUuid } from '../../../src/lib/ids.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { until } from '../../support/until.ts';

let database: TestDatabase;
before(async () => {
  database = await createTestDatabase();
});
after(() => database.drop());

const workers: Workers[] = [];
afterEach(async () => {
  await Promise.all(workers.splice(0).map((one) => one.stop(1_000)));
  await database.db`delete from jobs`;
});

async function start(work: Task, concurrency = 2): Promise<NewJobs> {
  const newJobs = new NewJobs();
  const log = createLogger('silent');
  workers.push(await startWorkers({ target: database.target, tasks: { work }, concurrency, log, newJobs }));
  return newJobs;
}

const app = newUuid();

/** Adds a job, and returns whether it was added as a claimed one. */
function add(newJobs: NewJobs, payload: object, after = async () => {}): Promise<boolean> {
  const job = { appId: app, task: 'work', payload: { appId: app, ...payload } };
  return newJobs.add(job, async (claim) => {
    if (claim === undefined) await addJob(database.db, job.task, job.payload);
    else await insertClaimed(claim, job);
    await after();
    return claim !== undefined;
  });
}

async function insertClaimed({ id, poolId }: NewClaim, { task, payload }: { task: string; payload: object }) {
  await database.db`
    insert into jobs (id, task, payload, attempts, locked_by, locked_at)
    values (${id}, ${task}, ${JSON.stringify(payload)}::text::json, 1, ${poolId}, now())`;
}

/** Adds jobs until one is claimed as it is added: the process first looks for other processes and for due jobs. */
async function addClaimed(newJobs: NewJobs): Promise<void> {
  await until(() => add(newJobs, { warmUp: true }));
}

const jobsLeft = async () => (await database.db`select 1 from jobs`).length;

test('a job that the only process adds is claimed as it is added, runs once and ends', async () => {
  const ran: unknown[] = [];
  const newJobs = await start(async (payload, { attempt }) => void ran.push({ ...payload, attempt }));
  const added: unknown[] = [];
  await until(async () => {
    const n = added.length;
    added.push({ appId: app, n, attempt: 1 });
    const isClaimed = await add(newJobs, { n });
    await until(async () => (await jobsLeft()) === 0);
    return isClaimed;
  });
  assert.deepEqual(ran, added);
});

test('a job that could not be added gives its slot back', async () => {
  const newJobs = await start(async () => {}, 1);
  await addClaimed(newJobs);
  for (let n = 0; n < 5; n++)
    await assert.rejects(newJobs.add({ appId: app, task: 'work', payload: {} }, () => Promise.reject(new Error('no'))));
  await addClaimed(newJobs);
  await until(async () => (await jobsLeft()) === 0);
});

test('a job that was added although the response was lost is done', async () => {
  let ran = 0;
  const newJobs = await start(async (payload) => {
    if ('lost' in payload) ran += 1;
  });
  await addClaimed(newJobs);
  await until(async () => (await jobsLeft()) === 0);
  await assert.rejects(add(newJobs, { lost: true }, () => Promise.reject(new Error('lost'))));
  await until(() => ran === 1);
  await until(async () => (await jobsLeft()) === 0);
});

test('a job that is added while its app holds all of its slots is due, and takes none of them', async () => {
  const gate = Promise.withResolvers<void>();
  let working = 0;
  const newJobs = await start(async (payload) => {
    if (!('held' in payload)) return;
    working += 1;
    await gate.promise;
  }, 1);
  await addClaimed(newJobs);
  await add(newJobs, { held: true });
  await until(() => working === 1);
  assert.equal(await add(newJobs, { held: true }), false);
  assert.equal(working, 1);
  gate.resolve();
  await until(async () => (await jobsLeft()) === 0);
  assert.equal(working, 2);
});

test('a process that shares its database with others leaves new jobs to whichever is idle', async () => {
  const newJobs = await start(async () => {});
  await addClaimed(newJobs);
  await start(async () => {});
  await until(async () => !(await add(newJobs, {})) && !(await add(newJobs, {})));
  await until(async () => (await jobsLeft()) === 0);
});

test('a process that stops waits for the job that it is adding, and releases or ends it', async () => {
  const newJobs = await start(async () => {});
  await addClaimed(newJobs);
  await until(async () => (await jobsLeft()) === 0);
  let stopped: Promise<void> | undefined;
  await add(newJobs, {}, async () => {
    stopped = workers.splice(0)[0]?.stop(10_000);
  });
  await stopped;
  const held = await database.db`select 1 from jobs where locked_by is not null`;
  assert.equal(held.length, 0);
});
