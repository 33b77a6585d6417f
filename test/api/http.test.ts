import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type ErrorBody, startTestServer, type TestServer } from '../support/server.ts';

let server: TestServer;
before(async () => {
  server = await startTestServer();
});
after(() => server.close());

test('an unknown path is 404 in the one shape of errors, with a request id', async () => {
  const { status, body, headers } = await server.api<ErrorBody>('GET', '/api/v1/nowhere', {
    headers: { 'x-request-id': 'mine-1' },
  });
  assert.equal(status, 404);
  assert.equal(headers.get('x-request-id'), 'mine-1');
  assert.deepEqual(Object.keys(body.error), ['type', 'code', 'message', 'fields', 'details']);
});
