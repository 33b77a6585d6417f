import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startKv } from '../../support/kv.ts';

const kv = await startKv();
after(() => kv.close());
const app = await kv.provision.app();
const user = await kv.createUser(app);

const path = (key: string) => `/api/v1/kv/${key}`;

/** What is sent after /kv/, and the key that it is. */
const keys: [sent: string, key: string][] = [
  ['plain', 'plain'],
  ['a/b', 'a/b'],
  ['a%2Fb%2fc', 'a/b/c'],
  ['a//b', 'a//b'],
  ['/', '/'],
  ['/leading', '/leading'],
  ['trailing/', 'trailing/'],
  ['.', '.'],
  ['..', '..'],
  ['a/./b/../c', 'a/./b/../c'],
  ['%2e%2E/x', '../x'],
  ['with%20blank', 'with blank'],
  ['plus+plus', 'plus+plus'],
  ['%3Fquestion%23hash', '?question#hash'],
  ['100%', '100%'],
  ['100%25', '100%'],
  ['%zz', '%zz'],
  ['%4', '%4'],
  ['%%41', '%A'],
  ['%25zz', '%zz'],
  ['%C5%BElu%C5%A5', 'žluť'],
  ['e%CC%81', 'e\u0301'],
  ['%C3%A9', '\u00e9'],
  ['%F0%9F%AA%A8', '🪨'],
  ['%EF%BB%BFmark', '\ufeffmark'],
  ['search', 'search'],
  ['kinds', 'kinds'],
  ['*', '*'],
  [':key', ':key'],
  ['a;b=c&d', 'a;b=c&d'],
  ['__proto__', '__proto__'],
  ['constructor', 'constructor'],
  ['%0D%0A%09', '\r\n\t'],
  ['"quoted"', '"quoted"'],
  ['a\\b', 'a\\b'],
];

test('the key is the path exactly as sent, never normalised', async () => {
  for (const [sent, key] of keys) {
    const value = `value of ${key}`;
    const written = await kv.api('PUT', path(sent), { token: user.token, body: { value } });
    assert.deepEqual([written.status, written.body.key], [200, key], sent);
    const read = await kv.api('GET', path(sent), { token: user.token });
    assert.deepEqual([read.status, read.body.key, read.body.value], [200, key, value], sent);
    const encoded = await kv.api('GET', path(encodeURIComponent(key)), { token: user.token });
    assert.deepEqual([encoded.status, encoded.body.key], [200, key], sent);
  }
  const list = await kv.api('GET', '/api/v1/kv', { token: user.token });
  assert.deepEqual(
    list.body.data.map((entry: { key: string }) => entry.key).sort(),
    [...new Set(keys.map(([, key]) => key))].sort(),
  );
  for (const key of new Set(keys.map(([, each]) => each)))
    assert.equal((await kv.api('DELETE', path(encodeURIComponent(key)), { token: user.token })).status, 204);
});

test('a query is separate from a key with unusual characters', async () => {
  await kv.api('PUT', path('50%/x'), { key: app.secretKey, body: { value: 'v', user: user.id } });
  assert.equal((await kv.api('GET', `${path('50%/x')}?user=${user.id}`, { key: app.secretKey })).status, 200);
  assert.equal((await kv.api('GET', `${path('50%/x')}?user=${user.id}`, { token: user.token })).status, 200);
});

test('the query of an end user is ignored, whatever it contains', async () => {
  for (const query of ['user=%00', 'user=%FF', 'user=x', 'user=a&user=b', 'user[]=', 'x=%ED%A0%80', '%C0=1']) {
    await kv.api('PUT', path('mine'), { token: user.token, body: { value: 'v' } });
    const read = await kv.api('GET', `${path('mine')}?${query}`, { token: user.token });
    assert.deepEqual([read.status, read.body.user], [200, user.id], query);
    assert.equal((await kv.api('DELETE', `${path('mine')}?${query}`, { token: user.token })).status, 204, query);
  }
});

test('NUL and escapes that are not UTF-8 are 422 for every method', async () => {
  for (const sent of ['a%00b', '%FF', 'a%C3', '%ED%A0%80', '%C0%AF']) {
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const body = method === 'PUT' ? { value: 'v' } : undefined;
      const response = await kv.api(method, path(sent), { token: user.token, body });
      assert.deepEqual([response.status, response.body.error.fields[0].field], [422, 'key'], `${method} ${sent}`);
    }
  }
});

test('a key of 1,024 bytes is accepted; a longer or empty one is 422 to write and 404 to look up', async () => {
  const longest = 'ž'.repeat(512);
  assert.equal(
    (await kv.api('PUT', path(encodeURIComponent(longest)), { token: user.token, body: { value: 'v' } })).status,
    200,
  );
  assert.equal((await kv.api('GET', path(encodeURIComponent(longest)), { token: user.token })).body.key, longest);
  for (const sent of ['x'.repeat(1025), 'x'.repeat(5000), 'x'.repeat(9000), '']) {
    assert.equal((await kv.api('PUT', path(sent), { token: user.token, body: { value: 'v' } })).status, 422);
    assert.equal((await kv.api('GET', path(sent), { token: user.token })).status, 404);
    assert.equal((await kv.api('DELETE', path(sent), { token: user.token })).status, 404);
  }
});
