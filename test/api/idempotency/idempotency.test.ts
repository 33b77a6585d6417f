import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { after, test } from 'node:test';
import OpenAI, { toFile } from 'openai';
import { sweepIdempotency } from '../../../src/idempotency/sweep.ts';
import { pathsOfKinds } from '../../../src/idempotency/visible.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { type ApiOptions, type ErrorBody, startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

const clock = new ManualClock();
const server = await startTestServer({ clock });
const { api, provision, db } = server;
after(() => server.close());
const app = await provision.app();
const keyed = (key: string, options: ApiOptions = {}): ApiOptions => ({
  key: app.secretKey,
  ...options,
  headers: { 'idempotency-key': key, ...options.headers },
});
type Made = { id: string } & ErrorBody;
const dayMs = 24 * 60 * 60 * 1_000;

/** In this database only: in those of other tests the table has the same number. */
async function countWaitingForTeams(): Promise<number> {
  const waiting = await db`
    select 1 from pg_locks where relation = 'teams'::regclass and not granted
      and database = (select oid from pg_database where datname = current_database())`;
  return waiting.length;
}

test('the same key and body return the first response, and the request takes effect once', async () => {
  const first = await api<Made>('POST', '/api/v1/teams', keyed('team-1', { body: { name: 'One' } }));
  const again = await api<Made>('POST', '/api/v1/teams', keyed('team-1', { body: { name: 'One' } }));
  assert.deepEqual([first.status, again.status, again.text], [201, 201, first.text]);
  assert.deepEqual(
    [first.headers.get('idempotency-replayed'), again.headers.get('idempotency-replayed')],
    [null, 'true'],
  );
  assert.equal(again.headers.get('content-type'), first.headers.get('content-type'));
  const [count] = await db`select count(*) from teams where app_id = ${app.app.uuid} and name = 'One'`;
  assert.equal(count?.count, 1);
});

test('the order of members does not matter; another body is 422 and changes nothing', async () => {
  const body = { name: 'Two', description: 'Text' };
  const first = await api<Made>('POST', '/api/v1/teams', keyed('team-2', { body }));
  const turned = { description: 'Text', name: 'Two' };
  assert.equal((await api<Made>('POST', '/api/v1/teams', keyed('team-2', { body: turned }))).body.id, first.body.id);
  const other = await api<Made>('POST', '/api/v1/teams', keyed('team-2', { body: { name: 'Other' } }));
  assert.deepEqual([other.status, other.body.error.code], [422, 'idempotency_key_reused']);
  assert.deepEqual(other.body.error.fields[0]?.field, 'idempotency-key');
  assert.equal((await db`select 1 from teams where app_id = ${app.app.uuid} and name = 'Other'`).length, 0);
});

test('large bodies that differ only in a long string are different, and equal ones are the same', async () => {
  const upload = (data: string, key = 'long-1') =>
    api<Made>('POST', '/api/v1/files', keyed(key, { body: { filename: 'a', content_type: 'text/plain', data } }));
  const data = 'QUFB'.repeat(50_000);
  const first = await upload(data);
  assert.equal(first.status, 201, first.text);
  assert.equal((await upload(data)).body.id, first.body.id);
  for (const other of [`${data.slice(0, -4)}QUFC`, `${data}QUFB`, '']) {
    const refused = await upload(other);
    assert.deepEqual([refused.status, refused.body.error.code], [422, 'idempotency_key_reused']);
  }
});

test('a refusal is also stored, except one before the operation begins', async () => {
  const org = await provision.org(app);
  const body = { name: 'Twin', slug: 'twin' };
  await api('POST', '/api/v1/orgs', { key: app.secretKey, body });
  const refused = await api<Made>('POST', '/api/v1/orgs', keyed('org-1', { body }));
  assert.equal(refused.status, 422);
  await db`delete from orgs where app_id = ${app.app.uuid} and slug = 'twin'`;
  const again = await api('POST', '/api/v1/orgs', keyed('org-1', { body }));
  assert.deepEqual([again.status, again.text], [422, refused.text]);
  const invalid = await api('POST', '/api/v1/teams', keyed('team-3', { body: { nam: 'x', org: org.id } }));
  assert.equal(invalid.status, 422);
  assert.equal((await api('POST', '/api/v1/teams', keyed('team-3', { body: { name: 'x' } }))).status, 201);
});

