import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, afterEach, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { addJob } from '../../src/jobs/queue.ts';
import { startWorkers, type Task, type Workers, type WorkersOptions } from '../../src/jobs/workers.ts';
import { newUuid } from '../../src/lib/ids.ts';
import { createLogger } from '../../src/lib/log.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { endWithThisProcess } from '../support/left-behind.ts';
import { until } from '../support/until.ts';

const log = createLogger('silent');
const workerFile = fileURLToPath(new URL('../support/job-worker.ts', import.meta.url));

let database: TestDatabase;
before(async () => {
  database = await createTestDatabase();
});
after(() => database.drop());

const running: Workers[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((workers) => workers.stop(1_000)));
});

async function start(tasks: Record<string, Task>, more: Partial<WorkersOptions> = {}): Promise<Workers> {
  const workers = await startWorkers({ target: database.target, tasks, concurrency: 2, log, ...more });
  running.push(workers);
  return workers;
}

test('the job of a worker that was killed runs elsewhere within seconds', async () => {
  const victim = endWithThisProcess(
    spawn(process.execPath, [workerFile, JSON.stringify(database.target)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  );
  await addJob(database.db, 'stuck', { number: 7 });
  await once(victim.stdout, 'data');
  const ran = Promise.withResolvers<{ payload: object; attempt: number }>();
  await start({
    stuck: async (payload, { attempt }) => ran.resolve({ payload, attempt }),
  });
  victim.kill('SIGKILL');
  assert.deepEqual(await ran.promise, { payload: { number: 7 }, attempt: 2 });
});

test('a process that dies in the last attempt of a job does not end the job', async () => {
  const victim = endWithThisProcess(
    spawn(process.execPath, [workerFile, JSON.stringify(database.target)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  );
  await addJob(database.db, 'stuck', {}, { maxAttempts: 1 });
  await once(victim.stdout, 'data');
  const ran = Promise.withResolvers<{ attempt: number; isLastAttempt: boolean }>();
  await start({ stuck: async (_payload, { attempt, isLastAttempt }) => ran.resolve({ attempt, isLastAttempt }) });
  victim.kill('SIGKILL');
  assert.deepEqual(await ran.promise, { attempt: 1, isLastAttempt: true });
});

test('a process that dies before it runs a suspected job apart does not set the job aside', async () => {
  await addJob(database.db, 'stuck', {});
  await database.db`
    update jobs
    set attempts = 1, crashes = 2, locked_by = 'a dead pool', locked_at = now()`;
  const ran = Promise.withResolvers<void>();
  await start({ stuck: async () => ran.resolve() });
  await ran.promise;
});

test('a live worker keeps its job, however long it takes', async () => {
  const begun = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<void>();
  let runs = 0;
  await start({
    async slow() {
      runs += 1;
      begun.resolve();
      await finish.promise;
    },
  });
  await addJob(database.db, 'slow', {});
  await begun.promise;
  // The other pool checks at least twice before it runs this job, which is due after two checks.
  const later = Promise.withResolvers<void>();
  await start({
    async slow() {
      runs += 1;
    },
    later: async () => later.resolve(),
  });
  await addJob(database.db, 'later', {}, { inMs: 4_000 });
  await later.promise;
  assert.equal(runs, 1);
  finish.resolve();
});

test('a job locked by a claim with a lost response is taken again', async () => {
  const began = Promise.withResolvers<string>();
  const finish = Promise.withResolvers<void>();
  const ran = Promise.withResolvers<void>();
  let runs = 0;
  await start({
    async first() {
      runs += 1;
      const [row] = await database.db<{ lockedBy: string }[]>`
        select locked_by from jobs where locked_by is not null`;
      began.resolve(row?.lockedBy ?? '');
      await finish.promise;
    },
    lost: async () => ran.resolve(),
    next: async () => {},
  });
  await addJob(database.db, 'first', {});
  const worker = await began.promise;
  // What remains if the connection breaks after the commit and before the response.
  await database.db.begin(async (tx) => {
    await addJob(tx, 'lost', {}, { key: 'lost' });
    await tx`update jobs set locked_by = ${worker}, locked_at = now(), attempts = 1 where key = 'lost'`;
  });
  // Its claim waits for the lock below, and loses its session.
  await addJob(database.db, 'next', { appId: newUuid() }, { inMs: 500 });
  await database.db.begin(async (tx) => {
    await tx`lock table jobs in exclusive mode`;
    const end = () => tx`
      select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'quarry-jobs'
        and datname = current_database() and wait_event_type = 'Lock'`;
    await until(async () => (await end()).length > 0);
  });
  await ran.promise;
  assert.equal(runs, 1);
  finish.resolve();
});

test('a job that is running when its process stops is released and not counted as failed', async () => {
  const begun = Promise.withResolvers<void>();
  const first = await start({
    handed: async (_payload, { signal }) => {
      begun.resolve();
      await once(signal, 'abort');
      signal.throwIfAborted();
    },
  });
  await addJob(database.db, 'handed', {});
  await begun.promise;
  await first.stop(5_000);
  const attempt = Promise.withResolvers<number>();
  await start({ handed: async (_payload, context) => attempt.resolve(context.attempt) });
  assert.equal(await attempt.promise, 1);
});

test('a job that does not finish before the shutdown deadline is released', async () => {
  const begun = Promise.withResolvers<void>();
  const first = await start({
    deaf: async () => {
      begun.resolve();
      await new Promise(() => {});
    },
  });
  await addJob(database.db, 'deaf', {});
  await begun.promise;
  await first.stop(100);
  const again = Promise.withResolvers<void>();
  await start({ deaf: async () => again.resolve() });
  await again.promise;
});

test('a job exists only when the transaction that added it commits', async () => {
  const ran: object[] = [];
  const done = Promise.withResolvers<void>();
  await start({
    counted: async (payload: { number?: number }) => {
      ran.push(payload);
      if (payload.number === 2) done.resolve();
    },
  });
  await database.db
    .begin(async (transaction) => {
      await addJob(transaction, 'counted', { number: 1 });
      throw new Error('undo');
    })
    .catch(() => {});
  await database.db.begin((transaction) => addJob(transaction, 'counted', { number: 2 }));
  await done.promise;
  assert.deepEqual(ran, [{ number: 2 }]);
});

test('a recurring task runs once per period, however many processes share it', async () => {
  // By the time at which each run was due: a late one may run in the same second as the next.
  const turns: string[] = [];
  const enough = Promise.withResolvers<void>();
  const tick: Task = async (_payload, { jobId }) => {
    const [job] = await database.db<{ due: string }[]>`
      select run_at::text as due from jobs where id = ${jobId}`;
    turns.push(job?.due ?? '');
    if (turns.length >= 3) enough.resolve();
  };
  const recurring = [{ task: 'tick', everySeconds: 1 }];
  const all = await Promise.all([1, 2, 3].map(() => start({ tick }, { recurring })));
  await enough.promise;
  await Promise.all(all.map((workers) => workers.stop(1_000)));
  const [{ waiting } = { waiting: 0 }] = await database.db<{ waiting: number }[]>`
    select count(*) as waiting from jobs where task = 'tick'`;
  assert.equal(waiting, 1);
  assert.equal(new Set(turns).size, turns.length, `turns ${turns}`);
});

test('a job that is postponed while a worker waits to claim it does not run before its time', async () => {
  const last = Promise.withResolvers<void>();
  const ran: object[] = [];
  const tasks: Record<string, Task> = {
    early: async (payload) => void ran.push(payload),
    last: async () => last.resolve(),
  };
  await Promise.all([1, 2].map(() => start(tasks, { concurrency: 100 })));
  const postponed = await database.db.begin(async (tx) => {
    // The lock that workers take in turn to claim jobs. A worker that does not know of the other one yet does without.
    await tx`select pg_advisory_xact_lock(7130241004)`;
    let number = 0;
    await until(async () => {
      await addJob(database.db, 'early', { number: number++ });
      const [{ waiting } = { waiting: 0 }] = await database.db<{ waiting: number }[]>`
        select count(*) as waiting from pg_locks
        where locktype = 'advisory' and not granted
          and database = (select oid from pg_database where datname = current_database())`;
      return waiting === 2;
    });
    return database.db<{ payload: object }[]>`
      update jobs set run_at = now() + interval '1 day' where task = 'early' and locked_by is null returning payload`;
  });
  await addJob(database.db, 'last', {});
  await last.promise;
  const isPostponed = ({ number }: { number?: number }) =>
    postponed.some(({ payload }) => (payload as { number: number }).number === number);
  assert.ok(postponed.length > 0);
  assert.deepEqual(ran.filter(isPostponed), []);
});

test('of waiting jobs with the same key, the last one runs', async () => {
  await addJob(database.db, 'keyed', { number: 1 }, { key: 'only' });
  await addJob(database.db, 'keyed', { number: 2 }, { key: 'only' });
  const ran = Promise.withResolvers<object>();
  await start({ keyed: async (payload) => ran.resolve(payload) });
  assert.deepEqual(await ran.promise, { number: 2 });
});
