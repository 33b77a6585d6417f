import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { firstTextAfterPrefix } from '../../../src/kv/lists.ts';
import { formatId, newUuid } from '../../../src/lib/ids.ts';
import { asDeveloper, startKv } from '../../support/kv.ts';
import type { ApiOptions } from '../../support/server.ts';

const kv = await startKv();
after(() => kv.close());
const app = await kv.provision.app();
const otherApp = await kv.provision.app();
const ada = await kv.createUser(app, 'Ada.Lovelace@Example.com', 'Ada Lovelace');
const grace = await kv.createUser(app, 'grace@navy.mil', 'Grace B. Hopper');
const odd = await kv.createUser(app, '100%_\\@example.com', 'Žofie Čapková');
const nameless = await kv.createUser(app);
const elsewhere = await kv.createUser(otherApp, 'ada.lovelace@example.com', 'Ada Lovelace');

for (const user of [ada, grace, odd, nameless, elsewhere])
  for (const key of ['colour', 'colour/dark', 'size', 'Ünder', '50%', '50%_x', 'a\\b'])
    await kv.api('PUT', `/api/v1/kv/${encodeURIComponent(key)}`, {
      token: user.token,
      body: { value: `${key} of ${user.id}` },
    });

type Entry = { user: string; key: string; created_at: string };
const asServer = { key: app.secretKey };
const list = (query: string, caller: ApiOptions = asServer) => kv.api('GET', `/api/v1/kv${query}`, caller);
const keysOf = (response: { body: { data: Entry[] } }) => response.body.data.map((entry) => entry.key);
const usersOf = (response: { body: { data: Entry[] } }) => [...new Set(response.body.data.map((entry) => entry.user))];

test('an end user gets all their own entries, newest first, with no page members', async () => {
  const response = await list('', { token: ada.token });
  assert.deepEqual(Object.keys(response.body), ['data']);
  assert.deepEqual(keysOf(response), ['a\\b', '50%_x', '50%', 'Ünder', 'size', 'colour/dark', 'colour']);
  assert.deepEqual(Object.keys(response.body.data[0]), ['user', 'key', 'value', 'created_at', 'updated_at']);
});

test('an end user’s query parameters are ignored, even invalid ones', async () => {
  for (const query of [
    '?page=abc',
    '?page=0&page_size=-1',
    '?user=x&key=size',
    '?page=1&page=2',
    '?x=%00&user_search=%FF',
  ]) {
    const response = await list(query, { token: ada.token });
    assert.deepEqual(
      [response.status, response.body.data.length, Object.keys(response.body)],
      [200, 7, ['data']],
      query,
    );
  }
});

test('servers and developers get pages over all users of the app, newest first, with the users’ names', async () => {
  for (const caller of [asServer, asDeveloper(app)]) {
    const first = await list('?page_size=10', caller);
    assert.deepEqual(
      { ...first.body, data: first.body.data.length },
      { data: 10, page: 1, page_size: 10, total_entries: 28, total_pages: 3, has_next: true, has_prev: false },
    );
    const last = await list('?page_size=10&page=3', caller);
    assert.deepEqual([last.body.data.length, last.body.has_next, last.body.has_prev], [8, false, true]);
    const past = await list('?page_size=10&page=9', caller);
    assert.deepEqual([past.body.data, past.body.total_entries, past.body.total_pages], [[], 28, 3]);
    const times = (await list('?page_size=100', caller)).body.data.map((entry: Entry) => entry.created_at);
    assert.deepEqual(times, [...times].sort().reverse());
  }
  const [entry] = (await list(`?user=${ada.id}&key=size`)).body.data;
  assert.deepEqual([entry.user_email, entry.user_name], ['Ada.Lovelace@Example.com', 'Ada Lovelace']);
  const [bare] = (await list(`?user=${nameless.id}&key=size`)).body.data;
  assert.deepEqual([Object.hasOwn(bare, 'user_email'), Object.hasOwn(bare, 'user_name')], [false, false]);
});

