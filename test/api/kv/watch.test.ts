import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sweepKv } from '../../../src/kv/sweep.ts';
import { EventStream, type StreamEvent } from '../../support/event-stream.ts';
import fc from '../../support/fast-check.ts';
import type { TestTenants } from '../../support/provisioner.ts';
import { modelRuns } from '../../support/rounds.ts';
import { type ErrorBody, startTestServer, type TestServer } from '../../support/server.ts';

let server: TestServer;
let other: TestServer;
let world: TestTenants;
let alice: { id: string; uuid: string; token: string };

before(async () => {
  server = await startTestServer({ env: { QUARRY_DB_POOL: '10' } });
  other = await startTestServer({ beside: server });
  world = await server.provision.world();
});
after(async () => {
  await other.close();
  await server.close();
});

test.beforeEach(async () => {
  alice = await server.provision.user(world.app);
});

const write = (method: string, path: string, body?: object, through = server) =>
  through.api(method, `/api/v1${path}`, { token: alice.token, ...(body === undefined ? {} : { body }) });
const put = (key: string, value: string, more: object = {}) => write('PUT', `/kv/${key}`, { value, ...more });

/** A watch that has said that it is ready. */
async function watch(query = '', lastEventId?: number, through = server): Promise<EventStream> {
  const resumed: Record<string, string> = lastEventId === undefined ? {} : { 'last-event-id': String(lastEventId) };
  const stream = await EventStream.open(`${through.baseUrl}/api/v1/kv_watch?${query}`, {
    authorization: `Bearer ${alice.token}`,
    ...resumed,
  });
  const ready = await stream.take();
  assert.deepEqual([stream.response.statusCode, ready.event], [200, 'ready']);
  return stream;
}

const brief = ({ event, data }: StreamEvent) => [event, data.key, data.value];

async function takeAll(stream: EventStream, count: number): Promise<StreamEvent[]> {
  const events: StreamEvent[] = [];
  for (let n = 0; n < count; n++) events.push(await stream.take());
  return events;
}

test('a watch sends every change with its value and tag, in the order of the commits, through any process', async () => {
  const stream = await watch('', undefined, other);
  const tag = (await put('a', '1')).headers.get('etag');
  await put('a', '2', { ttl_seconds: 60 });
  await write('POST', '/kv_increment', { key: 'a' });
  await write('POST', '/kv_batch', {
    operations: [
      { op: 'put', key: 'c', value: 'x' },
      { op: 'put', key: 'b', value: 'y' },
      { op: 'delete', key: 'a' },
    ],
  });
  const events = await takeAll(stream, 6);
  assert.deepEqual(events.map(brief), [
    ['put', 'a', '1'],
    ['put', 'a', '2'],
    ['put', 'a', '3'],
    ['delete', 'a', undefined],
    ['put', 'b', 'y'],
    ['put', 'c', 'x'],
  ]);
  assert.equal(events[0]?.data.etag, tag);
  assert.deepEqual([events[0]?.data.user, events[3]?.data], [alice.id, { user: alice.id, key: 'a' }]);
  assert.ok(events[1]?.data.expires_at);
  stream.close();
});

test('a watch of a key or a prefix sends only its changes', async () => {
  const [one, many] = [await watch('key=a%2Fb'), await watch('prefix=a%2F')];
  await put('a%2Fb%2Fc', '1');
  await put('b', '2');
  await put('a%2Fb', '3');
  assert.deepEqual(brief(await one.take()), ['put', 'a/b', '3']);
  assert.deepEqual((await takeAll(many, 2)).map(brief), [
    ['put', 'a/b/c', '1'],
    ['put', 'a/b', '3'],
  ]);
  one.close();
  many.close();
  const both = await server.api<ErrorBody>('GET', '/api/v1/kv_watch?key=a&prefix=b', { token: alice.token });
  assert.deepEqual([both.status, both.body.error.fields[0]?.field], [422, 'prefix']);
});

test('an expiry is reported when the entry is swept', async () => {
  const stream = await watch();
  await put('a', '1', { ttl_seconds: 60 });
  await server.db`update kv_entries set expires_at = now() where user_id = ${alice.uuid}`;
  await sweepKv(server.db);
  const events = await takeAll(stream, 3);
  assert.deepEqual(brief(events[2] as StreamEvent), ['expire', 'a', undefined]);
  stream.close();
});

