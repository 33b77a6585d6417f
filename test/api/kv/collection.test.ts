import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sweepKv } from '../../../src/kv/sweep.ts';
import { formatId, newUuid } from '../../../src/lib/ids.ts';
import type { TestTenants } from '../../support/provisioner.ts';
import {
  type ApiOptions,
  type ApiResponse,
  type ErrorBody,
  startTestServer,
  type TestServer,
} from '../../support/server.ts';

/*
 * Expiry, conditional GET, increments, batches and the list by key. Who may see an entry is in the
 * authorization matrix; watching is in kv-watch.test.ts.
 */

type Entry = { user: string; key: string; value: string; created_at: string; updated_at: string; expires_at?: string };
type Result = { op: string; key: string; entry?: Entry | null; etag?: string; deleted?: boolean };

let server: TestServer;
let world: TestTenants;
let alice: { id: string; uuid: string; token: string };
let asAlice: ApiOptions;
const userBytesMax = 2_000;

before(async () => {
  server = await startTestServer({ env: { QUARRY_KV_USER_BYTES_MAX: String(userBytesMax), QUARRY_DB_POOL: '10' } });
  world = await server.provision.world();
});
after(() => server.close());

test.beforeEach(async () => {
  alice = await server.provision.user(world.app);
  asAlice = { token: alice.token };
});

const put = (key: string, body: object, options = asAlice) =>
  server.api<Entry & ErrorBody>('PUT', `/api/v1/kv/${key}`, { ...options, body });
const get = (key: string, headers: Record<string, string> = {}) =>
  server.api<Entry & ErrorBody>('GET', `/api/v1/kv/${key}`, { ...asAlice, headers });
const increment = (body: object) => server.api<Entry & ErrorBody>('POST', '/api/v1/kv_increment', { ...asAlice, body });
const batch = (operations: object[], options = asAlice, more: object = {}) =>
  server.api<{ data: Result[] } & ErrorBody>('POST', '/api/v1/kv_batch', { ...options, body: { operations, ...more } });
const list = async () => (await server.api<{ data: Entry[] }>('GET', '/api/v1/kv', asAlice)).body.data;
const fieldOf = (answer: { status: number; body: ErrorBody }) => [answer.status, answer.body.error.fields[0]?.field];

/** As if that much time had passed for the entries of the user. */
async function pass(seconds: number): Promise<void> {
  await server.db`update kv_entries set expires_at = expires_at - ${seconds} * interval '1 second'
    where user_id = ${alice.uuid}`;
}

test('an entry with a TTL shows when it expires, and does not exist after that, swept or not', async () => {
  const written = await put('a', { value: '1', ttl_seconds: 600 });
  const { expires_at = '', updated_at } = written.body;
  assert.equal(Date.parse(expires_at) - Date.parse(updated_at), 600_000);
  assert.equal((await get('a')).body.expires_at, expires_at);
  await pass(500);
  assert.equal((await get('a')).status, 200);
  await pass(100);
  assert.equal((await get('a')).status, 404);
  assert.deepEqual(await list(), []);
  const all = await server.api<{ data: Entry[]; total_entries: number }>('GET', '/api/v1/kv', {
    key: world.app.secretKey,
  });
  assert.deepEqual([all.body.data.filter(({ user }) => user === alice.id), all.body.total_entries], [[], 0]);
  const byUser = await server.api<{ total_entries: number }>('GET', `/api/v1/kv?user=${alice.id}`, {
    key: world.app.secretKey,
  });
  assert.equal(byUser.body.total_entries, 0);
  assert.equal((await server.api('DELETE', '/api/v1/kv/a', asAlice)).status, 404);
  assert.equal((await put('a', { value: 'x' }, { ...asAlice, headers: { 'if-match': '*' } })).status, 412);
});

test('an expired key is created like a new one', async () => {
  const first = await put('a', { value: '1', ttl_seconds: 1 });
  await pass(1);
  const created = await server.api<Entry>('POST', '/api/v1/kv', { ...asAlice, body: { key: 'a', value: '2' } });
  assert.equal(created.status, 200);
  assert.ok(created.body.created_at > first.body.created_at);
  assert.equal(created.body.expires_at, undefined);
  assert.notEqual(created.headers.get('etag'), first.headers.get('etag'));
  await put('b', { value: '1', ttl_seconds: 1 });
  await pass(1);
  assert.equal((await put('b', { value: '2' }, { ...asAlice, headers: { 'if-none-match': '*' } })).status, 200);
});

