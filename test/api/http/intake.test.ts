import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { readdirSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, mock, test } from 'node:test';
import { Intake } from '../../../src/http/body/intake.ts';
import { EventStream } from '../../support/event-stream.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';
import { offsetType, tus, uploadHeaders } from '../../support/uploads.ts';

const clock = new ManualClock(new Date('2030-01-01T00:00:00Z'));
const server = await startTestServer({
  clock,
  logLevel: 'warn',
  env: { QUARRY_BODY_BYTES_MAX: '4194304', QUARRY_BODY_MEMORY_MB: '6', QUARRY_STREAMS_MAX: '4' },
});
after(() => server.close());
const { api, baseUrl, provision } = server;
const app = await provision.app();
const otherApp = await provision.app();
const mebibyte = 1024 * 1024;

/** Begins a request whose body is incomplete; `end` sends the rest and resolves with the whole response. */
function begin(path: string, headers: Record<string, string>, length: number, sent: number) {
  const { hostname, port, host } = new URL(baseUrl);
  const socket = connect(Number(port), hostname);
  let text = '';
  const closed = new Promise<string>((resolve) => socket.on('close', () => resolve(text)));
  const answered = new Promise<string>((resolve) =>
    socket.on('data', (chunk) => {
      text += chunk.toString();
      resolve(text);
    }),
  );
  socket.on('error', () => {});
  const all = { host, 'content-type': 'application/json', 'content-length': String(length), ...headers };
  socket.write(
    `POST ${path} HTTP/1.1\r\n${Object.entries(all)
      .map((pair) => pair.join(': '))
      .join('\r\n')}\r\n\r\n`,
  );
  socket.write(Buffer.alloc(sent, 0x20));
  return { closed, answered, destroy: () => socket.destroy(), send: (bytes: Buffer) => socket.write(bytes) };
}

const held = () => server.server.fastify.intake.heldBytes;

async function waitUntil(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    await api('GET', '/healthz');
  }
}

/** Moves the clock until a body that does not arrive is refused. Returns the response. */
async function waitUntilRefused(slow: ReturnType<typeof begin>): Promise<string> {
  let text: string | undefined;
  void slow.closed.then((all) => {
    text = all;
  });
  await waitUntil(() => {
    if (text === undefined) clock.advance(100);
    return text !== undefined;
  });
  return text ?? '';
}

test('a body that arrives more slowly than 64 KiB a second after its first ten seconds is 408, and the connection closes', async () => {
  const paths: [string, Record<string, string>][] = [
    ['/api/v1/files', { 'x-api-key': app.secretKey }],
    ['/api/v1/files/uploads', { 'x-api-key': app.secretKey, 'content-type': 'text/plain', 'x-filename': 'a' }],
    ['/console/session', {}],
  ];
  for (const [path, headers] of paths) {
    const slow = begin(path, headers, 10_000, 1_000);
    const started = clock.now().getTime();
    const text = await waitUntilRefused(slow);
    assert.ok(clock.now().getTime() - started >= 10_000, 'the first ten seconds are free');
    assert.match(text, /^HTTP\/1\.1 408 /, path);
    assert.match(text, /"code":"request_timeout"/);
  }
});

test('a body that is refused for its speed leaves no open file, and a resumable upload continues after it', async () => {
  const key = { 'x-api-key': app.secretKey };
  const temporary = join(server.dataDir, 'blobs', 'tmp');
  await waitUntilRefused(
    begin('/api/v1/files/uploads', { ...key, 'content-type': 'text/plain', 'x-filename': 'a' }, 9, 4),
  );
  await waitUntil(() => readdirSync(temporary).length === 0);

  const headers = { ...key, ...uploadHeaders({ filename: 'a', content_type: 'text/plain' }), ...offsetType };
  const findUpload = async () => {
    const { body } = await api<{ data: { id: string; offset: number }[] }>('GET', '/api/v1/uploads', { headers: key });
    return body.data[0];
  };
  const slow = begin('/api/v1/uploads', { ...headers, 'upload-length': '9' }, 9, 4);
  // It can be refused before there is an upload to continue.
  await waitUntil(async () => (await findUpload()) !== undefined);
  await waitUntilRefused(slow);
  await waitUntil(async () => {
    const upload = await findUpload();
    const { status, text } = await api('PATCH', `/api/v1/uploads/${upload?.id}`, {
      headers: { ...key, ...tus, ...offsetType, 'upload-offset': String(upload?.offset) },
      body: Buffer.alloc(9 - (upload?.offset ?? 0), 0x20),
    });
    // 409: the bytes of the refused request were stored only now.
    assert.ok(status === 204 || status === 423 || status === 409, text);
    return status === 204;
  });
});