test('with Last-Event-ID a watch continues after that event; events that are no longer kept are reported by reset', async () => {
  const first = await watch();
  await put('a', '1');
  const { id } = await first.take();
  first.close();
  await put('a', '2');
  await put('b', '3');
  const second = await watch('', id);
  assert.deepEqual((await takeAll(second, 2)).map(brief), [
    ['put', 'a', '2'],
    ['put', 'b', '3'],
  ]);
  second.close();
  for (let n = 0; n < 10; n++)
    await write('POST', '/kv_batch', {
      operations: Array.from({ length: 100 }, (_, k) => ({ op: 'put', key: `k${k}`, value: String(n) })),
    });
  const third = await watch('', id);
  const reset = await third.take();
  assert.equal(reset.event, 'reset');
  await put('a', '4');
  assert.deepEqual(brief(await third.take()), ['put', 'a', '4']);
  third.close();
});

test('a long value is in its event, or in the later event that has overwritten it', async () => {
  const stream = await watch();
  const long = 'x'.repeat(70_000);
  await put('a', long);
  assert.equal((await stream.take()).data.value.length, 70_000);
  stream.close();
  await put('a', `${long}y`);
  await put('a', 'short');
  const resumed = await watch('', stream.lastId);
  assert.deepEqual((await takeAll(resumed, 2)).map(brief), [
    ['put', 'a', null],
    ['put', 'a', 'short'],
  ]);
  resumed.close();
});

test('after ready nothing is missed, not even from active writers', async () => {
  let stop = false;
  const writers = Array.from({ length: 6 }, async (_, n) => {
    let last = 0;
    while (!stop) {
      if (last % 2) await write('POST', '/kv_increment', { key: `k${n}` }, other);
      else await put(`k${n}`, String(last + 1));
      last++;
    }
    return last;
  });
  const streams = await Promise.all([watch(), watch('', undefined, other)]);
  const seen = streams.map(() => new Map<string, number>());
  const readers = streams.map(async (stream, index) => {
    for (let ends = 0; ends < 1; ) {
      const { data } = await stream.take();
      if (data.key === 'end') ends++;
      else {
        const before = seen[index]?.get(data.key);
        if (before !== undefined) assert.equal(Number(data.value), before + 1, data.key);
        seen[index]?.set(data.key, Number(data.value));
      }
    }
  });
  for (let n = 0; n < 40; n++) await put('other', String(n + 1));
  stop = true;
  const last = await Promise.all(writers);
  await put('end', 'end');
  await Promise.all(readers);
  for (const [index, stream] of streams.entries()) {
    assert.deepEqual(
      last.map((_, n) => seen[index]?.get(`k${n}`)),
      last,
    );
    stream.close();
  }
});

test('many watches that resume together each receive everything that they missed, in order', async () => {
  const readers = await Promise.all(Array.from({ length: 5 }, () => server.provision.user(world.app)));
  const open = async (token: string, lastEventId?: number) => {
    const resumed: Record<string, string> = lastEventId === undefined ? {} : { 'last-event-id': String(lastEventId) };
    const headers = { authorization: `Bearer ${token}`, ...resumed };
    const stream = await EventStream.open(`${server.baseUrl}/api/v1/kv_watch`, headers);
    return { stream, position: (await stream.take()).data.position as number };
  };
  const keys = Array.from({ length: 300 }, (_, n) => `key-${String(n).padStart(3, '0')}`);
  const left = await Promise.all(
    readers.map(async ({ token }) => {
      const { stream, position } = await open(token);
      stream.close();
      for (let at = 0; at < keys.length; at += 100) {
        const operations = keys.slice(at, at + 100).map((key) => ({ op: 'put', key, value: key }));
        const written = await server.api('POST', '/api/v1/kv_batch', { token, body: { operations } });
        assert.equal(written.status, 200);
      }
      return { token, position };
    }),
  );
  const resumed = await Promise.all(left.map(({ token, position }) => open(token, position)));
  for (const { stream } of resumed) {
    const events = await takeAll(stream, keys.length);
    assert.deepEqual(
      events.map(({ data }) => data.key),
      keys,
    );
    stream.close();
  }
});

test('a watch ends when its user is deleted, and cannot be opened for a user who is not visible', async () => {
  const key = { 'x-api-key': world.app.secretKey };
  const stream = await EventStream.open(`${server.baseUrl}/api/v1/kv_watch?user=${alice.id}`, key);
  assert.equal((await stream.take()).event, 'ready');
  await put('a', '1');
  assert.deepEqual(brief(await stream.take()), ['put', 'a', '1']);
  assert.equal((await server.api('DELETE', `/api/v1/users/${alice.id}`, { key: world.app.secretKey })).status, 204);
  for (let event = await stream.next(); event !== undefined; event = await stream.next());
  assert.ok(stream.ended);
  const gone = await server.api('GET', `/api/v1/kv_watch?user=${alice.id}`, { key: world.app.secretKey });
  assert.equal(gone.status, 404);
});

