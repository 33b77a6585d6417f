import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { after, test } from 'node:test';
import { sendRaw } from '../../support/raw-request.ts';
import { type ApiOptions, type ErrorBody, startTestServer } from '../../support/server.ts';

/** The one shape of errors, strict bodies and queries, and what each kind of broken request is answered. */

const server = await startTestServer();
after(() => server.close());
const { baseUrl, api, provision } = server;
const { app, member } = await provision.world();
const key = app.secretKey;

const error = (method: string, path: string, options: ApiOptions = {}) => api<ErrorBody>(method, path, options);

async function refused(status: number, code: string, method: string, path: string, options: ApiOptions = {}) {
  const answer = await error(method, path, options);
  const words = `${method} ${path} ${JSON.stringify(options.body)?.slice(0, 200)}: ${answer.text.slice(0, 500)}`;
  assert.equal(answer.status, status, words);
  assert.equal(answer.body.error.code, code, words);
  const members = path.startsWith('/v1/')
    ? ['message', 'type', 'param', 'code']
    : ['type', 'code', 'message', 'fields', 'details'];
  assert.deepEqual(Object.keys(answer.body.error), members, words);
  assert.ok(answer.headers.get('x-request-id'), words);
  assert.match(answer.headers.get('content-type') ?? '', /^application\/json/, words);
  return answer;
}

async function refusedField(field: string, method: string, path: string, options: ApiOptions = {}) {
  const answer = await refused(422, 'invalid_parameters', method, path, options);
  assert.ok(
    answer.body.error.fields.some((each) => each.field === field),
    `${field} not in ${answer.text}`,
  );
}

/** A request exactly as written, for what fetch would not send. */
const raw = (text: string | Buffer) => sendRaw(baseUrl, text);

test('a valid incoming request id is kept, another one replaced, on success and on errors alike', async () => {
  for (const path of ['/healthz', '/api/v1/orgs', '/api/v1/nowhere']) {
    const kept = await api('GET', path, { headers: { 'x-request-id': 'abc.DEF:1-2_3' } });
    assert.equal(kept.headers.get('x-request-id'), 'abc.DEF:1-2_3', path);
    for (const wrong of ['a b', '<script>', 'x'.repeat(200)]) {
      const replaced = await api('GET', path, { headers: { 'x-request-id': wrong } });
      const id = replaced.headers.get('x-request-id');
      assert.ok(id && id !== wrong, path);
    }
  }
  assert.ok((await api('GET', '/docs')).headers.get('x-request-id'));
});

test('a body that is not JSON is 400 invalid_json', async () => {
  const bytes = (...values: number[]) => new Uint8Array(values);
  for (const body of [
    '{',
    '{"name": }',
    "{'name': 1}",
    'name=x',
    '{"name":"x"} trailing',
    '[1,]',
    'NaN',
    '\u{feff}{',
    bytes(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d),
    Buffer.concat([Buffer.from('{"name":"'), bytes(0xc3), Buffer.from('"}')]),
    Buffer.concat([Buffer.from('{"name":"'), bytes(0xed, 0xa0, 0x80), Buffer.from('"}')]),
  ])
    await refused(400, 'invalid_json', 'POST', '/api/v1/orgs', { key, body });
});

test('unknown members, wrong types and nulls are 422 that names them; nothing is coerced', async () => {
  for (const [field, body] of [
    ['name', {}],
    ['name', { name: 1 }],
    ['name', { name: true }],
    ['name', { name: null }],
    ['name', { name: ['x'] }],
    ['name', { name: '' }],
    ['other', { name: 'x', other: 1 }],
    ['slug', { name: 'x', slug: null }],
    ['logo.other', { name: 'x', logo: { data: '', filename: 'x', mime_type: 'image/png', other: 1 } }],
    ['logo.data', { name: 'x', logo: { filename: 'x', mime_type: 'image/png' } }],
    ['body', []],
    ['body', 'text'],
    ['body', 1],
    ['body', null],
    ['body', true],
  ] as const)
    await refusedField(field, 'POST', '/api/v1/orgs', { key, body: JSON.stringify(body) });
  const mistyped = await api<ErrorBody>('POST', '/api/v1/orgs', { key, body: { name: 'x', sluug: 'y', own: 1 } });
  assert.deepEqual(
    mistyped.body.error.fields.map(({ message }) => message),
    [
      'is not a known member of this request; did you mean slug?',
      'is not a known member of this request; it has name, slug, logo',
    ],
  );
  await refusedField('body', 'POST', '/api/v1/orgs', { key });
  const sizes: [object, string][] = [
    [{ query: '' }, 'query: must not be empty'],
    [{ query: 'x'.repeat(10_001) }, 'query: must have at most 10000 characters'],
    [{ query: 'x', sources: [] }, 'sources: must not be empty'],
  ];
  for (const [body, message] of sizes)
    assert.equal((await api<ErrorBody>('POST', '/api/v1/answers', { key, body })).body.error.message, message);
  // A POST without members takes an empty body alone.
  const logout = `/api/v1/users/${(await provision.user(app)).id}/sessions/revoke`;
  await refusedField('other', 'POST', logout, { key, body: { other: 1 } });
  await refusedField('body', 'POST', logout, { key, body: [] });
  assert.equal((await api('POST', logout, { key, body: {} })).status, 204);
  await refusedField('max_pages', 'POST', '/api/v1/extractions', {
    key,
    body: { url: 'https://example.com', mode: 'site', destination_kind: 'storage', max_pages: '5' },
  });
  await refusedField('share', 'POST', '/api/v1/files', {
    key,
    body: { filename: 'a', content_type: 'image/png', data: '', share: 'true' },
  });
  for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty'])
    await refusedField(name, 'POST', '/api/v1/orgs', { key, body: `{"name":"x","${name}":{}}` });
});

