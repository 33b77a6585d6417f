import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startKv } from '../../support/kv.ts';

const kv = await startKv();
after(() => kv.close());
const app = await kv.provision.app();
const user = await kv.createUser(app);

const put = (key: string, value: string, headers = {}) =>
  kv.api('PUT', `/api/v1/kv/${key}`, { token: user.token, headers, body: { value } });
const get = (key: string) => kv.api('GET', `/api/v1/kv/${key}`, { token: user.token });
const remove = (key: string, headers = {}) => kv.api('DELETE', `/api/v1/kv/${key}`, { token: user.token, headers });

test('GET and PUT carry a strong ETag that changes with every write, even of the same value', async () => {
  const first = await put('tagged', 'v');
  assert.match(String(first.headers.get('etag')), /^"[\w.-]+"$/);
  assert.equal((await get('tagged')).headers.get('etag'), first.headers.get('etag'));
  const second = await put('tagged', 'v');
  assert.notEqual(second.headers.get('etag'), first.headers.get('etag'));
  await remove('tagged');
  const again = await put('tagged', 'v');
  assert.notEqual(again.headers.get('etag'), first.headers.get('etag'));
});

test('If-Match writes only over the state that it names', async () => {
  const tag = String((await put('matched', 'one')).headers.get('etag'));
  const failed = await put('matched', 'x', { 'if-match': '"other"' });
  assert.deepEqual([failed.status, failed.body.error.code], [412, 'precondition_failed']);
  assert.equal((await put('matched', 'x', { 'if-match': `W/${tag}` })).status, 412);
  const written = await put('matched', 'two', { 'if-match': `"other", ${tag}` });
  assert.equal(written.status, 200);
  assert.equal((await put('matched', 'three', { 'if-match': tag })).status, 412);
  assert.equal((await put('matched', 'four', { 'if-match': '*' })).status, 200);
  assert.equal((await put('absent', 'x', { 'if-match': '*' })).status, 412);
  assert.equal((await get('matched')).body.value, 'four');
});

test('If-None-Match: * writes only if there is no entry', async () => {
  assert.equal((await put('fresh', 'one', { 'if-none-match': '*' })).status, 200);
  assert.equal((await put('fresh', 'two', { 'if-none-match': '*' })).status, 412);
  assert.equal((await get('fresh')).body.value, 'one');
});

test('of many concurrent conditional writes exactly one wins', async () => {
  const created = await Promise.all(
    Array.from({ length: 12 }, (_, i) => put('contested', `${i}`, { 'if-none-match': '*' })),
  );
  assert.deepEqual(created.map((response) => response.status).sort(), [200, ...Array<number>(11).fill(412)]);
  const tag = String((await get('contested')).headers.get('etag'));
  const changed = await Promise.all(
    Array.from({ length: 12 }, (_, i) => put('contested', `${i}`, { 'if-match': tag })),
  );
  assert.deepEqual(changed.map((response) => response.status).sort(), [200, ...Array<number>(11).fill(412)]);
});

test('DELETE keeps an entry that is not in the required state; a missing one stays 404', async () => {
  const tag = String((await put('doomed', 'one')).headers.get('etag'));
  assert.equal((await remove('doomed', { 'if-match': '"other"' })).status, 412);
  assert.equal((await remove('doomed', { 'if-none-match': '*' })).status, 412);
  assert.equal((await remove('doomed', { 'if-match': tag })).status, 204);
  assert.equal((await remove('doomed', { 'if-match': tag })).status, 404);
});

test('empty elements of a list are ignored', async () => {
  const tag = String((await put('listed', 'one')).headers.get('etag'));
  for (const list of [`, ${tag}`, `,, "other", ,${tag},`, `"a,b",,${tag} ,`])
    assert.equal((await put('listed', 'two', { 'if-none-match': list })).status, 412, list);
  assert.equal((await put('listed', 'two', { 'if-match': `,${tag},` })).status, 200);
});

test('a header that is not an entity tag is 422', async () => {
  for (const header of ['bare', ',', '"a" "b"', '"a', '*,"a"', `${','.repeat(5_000)}x`])
    assert.equal((await put('odd', 'v', { 'if-match': header })).status, 422, header.slice(0, 20));
});
