import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { sendRaw } from '../../support/raw-request.ts';
import { type ErrorBody, startTestServer, type TestServer } from '../../support/server.ts';

let server: TestServer;
before(async () => {
  server = await startTestServer();
});
after(() => server.close());

test('an unknown path is 404 in the usual error shape, with a request id', async () => {
  const { status, body, headers } = await server.api<ErrorBody>('GET', '/api/v1/nowhere', {
    headers: { 'x-request-id': 'mine-1' },
  });
  assert.equal(status, 404);
  assert.equal(headers.get('x-request-id'), 'mine-1');
  assert.deepEqual(Object.keys(body.error), ['type', 'code', 'message', 'fields', 'details']);
});

test('invalid HTTP gets the standard error shape', async () => {
  const { hostname, port } = new URL(server.baseUrl);
  const socket = connect(Number(port), hostname);
  socket.end('NONSENSE\r\n\r\n');
  const answer = Buffer.concat(await socket.toArray()).toString('utf8');
  assert.match(answer, /^HTTP\/1\.1 400 Bad Request\r\n/);
  assert.match(answer, /\r\nx-request-id: /);
  const { error } = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4)) as ErrorBody;
  assert.equal(error.type, 'bad_request');
});

test('an expectation that nobody defines is ignored, and every response has a request id', async () => {
  for (const [path, status] of [
    ['/healthz', 200],
    ['/api/v1/orgs', 401],
  ] as const) {
    const head = await sendRaw(
      server.baseUrl,
      `GET ${path} HTTP/1.1\r\nHost: x\r\nExpect: tea\r\nConnection: close\r\n\r\n`,
    );
    assert.match(head, new RegExp(`^HTTP/1.1 ${status} `));
    assert.match(head, /\r\nx-request-id: /);
  }
});