test('a repeatable upload holds no transaction while its body arrives', async () => {
  const { secretKey: key } = await provision.app();
  const headers = {
    ...{ 'x-api-key': key, 'idempotency-key': 'upload-1', ...offsetType },
    ...{ ...uploadHeaders({ filename: 'a', content_type: 'text/plain' }), 'upload-length': '9' },
  };
  const slow = begin('/api/v1/uploads', headers, 9, 4);
  const list = async () => (await api<{ data: { id: string }[] }>('GET', '/api/v1/uploads', { key })).body.data;
  // It is committed, although the rest of its body has not been sent.
  await waitUntil(async () => (await list()).length > 0);
  const [upload] = await list();
  assert.ok(upload, 'it can be resumed');
  slow.send(Buffer.alloc(5, 0x20));
  const text = await slow.answered;
  assert.match(text, /^HTTP\/1\.1 201 /);
  slow.destroy();
  const again = begin('/api/v1/uploads', headers, 9, 9);
  assert.match(await again.answered, /^HTTP\/1\.1 201 .*idempotency-replayed: true/is);
  again.destroy();
  const { body } = await api<{ data: { id: string }[] }>('GET', '/api/v1/files', { key });
  assert.deepEqual(
    body.data.map(({ id }) => id.slice(4)),
    [upload.id.slice(4)],
  );
});

test('once a body has arrived, the time that the server needs does not count against the client', async () => {
  const path = '/api/v1/files/uploads';
  const headers = { 'x-api-key': app.secretKey, 'content-type': 'text/plain', 'x-filename': 'a' };
  const uploaded = await server.db.begin(async (tx) => {
    await tx`lock table files in exclusive mode`;
    const upload = api('POST', path, { headers, body: 'bytes' });
    await waitUntil(async () => {
      const waiting = await tx`select from pg_locks where relation = 'files'::regclass and not granted
        and database = (select oid from pg_database where datname = current_database())`;
      return waiting.length > 0;
    });
    // It began later: when it is refused, the upload has been checked for longer.
    await waitUntilRefused(begin(path, headers, 10_000, 1_000));
    return { upload };
  });
  const { status, text } = await uploaded.upload;
  assert.equal(status, 201, text);
});

test('a body that keeps the minimum speed is accepted, however long it takes', async () => {
  const body = JSON.stringify({ filename: 'a', content_type: 'text/plain', data: 'A'.repeat(2 * mebibyte) });
  const steady = begin('/api/v1/files', { 'x-api-key': app.secretKey }, body.length, 0);
  const step = mebibyte / 2;
  for (let sent = 0; sent < body.length; sent += step) {
    steady.send(Buffer.from(body.slice(sent, sent + step)));
    await api('GET', '/healthz');
    clock.advance(4_000);
  }
  assert.match(await steady.answered, /^HTTP\/1\.1 201 /);
  steady.destroy();
});

test('bodies in transit share memory: one app gets half of it, and others get what is left', async () => {
  const headers = (key: string) => ({ 'x-api-key': key });
  const first = begin('/api/v1/files', headers(app.secretKey), 2 * mebibyte, 100);
  await waitUntil(() => held() === 2 * mebibyte);
  const large = JSON.stringify({ filename: 'a', content_type: 'text/plain', data: 'A'.repeat(2.5 * mebibyte) });
  const refused = await send(app.secretKey, large);
  assert.deepEqual([refused.status, refused.code, refused.retryAfter], [429, 'rate_limited', '1']);
  const second = begin('/api/v1/files', headers(otherApp.secretKey), 2 * mebibyte, 100);
  await waitUntil(() => held() === 4 * mebibyte);
  const written = mock.method(process.stderr, 'write', () => true);
  const none = await send((await provision.app()).secretKey, large);
  assert.deepEqual([none.status, none.code, none.retryAfter], [503, 'unavailable', '1']);
  const findLine = () =>
    written.mock.calls.map((call) => String(call.arguments[0])).find((line) => line.includes('"code":"unavailable"'));
  await waitUntil(() => findLine() !== undefined);
  written.mock.restore();
  const line = findLine() ?? '';
  assert.match(line, /"level":"warn".*"code":"unavailable"/);
  assert.doesNotMatch(line, /stack/);
  const small = { filename: 'a', content_type: 'text/plain', data: 'A'.repeat(4 * 1024) };
  assert.equal(
    (await api('POST', '/api/v1/files', { key: app.secretKey, body: small })).status,
    201,
    'small ones pass',
  );
  first.destroy();
  second.destroy();
  await waitUntil(() => held() === 0);
  assert.equal((await send(app.secretKey, large)).status, 201);
  await waitUntil(() => held() === 0);
});

