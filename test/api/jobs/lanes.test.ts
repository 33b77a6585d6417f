import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { after, afterEach, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Db } from '../../../src/db/database.ts';
import { RecentApps } from '../../../src/fairness/recent-apps.ts';
import { JobSlots } from '../../../src/jobs/job-slots.ts';
import { addJob } from '../../../src/jobs/queue.ts';
import {
  type JobContext,
  startWorkers,
  type Task,
  type Workers,
  type WorkersOptions,
} from '../../../src/jobs/workers.ts';
import { newUuid } from '../../../src/lib/ids.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { createTestDatabase, type TestDatabase, takeAway } from '../../support/database.ts';
import { endWithThisProcess } from '../../support/left-behind.ts';
import { until } from '../../support/until.ts';

let database: TestDatabase;
before(async () => {
  database = await createTestDatabase();
});
after(() => database?.drop());

let workers: Workers[] = [];
afterEach(async () => {
  await Promise.all(workers.map((one) => one.stop(1_000)));
  workers = [];
  await database.db`delete from jobs`;
});

async function start(
  tasks: Record<string, Task>,
  concurrency: number,
  more: Partial<WorkersOptions> = {},
): Promise<void> {
  workers.push(
    await startWorkers({ target: database.target, tasks, concurrency, log: createLogger('silent'), ...more }),
  );
}

const hostile = newUuid();
const other = newUuid();

/** A task whose jobs of one app hang until they are let go, and that notes when others have run. */
function createGate() {
  const opened = Promise.withResolvers<void>();
  const order: string[] = [];
  let hanging = 0;
  const waiters: { count: number; resolve: () => void }[] = [];
  const work: Task = async (payload) => {
    const { appId } = payload as { appId: string };
    if (appId === hostile) {
      hanging += 1;
      await opened.promise;
      hanging -= 1;
    }
    order.push(appId);
    for (const { count, resolve } of waiters) if (order.length >= count) resolve();
  };
  return {
    work,
    order,
    open: () => opened.resolve(),
    get hanging() {
      return hanging;
    },
    until: (count: number) => new Promise<void>((resolve) => void waiters.push({ count, resolve })),
  };
}

test('an app whose jobs fill all of its slots keeps no other app waiting', async () => {
  const gate = createGate();
  const ended = gate.until(3);
  for (let n = 0; n < 50; n++) await addJob(database.db, 'work', { appId: hostile });
  await start({ work: gate.work }, 2);
  while (gate.hanging < 2) await new Promise((resolve) => setImmediate(resolve));
  for (let n = 0; n < 3; n++) await addJob(database.db, 'work', { appId: other });
  await ended;
  assert.deepEqual(gate.order, [other, other, other]);
  assert.equal(gate.hanging, 2);
  gate.open();
});

test('a single app has all slots of the setting', async () => {
  const gate = createGate();
  const all = gate.until(9);
  for (let n = 0; n < 9; n++) await addJob(database.db, 'work', { appId: hostile });
  await start({ work: gate.work }, 4);
  await until(() => gate.hanging >= 4);
  gate.open();
  await all;
});

test('while another app sends requests, an app has one slot for each processor, and all of its slots afterwards', async () => {
  const gate = createGate();
  let nowMs = 0;
  const apps = new RecentApps(() => nowMs);
  const slots = new JobSlots(10, { apps, processors: 2 });
  apps.note(other);
  for (let n = 0; n < 20; n++) await addJob(database.db, 'work', { appId: hostile });
  await start({ work: gate.work }, 10, { slots });
  await until(() => gate.hanging > 0);
  // Each is claimed after a look at the jobs of all apps.
  for (let n = 1; n <= 5; n++) {
    const ended = gate.until(n);
    await addJob(database.db, 'work', { appId: other });
    await ended;
  }
  assert.equal(gate.hanging, 2);
  nowMs = 1_000;
  await until(() => gate.hanging === 10);
  gate.open();
});

test('an app has all of its slots while it is the only one that sends requests, and others have theirs', async () => {
  const gate = createGate();
  const apps = new RecentApps(() => 0);
  apps.note(hostile);
  apps.note(hostile);
  for (let n = 0; n < 20; n++) await addJob(database.db, 'work', { appId: hostile });
  await start({ work: gate.work }, 10, { slots: new JobSlots(10, { apps }) });
  await until(() => gate.hanging === 10);
  gate.open();
});