test('more than 100 a page counts as 100; an invalid page number is 422 on its name', async () => {
  assert.equal((await list('?page_size=5000')).body.page_size, 100);
  for (const [query, field] of [
    ['?page=0', 'page'],
    ['?page=abc', 'page'],
    ['?page=1.5', 'page'],
    ['?page_size=0', 'page_size'],
    ['?page=2147483648', 'page'],
    ['?user=usr_x', 'user'],
    ['?user=tem_0000000000000000000000', 'user'],
    ['?key=%00', 'key'],
    ['?user_search=a%00', 'user_search'],
    ['?user_search=%FF', 'user_search'],
    ['?key=50%a%ED%A0%80', 'key'],
    ['?key=%C0%AF', 'key'],
    ['?other=%C3%28', 'other'],
  ] as const) {
    const response = await list(query);
    assert.deepEqual([response.status, response.body.error?.fields[0]?.field], [422, field], query);
  }
  assert.equal((await list('?page=2147483647&page_size=100')).body.total_entries, 28);
});

test('an invalid escape in a query stands for itself', async () => {
  const all = await list('?key=50%25&page_size=100');
  assert.equal(all.body.total_entries, 8);
  for (const query of ['?key=50%', '?key=%35%30%', '?key=%350%25']) {
    const found = await list(`${query}&page_size=100`);
    assert.deepEqual(keysOf(found), keysOf(all), query);
  }
  assert.deepEqual(keysOf(await list('?key=%zz')), []);
});

test('`user` filters by user; one of another app, or an unknown one, returns an empty page', async () => {
  const own = await list(`?user=${ada.id}`);
  assert.deepEqual([usersOf(own), own.body.total_entries], [[ada.id], 7]);
  for (const id of [elsewhere.id, formatId('user', newUuid())]) {
    const none = await list(`?user=${id}`);
    assert.deepEqual([none.status, none.body.data, none.body.total_entries], [200, [], 0]);
  }
});

test('`key` is a literal, case-sensitive prefix', async () => {
  const expectations: [string, string[]][] = [
    ['colour', ['colour', 'colour/dark']],
    ['Colour', []],
    ['50%', ['50%', '50%_x']],
    ['50%_', ['50%_x']],
    ['5_', []],
    ['a\\', ['a\\b']],
    ['Ü', ['Ünder']],
    ['\u{10ffff}', []],
    ['', ['colour', 'colour/dark', 'size', 'Ünder', '50%', '50%_x', 'a\\b']],
  ];
  for (const [prefix, keys] of expectations) {
    const response = await list(`?page_size=100&key=${encodeURIComponent(prefix)}`);
    assert.deepEqual([...new Set(keysOf(response))].sort(), [...keys].sort(), prefix);
    assert.equal(response.body.total_entries, keys.length * 4);
  }
});

test('`user_search` is a literal substring of e-mail or name, in any case', async () => {
  const expectations: [string, string[]][] = [
    ['lovelace', [ada.id]],
    ['ADA', [ada.id]],
    ['a L', [ada.id]],
    ['@', [ada.id, grace.id, odd.id]],
    ['ex', [ada.id, odd.id]],
    ['B. H', [grace.id]],
    ['%_\\', [odd.id]],
    ['%', [odd.id]],
    ['ada%', []],
    ['č', [odd.id]],
    ['žofie čapk', [odd.id]],
    ['com\nada', []],
    ['comada', []],
    ['lovelace@ada', []],
    ['nobody at all', []],
  ];
  for (const [search, users] of expectations) {
    const response = await list(`?page_size=100&user_search=${encodeURIComponent(search)}`);
    assert.deepEqual(usersOf(response).sort(), [...users].sort(), search);
    assert.equal(response.body.total_entries, users.length * 7, search);
  }
});

test('filters combine', async () => {
  const both = await list('?user_search=example&key=colour');
  assert.deepEqual([both.body.total_entries, usersOf(both).length], [4, 2]);
  const three = await list(`?user_search=example&key=colour&user=${ada.id}`);
  assert.equal(three.body.total_entries, 2);
  const none = await list(`?user_search=hopper&user=${ada.id}`);
  assert.deepEqual([none.body.data, none.body.total_entries], [[], 0]);
  assert.equal((await list('?user_search=example&key=colour&page=2&page_size=3')).body.data.length, 1);
});

