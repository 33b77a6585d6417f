import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { runForApp } from '../../../src/db/app-lane.ts';
import { joinBytes } from '../../../src/db/bytes.ts';
import { type Database, type Db, openDatabase, type Transaction } from '../../../src/db/database.ts';
import { RecentApps } from '../../../src/fairness/recent-apps.ts';
import { createTestDatabase } from '../../support/database.ts';
import fc from '../../support/fast-check.ts';
import { until } from '../../support/until.ts';

const { db, target, drop } = await createTestDatabase();
const opened: Database[] = [];
after(async () => {
  for (const pool of opened) await pool.end({ timeout: 1 });
  await drop();
});

function open(poolSize: number, options: { prepare?: boolean } = {}): Database {
  const pool = openDatabase(target, { poolSize, applicationName: 'quarry-test-driver', ...options });
  opened.push(pool);
  return pool;
}

const plain = <T>(rows: readonly T[]): T[] => [...rows];

test('after a statement that fails half way through its rows, the next one gets its own rows', async () => {
  const one = open(1);
  const half = one`select i, 1 / (3 - i) as quotient, repeat('x', 100) as filling from generate_series(1, 5) i`;
  await assert.rejects(half, /division by zero/);
  assert.deepEqual(plain(await one`select 1 as a, 'two' as b`), [{ a: 1, b: 'two' }]);
});

test('statements that overlap on one connection get their own rows and errors', async () => {
  const one = open(1);
  const outcomes = await one.begin(async (tx) => {
    const rows = await Promise.all([1, 2, 3].map((n) => tx<{ n: number }[]>`select ${n}::integer as n`));
    return rows.map(([row]) => row?.n);
  });
  assert.deepEqual(outcomes, [1, 2, 3]);
  const session = await one.reserve();
  const settled = await Promise.allSettled([session`select 1 as a`, session`select 1 / 0`, session`select 2 as a`]);
  session.release();
  assert.deepEqual(
    settled.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value[0]?.a : 'failed')),
    [1, 'failed', 2],
  );
});

test('values are returned as they were written', async () => {
  const text = fc.string({ unit: 'grapheme' }).map((value) => value.replaceAll('\0', ''));
  const bytes = fc.uint8Array().map((value) => Buffer.from(value));
  const values = fc.record(
    {
      ...{
        text,
        bytes,
        yes: fc.boolean(),
        count: fc.maxSafeInteger(),
        half: fc.double({ noNaN: true }).map((value) => value || 0),
      },
      ...{
        at: fc.date({ noInvalidDate: true, min: new Date(0), max: new Date('9999-12-31') }),
        texts: fc.array(fc.option(text)),
      },
      ...{ blobs: fc.array(bytes), numbers: fc.array(fc.array(fc.integer(), { minLength: 2, maxLength: 2 })) },
      json: fc.array(fc.oneof(text, fc.integer(), fc.constant(null))),
    },
    { noNullPrototype: true },
  );
  await fc.assert(
    fc.asyncProperty(values, async (given) => {
      const [back] = await db`select ${given.text}::text as text, ${given.bytes}::bytea as bytes, ${given.yes} as yes,
        ${given.count}::bigint as count, ${given.half}::float8 as half, ${given.at} as at, ${given.texts}::text[] as texts,
        ${given.blobs}::bytea[] as blobs, ${given.numbers}::integer[] as numbers, ${db.json(given.json)} as json`;
      assert.deepEqual({ ...back }, given);
    }),
    { numRuns: 200 },
  );
});

test('elements of an array are returned as they were written, whatever they quote and escape', async () => {
  const unit = fc.constantFrom('"', '\\', '\\"', '{', '}', ',', ' ', 'NULL', 'ü', '😀', 'plain text', '\n');
  const element = fc.option(fc.string({ unit, maxLength: 12 }));
  const rows = fc
    .integer({ min: 1, max: 4 })
    .chain((length) => fc.array(fc.array(element, { minLength: length, maxLength: length }), { maxLength: 4 }));
  await fc.assert(
    fc.asyncProperty(fc.array(element, { maxLength: 40 }), rows, async (texts, tables) => {
      const [back] = await db`
        select ${texts}::text[] as texts, ${tables}::text[] as tables, ${texts.map((text) => Buffer.from(text ?? ''))}::bytea[] as bytes`;
      assert.deepEqual({ ...back }, { texts, tables, bytes: texts.map((text) => Buffer.from(text ?? '')) });
    }),
    { numRuns: 300 },
  );
});