test('a key belongs to app, sandbox, caller, method and path', async () => {
  const body = { name: 'Mine' };
  const sandbox = await provision.sandbox(app);
  const other = await provision.app();
  const user = await provision.user(app, { org: await provision.org(app), role: 'admin' });
  const ids = new Set<string>();
  const callers: ApiOptions[] = [
    { key: app.secretKey },
    { key: sandbox.secretKey },
    { key: other.secretKey },
    { token: user.token },
    { token: app.developerToken, headers: { 'x-app': app.app.id } },
  ];
  for (const caller of callers) {
    const headers = { 'idempotency-key': 'shared', ...caller.headers };
    ids.add((await api<Made>('POST', '/api/v1/teams', { ...caller, headers, body })).body.id);
  }
  const path = `/protected/api/v1/developer/apps/${app.app.id}/teams`;
  const headers = { 'idempotency-key': 'shared' };
  for (let i = 0; i < 2; i++)
    ids.add((await api<Made>('POST', path, { token: app.developerToken, headers, body })).body.id);
  assert.equal(ids.size, 6);
  const created = await api<Made>('POST', '/protected/api/v1/developer/apps', {
    token: app.developerToken,
    headers,
    body,
  });
  const twice = await api<Made>('POST', '/protected/api/v1/developer/apps', {
    token: app.developerToken,
    headers,
    body,
  });
  assert.deepEqual([created.status, twice.status, twice.body.id], [201, 201, created.body.id]);
});

test('a request is 409 while the first one is in progress', async () => {
  const body = { name: 'Slow' };
  const lock = await db.reserve();
  await lock.runScript('begin; lock table teams in share mode');
  const first = api<Made>('POST', '/api/v1/teams', keyed('slow', { body }));
  await until(async () => (await countWaitingForTeams()) > 0);
  const early = await api<Made>('POST', '/api/v1/teams', keyed('slow', { body }));
  assert.deepEqual([early.status, early.body.error.code], [409, 'request_in_progress']);
  assert.equal(early.headers.get('retry-after'), '1');
  await lock.runScript('commit');
  lock.release();
  assert.equal((await first).status, 201);
  assert.equal((await api<Made>('POST', '/api/v1/teams', keyed('slow', { body }))).body.id, (await first).body.id);
});

test('a claim that is not renewed for 30 s passes to the next request, and the first one changes nothing', async (t) => {
  const body = { name: 'Paused' };
  // As in a process that stands still: no claim is renewed, however long this test takes.
  t.mock.timers.enable({ apis: ['setInterval'] });
  const lock = await db.reserve();
  await lock.runScript('begin; lock table teams in share mode');
  const first = api<Made>('POST', '/api/v1/teams', keyed('paused', { body }));
  await until(async () => (await countWaitingForTeams()) > 0);
  clock.advance(31_000);
  const second = api<Made>('POST', '/api/v1/teams', keyed('paused', { body }));
  await until(async () => (await countWaitingForTeams()) >= 2);
  await lock.runScript('commit');
  lock.release();
  assert.deepEqual([(await first).status, (await second).status], [409, 201]);
  const rows = await db`select id from teams where app_id = ${app.app.uuid} and name = 'Paused'`;
  assert.equal(rows.length, 1);
});

