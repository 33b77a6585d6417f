import assert from 'node:assert/strict';
import { after, mock, test } from 'node:test';
import { startTestServer } from '../../support/server.ts';

const server = await startTestServer({ logLevel: 'debug' });
after(() => server.close());
const app = await server.provision.app();

/** Collects the lines of the log until one has the id of this request. */
async function logUntil(requestId: string, send: () => Promise<void>): Promise<string> {
  const lines: string[] = [];
  const written = Promise.withResolvers<void>();
  const write = mock.method(process.stderr, 'write', (chunk: string) => {
    lines.push(chunk);
    if (/"status":/.test(chunk) && chunk.includes(requestId)) written.resolve();
    return true;
  });
  try {
    await send();
    await written.promise;
  } finally {
    write.mock.restore();
  }
  return lines.join('');
}

test('a body that is not valid JSON never reaches the log', async () => {
  const log = await logUntil('invalid-json-2', async () => {
    const bodies = ['{"email":"a@example.test","password":"hunter2-is-mine}', '{"password":hunter2-is-mine}'];
    for (const [index, body] of bodies.entries()) {
      const headers = { 'x-request-id': `invalid-json-${index + 1}` };
      const answer = await server.api('POST', '/api/v1/auth/login', { key: app.publishableKey, headers, body });
      assert.equal(answer.status, 400);
      assert.doesNotMatch(answer.text, /hunter2/);
    }
  });
  assert.match(log, /"status":400/);
  assert.doesNotMatch(log, /hunter2/);
});

test('what the operator has not set up is refused without an error in the log', async () => {
  const log = await logUntil('no-model', async () => {
    const body = {
      url: 'https://nowhere.invalid',
      mode: 'link',
      schema: { type: 'object' },
      destination_kind: 'storage',
    };
    const headers = { 'x-request-id': 'no-model' };
    const refused = await server.api('POST', '/api/v1/extractions', { key: app.secretKey, headers, body });
    assert.equal(refused.status, 501);
  });
  const own = log.split('\n').filter((line) => line.includes('no-model'));
  assert.match(own.join(''), /QUARRY_LLM_URL/);
  assert.doesNotMatch(own.join(''), /"level":("error"|[56]0)/);
});