test('a time is read to the millisecond, whatever its digits and the time zone of its session', async () => {
  const recent = [
    ...['2026-11-30 07:44:12+00', '2026-11-30 07:44:12.5+00', '2026-02-28 23:59:59.999999+00'],
    ...['1970-01-01 00:00:00.01+00', '2024-02-29 00:00:00.000001+00', '9999-12-31 23:59:59.9+00'],
  ];
  const cases = ['UTC', 'Asia/Kathmandu', 'America/Caracas', 'Africa/Abidjan'].map((zone) => ({ zone, texts: recent }));
  for (const { zone, texts } of [
    ...cases,
    { zone: 'UTC', texts: ['0100-01-01 00:00:00+00', '0999-12-31 00:00:00+00'] },
  ])
    for (const text of texts) {
      const [row] = await db.begin(async (tx) => {
        await tx`select set_config('timezone', ${zone}, true)`;
        return tx<{ at: Date; ms: number }[]>`
          select at, floor(extract(epoch from at) * 1000)::float8 as ms from (select ${text}::text::timestamptz as at) t`;
      });
      assert.equal(row?.at.getTime(), row?.ms, `${text} in ${zone}`);
    }
  const [odd] = await db<[{ end: Date; early: Date }]>`
    select 'infinity'::timestamptz as "end", '0044-03-15 12:00:00+00 BC'::timestamptz as early`;
  assert.deepEqual([odd.end.getTime(), odd.early.getTime()], [Number.NaN, Number.NaN], 'no other time is read instead');
});

test('bytes of any size are written as they are, beside other values and without a prepared statement too', async () => {
  for (const prepare of [true, false]) {
    const one = open(1, { prepare });
    for (const size of [0, 1, 16_383, 16_384, 100_000, 1_000_000]) {
      const [first, second] = [Buffer.alloc(size, 'ab'), Buffer.alloc(20_000, size)];
      const [back] = await one`select ${'é'}::text as text, ${first}::bytea as first, ${null}::text as nothing,
        ${second}::bytea as second, ${size}::integer as size`;
      assert.deepEqual({ ...back }, { text: 'é', first, nothing: null, second, size });
    }
  }
});

test('bytes joined for a statement are freed when it has run, and a later run fails instead of writing nothing', async () => {
  const { all } = joinBytes([Buffer.alloc(50_000, 1), Buffer.alloc(50_000, 2)]);
  await assert.rejects(db`select length(${all}::bytea) / ${0}::integer`.then(), /division by zero/);
  assert.equal(all.length, 100_000, 'a statement that failed may be repeated');
  assert.deepEqual(plain(await db`select length(${all}::bytea) as length`), [{ length: 100_000 }]);
  assert.equal(all.length, 0);
  await assert.rejects(db`select length(${all}::bytea) as length`.then(), /freed/);
});

test('columns are camelCase, nothing is null, and a statement returns how many rows it changed', async () => {
  await db`create table counted (first_name text, second_name text)`;
  const insert =
    await db`insert into counted ${db([{ firstName: 'a' }, { firstName: 'b' }], ['firstName', 'secondName'])}`;
  assert.equal(insert.count, 2);
  assert.equal((await db`update counted set ${db({ secondName: 'c' })} where first_name = ${'a'}`).count, 1);
  assert.deepEqual(plain(await db`select * from ${db('counted')} where ${db('counted.firstName')} = any(${['b']})`), [
    { firstName: 'b', secondName: null },
  ]);
});