test('a replay is 404 once its resource is hidden from the caller or deleted', async () => {
  const org = await provision.org(app);
  const user = await provision.user(app, { org, role: 'admin' });
  const options = { token: user.token, headers: { 'idempotency-key': 'org-source' } };
  const body = { type: 'knowledge/documents', org: org.id };
  const created = await api<Made>('POST', '/api/v1/knowledge_sources', { ...options, body });
  assert.equal(created.status, 201);
  const path = `/api/v1/knowledge_sources/${created.body.id}/ingest`;
  const push = { ...options, body: { content: { data: 'Text' } } };
  const ingested = await api<Made>('POST', path, push);
  assert.equal((await api<Made>('POST', path, push)).text, ingested.text);
  await api('PATCH', `/api/v1/users/${user.id}`, { key: app.secretKey, body: { org: null } });
  for (const hidden of [
    await api<Made>('POST', '/api/v1/knowledge_sources', { ...options, body }),
    await api<Made>('POST', path, push),
  ])
    assert.deepEqual([hidden.status, hidden.body.error.code], [404, 'not_found']);

  const team = await api<Made>('POST', '/api/v1/teams', keyed('gone', { body: { name: 'Gone' } }));
  await api('DELETE', `/api/v1/teams/${team.body.id}`, { key: app.secretKey });
  assert.equal((await api('POST', '/api/v1/teams', keyed('gone', { body: { name: 'Gone' } }))).status, 404);
});

test('a replay does not return an entry that was deleted', async () => {
  const user = await provision.user(app);
  for (const [path, key, more] of [
    ['/api/v1/kv', 'notes/a b?#%', { value: 'private' }],
    ['/api/v1/kv', '..', { value: 'private' }],
    ['/api/v1/kv_increment', 'visits', {}],
  ] as const) {
    const again = () => api<Made>('POST', path, keyed(`entry ${key}`, { body: { key, user: user.id, ...more } }));
    assert.equal((await again()).status, 200);
    assert.equal((await again()).headers.get('idempotency-replayed'), 'true');
    const operations = [{ op: 'delete', key }];
    await api('POST', '/api/v1/kv_batch', { key: app.secretKey, body: { user: user.id, operations } });
    assert.equal((await again()).status, 404, key);
  }
});

test('every kind whose visibility is checked has an operation that reads it', () => {
  const reads = new Set(server.server.api.routes.flatMap(({ method, path }) => (method === 'GET' ? [path] : [])));
  for (const path of Object.values(pathsOfKinds))
    assert.ok(
      [...reads].some((read) => read.startsWith(`${path}:`) && !read.slice(path.length).includes('/')),
      path,
    );
});

test('if the response would contain a credential, the header is 422 and nothing happens', async () => {
  const user = await provision.user(app);
  const agent = await provision.agent(app);
  const before = await db`select 1 from api_keys where app_id = ${app.app.uuid}`;
  const cases: [string, unknown, ApiOptions?][] = [
    ['/api/v1/keys', { type: 'secret' }],
    ['/api/v1/auth/login', { email: 'a@b.test', password: 'password' }],
    ['/api/v1/auth/refresh', { refresh_token: 'rt_x' }],
    ['/api/v1/auth/logout', { refresh_token: 'rt_x' }],
    [`/api/v1/users/${user.id}/tokens`, {}],
    ['/api/v1/files/upload_urls', { filename: 'a.txt', content_type: 'text/plain' }],
    ['/api/v1/installations', { agent: agent.id, kind: 'webhook/inbound' }],
    ['/console/session', { developer_token: app.developerToken }],
  ];
  for (const [path, body] of cases) {
    const refused = await api<ErrorBody>('POST', path, keyed('credential', { body }));
    assert.deepEqual([path, refused.status, refused.body.error.fields[0]?.field], [path, 422, 'idempotency-key']);
  }
  assert.equal((await db`select 1 from api_keys where app_id = ${app.app.uuid}`).length, before.length);
  const messages = { agent: agent.id, kind: 'thread/messages' };
  assert.equal((await api('POST', '/api/v1/installations', keyed('credential', { body: messages }))).status, 201);
});

