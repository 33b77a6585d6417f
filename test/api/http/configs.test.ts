import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type ErrorBody, startTestServer } from '../../support/server.ts';

const server = await startTestServer();
after(() => server.close());
const app = await server.provision.app();
const org = await server.provision.org(app);
const user = await server.provision.user(app, { org });

type Entry = {
  virtual_path: string;
  content: string;
  content_type: string;
  version: number;
  file: string;
  org?: string;
};

const call = <T = Entry>(method: string, path: string, body?: unknown, key = app.secretKey) =>
  server.api<T>(method, `/api/v1/config/${path}`, { key, ...(body === undefined ? {} : { body }) });

test('a config entry is written, read and listed; each change is a version', async () => {
  const first = await call('PUT', 'prompts/support.md', { content: 'Be brief. ✓\n', content_type: 'text/markdown' });
  assert.equal(first.status, 200);
  assert.equal(first.body.version, 1);
  const same = await call('PUT', 'prompts/support.md', { content: 'Be brief. ✓\n', content_type: 'text/markdown' });
  assert.equal(same.body.version, 1, 'the same text is not a new version');
  const second = await call('PUT', 'prompts/support.md', { content: '' });
  assert.deepEqual([second.body.version, second.body.content_type], [2, 'text/plain']);
  assert.equal((await call('GET', 'prompts/support.md')).body.content, '');
  assert.equal((await call('GET', 'prompts/support.md?version=1')).body.content, 'Be brief. ✓\n');
  const list = await server.api<{ data: Entry[] }>('GET', '/api/v1/config?prefix=prompts/', { key: app.secretKey });
  assert.deepEqual(
    list.body.data.map(({ virtual_path: path, version }) => [path, version]),
    [['prompts/support.md', 2]],
  );
});

test('a write with if_version succeeds for one of several writers', async () => {
  const write = (version: number, content: string) =>
    call<Entry & ErrorBody>('PUT', 'count.txt', { content, if_version: version });
  const missing = await write(1, 'a');
  assert.deepEqual([missing.status, missing.body.error.code], [412, 'precondition_failed']);
  assert.equal((await call('GET', 'count.txt')).status, 404);
  for (const version of [0, 1, 2]) {
    const writers = ['a', 'b', 'c', 'd'].map((content) => write(version, `${content}${version}`));
    const statuses = (await Promise.all(writers)).map(({ status }) => status);
    assert.deepEqual(statuses.sort(), [200, 412, 412, 412]);
    assert.equal((await call('GET', 'count.txt')).body.version, version + 1);
  }
  const { content } = (await call('GET', 'count.txt')).body;
  assert.equal((await write(2, content)).status, 412, 'also for the same text');
  assert.equal((await write(3, content)).status, 200);
});

test('an entry of an organisation is read by its members', async () => {
  await call('PUT', 'shared.md', { content: 'For all.', org: org.id });
  const path = `/api/v1/config/shared.md?org=${org.id}`;
  const read = await server.api<Entry>('GET', path, { token: user.token });
  assert.deepEqual([read.body.content, read.body.org], ['For all.', org.id]);
  assert.equal((await call('GET', 'shared.md')).status, 404, 'the path of the app is another one');
});

test('deleting an entry deletes its versions and their files', async () => {
  const { body } = await call('PUT', 'old.txt', { content: 'one' });
  await call('PUT', 'old.txt', { content: 'two' });
  assert.equal((await call('DELETE', 'old.txt', undefined)).status, 204);
  assert.equal((await call('GET', 'old.txt')).status, 404);
  assert.equal((await call('DELETE', 'old.txt')).status, 404);
  assert.equal((await server.api('GET', `/api/v1/files/${body.file}`, { key: app.secretKey })).status, 404);
  assert.equal((await call('PUT', 'old.txt', { content: 'three' })).body.version, 1);
});

test('bad paths and texts are refused with their member', async () => {
  const long = '✓'.repeat(100_000);
  for (const [path, body, field] of [
    ['a//b', { content: '' }, 'path'],
    ['a/', { content: '' }, 'path'],
    ['x'.repeat(1_001), { content: '' }, 'path'],
    ['a', { content: long }, 'content'],
    ['a', {}, 'content'],
    ['a', { content: '', content_type: 'nothing' }, 'content_type'],
    ['a', { content: '', org: user.id }, 'org'],
  ] as const) {
    const refused = await call<ErrorBody>('PUT', path, body);
    assert.equal(refused.status, 422, `${path} ${refused.text.slice(0, 200)}`);
    assert.equal(refused.body.error.fields[0]?.field, field, path);
  }
});

test('another app has its own paths, and a user writes none', async () => {
  await call('PUT', 'mine.md', { content: 'A' });
  const other = await server.provision.app();
  assert.equal((await call('GET', 'mine.md', undefined, other.secretKey)).status, 404);
  assert.equal((await call('DELETE', 'mine.md', undefined, other.secretKey)).status, 404);
  const path = '/api/v1/config/mine.md';
  assert.equal((await server.api('PUT', path, { token: user.token, body: { content: 'B' } })).status, 403);
  assert.equal((await server.api('DELETE', path, { token: user.token })).status, 403);
  assert.equal((await call('GET', 'mine.md')).body.content, 'A');
});