test('a PUT without a TTL clears it, an increment keeps it', async () => {
  await put('a', { value: '1', ttl_seconds: 60 });
  assert.equal((await put('a', { value: '2' })).body.expires_at, undefined);
  await put('n', { value: '1', ttl_seconds: 60 });
  const kept = await increment({ key: 'n' });
  assert.equal(kept.body.value, '2');
  assert.ok(kept.body.expires_at);
  const renewed = await increment({ key: 'n', ttl_seconds: 600 });
  assert.ok(Date.parse(renewed.body.expires_at ?? '') - Date.parse(kept.body.expires_at ?? '') > 500_000);
});

test('the sweep deletes only expired entries and frees their quota; so does a write that needs it', async () => {
  await put('gone', { value: 'x'.repeat(900), ttl_seconds: 60 });
  await put('later', { value: 'y', ttl_seconds: 600 });
  await put('kept', { value: 'z' });
  await pass(60);
  await sweepKv(server.db);
  const rows = await server.db<{ key: string }[]>`
    select key from kv_entries where user_id = ${alice.uuid} order by key`;
  assert.deepEqual(
    rows.map(({ key }) => key),
    ['kept', 'later'],
  );
  await put('full', { value: 'x'.repeat(1_500), ttl_seconds: 60 });
  assert.equal((await put('more', { value: 'x'.repeat(1_500) })).body.error.code, 'quota_exceeded');
  await pass(60);
  assert.equal((await put('more', { value: 'x'.repeat(1_500) })).status, 200);
});

test('GET with the current tag in If-None-Match is 304 without a body, and 200 after a write', async () => {
  const tag = (await put('a', { value: '1' })).headers.get('etag') ?? '';
  const same = await get('a', { 'if-none-match': `"other", ${tag}` });
  assert.deepEqual([same.status, same.headers.get('etag'), same.text], [304, tag, '']);
  await put('a', { value: '2' });
  assert.deepEqual([(await get('a', { 'if-none-match': tag })).status], [200]);
  assert.equal((await get('missing', { 'if-none-match': tag })).status, 404);
});

test('concurrent increments are all counted', async () => {
  const answers = await Promise.all(Array.from({ length: 60 }, (_, n) => increment({ key: 'n', by: n % 2 ? -1 : 3 })));
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
  assert.equal((await get('n')).body.value, '60');
});

test('requests that share a statement each get their own result, and a refused one does not stop the others', async () => {
  await put('text', { value: 'ten' });
  await put('most', { value: '9223372036854775807' });
  const keys = Array.from({ length: 30 }, (_, i) => `shared-${i}`);
  const puts = (from: number, value: string) => [0, 1].map((i) => ({ op: 'put', key: `pair-${from + i}`, value }));
  const [counted, text, most, large, written] = await Promise.all([
    Promise.all(keys.map((key, i) => increment({ key, by: i }))),
    increment({ key: 'text' }),
    increment({ key: 'most' }),
    batch(puts(0, 'x'.repeat(userBytesMax))),
    Promise.all([2, 4, 5, 6].map((from) => batch(puts(from, `${from}`)))),
  ]);
  assert.deepEqual(
    counted.map(({ status, body }) => [status, body.key, body.value]),
    keys.map((key, i) => [200, key, `${i}`]),
  );
  assert.deepEqual(
    [fieldOf(text), fieldOf(most)],
    [
      [422, 'key'],
      [422, 'by'],
    ],
  );
  assert.equal(large.body.error.code, 'quota_exceeded');
  assert.deepEqual(
    written.map(({ status, body }) => [status, body.data.map(({ key, entry }) => [key, entry?.value])]),
    [2, 4, 5, 6].map((from) => [
      200,
      [
        [`pair-${from}`, `${from}`],
        [`pair-${from + 1}`, `${from}`],
      ],
    ]),
  );
  assert.equal((await get('pair-0')).status, 404);
});

