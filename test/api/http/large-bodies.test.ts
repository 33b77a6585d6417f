import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type ErrorBody, startTestServer } from '../../support/server.ts';

const server = await startTestServer();
after(() => server.close());
const app = await server.provision.app();
const agent = await server.provision.agent(app);
const source = await server.api<{ id: string }>('POST', '/api/v1/knowledge_sources', {
  key: app.secretKey,
  body: { type: 'knowledge/documents', agent: agent.id },
});

const send = (method: string, path: string, body: unknown) =>
  server.api<ErrorBody>(method, path, { key: app.secretKey, body: body as object });

test('a body of too many members is 422, one of too many short strings 413, and the process goes on', async () => {
  const members = Object.fromEntries(Array.from({ length: 60_000 }, (_, index) => [`k${index}`, index]));
  const many = await send('PATCH', `/api/v1/agents/${agent.id}`, members);
  assert.deepEqual([many.status, many.body.error.fields[0]?.field], [422, 'body']);
  const items = Array.from({ length: 200 }, () => ({ content: { data: 'x'.repeat(60_000) } }));
  const long = await send('POST', `/api/v1/knowledge_sources/${source.body.id}/ingest/batch`, { items });
  assert.deepEqual([long.status, long.body.error.code], [413, 'payload_too_large']);
  const whole = await send('POST', `/api/v1/knowledge_sources/${source.body.id}/ingest/batch`, {
    items: items.slice(0, 100),
  });
  assert.equal(whole.status, 201, whole.text);
});

test('of a large wrong body, the first problem is reported; of a small one, all', async () => {
  const wrong = (count: number) => ({ items: Array.from({ length: count }, () => ({ content: 1 })) });
  const path = `/api/v1/knowledge_sources/${source.body.id}/ingest/batch`;
  const small = await send('POST', path, wrong(3));
  assert.deepEqual(
    small.body.error.fields.map(({ field }) => field),
    ['items.0.content', 'items.1.content', 'items.2.content'],
  );
  const large = await send('POST', path, wrong(30_000));
  assert.deepEqual([large.status, large.body.error.fields.map(({ field }) => field)], [422, ['items']]);
});
