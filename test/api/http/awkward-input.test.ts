import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sendRaw } from '../../support/raw-request.ts';
import { type ApiOptions, type ErrorBody, startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

const server = await startTestServer();
after(() => server.close());
const { api, baseUrl, provision } = server;
const app = await provision.app();
const user = await provision.user(app);
const key = app.secretKey;
const { host } = new URL(baseUrl);

async function refused(field: string, method: string, path: string, options: ApiOptions): Promise<void> {
  const answer = await api<ErrorBody>(method, path, { key, ...options });
  assert.equal(answer.status, 422, `${method} ${path}: ${answer.text}`);
  assert.equal(answer.body.error.fields[0]?.field, field, answer.text);
}

test('every spelling of the path that the router accepts writes the same key', async () => {
  const write = (target: string, value: string) =>
    sendRaw(
      baseUrl,
      `PUT ${target} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${user.token}\r\nConnection: close\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${JSON.stringify({ value }).length}\r\n\r\n${JSON.stringify({ value })}`,
    );
  const spellings = [
    `http://${host}/api/v1/kv/`,
    `HTTP://elsewhere.example.test:80/api/v1/kv/`,
    '/api/v1/%6bv/',
    '/api/v1/k%76/',
    '/%61pi/%76%31/%6B%76/',
    `http://${host}/api/v1/%6Bv/`,
  ];
  for (const [index, prefix] of spellings.entries()) {
    const response = await write(`${prefix}spelled/%2525/${index}?x=1`, `value ${index}`);
    assert.match(response, /^HTTP\/1\.1 200 /, `${prefix}: ${response}`);
    assert.match(response, new RegExp(`"key":"spelled/%25/${index}"`), prefix);
    const read = await api<{ value: string }>('GET', `/api/v1/kv/spelled/%2525/${index}`, { token: user.token });
    assert.equal(read.body.value, `value ${index}`, prefix);
  }
  for (const elsewhere of ['/api%2Fv1/kv/a', '/api/v1%2Fkv/a', '/API/v1/kv/a', '//api/v1/kv/a', '/api/v1//kv/a']) {
    const response = await write(elsewhere, 'nowhere');
    assert.match(response, /^HTTP\/1\.1 404 /, `${elsewhere}: ${response}`);
  }
});

test('a segment of a path is decoded once', async () => {
  const made = await api<{ id: string }>('PUT', '/api/v1/secrets/A_B', { key, body: { value: 'x' } });
  assert.equal(made.status, 200, made.text);
  assert.equal((await api('DELETE', '/api/v1/secrets/A%255FB', { key })).status, 404, 'A%5FB is another name');
  assert.equal((await api('DELETE', '/api/v1/secrets/A%5FB', { key })).status, 204);
});

test('a path segment that is longer than any id is 404, and as a key 422 on PUT and 404 otherwise', async () => {
  for (const length of [8_192, 8_193, 12_000, 30_000]) {
    const long = 'x'.repeat(length);
    for (const path of [`/api/v1/orgs/${long}`, `/api/v1/agents/${long}`, `/api/v1/config/${long}`, `/${long}`])
      assert.equal((await api('GET', path, { key })).status, 404, `${path.slice(0, 20)} ${length}`);
    await refused('key', 'PUT', `/api/v1/kv/${long}`, { body: { value: 'x', user: user.id } });
    for (const method of ['GET', 'DELETE'])
      assert.equal(
        (await api(method, `/api/v1/kv/${long}?user=${user.id}`, { key })).status,
        404,
        `${method} ${length}`,
      );
  }
  const endless = await sendRaw(baseUrl, `GET /api/v1/orgs/${'x'.repeat(100_000)} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  assert.match(endless, /^HTTP\/1\.1 431 /);
  assert.match(endless, /"code":"headers_too_large"/);
});

test('times outside the years 1 to 9999 are refused in every input', async () => {
  const path = `/protected/api/v1/developer/apps/${app.app.id}/audit`;
  const options = { token: app.developerToken };
  for (const wrong of [
    '0000-01-01',
    '0001-01-01T00:00:00+12:00',
    '9999-12-31T23:59:59-12:00',
    '2024-01-01 (x)',
    '2024-01-01T25:00:00Z',
  ])
    for (const field of ['since', 'until']) {
      const answer = await api<ErrorBody>('GET', `${path}?${field}=${encodeURIComponent(wrong)}`, options);
      assert.equal(answer.status, 422, `${wrong}: ${answer.text}`);
      assert.equal(answer.body.error.fields[0]?.field, field);
    }
  for (const right of ['0001-01-01', '2024-02-29T12:00:00Z', '9999-12-31T23:59:59.999Z', '2024-01-01T00:00+02:00'])
    assert.equal((await api('GET', `${path}?since=${encodeURIComponent(right)}`, options)).status, 200, right);
});

test('a time on a day that the calendar does not have is refused, and the message names the day', async () => {
  const path = `/protected/api/v1/developer/apps/${app.app.id}/audit`;
  for (const [wrong, day] of [
    ['2024-13-01', '2024-13-01'],
    ['2024-02-30', '2024-02-30'],
    ['2023-02-29T12:00:00Z', '2023-02-29'],
  ]) {
    const answer = await api<ErrorBody>('GET', `${path}?since=${wrong}`, { token: app.developerToken });
    assert.equal(answer.status, 422, answer.text);
    const message = `must be a day of the calendar, which has no ${day}`;
    assert.deepEqual(answer.body.error.fields, [{ field: 'since', message }]);
  }
});

test('a schedule of a source is a cron expression, and never a point in time', async () => {
  const create = (schedule: string) => ({
    body: { type: 'web/link', user: user.id, payload: { url: 'https://example.com/', schedule } },
  });
  for (const wrong of ['9999-12-31T23:59:59-12:00', '2030-01-01T00:00:00', '9999-12-31', '', '* * *'])
    await refused('payload.schedule', 'POST', '/api/v1/knowledge_sources', create(wrong));
  for (const right of ['*/5 * * * *', '@daily', '0 0 1 1 *'])
    assert.equal((await api('POST', '/api/v1/knowledge_sources', { key, ...create(right) })).status, 201, right);
});

test('a content type that cannot be a header is refused in every input', async () => {
  const source = await api<{ id: string }>('POST', '/api/v1/knowledge_sources', {
    key,
    body: { type: 'knowledge/documents', user: user.id },
  });
  const ingest = `/api/v1/knowledge_sources/${source.body.id}/ingest`;
  for (const wrong of ['text/plain\nx: y', 'text/плейн', 'text', 'text/plain; a="ж"', ''])
    for (const [field, path, body] of [
      ['content_type', '/api/v1/files', { filename: 'a', data: '', content_type: wrong }],
      ['content_type', '/api/v1/files/upload_urls', { filename: 'a', content_type: wrong }],
      ['logo.mime_type', '/api/v1/orgs', { name: 'a', logo: { data: '', filename: 'a', mime_type: wrong } }],
      ['content.content_type', ingest, { content: { data: 'x', content_type: wrong } }],
      ['items.0.content.content_type', `${ingest}/batch`, { items: [{ content: { data: 'x', content_type: wrong } }] }],
    ] as const)
      await refused(field, 'POST', path, { body });
});

test('DELETE of an entry with another user in the query than in the body is 422, and an end user’s own is ignored', async () => {
  const other = await provision.user(app);
  for (const owner of [user, other])
    await api('PUT', '/api/v1/kv/two-users', { key, body: { value: 'x', user: owner.id } });
  const path = `/api/v1/kv/two-users?user=${user.id}`;
  await refused('user', 'DELETE', path, { body: { user: other.id } });
  await refused('user', 'DELETE', path, { body: { user: 7 } });
  const developer = { token: app.developerToken, headers: { 'x-app': app.app.id } };
  assert.equal((await api('DELETE', path, { ...developer, body: { user: other.id } })).status, 422);
  assert.equal((await api('DELETE', path, { key, body: { user: user.id } })).status, 204);
  const own = await api('PUT', '/api/v1/kv/two-users', { token: user.token, body: { value: 'x' } });
  assert.equal(own.status, 200);
  const ignored = `/api/v1/kv/two-users?user=${other.id}`;
  assert.equal((await api('DELETE', ignored, { token: user.token, body: { user: 'nobody' } })).status, 204);
  assert.equal((await api('GET', ignored, { key })).status, 200, 'the other user’s entry stays');
});

test('free maps are bounded in every input, and the error names the member', async () => {
  const metadata = { note: 'x'.repeat(256 * 1024) };
  const agent = await api<{ id: string }>('POST', '/api/v1/agents', { key, body: { name: 'a', user: user.id } });
  const source = await api<{ id: string }>('POST', '/api/v1/knowledge_sources', {
    key,
    body: { type: 'knowledge/documents', user: user.id },
  });
  const team = await api<{ id: string }>('POST', '/api/v1/teams', { key, body: { name: 't' } });
  const file = await api<{ id: string }>('POST', '/api/v1/files', {
    key,
    body: { filename: 'a', data: '', content_type: 'text/plain' },
  });
  const automation = { name: 'a', type: 'invoked', workflow: null };
  const made = await api<{ id: string }>('POST', '/api/v1/automations', { key, body: automation });
  assert.equal(made.status, 201, made.text);
  for (const [method, path, field, body] of [
    ['POST', '/api/v1/agents', 'metadata', { name: 'a', user: user.id, metadata }],
    ['PATCH', `/api/v1/agents/${agent.body.id}`, 'metadata', { metadata }],
    ['POST', '/api/v1/teams', 'metadata', { name: 'a', metadata }],
    ['PATCH', `/api/v1/teams/${team.body.id}`, 'metadata', { metadata }],
    ['POST', '/api/v1/users', 'metadata', { email: 'm@example.test', metadata }],
    ['PATCH', `/api/v1/users/${user.id}`, 'metadata', { metadata }],
    ['PATCH', `/api/v1/files/${file.body.id}`, 'provider_metadata', { provider_metadata: metadata }],
    ['POST', '/api/v1/knowledge_sources', 'metadata', { type: 'knowledge/documents', user: user.id, metadata }],
    ['POST', '/api/v1/knowledge_sources', 'payload', { type: 'knowledge/documents', user: user.id, payload: metadata }],
    ['PATCH', `/api/v1/knowledge_sources/${source.body.id}`, 'payload', { payload: metadata }],
    ['POST', `/api/v1/knowledge_sources/${source.body.id}/ingest`, 'metadata', { content: { data: 'x' }, metadata }],
    ['POST', `/api/v1/knowledge_sources/${source.body.id}/search`, 'filter', { query: 'x', filter: metadata }],
    ['POST', '/api/v1/automations', 'metadata', { ...automation, metadata }],
    ['POST', '/api/v1/automations', 'input_schema', { ...automation, input_schema: metadata }],
    ['POST', `/api/v1/automations/${made.body.id}/invoke`, 'payload', { payload: metadata }],
    ['POST', '/api/v1/events', 'payload', { name: 'e', payload: metadata }],
  ] as const)
    await refused(field, method, path, { body });
});

test('names of members are bounded, and a member with a line break in its name is checked and returned like others', async () => {
  const claims = (values: object) => ({ role: { claim: 'r', values } });
  const issuer = (values: object) => ({ issuer: 'https://issuer.example', audience: 'a', claims: claims(values) });
  const path = '/api/v1/identity_issuers';
  await refused('claims.role.values', 'POST', path, { body: issuer({ ['x'.repeat(201)]: 'admin' }) });
  await refused('claims.role.values.a\nb', 'POST', path, { body: issuer({ 'a\nb': 'emperor' }) });
  const metadata = (value: object) => ({ name: 'Store', metadata: value });
  for (const value of [{ ['x'.repeat(65)]: 'a' }, { '': 'a' }, { 'a\nb': { c: 1 } }]) {
    const answer = await api<ErrorBody>('POST', '/v1/vector_stores', { key, body: metadata(value) });
    assert.equal(answer.status, 400, answer.text);
  }
  const named = { 'a\nb': 'c', 'd\u2028e': 'f', ['x'.repeat(64)]: 'g' };
  const store = await api<{ metadata: object }>('POST', '/v1/vector_stores', { key, body: metadata(named) });
  assert.deepEqual(store.body.metadata, named, store.text);
  const team = await api<{ metadata: object }>('POST', '/api/v1/teams', { key, body: { name: 'T', metadata: named } });
  assert.deepEqual(team.body.metadata, named, team.text);
});

test('a range that begins beyond every file is 416, however large its numbers are', async () => {
  const body = { filename: 'a', data: 'YWJj', content_type: 'text/plain' };
  const file = await api<{ url: string }>('POST', '/api/v1/files', { key, body });
  for (const range of ['bytes=9223372036854775808-', 'bytes=3-', `bytes=${'9'.repeat(400)}-`]) {
    const answer = await api<ErrorBody>('GET', file.body.url.slice(baseUrl.length), { headers: { range } });
    assert.deepEqual([answer.status, answer.headers.get('content-range')], [416, 'bytes */3'], range);
  }
});

test('a long string named data in free metadata is stored as given, however it arrives', async () => {
  const source = await api<{ id: string }>('POST', '/api/v1/knowledge_sources', {
    key,
    body: { type: 'knowledge/documents', user: user.id },
  });
  const metadata = { data: 'm'.repeat(200_000), content: { data: 'n'.repeat(30_000) } };
  const path = `/api/v1/knowledge_sources/${source.body.id}/ingest`;
  const { body, status } = await api<{ id: string }>('POST', path, {
    key,
    body: { content: { data: 'x'.repeat(200_000) }, metadata },
  });
  assert.equal(status, 201);
  let ended: { status: string; metadata: { document?: string } } = { status: 'pending', metadata: {} };
  await until(async () => {
    ended = (await api<typeof ended>('GET', `/api/v1/knowledge_ingestions/${body.id}`, { key })).body;
    return ['succeeded', 'failed'].includes(ended.status);
  });
  const document = `/api/v1/knowledge_documents/${ended.metadata.document}`;
  assert.deepEqual((await api<{ metadata: unknown }>('GET', document, { key })).body.metadata, metadata);
  const withNul = { content: { data: 'a\0b' }, metadata: { content: { data: 'a\0b' } } };
  await refused('metadata.content.data', 'POST', path, { body: withNul });
});