test('a member that is sent twice is 422 that names it, at any depth and in any spelling', async () => {
  const user = (metadata: string) => `{"email":"twice@example.test","metadata":${metadata}}`;
  for (const [field, path, body] of [
    ['name', 'orgs', '{"name":"x","name":"y"}'],
    ['name', 'orgs', '{"name":"x","n\\u0061me":"x"}'],
    ['metadata', 'users', '{"metadata":{"a":1},"email":"twice@example.test","metadata":{}}'],
    ['metadata.a', 'users', user('{"a":1,"b":2,"a":1}')],
    ['metadata.__proto__', 'users', user('{"__proto__":1,"__proto__":2}')],
    ['metadata.a.1.b', 'users', user('{"a":[{"b":1},{"b":{"c":[]},"d":"\\"b\\":","b":1}]}')],
    ['data', 'files', `{"filename":"a","content_type":"text/plain","data":"${'QUFB'.repeat(30_000)}","data":"QUFB"}`],
  ] as const)
    await refusedField(field, 'POST', `/api/v1/${path}`, { key, body });
  const metadata = { a: [{ b: 1 }, { b: { a: '"b": 1, "b": 1' } }], b: { b: {} }, '': '{"":"",":":1}' };
  const body = { email: 'once@example.test', metadata };
  const created = await api<{ metadata: unknown }>('POST', '/api/v1/users', { key, body });
  assert.deepEqual([created.status, created.body.metadata], [201, metadata], created.text);
});