test('no operation stores a response with a credential in it', async () => {
  const rows = await db<{ body: Buffer }[]>`select body from idempotency_records where body is not null`;
  assert.ok(rows.length > 0);
  for (const { body } of rows) assert.throws(() => JSON.parse(body.toString()), SyntaxError);
});

test('an upload of raw bytes is repeated by the digest of its body', async () => {
  const bytes = randomBytes(300_000);
  const headers = { 'content-type': 'application/octet-stream', 'x-filename': 'a.bin' };
  const send = (body: Buffer, more: Record<string, string> = {}) =>
    api<Made>('POST', '/api/v1/files/uploads', keyed('upload', { body, headers: { ...headers, ...more } }));
  const first = await send(bytes);
  const again = await send(bytes);
  assert.deepEqual([first.status, again.status, again.text], [201, 201, first.text]);
  for (const other of [await send(randomBytes(300_000)), await send(bytes, { 'x-filename': 'b.bin' })])
    assert.deepEqual([other.status, other.body.error.code], [422, 'idempotency_key_reused']);
  const [files] = await db`select count(*) from files where app_id = ${app.app.uuid} and filename = 'a.bin'`;
  assert.equal(files?.count, 1);
  const base64 = { filename: 'c.bin', content_type: 'text/plain', data: Buffer.from('text').toString('base64') };
  const one = await api<Made>('POST', '/api/v1/files', keyed('base64', { body: base64 }));
  assert.equal((await api<Made>('POST', '/api/v1/files', keyed('base64', { body: base64 }))).body.id, one.body.id);
});

test('an interrupted upload leaves its key free', async () => {
  const head = `POST /api/v1/files/uploads HTTP/1.1\r\nHost: quarry\r\nx-api-key: ${app.secretKey}\r\nidempotency-key: cut\r\ncontent-type: text/plain\r\nx-filename: cut.txt\r\ncontent-length: 100\r\n\r\npart`;
  const socket = connect(Number(new URL(server.baseUrl).port), '127.0.0.1');
  socket.write(head);
  const claimed = () => db`select 1 from idempotency_records where status is null`;
  await until(async () => (await claimed()).length > 0);
  socket.destroy();
  await until(async () => (await claimed()).length === 0);
  const headers = { 'content-type': 'text/plain', 'x-filename': 'cut.txt' };
  assert.equal((await api('POST', '/api/v1/files/uploads', keyed('cut', { body: 'whole', headers }))).status, 201);
});

test('invoke: the header and idempotency_key of the body must be equal', async () => {
  const body = { name: 'Invoked', type: 'invoked' };
  const automation = await api<Made>('POST', '/api/v1/automations', { key: app.secretKey, body });
  assert.equal(automation.status, 201, automation.text);
  await api('POST', `/api/v1/automations/${automation.body.id}/activate`, { key: app.secretKey });
  const path = `/api/v1/automations/${automation.body.id}/invoke`;
  const differ = await api<Made>('POST', path, keyed('a', { body: { idempotency_key: 'b' } }));
  assert.deepEqual([differ.status, differ.body.error.fields[0]?.field], [422, 'idempotency_key']);
  const first = await api<Made>('POST', path, keyed('a', { body: { idempotency_key: 'a', payload: { n: 1 } } }));
  assert.equal(first.status, 200, first.text);
  const again = await api<Made>('POST', path, keyed('a', { body: { idempotency_key: 'a', payload: { n: 1 } } }));
  assert.equal(again.body.id, first.body.id);
  const alone = await api<Made>('POST', path, keyed('only-header', { body: {} }));
  assert.equal((await api<Made>('POST', path, keyed('only-header', { body: {} }))).body.id, alone.body.id);
});

