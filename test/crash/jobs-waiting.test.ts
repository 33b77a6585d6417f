import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, afterEach, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { addJob } from '../../src/jobs/queue.ts';
import { taskNames } from '../../src/jobs/task-names.ts';
import { startWorkers, type Task, type Workers, type WorkersOptions } from '../../src/jobs/workers.ts';
import { newUuid } from '../../src/lib/ids.ts';
import { createLogger } from '../../src/lib/log.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { endWithThisProcess } from '../support/left-behind.ts';
import { startServe } from '../support/serve.ts';
import { openTcpProxy } from '../support/tcp-proxy.ts';

const log = createLogger('silent');
const workerFile = fileURLToPath(new URL('../support/job-worker.ts', import.meta.url));

let database: TestDatabase;
before(async () => {
  database = await createTestDatabase();
});
after(() => database.drop());

const running: Workers[] = [];
const children: ChildProcess[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((workers) => workers.stop(1_000)));
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await database.db`delete from jobs`;
});

async function start(tasks: Record<string, Task>, more: Partial<WorkersOptions> = {}): Promise<Workers> {
  const workers = await startWorkers({ target: database.target, tasks, concurrency: 1, log, ...more });
  running.push(workers);
  return workers;
}

/** A worker process, with a way to wait for one of its output lines. */
function spawnWorker() {
  const child = endWithThisProcess(
    spawn(process.execPath, [workerFile, JSON.stringify(database.target)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  );
  children.push(child);
  const lines: string[] = [];
  const reader = createInterface({ input: child.stdout });
  reader.on('line', (line) => lines.push(line));
  const said = async (line: string): Promise<void> => {
    while (!lines.includes(line)) await once(reader, 'line');
  };
  return {
    child,
    said,
    next: () => once(reader, 'line'),
    times: (line: string) => lines.filter((one) => one === line).length,
  };
}

type JobRow = { attempts: number; maxAttempts: number; lastError: string | null; crashes: number | null };
async function jobOf(task: string): Promise<JobRow | undefined> {
  const [row] = await database.db<JobRow[]>`
    select attempts, max_attempts, last_error, crashes::integer
    from jobs where task = ${task}`;
  return row;
}

/** Makes all jobs due: the waits between attempts grow to seconds, which a test does not need. */
function runNow() {
  return database.db`
    with due as (update jobs set run_at = now() where locked_at is null)
    select pg_notify('jobs:insert', '')`;
}

test('a job whose waits are over at once does not keep its process from other work', async () => {
  const ended = Promise.withResolvers<number>();
  await start({
    async waits(_payload, { waitOutside }) {
      // The first wait releases the slot, which takes a statement.
      await waitOutside(async () => {});
      let over = false;
      setTimeout(() => {
        over = true;
      });
      let waits = 0;
      // A process that does nothing but these waits does not see the timer.
      while (!over && waits < 1_000_000) {
        await waitOutside(async () => {});
        waits += 1;
      }
      ended.resolve(waits);
    },
  });
  await addJob(database.db, 'waits', {});
  assert.ok((await ended.promise) < 1_000_000);
});

test('jobs that wait outside hold no slot, and all of them end', async () => {
  const gate = Promise.withResolvers<void>();
  const allWait = Promise.withResolvers<void>();
  const calm = Promise.withResolvers<void>();
  const count = 300;
  const apps = Array.from({ length: 7 }, () => newUuid());
  let begun = 0;
  let most = 0;
  let atWork = 0;
  let ended = 0;
  const allEnded = Promise.withResolvers<void>();
  await start({
    async waits(_payload, { waitOutside }) {
      await waitOutside(() => {
        if (++begun === count) allWait.resolve();
        return gate.promise;
      });
      most = Math.max(most, ++atWork);
      await new Promise((resolve) => setImmediate(resolve));
      atWork -= 1;
      if (++ended === count) allEnded.resolve();
    },
    calm: async () => calm.resolve(),
  });
  for (let n = 0; n < count; n++) await addJob(database.db, 'waits', { appId: apps[n % 7] });
  await allWait.promise;
  await addJob(database.db, 'calm', {});
  await calm.promise;
  assert.equal(ended, 0);
  gate.resolve();
  await allEnded.promise;
  assert.equal(most, 1);
  await running.splice(0)[0]?.stop(5_000);
  assert.equal(await jobOf('waits'), undefined);
});

test('a waiting job survives its loop: it keeps its row, and ends after the loop has stopped', async () => {
  const gate = Promise.withResolvers<void>();
  const calm = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<string>();
  const first = await start({
    async waits(_payload, { jobId, waitOutside }) {
      await waitOutside(() => {
        begun.resolve(jobId);
        return gate.promise;
      });
    },
    calm: async () => calm.resolve(),
  });
  await addJob(database.db, 'waits', {});
  const id = await begun.promise;
  const rows = () =>
    database.db`select id::text as id, waits, locked_by is not null as held from jobs where task = 'waits'`;
  while (!(await rows())[0]?.waits) await new Promise((resolve) => setTimeout(resolve, 10));
  await addJob(database.db, 'calm', {});
  await calm.promise;
  const stopped = first.stop(5_000);
  while ((await database.db`select 1 from jobs where task = 'calm'`).length > 0)
    await new Promise((resolve) => setTimeout(resolve, 10));
  assert.deepEqual([...(await rows())], [{ id, waits: true, held: true }]);
  gate.resolve();
  await stopped;
  assert.deepEqual([...(await rows())], []);
});

test('a job that its own worker has locked without knowing it is done', async () => {
  const holds = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const isDone = Promise.withResolvers<void>();
  await start(
    {
      async holds() {
        holds.resolve();
        await gate.promise;
      },
      async lost() {
        isDone.resolve();
      },
    },
    { concurrency: 2 },
  );
  await addJob(database.db, 'holds', {});
  await holds.promise;
  await addJob(database.db, 'lost', {}, { inMs: 365 * 86_400_000 });
  // As by a claim that a stopped database carries out after the worker has given up waiting for it.
  await database.db`
    update jobs set locked_at = now(), attempts = 1, run_at = now(),
      locked_by = (select locked_by from jobs where task = 'holds') where task = 'lost'`;
  await isDone.promise;
  assert.equal((await jobOf('holds'))?.attempts, 1, 'what the worker does hold stays locked');
  gate.resolve();
});

test('a job with a failed wait is retried like any other', async () => {
  const attempts: number[] = [];
  const done = Promise.withResolvers<void>();
  await start({
    async waits(_payload, { waitOutside, attempt }) {
      attempts.push(attempt);
      if (attempt === 2) return done.resolve();
      await waitOutside(() => Promise.reject(new Error('no answer')));
    },
  });
  await addJob(database.db, 'waits', {});
  while ((await jobOf('waits'))?.lastError !== 'no answer') await new Promise((resolve) => setTimeout(resolve, 10));
  await runNow();
  await done.promise;
  assert.deepEqual(attempts, [1, 2]);
});

test('a job that waits outside in a killed process is done in another process, and has used no attempt', async () => {
  const victim = spawnWorker();
  await addJob(database.db, 'waits', { number: 7 }, { maxAttempts: 1 });
  await victim.said('took waits');
  await addJob(database.db, 'calm', {});
  await victim.said('took calm');
  const again = Promise.withResolvers<object>();
  await start({ waits: async (payload, { attempt }) => again.resolve({ payload, attempt }) });
  victim.child.kill('SIGKILL');
  assert.deepEqual(await again.promise, { payload: { number: 7 }, attempt: 1 });
});

test('a job that waits outside when its process stops is released and not counted as failed', async () => {
  const waits = Promise.withResolvers<void>();
  const first = await start({
    async waits(_payload, { waitOutside, signal }) {
      await waitOutside(async () => {
        waits.resolve();
        await once(signal, 'abort');
        signal.throwIfAborted();
      });
    },
  });
  await addJob(database.db, 'waits', {});
  await waits.promise;
  await first.stop(5_000);
  const attempt = Promise.withResolvers<number>();
  await start({ waits: async (_payload, context) => attempt.resolve(context.attempt) });
  assert.equal(await attempt.promise, 1);
});

test('an app can use its whole share of waiting jobs without delaying other apps', async () => {
  const waiting: string[] = [];
  const all = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  await start(
    {
      async waits(payload, { waitOutside }) {
        const { appId } = payload as { appId: string };
        await waitOutside(() => {
          waiting.push(appId);
          if (waiting.length === 3) all.resolve();
          return gate.promise;
        });
      },
    },
    { waits: { waits: { jobsMax: 10, jobsOfAppMax: 2 } } },
  );
  const [app, other] = [newUuid(), newUuid()];
  for (let n = 0; n < 5; n++) await addJob(database.db, 'waits', { appId: app });
  await addJob(database.db, 'waits', { appId: other });
  await all.promise;
  const later = async () => {
    const [{ count }] = await database.db<[{ count: number }]>`
      select count(*) as count from jobs where run_at > now() and attempts = 0`;
    return count;
  };
  while ((await later()) < 3) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.deepEqual(waiting.sort(), [app, app, other].sort());
  gate.resolve();
});

test('an uncaught exception in a job does not end the process, and the third one sets the job aside', async () => {
  const worker = spawnWorker();
  await addJob(database.db, 'throws', {});
  for (let crash = 1; crash <= 3; crash++) {
    while ((await jobOf('throws'))?.crashes !== crash) await new Promise((resolve) => setTimeout(resolve, 10));
    while ((await database.db`select 1 from jobs where locked_at is not null`).length > 0)
      await new Promise((resolve) => setTimeout(resolve, 10));
    await runNow();
  }
  await addJob(database.db, 'calm', {});
  await worker.said('took calm');
  assert.equal(worker.times('took throws'), 3);
  assert.equal(worker.times('crash of throws'), 3);
  const job = await jobOf('throws');
  assert.equal(job?.attempts, job?.maxAttempts);
  assert.match(job?.lastError ?? '', /nobody catches this/);
});

test('a job that ends its process runs alone the third time, is set aside, and ends no third process', async () => {
  await addJob(database.db, 'dies', {});
  await addJob(database.db, 'calm', {});
  for (let death = 0; death < 2; death++) {
    const worker = spawnWorker();
    await once(worker.child, 'exit');
    assert.equal(worker.times('took dies'), 1);
  }
  const last = spawnWorker();
  // First for the process that has died, then for the process in which it ran alone.
  await last.said('took dies');
  while (last.times('crash of dies') < 2) await last.next();
  await addJob(database.db, 'calm', {});
  await last.said('took calm');
  const job = await jobOf('dies');
  assert.equal(job?.crashes, 3);
  assert.equal(job?.attempts, job?.maxAttempts);
  assert.match(job?.lastError ?? '', /ended a process that ran nothing else/);
});

test('a job is never set aside because its server is killed repeatedly', async () => {
  await addJob(database.db, 'stuck', {});
  for (let death = 0; death < 4; death++) {
    const worker = spawnWorker();
    await worker.said('took stuck');
    worker.child.kill('SIGKILL');
    await once(worker.child, 'exit');
  }
  const again = Promise.withResolvers<void>();
  await start({ stuck: async () => again.resolve() });
  await again.promise;
});

test('the server runs a suspected job in a separate process, with everything that the job needs', async () => {
  const proxy = await openTcpProxy(database.target);
  const dataDir = mkdtempSync(join(tmpdir(), 'quarry-trial-'));
  const server = await startServe({
    ...{ QUARRY_DATA_DIR: dataDir, DATABASE_URL: proxy.url, QUARRY_SECRET: 'f3a91c7be2d84056b8e17d0c95a64f21' },
    QUARRY_LOG_LEVEL: 'warn',
  });
  try {
    await database.db.begin(async (tx) => {
      await addJob(tx, taskNames.sweepBlobs, {}, { key: 'suspected' });
      await tx`update jobs set crashes = 2 where key = 'suspected'`;
    });
    while ((await database.db`select 1 from jobs where key = 'suspected'`).length > 0)
      await new Promise((resolve) => setTimeout(resolve, 50));
    assert.match(server.output(), /in a separate process/);
    assert.doesNotMatch(server.output(), /Job failed/);
  } finally {
    await server.stop();
    await proxy.close();
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
  }
});