test('the total follows every creation and deletion, also concurrent ones', async () => {
  const users = await Promise.all(Array.from({ length: 8 }, () => kv.createUser(app)));
  const write = (key: string) =>
    users.map((user) => kv.api('PUT', `/api/v1/kv/${key}`, { token: user.token, body: { value: 'v' } }));
  await Promise.all(['a', 'b', 'c', 'a', 'b'].flatMap(write));
  assert.equal((await list('')).body.total_entries, 28 + 24);
  await Promise.all(users.map((user) => kv.api('DELETE', '/api/v1/kv/b', { token: user.token })));
  assert.equal((await list('')).body.total_entries, 28 + 16);
  await kv.db`delete from users where id = any(${users.map((user) => user.uuid)})`;
  assert.equal((await list('')).body.total_entries, 28);
});

test('pages by key that are requested together are each their own, also beside entries too large for one page', async () => {
  const users = await Promise.all([1, 2].map(() => kv.createUser(app)));
  const large = 'x'.repeat(1024 * 1024);
  const values = { a: '1', 'a/b': '2', 'a/c': 'y'.repeat(9_000), b: large, c: large, d: large, e: large, f: '3' };
  await Promise.all(
    users.flatMap(({ token }) =>
      [...Object.entries(values), ['\u{10ffff}', '4'] as const].map(([key, value]) =>
        kv.api('PUT', `/api/v1/kv/${encodeURIComponent(key)}`, { token, body: { value } }),
      ),
    ),
  );
  const pages: [query: string, keys: string[], hasMore: boolean][] = [
    ['prefix=a&limit=2', ['a', 'a/b'], true],
    ['prefix=a', ['a', 'a/b', 'a/c'], false],
    ['prefix=none', [], false],
    ['limit=4', ['a', 'a/b', 'a/c', 'b'], true],
    ['', ['a', 'a/b', 'a/c', 'b', 'c', 'd', 'e'], true],
    [`cursor=${Buffer.from('e').toString('base64url')}`, ['f', '\u{10ffff}'], false],
    [`prefix=f&cursor=${Buffer.from('a').toString('base64url')}`, ['f'], false],
    [`prefix=a&cursor=${Buffer.from('f').toString('base64url')}`, [], false],
    [`prefix=${encodeURIComponent('\u{10ffff}')}`, ['\u{10ffff}'], false],
  ];
  const wanted = users.flatMap((user) => pages.map((page) => [user, ...page] as const));
  const responses = await Promise.all(
    wanted.map(([{ token }, query]) => kv.api('GET', `/api/v1/kv_entries?${query}`, { token })),
  );
  for (const [i, [user, query, keys, hasMore]] of wanted.entries()) {
    const { status, body } = responses[i] ?? assert.fail();
    assert.deepEqual([status, keysOf({ body }), body.next_cursor !== null], [200, keys, hasMore], query);
    for (const entry of body.data) {
      assert.equal(entry.user, user.id);
      assert.ok(entry.value === (values[entry.key as keyof typeof values] ?? '4'), `the value of ${entry.key}`);
    }
  }
});

test('the end of a prefix’s range is the next text in code point order', () => {
  assert.equal(firstTextAfterPrefix('ab'), 'ac');
  assert.equal(firstTextAfterPrefix('a\ud7ff'), 'a\ue000');
  assert.equal(firstTextAfterPrefix('a\u{10ffff}'), 'b');
  assert.equal(firstTextAfterPrefix('a🪨'), 'a\u{1faa9}');
  assert.equal(firstTextAfterPrefix('\u{10ffff}'.repeat(2)), undefined);
  assert.equal(firstTextAfterPrefix('🪨\u{10ffff}'), '\u{1faa9}');
  assert.equal(firstTextAfterPrefix('x'.repeat(300_000)), `${'x'.repeat(299_999)}y`, 'a tool may send any length');
});