test('a statement prepared before its table changed is prepared again, in a transaction too', async () => {
  const one = open(1);
  await one`create table changing (a integer)`;
  const read = async (sql: Db) => sql`select * from changing`;
  await one`insert into changing values (1)`;
  assert.deepEqual(plain(await read(one)), [{ a: 1 }]);
  await one`alter table changing add column b text default 'new'`;
  assert.deepEqual(plain(await read(one)), [{ a: 1, b: 'new' }]);
  await one`alter table changing drop column a`;
  assert.deepEqual(plain(await one.begin(read)), [{ b: 'new' }]);
});

test('statements are prepared by name once for each connection, and never if that is off', async () => {
  const count = async (sql: typeof db) => {
    for (let n = 0; n < 3; n++) await sql`select ${n}::integer as counted_statement`;
    const [row] =
      await sql`select count(*) as prepared from pg_prepared_statements where statement like '%counted_statement%'
      and statement not like '%pg_prepared%'`;
    return row?.prepared;
  };
  assert.equal(await count(open(1)), 1);
  assert.equal(await count(open(1, { prepare: false })), 0);
});

test('work waits for a free connection in the order of its arrival, also for reserved ones', async () => {
  const one = open(1);
  const first = await one.reserve();
  const order: string[] = [];
  const reserving = one.reserve().then((session) => {
    order.push('reserve');
    session.release();
  });
  await setImmediate();
  const selecting = one`select 1`.then(() => order.push('select'));
  await setImmediate();
  const beginning = one.begin(async (tx) => {
    await tx`select 1`;
    order.push('begin');
  });
  await setImmediate();
  assert.deepEqual(order, []);
  first.release();
  await Promise.all([reserving, selecting, beginning]);
  assert.deepEqual(order, ['reserve', 'select', 'begin']);
});

test('a lost connection fails its statements with an error that says so, and is replaced', async () => {
  const one = open(1);
  const [row] = await one`select pg_backend_pid() as pid`;
  const sleeping = one`do 'begin perform pg_sleep(60); end'`;
  const failing = assert.rejects(sleeping, (error: Error & { code?: string }) =>
    /^(57P01|CONNECTION_)/.test(error.code ?? ''),
  );
  const asleep = () => db`select 1 from pg_stat_activity where pid = ${row?.pid} and query like '%pg_sleep%'`;
  await until(async () => (await asleep()).length > 0);
  await db`select pg_terminate_backend(${row?.pid})`;
  await failing;
  assert.notEqual((await one`select pg_backend_pid() as pid`)[0]?.pid, row?.pid);
});

test('an unreachable database is an error with a code for all waiting work', async () => {
  const nowhere = openDatabase(
    { host: '127.0.0.1', port: 1, database: 'none', username: 'none' },
    { poolSize: 2, applicationName: 'quarry-test' },
  );
  const settled = await Promise.allSettled([
    nowhere`select 1`,
    nowhere`select 2`,
    nowhere`select 3`,
    nowhere.begin(async () => 1),
  ]);
  for (const outcome of settled) assert.equal(outcome.status === 'rejected' && outcome.reason.code, 'ECONNREFUSED');
  await nowhere.end();
});

test('a listener receives notifications again after its connection was lost, and is told that it was', async () => {
  const pool = open(1);
  const events = new EventTarget();
  const heard: string[] = [];
  const { unlisten } = await pool.listen(
    'quarry_driver_test',
    (payload) => {
      heard.push(payload);
      events.dispatchEvent(new Event('heard'));
    },
    () => events.dispatchEvent(new Event('listening')),
  );
  const hear = async (payload: string) => {
    const arrived = once(events, 'heard');
    await db.notify('quarry_driver_test', payload);
    await arrived;
  };
  await hear('first');
  const again = once(events, 'listening');
  await db`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and application_name = 'quarry-test-driver' and query = 'listen "quarry_driver_test"'`;
  await again;
  await hear('second');
  assert.deepEqual(heard, ['first', 'second']);
  await unlisten();
});

