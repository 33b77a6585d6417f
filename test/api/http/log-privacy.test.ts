import assert from 'node:assert/strict';
import { after, mock, test } from 'node:test';
import { startTestServer } from '../../support/server.ts';

const server = await startTestServer({ logLevel: 'debug' });
after(() => server.close());
const app = await server.provision.app();

test('a body that is not valid JSON never reaches the log', async () => {
  const lines: string[] = [];
  const written = Promise.withResolvers<void>();
  const write = mock.method(process.stderr, 'write', (chunk: string) => {
    lines.push(chunk);
    if (chunk.includes('invalid-json-2')) written.resolve();
    return true;
  });
  try {
    const bodies = ['{"email":"a@example.test","password":"hunter2-is-mine}', '{"password":hunter2-is-mine}'];
    for (const [index, body] of bodies.entries()) {
      const headers = { 'x-request-id': `invalid-json-${index + 1}` };
      const answer = await server.api('POST', '/api/v1/auth/login', { key: app.publishableKey, headers, body });
      assert.equal(answer.status, 400);
      assert.doesNotMatch(answer.text, /hunter2/);
    }
    await written.promise;
  } finally {
    write.mock.restore();
  }
  assert.match(lines.join(''), /"status":400/);
  assert.doesNotMatch(lines.join(''), /hunter2/);
});