test('increments are exact to 64 bits, and refuse non-integers and overflow', async () => {
  await put('n', { value: '9223372036854775806' });
  assert.equal((await increment({ key: 'n' })).body.value, '9223372036854775807');
  assert.deepEqual(fieldOf(await increment({ key: 'n' })), [422, 'by']);
  assert.equal((await get('n')).body.value, '9223372036854775807');
  for (const value of ['1.5', ' 1', '01', '-0', 'abc', '9223372036854775808', '12345678901234567890']) {
    await put('t', { value });
    assert.deepEqual(fieldOf(await increment({ key: 't' })), [422, 'key'], value);
  }
  assert.deepEqual(fieldOf(await increment({ key: 'n', by: 1.5 })), [422, 'by']);
  assert.deepEqual(fieldOf(await increment({ key: '' })), [422, 'key']);
});

test('a batch applies its operations in order, each to the result of those before it', async () => {
  await put('old', { value: '7' });
  const answer = await batch([
    { op: 'get', key: 'old' },
    { op: 'increment', key: 'old', by: 3 },
    { op: 'put', key: 'new', value: 'x', ttl_seconds: 60 },
    { op: 'put', key: 'new', value: 'y' },
    { op: 'delete', key: 'old' },
    { op: 'get', key: 'old' },
    { op: 'delete', key: 'old' },
    { op: 'put', key: 'old', value: 'again' },
  ]);
  assert.equal(answer.status, 200);
  assert.deepEqual(
    answer.body.data.map(({ op, key, entry, deleted }) => [op, key, entry === null ? null : entry?.value, deleted]),
    [
      ['get', 'old', '7', undefined],
      ['increment', 'old', '10', undefined],
      ['put', 'new', 'x', undefined],
      ['put', 'new', 'y', undefined],
      ['delete', 'old', undefined, true],
      ['get', 'old', null, undefined],
      ['delete', 'old', undefined, false],
      ['put', 'old', 'again', undefined],
    ],
  );
  const stored = await get('new');
  assert.deepEqual([stored.body.value, stored.body.expires_at], ['y', undefined]);
  assert.equal(stored.headers.get('etag'), answer.body.data[3]?.etag);
  assert.deepEqual(stored.body, answer.body.data[3]?.entry);
  assert.equal((await get('old')).headers.get('etag'), answer.body.data[7]?.etag);
});

test('a batch of puts is written, and one of gets read, as a whole and in its order', async () => {
  const first = await batch([
    { op: 'put', key: 'b', value: '1' },
    { op: 'put', key: 'a', value: '2', ttl_seconds: 60 },
  ]);
  assert.deepEqual(
    first.body.data.map(({ op, key, entry }) => [op, key, entry?.value, entry?.expires_at === undefined]),
    [
      ['put', 'b', '1', true],
      ['put', 'a', '2', false],
    ],
  );
  const again = await batch([
    { op: 'put', key: 'a', value: '3' },
    { op: 'put', key: 'b', value: '4' },
  ]);
  assert.deepEqual(
    again.body.data.map(({ entry }) => [entry?.value, entry?.expires_at]),
    [
      ['3', undefined],
      ['4', undefined],
    ],
  );
  assert.equal((await get('b')).headers.get('etag'), again.body.data[1]?.etag);
  const gets = [
    { op: 'get', key: 'b' },
    { op: 'get', key: 'none' },
    { op: 'get', key: 'b' },
  ];
  assert.deepEqual(
    (await batch(gets)).body.data.map(({ entry }) => entry?.value),
    ['4', undefined, '4'],
  );
  const failing = await batch([...gets, { op: 'get', key: 'none', if_match: '*' }]);
  assert.deepEqual([failing.status, failing.body.error.details.operation], [412, 3]);
  const tooMuch = [
    { op: 'put', key: 'a', value: 'x' },
    { op: 'put', key: 'c', value: 'x'.repeat(userBytesMax) },
  ];
  assert.deepEqual([(await batch(tooMuch)).body.error.code, (await get('a')).body.value], ['quota_exceeded', '3']);
  const user = formatId('user', newUuid());
  for (const operations of [again.body.data.map(({ key }) => ({ op: 'put', key, value: '1' })), gets])
    assert.equal((await batch(operations, { key: world.app.secretKey }, { user })).status, 404);
});