test('transactions that deadlock are repeated until each has done its work once', async () => {
  await db`create table locked (id integer primary key, writes integer not null)`;
  await db`insert into locked values (1, 0), (2, 0)`;
  const bothHold = Promise.withResolvers<void>();
  let holding = 0;
  const write = (first: number, second: number) =>
    db.begin(async (tx) => {
      await tx`update locked set writes = writes + 1 where id = ${first}`;
      holding += 1;
      if (holding === 2) bothHold.resolve();
      await bothHold.promise;
      await tx`update locked set writes = writes + 1 where id = ${second}`;
    });
  await Promise.all([write(1, 2), write(2, 1)]);
  assert.ok(holding > 2, 'one of them was repeated');
  assert.deepEqual(plain(await db`select writes from locked order by id`), [{ writes: 2 }, { writes: 2 }]);
});

test('work that always collides fails after five tries', async () => {
  let tries = 0;
  const colliding = db.begin(async (tx) => {
    tries += 1;
    await tx`do $$ begin raise exception 'collision' using errcode = '40001'; end $$`;
  });
  await assert.rejects(colliding, /collision/);
  assert.equal(tries, 5);
});

test('a savepoint undoes only its own work; an error that the work swallows still fails the transaction', async () => {
  await db`create table steps (name text)`;
  await db.begin(async (tx) => {
    await tx`insert into steps values ('outer')`;
    const inner = tx.begin(async (savepoint) => {
      await savepoint`insert into steps values ('inner')`;
      await savepoint`select 1 / 0`;
    });
    await assert.rejects(inner, /division by zero/);
    await tx.begin((savepoint) => savepoint`insert into steps values ('second')`);
  });
  const swallowing = db.begin(async (tx) => {
    await tx`insert into steps values ('lost')`;
    await tx`select 1 / 0`.catch(() => {});
  });
  await assert.rejects(swallowing, /division by zero/);
  assert.deepEqual(plain(await db`select name from steps`), [{ name: 'outer' }, { name: 'second' }]);
});

test('a statement after its transaction is over is refused', async () => {
  const kept = await db.begin(async (tx) => ({ tx }));
  await assert.rejects(async () => kept.tx`select 1`, /The transaction is over/);
});

test('a commit is sent with the last statement, and rolls back if that fails', async () => {
  await db`create table finished (n integer)`;
  const insert = (n: number, last: (tx: Transaction) => Promise<unknown>) =>
    db.begin(async (tx) => {
      await tx`insert into finished values (${n})`;
      return last(tx);
    });
  await insert(1, (tx) => tx.runLast(tx`insert into finished values (2)`));
  await assert.rejects(
    insert(3, (tx) => tx.runLast(tx`select 1 / 0`)),
    /division by zero/,
  );
  await assert.rejects(
    // The statement cannot be sent.
    insert(4, (tx) => tx.runLast(tx`select ${new Date(Number.NaN)}`)),
    RangeError,
  );
  await insert(5, (tx) => tx.begin((inner) => inner.runLast(inner`insert into finished values (6)`)));
  const after = insert(7, async (tx) => {
    await tx.runLast(tx`insert into finished values (8)`);
    await tx`insert into finished values (9)`;
  });
  await assert.rejects(after, /transaction is over/);
  assert.deepEqual(
    (await db<{ n: number }[]>`select n from finished order by n`).map(({ n }) => n),
    [1, 2, 5, 6, 7, 8],
  );
});

test('a cursor returns all rows in batches', async () => {
  const sizes = await db.begin(async (tx) => {
    const found: number[] = [];
    const rows = tx<{ n: number }[]>`select n from generate_series(1, ${7}::integer) n`;
    for await (const batch of tx.cursor(rows, 3)) found.push(batch.length);
    for await (const batch of tx.cursor(tx<{ text: string }[]>`select 'other' as text`, 1)) found.push(batch.length);
    return found;
  });
  assert.deepEqual(sizes, [3, 3, 1, 1]);
});

test('a copied row has its values as bytes, and values of the statement are quoted', async () => {
  const text = "it's a \\ $1 and ' or true --";
  const copied = await db.begin(async (tx) => {
    const found: string[] = [];
    const rows = tx`
      select n, null as nothing, decode(repeat('00ff', n * 40000), 'hex') as bytes, ${text}::text as text
      from generate_series(1, ${3}) n where ${text}::text <> ${'other'} order by n`;
    await tx.copyOut(rows, ([n, nothing, bytes, text]) =>
      found.push(`${n?.readInt32BE(0)} ${nothing?.length} ${bytes?.length} ${bytes?.lastIndexOf(255)} ${text}`),
    );
    await tx.copyOut(tx`select 1 where false`, () => assert.fail('There is no row.'));
    const [row] = await tx<{ text: string }[]>`select ${text}::text as text`;
    return [...found, row?.text];
  });
  const expected = [1, 2, 3].map((n) => `${n} 0 ${n * 80_000} ${n * 80_000 - 1} ${text}`);
  assert.deepEqual(copied, [...expected, text]);
});