/** Sends a body of which the server may refuse the rest. */
function send(
  key: string,
  body: string,
): Promise<{ status: number; code: string | undefined; retryAfter: string | undefined }> {
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest(
      `${baseUrl}/api/v1/files`,
      {
        method: 'POST',
        headers: { 'x-api-key': key, 'content-type': 'application/json', 'content-length': String(body.length) },
      },
      async (incoming) => {
        let text = '';
        for await (const chunk of incoming) text += chunk;
        const { error } = JSON.parse(text) as Partial<ErrorBody>;
        resolve({ status: incoming.statusCode ?? 0, code: error?.code, retryAfter: incoming.headers['retry-after'] });
      },
    );
    outgoing.on('error', reject);
    outgoing.flushHeaders();
    outgoing.end(body);
  });
}

test('a large body costs no new memory once one like it has arrived', async () => {
  // Without a filename it is refused before anything is decoded.
  const body = Buffer.from(JSON.stringify({ content_type: 'text/plain', data: 'A'.repeat(2.5 * mebibyte) }));
  const headers = { 'x-api-key': app.secretKey };
  const sendOne = async () => {
    const request = begin('/api/v1/files', headers, body.length, 0);
    request.send(body);
    assert.match(await request.answered, /^HTTP\/1\.1 422 /);
    request.destroy();
    await waitUntil(() => held() === 0);
  };
  await sendOne();
  const before = process.memoryUsage().arrayBuffers;
  for (let n = 0; n < 6; n++) await sendOne();
  assert.ok(process.memoryUsage().arrayBuffers - before < mebibyte);
});

test('an app may have as many event streams as remain free, so that another app finds room', async () => {
  const paths = ['/api/v1/events/stream', `/api/v1/kv_watch?user=${(await provision.user(app)).id}`];
  const open = (path: string, { secretKey }: typeof app) =>
    EventStream.open(`${baseUrl}${path}`, { 'x-api-key': secretKey });
  const [first, second] = [await open(paths[0] ?? '', app), await open(paths[1] ?? '', app)];
  assert.deepEqual([first.response.statusCode, second.response.statusCode], [200, 200]);
  for (const path of paths) {
    const third = await open(path, app);
    assert.equal(third.response.statusCode, 429);
    third.close();
    const { body, headers } = await api<ErrorBody>('GET', path, { key: app.secretKey });
    assert.equal(body.error.code, 'rate_limited');
    assert.equal(headers.get('retry-after'), '5');
    assert.equal((await api('HEAD', path, { key: app.secretKey })).status, 200, 'a HEAD opens none');
  }

  const other = await open('/api/v1/events/stream', otherApp);
  assert.equal((await other.take()).event, 'ready');
  first.close();
  await waitUntil(() => server.services.streams.size === 2);
  const again = await open('/api/v1/events/stream', app);
  assert.equal((await again.take()).event, 'ready', 'a closed stream makes room');
  for (const stream of [second, other, again]) stream.close();
  await waitUntil(() => server.services.streams.size === 0);
});

test('a body whose size is not announced is released once, however often its memory grew', () => {
  const intake = new Intake({ clock, memoryBytesMax: 1_000 });
  const response = new EventEmitter();
  const request = { response } as unknown as Parameters<Intake['hold']>[0];
  for (let part = 0; part < 20; part++) intake.hold(request, 10, 'app');
  assert.deepEqual([intake.heldBytes, response.listenerCount('close')], [200, 1]);
  response.emit('finish');
  response.emit('close');
  assert.equal(intake.heldBytes, 0);
  intake.close();
});