test('a batch with one failing condition, invalid member or too many bytes changes nothing and names the operation', async () => {
  const tag = (await put('a', { value: '1' })).headers.get('etag') ?? '';
  const first = { op: 'put', key: 'b', value: '2' };
  const failed = await batch([first, { op: 'delete', key: 'a', if_match: '"stale"' }]);
  assert.deepEqual([failed.status, failed.body.error.code], [412, 'precondition_failed']);
  assert.equal(failed.body.error.details.operation, 1);
  const wrong: [object, string][] = [
    [{ op: 'increment', key: 'word' }, 'operations.2.key'],
    [{ op: 'put', key: 'c' }, 'operations.2.value'],
    [{ op: 'put', key: 'c', value: 'x', by: 1 }, 'operations.2.by'],
    [{ op: 'put', key: 'c', value: 'x', ttl_seconds: 0 }, 'operations.2.ttl_seconds'],
    [{ op: 'put', key: 'k'.repeat(1_025), value: 'x' }, 'operations.2.key'],
    [{ op: 'get', key: 'c', if_match: 'unquoted' }, 'operations.2.if_match'],
    [{ op: 'touch', key: 'c' }, 'operations.2.op'],
    [{ op: 'get' }, 'operations.2.key'],
    [{ op: 'get', key: 'c', other: 1 }, 'operations.2.other'],
  ];
  for (const [operation, field] of wrong)
    assert.deepEqual(fieldOf(await batch([first, { op: 'put', key: 'word', value: 'w' }, operation])), [422, field]);
  const tooMuch = await batch([first, { op: 'put', key: 'c', value: 'x'.repeat(userBytesMax) }]);
  assert.deepEqual([tooMuch.status, tooMuch.body.error.code], [422, 'quota_exceeded']);
  assert.deepEqual(fieldOf(await batch([])), [422, 'operations']);
  assert.deepEqual(fieldOf(await batch(Array.from({ length: 101 }, () => first))), [422, 'operations']);
  assert.deepEqual(
    (await list()).map(({ key, value }) => [key, value]),
    [['a', '1']],
  );
  const passed = await batch([
    { op: 'put', key: 'a', value: '3', if_match: tag },
    { ...first, if_none_match: '*' },
  ]);
  assert.equal(passed.status, 200);
});

test('concurrent batches and single writes of the same keys keep every increment and never fail', async () => {
  const keys = ['x', 'y', 'z'];
  const work = Array.from({ length: 30 }, (_, n) => {
    const turned = [...keys.slice(n % 3), ...keys.slice(0, n % 3)];
    return n % 5 === 4 ? increment({ key: turned[0] }) : batch(turned.map((key) => ({ op: 'increment', key })));
  });
  const answers = await Promise.all(work);
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
  const values = await Promise.all(keys.map(async (key) => Number((await get(key)).body.value)));
  assert.equal(
    values.reduce((sum, value) => sum + value),
    24 * 3 + 6,
  );
});

test('the list by key has every entry once, in byte order, over pages and prefixes', async () => {
  const names = ['a', 'a/', 'a/b', 'a0', 'B', 'ž', '😀', '%41', 'a b'];
  await batch(names.map((key) => ({ op: 'put', key, value: 'v' })));
  await put('a/gone', { value: 'v', ttl_seconds: 5 });
  await pass(5);
  const read = async (query: string): Promise<string[]> => {
    const seen: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const at: string = cursor === '' ? '' : `&cursor=${cursor}`;
      const page: ApiResponse<{ data: Entry[]; next_cursor: string | null }> = await server.api<{
        data: Entry[];
        next_cursor: string | null;
      }>('GET', `/api/v1/kv_entries?${query}${at}`, asAlice);
      assert.equal(page.status, 200, page.text);
      seen.push(...page.body.data.map(({ key }) => key));
      cursor = page.body.next_cursor;
    }
    return seen;
  };
  const sorted = names.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
  assert.deepEqual(await read('limit=2'), sorted);
  assert.deepEqual(await read(''), sorted);
  assert.deepEqual(await read('limit=1&prefix=a%2F'), ['a/', 'a/b']);
  for (const [query, status] of [
    ['limit=0', 422],
    ['limit=1001', 422],
    ['cursor=!', 400],
    ['cursor=AA', 400],
  ] as const)
    assert.equal((await server.api('GET', `/api/v1/kv_entries?${query}`, asAlice)).status, status, query);
  const bare = await server.api<ErrorBody>('GET', '/api/v1/kv_entries', { key: world.app.secretKey });
  assert.deepEqual([bare.status, bare.body.error.code], [400, 'user_required']);
});