test('a posted inbound body becomes one document, after any number of attempts', async () => {
  const agent = await provision.agent(app);
  const body = { agent: agent.id, kind: 'webhook/inbound' };
  const installed = await api<{ inbound_url: string }>('POST', '/api/v1/installations', { key: app.secretKey, body });
  const path = new URL(installed.body.inbound_url).pathname;
  const headers = { 'idempotency-key': 'delivery-1', 'content-type': 'text/plain' };
  const first = await api('POST', path, { body: 'Hello', headers });
  const again = await api('POST', path, { body: 'Hello', headers });
  assert.deepEqual([first.status, again.status, again.text], [202, 202, first.text]);
  assert.equal(
    (await api<ErrorBody>('POST', path, { body: 'Other', headers })).body.error.code,
    'idempotency_key_reused',
  );
});

test('after 24 hours a key is free, and the sweep deletes its record', async () => {
  const first = await api<Made>('POST', '/api/v1/teams', keyed('day', { body: { name: 'Day' } }));
  clock.advance(dayMs - 1_000);
  const last = await api<Made>('POST', '/api/v1/teams', keyed('day', { body: { name: 'Day' } }));
  assert.equal(last.body.id, first.body.id);
  clock.advance(2_000);
  const next = await api<Made>('POST', '/api/v1/teams', keyed('day', { body: { name: 'Next day' } }));
  assert.equal(next.status, 201);
  clock.advance(dayMs + 1_000);
  await sweepIdempotency({ db, clock });
  assert.equal((await db`select 1 from idempotency_records`).length, 0);
  const usage = await db`select sum(records) as records, sum(bytes) as bytes from idempotency_usage`;
  assert.deepEqual([Number(usage[0]?.records), Number(usage[0]?.bytes)], [0, 0]);
});

test('a failure of the server is not stored: the same key may be used again', async () => {
  await db`alter table teams add constraint broken check (name <> 'Broken')`;
  const body = { name: 'Broken' };
  const failed = await api<Made>('POST', '/api/v1/teams', keyed('broken', { body }));
  assert.equal(failed.status, 500);
  await db`alter table teams drop constraint broken`;
  assert.equal((await api('POST', '/api/v1/teams', keyed('broken', { body }))).status, 201);
});

test('a form is compared by its parts: another boundary is the same form, and any other part is another one', async () => {
  type Part = { name: string; value: string; filename?: string; type?: string };
  const file = { name: 'file', value: 'Text.', filename: 'a.md', type: 'text/markdown' };
  const purpose = { name: 'purpose', value: 'assistants' };
  let boundaries = 0;
  const send = (key: string, parts: Part[]) => {
    boundaries += 1;
    const boundary = `boundary-${boundaries}`;
    const texts = parts.map(({ name, value, filename, type }) => {
      const named = filename === undefined ? '' : `; filename="${filename}"`;
      const typed = type === undefined ? '' : `content-type: ${type}\r\n`;
      return `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${named}\r\n${typed}\r\n${value}\r\n`;
    });
    const headers = { 'content-type': `multipart/form-data; boundary=${boundary}` };
    const body = Buffer.from(`${texts.join('')}--${boundary}--\r\n`);
    return api<{ id: string; error: { code: string } }>('POST', '/v1/files', keyed(key, { body, headers }));
  };
  const first = await send('form', [purpose, file]);
  assert.equal(first.status, 200, first.text);
  const again = await send('form', [purpose, file]);
  assert.deepEqual([again.status, again.body.id], [200, first.body.id], again.text);
  assert.equal(again.headers.get('idempotency-replayed'), 'true');
  for (const parts of [
    [file, purpose],
    [purpose, { ...file, value: 'Text!' }],
    [purpose, { ...file, filename: 'b.md' }],
    [purpose, { ...file, type: 'text/plain' }],
    [{ ...purpose, value: 'vision' }, file],
    [purpose],
    [file],
  ]) {
    const other = await send('form', parts);
    assert.deepEqual([other.status, other.body.error?.code], [422, 'idempotency_key_reused'], JSON.stringify(parts));
  }
  const large = { ...file, value: 'x'.repeat(3_000_000) };
  const stored = await send('large', [purpose, large]);
  assert.equal((await send('large', [purpose, large])).body.id, stored.body.id);
  // A form that is refused as a whole is refused again, with the first response.
  const [refused, repeated] = [await send('none', [purpose]), await send('none', [purpose])];
  assert.deepEqual([refused.status, repeated.status, repeated.text], [400, 400, refused.text]);
  // One of which only the beginning is known leaves its key free.
  assert.equal((await send('cut', [{ ...file, name: 'files' }, purpose])).status, 400);
  assert.equal((await send('cut', [purpose, file])).status, 200);
});