test('jobs that hang for more than a second keep no other job of their app waiting, while other apps send requests', async () => {
  const gate = createGate();
  let nowMs = 0;
  const apps = new RecentApps(() => nowMs);
  for (let n = 0; n < 20; n++) await addJob(database.db, 'work', { appId: hostile });
  apps.note(other);
  await start({ work: gate.work }, 10, { slots: new JobSlots(10, { apps, processors: 1 }) });
  for (const hanging of [1, 2, 3]) {
    await until(() => gate.hanging >= hanging);
    const ended = gate.until(hanging);
    await addJob(database.db, 'work', { appId: other });
    await ended;
    assert.equal(gate.hanging, hanging);
    nowMs += 1_000;
    apps.note(other);
  }
  gate.open();
});

/** What makes a job a long one. */
async function makeManySteps(giveWay: JobContext['giveWay']): Promise<void> {
  for (let step = 0; step < 100; step++) await giveWay();
}

test('jobs of few steps have no turns, however slow they are', async () => {
  let nowMs = 0;
  const apps = new RecentApps(() => nowMs);
  const gate = Promise.withResolvers<void>();
  let working = 0;
  let ended = 0;
  const work: Task = async (_, { giveWay }) => {
    working += 1;
    await gate.promise;
    for (let step = 0; step < 20; step++) await giveWay();
    ended += 1;
  };
  for (let n = 0; n < 6; n++) await addJob(database.db, 'work', { appId: hostile });
  await start({ work }, 6, { slots: new JobSlots(6, { apps, processors: 2 }) });
  await until(() => working === 6);
  nowMs = 2_000;
  apps.note(other);
  gate.resolve();
  await until(() => ended === 6);
});