test('a log without watchers ends, and a later watch starts after its positions', async () => {
  const first = await watch();
  await put('a', '1');
  const { id } = await first.take();
  first.close();
  await server.db`update kv_watches set watched_until = now() where user_id = ${alice.uuid}`;
  await sweepKv(server.db);
  await put('a', '2');
  assert.equal((await server.db`select 1 from kv_changes where user_id = ${alice.uuid}`).length, 0);
  const second = await watch('', id);
  const reset = await second.take();
  assert.equal(reset.event, 'reset');
  assert.ok(reset.id > id);
  second.close();
});

/* Random operations by several concurrent callers: a watcher that replays the events has the entries of the list. */
type Step = {
  via: 'put' | 'delete' | 'increment' | 'batch' | 'expire';
  key: string;
  other: string;
  reconnect: boolean;
};
const steps: fc.Arbitrary<Step> = fc.record({
  via: fc.constantFrom('put', 'delete', 'increment', 'batch', 'expire'),
  key: fc.constantFrom('a', 'b', 'c'),
  other: fc.constantFrom('a', 'b', 'd'),
  reconnect: fc.boolean(),
});

test('replaying a watch, with reconnections, gives the entries of the list', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(steps, { minLength: 1, maxLength: 4 }), { minLength: 2, maxLength: 8 }), replay),
    { ...modelRuns(15), endOnFailure: true },
  );
});

async function replay(rounds: Step[][]): Promise<void> {
  alice = await server.provision.user(world.app);
  const copy = new Map<string, string>();
  let stream = await watch();
  for (const [number, round] of rounds.entries()) {
    await Promise.all(round.map((step, index) => take(step, index % 2 ? server : other)));
    if (!round.some(({ reconnect }) => reconnect)) continue;
    const mark = `mark${number}`;
    await put(mark, '0');
    await follow(mark);
    stream.close();
    stream = await watch('', stream.lastId, number % 2 ? server : other);
  }
  // A sweep leaves out what another request holds.
  await sweepKv(server.db);
  await put('mark', '0');
  await follow('mark');
  stream.close();
  const { body } = await server.api<{ data: { key: string; value: string }[] }>('GET', '/api/v1/kv', {
    token: alice.token,
  });
  assert.deepEqual(copy, new Map(body.data.map(({ key, value }) => [key, value])));

  async function follow(mark: string): Promise<void> {
    for (;;) {
      const { event, data } = await stream.take();
      if (event === 'put') copy.set(data.key, data.value);
      else copy.delete(data.key);
      if (data.key === mark) return;
    }
  }
}

async function take({ via, key, other: second }: Step, through: TestServer): Promise<void> {
  if (via === 'put') await write('PUT', `/kv/${key}`, { value: String(key.length), ttl_seconds: 900 }, through);
  else if (via === 'delete') await write('DELETE', `/kv/${key}`, undefined, through);
  else if (via === 'increment') await write('POST', '/kv_increment', { key, by: 2 }, through);
  else if (via === 'batch')
    await write(
      'POST',
      '/kv_batch',
      {
        operations: [
          { op: 'delete', key },
          { op: 'put', key: second, value: '5' },
          { op: 'increment', key, by: -1 },
        ],
      },
      through,
    );
  else {
    await server.db`update kv_entries set expires_at = now() where user_id = ${alice.uuid} and key = ${key}`;
    await sweepKv(server.db);
  }
}

test('one statement that changes entries of many users gives each user numbers without a gap', async () => {
  const users = await Promise.all(Array.from({ length: 3 }, () => server.provision.user(world.app)));
  const ids = users.map(({ uuid }) => uuid);
  await server.db`
    insert into kv_watches (app_id, user_id, position, kept_after, watched_until)
    select app_id, id, 0, 0, now() + interval '1 hour' from users where id = any (${ids}::uuid[])`;
  await server.db.begin(async (tx) => {
    await tx`select set_config('quarry.kv_user_bytes_max', '1000000', true)`;
    await tx`
      insert into kv_entries (app_id, sandbox_id, user_id, key, id, value)
      select app_id, sandbox_id, id, 'k' || n, gen_random_uuid(), repeat('x', n * 30000)
      from users, generate_series(3, 1, -1) n where id = any (${ids}::uuid[])`;
  });
  const changes = await server.db`
    select position, kind, key, octet_length(value) as bytes from kv_changes where user_id = any (${ids}::uuid[])
    order by user_id, position`;
  const ofOne = [
    [1, 'put', 'k1', 30_000],
    [2, 'put', 'k2', 60_000],
    [3, 'put', 'k3', null],
  ];
  assert.deepEqual(
    changes.map((row) => [row.position, row.kind, row.key, row.bytes]),
    [...ofOne, ...ofOne, ...ofOne],
  );
});
