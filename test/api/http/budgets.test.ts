import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { type ErrorBody, startTestServer } from '../../support/server.ts';
import { startWatch } from '../../support/speed.ts';

const server = await startTestServer({ env: { QUARRY_BODY_BYTES_MAX: String(4 * 1024 * 1024) } });
after(() => server.close());
const { api, provision } = server;
const app = await provision.app();
const key = app.secretKey;

const zeros = (count: number) => `{"a":[${'0,'.repeat(count - 1)}0]}`;

test('unauthenticated bodies are 16 KiB at most, and tens of megabytes of values delay no other request', async () => {
  const huge = Buffer.from(zeros(12_000_000));
  const strangers: [string, string, object][] = [
    ['POST', '/console/session', {}],
    ['DELETE', '/console/session', {}],
    ['POST', '/api/v1/auth/login', { key: app.publishableKey }],
    ['POST', '/api/v1/auth/refresh', { key: app.publishableKey }],
    ['POST', '/api/v1/auth/logout', { key: app.publishableKey }],
    ['POST', '/api/v1/no-such-path', {}],
  ];
  for (const [method, path, credential] of strangers) {
    const watch = startWatch();
    // The refusal may come, and the connection end, while the body is still being sent.
    const outcome = await api<ErrorBody>(method, path, { ...credential, body: huge }).catch((error: unknown) => error);
    const other = await api('GET', '/healthz');
    assert.equal(other.status, 200);
    watch.within(5_000, `${method} ${path}`);
    if (!(outcome instanceof Error)) assert.equal((outcome as { status: number }).status, 413, `${method} ${path}`);
    const small = await api<ErrorBody>(method, path, { ...credential, body: 'x'.repeat(16 * 1024 + 1) });
    assert.deepEqual([small.status, small.body.error.code], [413, 'payload_too_large'], `${method} ${path}`);
  }
});

test('every route refuses one byte and one value more than it declares', async () => {
  const refused: string[] = [];
  const zipped = new Map<number, Buffer>();
  for (const { method, path, budget, takesJson } of server.server.api.routes) {
    // These are refused by a session or a claim, before the body is read.
    if (!takesJson || path === '/api/v1/assistant_request' || path.startsWith('/api/v1/claimed_run/')) continue;
    const url = path.replace(/:app\b/, app.app.id).replace(/:\w+|\*/g, 'nothing');
    const credential = path.startsWith('/protected/') ? { token: app.developerToken } : { key };
    if (path.includes('/auth/')) credential.key = app.publishableKey;
    const values = await api<ErrorBody>(method, url, { ...credential, body: zeros(budget.valuesMax) });
    const invalid = /^\/(?:v1|oauth)\//.test(path) ? 400 : 422;
    if (values.status !== invalid && values.status !== 413) refused.push(`${method} ${path} values: ${values.status}`);
    const headers = { 'content-encoding': 'gzip' };
    // Zipped, so that what is refused is what becomes of it.
    const bytes = zipped.get(budget.bytesMax) ?? gzipSync(Buffer.alloc(budget.bytesMax + 1, 0x20));
    zipped.set(budget.bytesMax, bytes);
    const large = await api<ErrorBody>(method, url, { ...credential, headers, body: bytes });
    if (large.status !== 413) refused.push(`${method} ${path} bytes: ${large.status}`);
  }
  assert.deepEqual(refused, []);
});

test('too many values are refused before they are parsed, naming the body', async () => {
  const answer = await api<ErrorBody>('POST', '/api/v1/users', { key, body: zeros(200_000) });
  assert.equal(answer.status, 422, answer.text);
  assert.deepEqual(answer.body.error.fields, [{ field: 'body', message: 'must hold at most 150000 values' }]);
});