test('jobs that work without a pause have turns, one for every two processors at a time, while other apps send requests', async () => {
  let nowMs = 0;
  const apps = new RecentApps(() => nowMs);
  const stopped = new AbortController();
  let started = 0;
  /** Those that have worked since the clock moved, and in all. */
  const now = new Set<string>();
  const all = new Set<string>();
  const work: Task = async (_, { jobId, giveWay }) => {
    started += 1;
    await makeManySteps(giveWay);
    while (!stopped.signal.aborted) {
      await giveWay();
      now.add(jobId);
      all.add(jobId);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  apps.note(other);
  for (let n = 0; n < 6; n++) await addJob(database.db, 'work', { appId: hostile });
  await start({ work }, 6, { slots: new JobSlots(6, { apps, processors: 4 }) });
  // A job that waits for its turn leaves its place to the next one.
  await until(() => started === 6);
  while (all.size < 6) {
    await until(() => now.size >= 2);
    assert.equal(now.size, 2);
    nowMs += 1_000;
    apps.note(other);
    now.clear();
  }
  stopped.abort();
});

test('short jobs run beside long ones of their app that wait for their turns', async () => {
  const apps = new RecentApps(() => 0);
  const stopped = new AbortController();
  const working = new Set<string>();
  let started = 0;
  let ended = 0;
  const long: Task = async (_, { jobId, giveWay }) => {
    started += 1;
    await makeManySteps(giveWay);
    while (!stopped.signal.aborted) {
      await giveWay();
      working.add(jobId);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const short: Task = async () => {
    ended += 1;
  };
  apps.note(other);
  for (let n = 0; n < 3; n++) await addJob(database.db, 'long', { appId: hostile });
  await start({ long, short }, 6, { slots: new JobSlots(6, { apps, processors: 2 }) });
  await until(() => started === 3);
  for (let n = 0; n < 5; n++) await addJob(database.db, 'short', { appId: hostile });
  await until(() => ended === 5);
  // The clock stands still, so it is still the turn of the first one.
  assert.equal(working.size, 1);
  stopped.abort();
});

test('a job that is due and long ones of its app have turns alternately, while other apps send requests', async () => {
  let nowMs = 0;
  const apps = new RecentApps(() => nowMs);
  const stopped = new AbortController();
  const order: string[] = [];
  const long: Task = async (payload, { giveWay }) => {
    const { name } = payload as { name: string };
    await makeManySteps(giveWay);
    while (!stopped.signal.aborted) {
      await giveWay();
      if (order.at(-1) !== name) order.push(name);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const short: Task = async () => void order.push('short');
  apps.note(other);
  await addJob(database.db, 'long', { appId: hostile, name: 'a' });
  await start({ long, short }, 6, { slots: new JobSlots(6, { apps, processors: 1 }) });
  await until(() => order.includes('a'));
  await addJob(database.db, 'long', { appId: hostile, name: 'b' });
  await addJob(database.db, 'short', { appId: hostile });
  await addJob(database.db, 'short', { appId: hostile });
  await until(() => {
    nowMs += 50;
    apps.note(other);
    return order.filter((name) => name === 'short').length === 2;
  });
  const between = order.slice(order.indexOf('short') + 1, order.lastIndexOf('short'));
  assert.ok(
    between.some((name) => name !== 'short'),
    order.join(' '),
  );
  assert.ok(order.includes('b'));
  stopped.abort();
});

test('jobs of a low priority wait until the urgent work of their process has ended, and others do not', async () => {
  const gate = createGate();
  const patient = newUuid();
  const urgent = Promise.withResolvers<void>();
  let urgentWork: Promise<void> | undefined = urgent.promise;
  await addJob(database.db, 'work', { appId: patient }, { priority: 1 });
  await start({ work: gate.work }, 2, { urgentWork: () => urgentWork });
  for (const count of [1, 2]) {
    const ended = gate.until(count);
    await addJob(database.db, 'work', { appId: other });
    await ended;
  }
  assert.deepEqual(gate.order, [other, other]);
  const all = gate.until(3);
  urgentWork = undefined;
  urgent.resolve();
  await all;
  assert.deepEqual(gate.order, [other, other, patient]);
});

test('among ten thousand jobs of one app, ten of another are done among the first', async () => {
  const order: string[] = [];
  const ended = Promise.withResolvers<void>();
  await database.db`
    select add_job('work', json_build_object('appId', case when n <= 10000 then ${hostile}::uuid else ${other}::uuid end))
    from generate_series(1, 10010) n`;
  const work: Task = async (payload) => {
    order.push((payload as { appId: string }).appId);
    if (order.filter((one) => one === other).length === 10) ended.resolve();
  };
  await start({ work }, 2);
  await ended.promise;
  assert.ok(order.length <= 60, `${order.length} jobs`);
});

test('more apps than one query of the queue covers are all served, in every process', async () => {
  const seen = new Set<string>();
  const ended = Promise.withResolvers<void>();
  await database.db`
    select add_job('work', json_build_object('appId', new_uuid())) from generate_series(1, 700)`;
  const work: Task = async (payload) => {
    seen.add((payload as { appId: string }).appId);
    if (seen.size === 700) ended.resolve();
  };
  await start({ work }, 2);
  await start({ work }, 2);
  await ended.promise;
  const [{ count } = { count: -1 }] = await database.db<{ count: number }[]>`
    select count(*)::integer as count from jobs where attempts > 1`;
  assert.equal(count, 0);
});

/** A process that takes jobs, with the lines that it writes. */
function spawnWorker() {
  const program = fileURLToPath(new URL('../../support/job-worker.ts', import.meta.url));
  const child = endWithThisProcess(
    spawn(process.execPath, [program, JSON.stringify(database.target), 'info'], { stdio: 'pipe' }),
  );
  const taken: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => {
    taken.push(line.replace('took hangs of ', ''));
    child.emit('taken');
  });
  const isShared = new Promise<void>((resolve) => {
    createInterface({ input: child.stderr }).on('line', (line) => line.includes('"workers":2') && resolve());
  });
  return { child, taken, isShared };
}

test('two worker processes share their slots: two apps leave one for a third, in either process', async () => {
  const pair = [spawnWorker(), spawnWorker()];
  const taken = () => pair.flatMap((worker) => worker.taken);
  const untilTaken = async (count: number) => {
    while (taken().length < count) await Promise.race(pair.map(({ child }) => once(child, 'taken')));
  };
  try {
    await Promise.all(pair.map(({ isShared }) => isShared));
    // Each process has two places. Without a common count each would give one to either app.
    const add = (appId: string) => database.db`
      select add_job('hangs', json_build_object('appId', ${appId}::uuid)) from generate_series(1, 10)`;
    await add(hostile);
    await untilTaken(2);
    await add(other);
    await untilTaken(3);
    // This job waits until the processes have looked again.
    const third = newUuid();
    await addJob(database.db, 'hangs', { appId: third }, { inMs: 1_500 });
    await untilTaken(4);
    assert.deepEqual(
      [hostile, other, third].map((app) => taken().filter((one) => one === app).length),
      [2, 1, 1],
    );
  } finally {
    for (const { child } of pair) child.kill('SIGKILL');
    await Promise.all(pair.map(({ child }) => child.exitCode ?? once(child, 'exit')));
  }
});

test('jobs whose end a lost database cannot store keep no job of another database waiting', async () => {
  const away = await createTestDatabase();
  after(() => away.drop());
  const slots = new JobSlots(1);
  const gate = Promise.withResolvers<void>();
  let hanging = 0;
  const work: Task = async () => {
    hanging += 1;
    await gate.promise;
  };
  for (const appId of [hostile, other]) await addJob(away.db, 'work', { appId });
  await start({ work }, 1, { slots, target: away.target });
  await until(() => hanging === 2);
  const giveBack = await takeAway(away);
  try {
    const ran = Promise.withResolvers<void>();
    await start({ work: async () => ran.resolve() }, 1, { slots });
    await addJob(database.db, 'work', { appId: newUuid() });
    gate.resolve();
    await ran.promise;
  } finally {
    await giveBack();
  }
  const leftOf = () => away.db`select 1 from jobs`;
  await until(async () => (await leftOf()).length === 0);
});

test('jobs that end together with one whose row another transaction has locked are deleted before it', async () => {
  const gate = Promise.withResolvers<void>();
  let working = 0;
  const work: Task = async () => {
    working += 1;
    await gate.promise;
  };
  for (const key of ['first', 'locked', 'last']) await addJob(database.db, 'work', { appId: other }, { key });
  await start({ work }, 3);
  await until(() => working === 3);
  const count = async (db: Db) => (await db`select from jobs where task = 'work'`).count;
  await database.db.begin(async (tx) => {
    // As a transaction that adds a job with the key of one that is active.
    await tx`update jobs set key = null where key = 'locked'`;
    gate.resolve();
    await until(async () => (await count(database.db)) === 1);
  });
  await until(async () => (await count(database.db)) === 0);
});

test('a recurring job that hangs in one database delays no recurring job of another one', async () => {
  const away = await createTestDatabase();
  after(() => away.drop());
  const slots = new JobSlots(1);
  const recurring = [{ task: 'sweep', everySeconds: 1 }];
  const [hangs, ran, opened] = [1, 2, 3].map(() => Promise.withResolvers<void>());
  const hang: Task = async () => {
    hangs?.resolve();
    await opened?.promise;
  };
  await start({ sweep: hang }, 1, { slots, recurring, target: away.target });
  await hangs?.promise;
  try {
    await start({ sweep: async () => ran?.resolve() }, 1, { slots, recurring });
    await ran?.promise;
  } finally {
    opened?.resolve();
  }
});

test('a job that fails with words that cannot be stored is tried again like any other', async () => {
  const failed = Promise.withResolvers<void>();
  const work: Task = async (_payload, { attempt }) => {
    if (attempt > 1) return failed.resolve();
    throw new Error(`a\0b\ud800${'c'.repeat(1_000_000)}`);
  };
  await addJob(database.db, 'work', { appId: other });
  await start({ work }, 1);
  await until(async () => (await database.db`select from jobs where locked_by is null and attempts = 1`).count > 0);
  const [job] = await database.db<{ reason: string }[]>`select last_error as reason from jobs`;
  assert.match(job?.reason ?? '', /^a\ufffdb\ufffdc+$/);
  assert.ok((job?.reason.length ?? 0) <= 10_000);
  await database.db`update jobs set run_at = now()`;
  await failed.promise;
});