test('the official OpenAI client can repeat an upload', async () => {
  const client = new OpenAI({ apiKey: app.secretKey, baseURL: `${server.baseUrl}/v1`, maxRetries: 0 });
  const upload = async () =>
    client.files.create(
      { file: await toFile(Buffer.from('Text.'), 'a.md', { type: 'text/markdown' }), purpose: 'assistants' },
      { headers: { 'Idempotency-Key': 'official' } },
    );
  assert.equal((await upload()).id, (await upload()).id);
});

test('an invalid key is 422', async () => {
  for (const key of ['x'.repeat(256), 'tab\there']) {
    const refused = await api<ErrorBody>('POST', '/api/v1/teams', keyed(key, { body: { name: 'x' } }));
    assert.deepEqual([refused.status, refused.body.error.fields[0]?.field], [422, 'idempotency-key']);
  }
});

test('an app has a bounded number of records, and others still have theirs', async () => {
  const small = await startTestServer({ env: { QUARRY_IDEMPOTENCY_RECORDS_MAX: '3' } });
  try {
    const one = await small.provision.app();
    const send = (key: string, name: string) =>
      small.api<Made>('POST', '/api/v1/teams', { key, body: { name }, headers: { 'idempotency-key': name } });
    for (const name of ['a', 'b', 'c']) assert.equal((await send(one.secretKey, name)).status, 201);
    const refused = await send(one.secretKey, 'd');
    assert.deepEqual([refused.status, refused.body.error.code], [422, 'quota_exceeded']);
    assert.equal((await send(one.secretKey, 'a')).status, 201);
    assert.equal((await send((await small.provision.app()).secretKey, 'a')).status, 201);
    assert.equal((await small.api('POST', '/api/v1/teams', { key: one.secretKey, body: { name: 'd' } })).status, 201);
  } finally {
    await small.close();
  }
});

test('the responses stored for an app are bounded in bytes; a request whose response does not fit has no effect', async () => {
  const small = await startTestServer({ env: { QUARRY_IDEMPOTENCY_MB: '1' } });
  try {
    const one = await small.provision.app();
    const metadata = { text: 'x'.repeat(200_000) };
    const send = (key: string, name: string) =>
      small.api<Made>('POST', '/api/v1/teams', { key, body: { name, metadata }, headers: { 'idempotency-key': name } });
    const names = ['a', 'b', 'c', 'd', 'e'];
    for (const name of names) {
      const made = await send(one.secretKey, name);
      assert.equal(made.status, 201, made.text);
    }
    const refused = await send(one.secretKey, 'f');
    assert.deepEqual([refused.status, refused.body.error.code], [422, 'quota_exceeded']);
    const [kept] = await small.db`select sum(bytes) as bytes from idempotency_usage`;
    assert.ok(Number(kept?.bytes) <= 1024 * 1024);
    const teams = await small.db<
      { name: string }[]
    >`select name from teams where app_id = ${one.app.uuid} order by name`;
    assert.deepEqual(
      teams.map(({ name }) => name),
      names,
    );
    assert.equal((await send(one.secretKey, 'a')).headers.get('idempotency-replayed'), 'true');
    assert.equal((await send((await small.provision.app()).secretKey, 'f')).status, 201);
  } finally {
    await small.close();
  }
});