test('a body may be compressed: gzip, deflate and br are decoded, other encodings are 415', async () => {
  const plain = Buffer.from(JSON.stringify({ name: 'Compressed' }));
  const send = (encoding: string, body: Uint8Array) =>
    api<ErrorBody & { name: string }>('POST', '/api/v1/orgs', { key, body, headers: { 'content-encoding': encoding } });
  for (const [encoding, bytes] of [
    ['gzip', gzipSync(plain)],
    ['X-GZIP', gzipSync(plain)],
    ['deflate', deflateSync(plain)],
    ['br', brotliCompressSync(plain)],
    ['identity', plain],
  ] as const) {
    const made = await send(encoding, bytes);
    assert.equal(made.status, 201, `${encoding}: ${made.text}`);
    assert.equal(made.body.name, 'Compressed');
  }
  for (const encoding of ['zstd', 'gzip, gzip', 'compress', 'nonsense', 'constructor']) {
    const refused = await send(encoding, plain);
    assert.deepEqual([refused.status, refused.body.error.code], [415, 'unsupported_media_type'], encoding);
    assert.equal(refused.headers.get('accept-encoding'), 'gzip, deflate, br');
  }
  for (const damaged of [
    plain,
    gzipSync(plain).subarray(0, 20),
    Buffer.concat([gzipSync(plain).subarray(0, 12), plain]),
  ]) {
    const refused = await send('gzip', damaged);
    assert.deepEqual([refused.status, refused.body.error.code], [400, 'invalid_json'], refused.text);
  }
});

test('a body that is stored while it arrives cannot have a Content-Encoding', async () => {
  const headers = { 'content-type': 'text/plain', 'content-encoding': 'gzip', 'x-filename': 'a.txt' };
  const refused = await api<ErrorBody>('POST', '/api/v1/files/uploads', { key, headers, body: gzipSync('text') });
  assert.deepEqual([refused.status, refused.body.error.code], [415, 'unsupported_media_type'], refused.text);
});

test('numbers that a double would change are refused on their field, others are returned unchanged', async () => {
  const update = (value: string) =>
    api<ErrorBody & { metadata: { list: unknown[] } }>('POST', '/api/v1/users', {
      key,
      body: `{"email":"n${Math.random()}@example.test","metadata":{"list":[1,${value}]}}`,
    });
  for (const kept of [
    '9007199254740991',
    '-9007199254740992',
    '0.1',
    '1.50',
    '1e21',
    '100e-2',
    '0.0e5',
    '-0',
    '1E5',
    '123456.789e-3',
    '5e-324',
    '1.7976931348623157e308',
  ]) {
    const made = await update(kept);
    assert.equal(made.status, 201, `${kept}: ${made.text}`);
    assert.equal(made.body.metadata.list[1], Number(kept) + 0, kept);
  }
  for (const altered of [
    '9007199254740993',
    '-9007199254740993',
    '1e400',
    '-1e400',
    '1e-400',
    '0.10000000000000000001',
    '123456789012345678',
    '3.14159265358979323846',
  ]) {
    const refused = await update(altered);
    assert.equal(refused.status, 422, `${altered}: ${refused.text}`);
    assert.deepEqual(refused.body.error.fields[0]?.field, 'metadata.list.1', altered);
  }
  const inName = await api<ErrorBody>('POST', '/api/v1/orgs', {
    key,
    body: '{"name":"9007199254740993 \\" 9007199254740993"}',
  });
  assert.equal(inName.status, 201, 'digits in a string are text');
});

test('the number of an app’s secrets is limited, because every run and their list read all of them', async () => {
  await server.db`
    insert into app_secrets (app_id, sandbox_id, name, value)
    select ${app.app.uuid}, '00000000-0000-0000-0000-000000000000', 'S' || n, '\\x00' from generate_series(1, 499) n`;
  const put = (name: string) => api<ErrorBody>('PUT', `/api/v1/secrets/${name}`, { key, body: { value: 'x' } });
  assert.equal((await put('LAST')).status, 200);
  const refused = await put('ONE_MORE');
  assert.deepEqual([refused.status, refused.body.error.code], [422, 'quota_exceeded'], refused.text);
  assert.equal((await put('LAST')).status, 200, 'one that is there can still be changed');
});
