import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { type Database, openDatabase } from '../../../src/db/database.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { SilentProxy } from '../../support/silent-proxy.ts';
import { until } from '../../support/until.ts';

/* Sessions that PostgreSQL or the network ends, at each point of the work. */

let database: TestDatabase;
let db: Database;
let proxy: SilentProxy;
const opened: Database[] = [];

before(async () => {
  database = await createTestDatabase();
  db = database.db;
  proxy = await SilentProxy.open(database.target);
  await db`create table done (what text)`;
});
afterEach(async () => {
  proxy.speak();
  await Promise.all(opened.splice(0).map((pool) => pool.end({ timeout: 1 })));
  await db`delete from done`;
});
after(async () => {
  await proxy.close();
  await database.drop();
});

function open(poolSize: number, timeoutMs = 10_000): Database {
  const pool = openDatabase(proxy.url, { poolSize, applicationName: 'quarry-test-sessions', timeoutMs });
  opened.push(pool);
  return pool;
}

async function terminate(pid: number): Promise<void> {
  await db`select pg_terminate_backend(${pid})`;
  await until(async () => (await db`select 1 from pg_stat_activity where pid = ${pid}`).length === 0);
}

async function processOf(sql: Pick<Database, 'begin'>): Promise<number> {
  const [row] = await sql.begin((tx) => tx<[{ pid: number }]>`select pg_backend_pid() as pid`);
  return row.pid;
}

/** Opens so many sessions of the pool: none ends its transaction before all have begun. */
async function openSessions(pool: Database, count: number): Promise<number[]> {
  let begun = 0;
  const all = Promise.withResolvers<void>();
  const open = () =>
    pool.begin(async (tx) => {
      const [row] = await tx<[{ pid: number }]>`select pg_backend_pid() as pid`;
      begun += 1;
      if (begun === count) all.resolve();
      await all.promise;
      return row.pid;
    });
  return Promise.all(Array.from({ length: count }, open));
}

/** Ends the idle sessions of the pool, which learns of it only when it uses one. */
async function endIdleSessions(pool: Database, count: number): Promise<void> {
  const pids = await openSessions(pool, count);
  proxy.silence({ requests: false });
  for (const pid of pids) await terminate(pid);
}

const listDone = async () =>
  (await db<{ what: string }[]>`select what from done order by what`).map(({ what }) => what);

test('transactions and reads are repeated when PostgreSQL had ended their idle sessions', async () => {
  const pool = open(3);
  await endIdleSessions(pool, 3);
  const transaction = pool.begin(async (tx) => {
    await tx`insert into done values ('once')`;
  });
  const read = pool`select 1 as one`;
  const readOnly = pool.begin('read only', (tx) => tx`select 2 as two`);
  setImmediate(() => proxy.speak());
  await transaction;
  assert.deepEqual([(await read)[0]?.one, (await readOnly)[0]?.two], [1, 2]);
  assert.deepEqual(await listDone(), ['once']);
});

test('a request that is one transaction begins on a working session', async () => {
  const pool = open(2);
  await endIdleSessions(pool, 2);
  let tries = 0;
  const combined = pool.combine(
    async () => {
      tries += 1;
      await pool`insert into done values ('work')`;
    },
    async (tx) => {
      await tx`insert into done values ('finish')`;
    },
  );
  setImmediate(() => proxy.speak());
  await combined;
  assert.equal(tries, 1);
  assert.deepEqual(await listDone(), ['finish', 'work']);
});

test('a transaction whose session ends in the middle is repeated once, and writes once', async () => {
  const pool = open(2);
  let tries = 0;
  await pool.begin(async (tx) => {
    tries += 1;
    await tx`insert into done values ('first')`;
    const [row] = await tx<[{ pid: number }]>`select pg_backend_pid() as pid`;
    if (tries === 1) await terminate(row.pid);
    await tx`insert into done values ('second')`;
  });
  assert.equal(tries, 2);
  assert.deepEqual(await listDone(), ['first', 'second']);
});

test('a transaction whose sessions all end fails after its second try', async () => {
  const pool = open(2);
  let tries = 0;
  const failing = pool.begin(async (tx) => {
    tries += 1;
    const [row] = await tx<[{ pid: number }]>`select pg_backend_pid() as pid`;
    await terminate(row.pid);
    await tx`insert into done values ('never')`;
  });
  await assert.rejects(failing, { code: /^(57P01|CONNECTION_CLOSED|E[A-Z]+)$/ });
  assert.equal(tries, 2);
  assert.deepEqual(await listDone(), []);
});