test('numbers that overflow, U+0000, lone surrogates and deep nesting are 422 that name the member', async () => {
  const create = (metadata: string) => `{"email":"a@example.test","metadata":${metadata}}`;
  for (const [field, body] of [
    ['metadata.a', create('{"a":1e999}')],
    ['metadata.a', create('{"a":-1e999}')],
    ['metadata.a.0', create('{"a":["\\u0000"]}')],
    ['metadata.a', create('{"a":"\\ud800"}')],
    ['metadata.a', create('{"a":"\\udc00 x"}')],
    ['name', '{"email":"a@example.test","name":"a\\u0000b"}'],
  ] as const)
    await refusedField(field, 'POST', '/api/v1/users', { key, body });
  for (const metadata of [
    '{"\\u0000":1}',
    '{"\\ud800":1}',
    `${'{"a":'.repeat(500)}1${'}'.repeat(500)}`,
    `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
  ])
    await refused(422, 'invalid_parameters', 'POST', '/api/v1/users', { key, body: create(metadata) });
});

test('an invalid value in a query is 422 on its name, also invalid text', async () => {
  for (const [field, query] of [
    ['page', 'page=0'],
    ['page', 'page=-1'],
    ['page', 'page=abc'],
    ['page', 'page=1.5'],
    ['page', 'page='],
    ['page', 'page=1e3'],
    ['page', 'page=2147483648'],
    ['page', 'page=1&page=2'],
    ['page_size', 'page_size=0'],
    ['page_size', 'page_size=x'],
    ['page_size', 'page_size=99999999999999999999'],
    ['search', 'search=%00'],
  ] as const)
    await refusedField(field, 'GET', `/api/v1/orgs?${query}`, { key });
  for (const query of ['page=1&page=2', 'owner_scope=any&owner_scope=any', 'search=a&search[]=b']) {
    const twice = await error('GET', `/api/v1/knowledge_sources?${query}`, { key });
    assert.match(twice.body.error.message, /: must be sent once$/, query);
  }
  for (const [field, path] of [
    ['org', '/api/v1/users?org=garbage'],
    ['org', `/api/v1/agents?org=${member.id}`],
    ['user', `/api/v1/agents?user=x`],
    ['version', '/api/v1/config/a?version=0'],
    ['version', '/api/v1/config/a?version=x'],
    ['agent', '/api/v1/config/a?agent=x'],
    ['agent', '/api/v1/files?agent=x'],
  ] as const)
    await refusedField(field, 'GET', path, { key });
});

test('a name of white space alone is 422 that names it, wherever people choose a name', async () => {
  const agent = (await api<{ id: string }>('POST', '/api/v1/agents', { key, body: { name: 'A' } })).body.id;
  for (const [field, method, path, body] of [
    ['name', 'POST', '/api/v1/orgs', {}],
    ['name', 'POST', '/api/v1/teams', {}],
    ['name', 'POST', '/api/v1/users', { email: 'white@example.test' }],
    ['name', 'PATCH', `/api/v1/users/${member.id}`, {}],
    ['name', 'PATCH', `/api/v1/agents/${agent}`, {}],
    ['name', 'POST', '/api/v1/keys', { type: 'secret' }],
    ['name', 'POST', '/api/v1/sandboxes', {}],
    ['name', 'POST', '/api/v1/automations', { type: 'invoked', workflow: { nodes: [] } }],
    ['title', 'POST', '/api/v1/threads', { user: member.id }],
  ] as const)
    for (const name of [' ', '\t\n\u00a0\u3000'])
      await refusedField(field, method, path, { key, body: { ...body, [field]: name } });
  const { status } = await api('PATCH', `/api/v1/agents/${agent}`, { key, body: { name: ' A ' } });
  assert.equal(status, 200, 'white space around a name is part of it');
});

test('a key that is sent twice is 401 that says so', async () => {
  const answer = raw(
    `GET /api/v1/orgs HTTP/1.1\r\nHost: x\r\nx-api-key: ${key}\r\nx-api-key: ${key}\r\nConnection: close\r\n\r\n`,
  );
  assert.match(await answer, /^HTTP\/1.1 401 [\s\S]*"invalid_credentials"[\s\S]*Send one API key, once\./);
});

test('an empty body with a JSON content type is not an error on GET, HEAD and DELETE', async () => {
  const json = { 'content-type': 'application/json' };
  assert.equal((await api('GET', '/api/v1/orgs', { key, headers: json })).status, 200);
  assert.equal((await api('HEAD', '/api/v1/orgs', { key, headers: json })).status, 200);
  const org = await provision.org(app);
  assert.equal((await api('DELETE', `/api/v1/orgs/${org.id}`, { key, headers: json })).status, 204);
  const gone = await api('DELETE', `/api/v1/orgs/${org.id}`, { key, headers: json });
  assert.equal(gone.status, 404);
});

test('a PATCH without any member changes nothing and is 200, with an empty object or no body', async () => {
  const org = await api<{ id: string; name: string }>('POST', '/api/v1/orgs', { key, body: { name: 'Kept' } });
  for (const options of [{ body: {} }, {}, { headers: { 'content-type': 'application/json' } }]) {
    const patched = await api<{ name: string }>('PATCH', `/api/v1/orgs/${org.body.id}`, { key, ...options });
    assert.deepEqual([patched.status, patched.body.name], [200, 'Kept']);
  }
});

test('every known path returns 405 and Allow for other methods, credentials or not', async () => {
  const { routes } = server.server.api;
  const paths = new Set(routes.map(({ path }) => path.replace(/:\w+/g, 'x').replace('*', 'x')));
  for (const path of paths) {
    // A path such as `users/me` is one of `users/{user}` as well, and takes what that takes.
    const taken = new Set<string>(
      routes.filter((route) => patternOf(route.path).test(path)).map(({ method }) => method),
    );
    if (taken.has('GET')) taken.add('HEAD');
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].filter((each) => !taken.has(each)))
      for (const options of [{}, { key }, method === 'GET' ? {} : { key, body: {} }]) {
        // OAuth has errors of its own.
        const answer = path.startsWith('/oauth/')
          ? await error(method, path, options)
          : await refused(405, 'method_not_allowed', method, path, options);
        assert.equal(answer.status, 405, `${method} ${path}`);
        assert.deepEqual(new Set((answer.headers.get('allow') ?? '').split(', ')), taken, `${method} ${path}`);
      }
  }
  await refused(405, 'method_not_allowed', 'POST', '/api/v1/users/me', { key, body: {} });
  await refused(404, 'not_found', 'POST', '/api/v1/nowhere', { key, body: {} });
  await refused(404, 'not_found', 'GET', '/nowhere');
});

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll('.', '\\.').replace(/:\w+/g, '[^/]+').replace('*', '.*')}$`);
}

test('a media type other than JSON is 415 for any body', async () => {
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/xml', 'multipart/form-data'])
    await refused(415, 'unsupported_media_type', 'POST', '/api/v1/orgs', {
      key,
      body: '{"name":"x"}',
      headers: { 'content-type': type },
    });
  for (const type of ['application/json; charset=utf-8', 'application/vnd.api+json', 'APPLICATION/JSON']) {
    const made = await api('POST', '/api/v1/orgs', { key, body: '{"name":"x"}', headers: { 'content-type': type } });
    assert.equal(made.status, 201, type);
  }
});

test('a body whose Content-Length is too large is 413 before it arrives, and so is one that grows too large', async () => {
  const { host } = new URL(baseUrl);
  const head = `POST /api/v1/orgs HTTP/1.1\r\nHost: ${host}\r\nx-api-key: ${key}\r\nContent-Type: application/json\r\n`;
  const announced = await raw(`${head}Content-Length: 999999999999\r\n\r\n{`);
  assert.match(announced, /^HTTP\/1\.1 413 /);
  assert.match(announced, /"code":"payload_too_large"/);
  assert.match(announced, /x-request-id: /i);
  const small = await startTestServer({ env: { QUARRY_BODY_BYTES_MAX: '1048576' } });
  try {
    const scope = await small.provision.app();
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const outgoing = httpRequest(
        `${small.baseUrl}/api/v1/orgs`,
        { method: 'POST', headers: { 'x-api-key': scope.secretKey, 'content-type': 'application/json' } },
        (incoming) => {
          resolve(incoming.statusCode);
          outgoing.destroy();
        },
      );
      outgoing.on('error', reject);
      // The server reads all of it before it responds: an unread rest would reset the connection, and lose the response.
      outgoing.write(`{"name":"${'x'.repeat(1048576)}`);
    });
    assert.equal(status, 413);
  } finally {
    await small.close();
  }
});

