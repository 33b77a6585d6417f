import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { formatId, newUuid } from '../../../src/lib/ids.ts';
import { asDeveloper, startKv } from '../../support/kv.ts';
import type { ApiOptions } from '../../support/server.ts';

const kv = await startKv();
after(() => kv.close());
const app = await kv.provision.app();
const otherApp = await kv.provision.app();
const sandbox = await kv.provision.sandbox(app);
const user = await kv.createUser(app, 'Ada@Example.com', 'Ada Lovelace');
const stranger = await kv.createUser(otherApp);
const sandboxed = await kv.createUser(sandbox);

const asUser = { token: user.token };

const put = (key: string, value: string, caller: ApiOptions = asUser, more: object = {}) =>
  kv.api('PUT', `/api/v1/kv/${key}`, { ...caller, body: { value, ...more } });
const get = (key: string, caller: ApiOptions = asUser) => kv.api('GET', `/api/v1/kv/${key}`, caller);

test('an end user writes, reads, overwrites and deletes an entry', async () => {
  const created = await put('colour', 'red');
  assert.equal(created.status, 200);
  assert.deepEqual(Object.keys(created.body), ['user', 'key', 'value', 'created_at', 'updated_at']);
  assert.equal(created.body.user, user.id);
  assert.match(created.body.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  const overwritten = await put('colour', 'blue');
  assert.equal(overwritten.body.created_at, created.body.created_at);
  const read = await get('colour');
  assert.equal(read.status, 200);
  assert.deepEqual(read.body, overwritten.body);
  const removed = await kv.api('DELETE', '/api/v1/kv/colour', { token: user.token });
  assert.deepEqual([removed.status, removed.text], [204, '']);
  assert.equal((await get('colour')).status, 404);
  assert.equal((await kv.api('DELETE', '/api/v1/kv/colour', { token: user.token })).status, 404);
});

test('POST creates with 200, and returns 422 already_exists when the key exists', async () => {
  const body = { key: 'posted', value: 'one' };
  const first = await kv.api('POST', '/api/v1/kv', { token: user.token, body });
  assert.equal(first.status, 200);
  assert.equal(first.body.value, 'one');
  const second = await kv.api('POST', '/api/v1/kv', { token: user.token, body: { ...body, value: 'two' } });
  assert.equal(second.status, 422);
  assert.equal(second.body.error.code, 'already_exists');
  assert.equal(second.body.error.fields[0].field, 'key');
  assert.equal((await get('posted')).body.value, 'one');
});

test('developers and secret keys name the user: absent 400, malformed 422, of another app or sandbox 404', async () => {
  for (const caller of [{ key: app.secretKey }, asDeveloper(app)]) {
    const attempts = [
      (value?: unknown) =>
        kv.api('POST', '/api/v1/kv', { ...caller, body: { key: newUuid(), value: 'v', user: value } }),
      (value?: unknown) => kv.api('PUT', '/api/v1/kv/named', { ...caller, body: { value: 'v', user: value } }),
      (value?: unknown) => kv.api('GET', `/api/v1/kv/named${value === undefined ? '' : `?user=${value}`}`, caller),
      (value?: unknown) =>
        kv.api('DELETE', '/api/v1/kv/named', { ...caller, body: value === undefined ? undefined : { user: value } }),
    ];
    for (const attempt of attempts) {
      const absent = await attempt();
      assert.deepEqual([absent.status, absent.body.error.code], [400, 'user_required']);
      const malformed = await attempt('usr_nobody');
      assert.deepEqual([malformed.status, malformed.body.error.fields[0].field], [422, 'user']);
      for (const unknown of [stranger.id, sandboxed.id, formatId('user', newUuid())])
        assert.equal((await attempt(unknown)).status, 404);
      assert.ok([200, 204].includes((await attempt(user.id)).status));
    }
  }
  assert.equal(
    (await kv.api('PUT', '/api/v1/kv/named', { key: app.secretKey, body: { value: 'v', user: 7 } })).status,
    422,
  );
});

test('DELETE also accepts the user in the query, and its alias', async () => {
  await put('by-query', 'v');
  const alias = user.id.replace('usr_', 'user_');
  assert.equal((await kv.api('DELETE', `/api/v1/kv/by-query?user=${alias}`, { key: app.secretKey })).status, 204);
});

test('a sandbox and production do not see each other', async () => {
  await put('walled', 'v', { token: sandboxed.token });
  assert.equal((await kv.api('GET', `/api/v1/kv/walled?user=${sandboxed.id}`, { key: sandbox.secretKey })).status, 200);
  assert.equal(
    (await kv.api('GET', `/api/v1/kv/walled?user=${sandboxed.id}`, { ...asDeveloper({ ...app, ...sandbox }) })).status,
    200,
  );
  assert.equal((await kv.api('GET', `/api/v1/kv/walled?user=${sandboxed.id}`, { key: app.secretKey })).status, 404);
  const list = await kv.api('GET', `/api/v1/kv?user=${sandboxed.id}`, { key: app.secretKey });
  assert.deepEqual([list.body.data, list.body.total_entries], [[], 0]);
});

test('an end user acts only on their own entries, for any value of `user`', async () => {
  const other = await kv.createUser(app);
  await put('mine', 'other', { token: other.token });
  for (const named of [other.id, 'nonsense', 7, null, { a: 1 }]) {
    const written = await put('mine', 'own', asUser, { user: named });
    assert.deepEqual([written.status, written.body.user], [200, user.id]);
  }
  assert.equal((await kv.api('GET', `/api/v1/kv/mine?user=${other.id}`, { token: user.token })).body.value, 'own');
  assert.equal((await kv.api('GET', '/api/v1/kv/mine?user=a&user=b', { token: user.token })).status, 200);
  assert.equal((await kv.api('DELETE', `/api/v1/kv/mine?user=${other.id}`, { token: user.token })).status, 204);
  assert.equal((await get('mine', { token: other.token })).body.value, 'other');
});

test('without a credential, and with only a publishable key, everything is 401', async () => {
  const calls = [
    ['GET', '/api/v1/kv'],
    ['POST', '/api/v1/kv'],
    ['GET', '/api/v1/kv/a'],
    ['PUT', '/api/v1/kv/a'],
    ['DELETE', '/api/v1/kv/a'],
  ] as const;
  for (const [method, path] of calls)
    for (const caller of [{}, { key: app.publishableKey }])
      assert.equal((await kv.api(method, path, caller)).status, 401);
});

test('bodies are strict: missing, empty, wrong and unknown members are 422 on their name', async () => {
  const expectations: [string, string, unknown, string][] = [
    ['POST', '/api/v1/kv', {}, 'key'],
    ['POST', '/api/v1/kv', { key: '', value: 'v' }, 'key'],
    ['POST', '/api/v1/kv', { key: 'a', value: '' }, 'value'],
    ['POST', '/api/v1/kv', { key: 'a', value: 7 }, 'value'],
    ['POST', '/api/v1/kv', { key: 'a', value: null }, 'value'],
    ['POST', '/api/v1/kv', { key: 'a\u0000', value: 'v' }, 'key'],
    ['POST', '/api/v1/kv', { key: 'a', value: '\u0000' }, 'value'],
    ['POST', '/api/v1/kv', { key: 'a', value: '\ud800' }, 'value'],
    ['POST', '/api/v1/kv', { key: 'a', value: 'v', colour: 'red' }, 'colour'],
    ['POST', '/api/v1/kv', { key: 'ž'.repeat(513), value: 'v' }, 'key'],
    ['PUT', '/api/v1/kv/a', { key: 'a', value: 'v' }, 'key'],
    ['PUT', '/api/v1/kv/a', {}, 'value'],
    ['PUT', '/api/v1/kv/a', undefined, 'body'],
    ['PUT', '/api/v1/kv/a', { value: 'x'.repeat(1024 * 1024 + 1) }, 'value'],
    ['DELETE', '/api/v1/kv/a', { users: 'x' }, 'users'],
  ];
  for (const [method, path, body, field] of expectations) {
    const response = await kv.api(method, path, { token: user.token, body });
    assert.equal(response.status, 422, `${method} ${JSON.stringify(body)?.slice(0, 60)}: ${response.text}`);
    assert.equal(response.body.error.fields[0].field, field);
  }
  assert.equal((await put('longest', 'x'.repeat(1024 * 1024))).status, 200);
});

test('every other method on a key is 405', async () => {
  const response = await kv.api('PATCH', '/api/v1/kv/a/b', { token: user.token, body: {} });
  assert.deepEqual([response.status, response.headers.get('allow')], [405, 'DELETE, GET, HEAD, PUT']);
});

test('deleting a user deletes their entries', async () => {
  const leaving = await kv.createUser(app);
  await put('left', 'v', { token: leaving.token });
  const before = (await kv.api('GET', '/api/v1/kv', { key: app.secretKey })).body.total_entries;
  await kv.db`delete from users where id = ${leaving.uuid}`;
  assert.equal((await kv.api('GET', '/api/v1/kv', { key: app.secretKey })).body.total_entries, before - 1);
  assert.equal(
    (await kv.api('PUT', '/api/v1/kv/left', { key: app.secretKey, body: { value: 'v', user: leaving.id } })).status,
    404,
  );
});