test('a commit whose response is lost is not repeated', async () => {
  const pool = open(1);
  let tries = 0;
  const committing = pool.begin(async (tx) => {
    tries += 1;
    await tx`insert into done values ('committed')`;
    proxy.silence({ requests: false });
  });
  committing.catch(() => {});
  await until(async () => (await listDone()).length > 0);
  proxy.break();
  proxy.speak();
  await assert.rejects(committing, { name: 'ConnectionError' });
  assert.equal(tries, 1);
  assert.deepEqual(await listDone(), ['committed']);
});

test('a write outside a transaction whose response is lost is not repeated; a read is', async () => {
  const pool = open(2);
  await openSessions(pool, 2);
  proxy.silence({ requests: false });
  const writing = pool`insert into done values ('written')`;
  writing.catch(() => {});
  await until(async () => (await listDone()).length > 0);
  const reading = pool<{ count: number }[]>`select count(*) as count from done`;
  reading.catch(() => {});
  proxy.break();
  proxy.speak();
  await assert.rejects(writing, { name: 'ConnectionError' });
  assert.equal((await reading)[0]?.count, 1);
  assert.deepEqual(await listDone(), ['written']);
});

test('a session whose server refuses writes is closed, and does not take a place on the server for ever', async () => {
  const session = await db.reserve();
  const [database] = await session<{ name: string }[]>`select current_database() as name`;
  const name = session(database?.name ?? '');
  await session`alter database ${name} set default_transaction_read_only = on`;
  try {
    const pool = open(2);
    for (let write = 0; write < 5; write++) await assert.rejects(pool`insert into done values ('refused')`);
    await until(async () => {
      const sessions = await session`select 1 from pg_stat_activity
        where application_name = 'quarry-test-sessions' and datname = current_database()`;
      return sessions.length <= 2;
    });
  } finally {
    await session`alter database ${name} reset default_transaction_read_only`;
    session.release();
  }
});

test('when the network is silent, statements and work that waits fail, and later work succeeds', async () => {
  const pool = open(2, 1_000);
  await processOf(pool);
  proxy.silence();
  const running = [pool`insert into done values ('lost')`, pool`insert into done values ('lost')`];
  const outcomes = await Promise.allSettled([...running, ...[1, 2, 3].map((n) => pool`select ${n}::integer`)]);
  for (const outcome of outcomes) {
    assert.equal(outcome.status, 'rejected');
    assert.match((outcome as PromiseRejectedResult).reason.name, /^ConnectionError$/);
  }
  proxy.speak();
  await until(async () => (await pool`select 1`.catch(() => [])).length > 0);
});

test('a connection that the network has forgotten is replaced, and one that works for long is kept', async () => {
  const pool = open(2, 1_500);
  const pid = await processOf(pool);
  proxy.forget();
  const forgotten = pool`insert into done values ('forgotten')`;
  await assert.rejects(forgotten, { name: 'ConnectionError' });
  const [slow] = await pool<[{ pid: number }]>`select pg_backend_pid() as pid, pg_sleep(4)`;
  assert.notEqual(slow.pid, pid);
  await db`select pg_terminate_backend(${pid})`;
});

test('work waits for a free connection for a limited time', async () => {
  const pool = open(1, 1_500);
  const session = await pool.reserve();
  await assert.rejects(pool`select 1`, { code: 'NO_FREE_CONNECTION' });
  session.release();
  assert.equal((await pool`select 1 as one`)[0]?.one, 1);
});

test('a listener whose connection the network has forgotten receives notifications again', async () => {
  const pool = open(1, 1_500);
  const heard: string[] = [];
  const again = Promise.withResolvers<void>();
  let listens = 0;
  const hear = (payload: string) => heard.push(payload);
  await pool.listen('tried', hear, () => {
    listens += 1;
    if (listens === 2) again.resolve();
  });
  proxy.forget();
  await again.promise;
  await db.notify('tried', 'heard');
  await until(() => heard.length > 0);
  assert.deepEqual(heard, ['heard']);
});

test('connections that the network has forgotten end together, so that only one statement waits for them', async () => {
  const requests = open(4, 1_000);
  await openSessions(requests, 4);
  proxy.forget();
  const write = () => requests`insert into done values ('request')`;
  await assert.rejects(async () => write());
  for (let n = 0; n < 4; n++) await write();
});