test('bad escapes in a path are 400, and invalid HTTP gets the standard error shape', async () => {
  await refused(400, 'invalid_path', 'GET', '/api/v1/orgs/%zz', { key });
  await refused(400, 'invalid_path', 'GET', '/api/v1/config/a%', { key });
  const { host } = new URL(baseUrl);
  const broken = await raw('NONSENSE\r\n\r\n');
  assert.match(broken, /^HTTP\/1\.1 400 /);
  assert.match(broken, /"error":\{"type":"bad_request"/);
  const noHost = await raw('GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n');
  assert.match(noHost, /^HTTP\/1\.1 400 .*\r\nx-request-id: .*"error":\{"type":"bad_request"/s);
  const twoLengths = await raw(
    `POST /api/v1/orgs HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  );
  assert.match(twoLengths, /^HTTP\/1\.1 4\d\d /);
});

test('HEAD returns the same as GET, without a body', async () => {
  for (const path of ['/api/v1/orgs', '/healthz', '/api/v1/users', '/openapi.json']) {
    const [head, get] = [await api('HEAD', path, { key }), await api('GET', path, { key })];
    assert.deepEqual([head.status, head.text], [get.status, ''], path);
    assert.equal(head.headers.get('content-type'), get.headers.get('content-type'), path);
  }
  assert.equal((await api('HEAD', '/api/v1/orgs')).status, 401);
  assert.equal((await api('HEAD', '/api/v1/orgs/org_x', { key })).status, 404);
});

test('a 401 names the scheme of the credential', async () => {
  const wrong = { body: { email: 'nobody@example.test', password: 'wrong' }, key: app.publishableKey };
  for (const answer of [
    await api('GET', '/api/v1/orgs'),
    await api('GET', '/api/v1/orgs', { token: 'dvt_unknown' }),
    await api('GET', '/protected/api/v1/developer/apps'),
    await api('POST', '/api/v1/auth/login', wrong),
  ])
    assert.deepEqual([answer.status, answer.headers.get('www-authenticate')], [401, 'Bearer'], answer.text);
  assert.equal((await api('GET', '/api/v1/orgs', { key })).headers.get('www-authenticate'), null);
});

test('401 and 404 responses never reveal which of two reasons applied', async () => {
  const unknown = await error('GET', '/api/v1/agents/agt_0000000000000000000000', { key });
  const shape = await error('GET', '/api/v1/agents/nobody', { key });
  const type = await error('GET', `/api/v1/agents/${member.id}`, { key });
  assert.deepEqual(shape.body, unknown.body);
  assert.deepEqual(type.body, unknown.body);
});