test('an error of what takes copied rows, or of their statement, fails the copy and not the connection', async () => {
  const fails = (statement: 'rows' | 'nothing') =>
    db.begin((tx) =>
      tx.copyOut(statement === 'rows' ? tx`select generate_series(1, 1000)` : tx`select * from nowhere_at_all`, () => {
        throw new Error('not taken');
      }),
    );
  await assert.rejects(fails('rows'), /not taken/);
  await assert.rejects(fails('nothing'), /nowhere_at_all/);
  const [row] = await db<{ n: number }[]>`select 1 as n`;
  assert.equal(row?.n, 1);
});

test('an error of the database shows the place of the statement in our code', async () => {
  const error = await db`select * from nowhere_at_all`.then(
    () => assert.fail('it does not exist'),
    (failure: unknown) => failure as Error,
  );
  assert.match(error.stack ?? '', /database\.test\.ts/);
});

test('a closed pool refuses work, and aborts work that is active after its timeout', async () => {
  const pool = openDatabase(target, { poolSize: 2, applicationName: 'quarry-test-closing' });
  const running = assert.rejects(pool`do 'begin perform pg_sleep(60); end'`, { code: 'CONNECTION_CLOSED' });
  while (
    (
      await db`select 1 from pg_stat_activity
        where datname = current_database() and application_name = 'quarry-test-closing' and state = 'active'`
    ).length === 0
  );
  await pool.end({ timeout: 0 });
  await running;
  await assert.rejects(async () => pool`select 1`, { code: 'CONNECTION_ENDED' });
});

test('while other apps send requests, an app has half of the connections, and all of them afterwards', async () => {
  let nowMs = 0;
  const apps = new RecentApps(() => nowMs);
  const pool = openDatabase(target, { poolSize: 4, applicationName: 'quarry-test-shares', apps });
  opened.push(pool);
  const holder = await db.reserve();
  const waiting = async () => {
    const [row] = await db<{ count: number }[]>`select count(*)::integer as count from pg_stat_activity
      where datname = current_database() and application_name = 'quarry-test-shares' and wait_event = 'advisory'`;
    return row?.count;
  };
  const work = () => runForApp('many', () => pool`select pg_advisory_xact_lock_shared(1)`.then(() => {}));
  await holder`select pg_advisory_lock(1)`;
  apps.note('other');
  apps.note('many');
  const beside = [1, 2, 3, 4].map(work);
  await until(async () => (await waiting()) === 2);
  await runForApp('other', () => pool`select 1`);
  await runForApp('', () => pool`select 1`);
  assert.equal(await waiting(), 2);
  await holder`select pg_advisory_unlock(1)`;
  await Promise.all(beside);

  await holder`select pg_advisory_lock(1)`;
  const first = [1, 2, 3, 4].map(work);
  await until(async () => (await waiting()) === 2);
  nowMs = 10_000;
  // The next statements find their app alone.
  const next = [work(), work()];
  await until(async () => (await waiting()) === 4);
  await holder`select pg_advisory_unlock(1)`;
  holder.release();
  await Promise.all([...first, ...next]);
});

test('an app whose statements wait delays another app by one of them', async () => {
  const pool = open(1);
  const held = await pool.reserve();
  const order: string[] = [];
  const ask = (app: string) => runForApp(app, () => pool`select 1`.then(() => order.push(app)));
  const asked = [...Array.from({ length: 20 }, () => ask('many')), ask('one'), ask('other')];
  held.release();
  await Promise.all(asked);
  assert.deepEqual(order.slice(0, 3), ['many', 'one', 'other']);
});
