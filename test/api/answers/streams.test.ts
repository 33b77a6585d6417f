import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { after, test } from 'node:test';
import { knowledgeOf } from '../../support/knowledge.ts';
import { chatEvent, startLanguageModel } from '../../support/language-model.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { startTestServer } from '../../support/server.ts';
import { startWatch } from '../../support/speed.ts';
import { until } from '../../support/until.ts';

/* Streams of answers end like all others: with the credential and the rights of their reader, within the app's share. */

const endsWithinMs = 2_500;
const model = await startLanguageModel();
const clock = new ManualClock(new Date('2030-01-01T00:00:00.500Z'));
const server = await startTestServer({
  clock,
  env: { QUARRY_LLM_URL: model.url, QUARRY_LLM_MODEL: 'test', QUARRY_STREAMS_MAX: '4' },
});
after(async () => {
  await server.close();
  await model.close();
});
const world = await server.provision.world();
const app = knowledgeOf(server, { key: world.app.secretKey });
const source = await app.createSource({ org: world.org.id });
const grants = { grants: [{ principal_type: 'user', principal: world.member.id }] };
const document = await app.push(source, 'Goods may be returned within thirty days.', { acl: grants });

type Auth = { key?: string; token?: string };

/** A stream whose model has written one sentence and writes no more. */
async function openStream({ key, token }: Auth) {
  const { promise: writing, resolve } = Promise.withResolvers<ServerResponse>();
  model.script = () => ({
    respond(response) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(chatEvent('They may be returned [1]. More'));
      resolve(response);
    },
  });
  const headers = key === undefined ? { authorization: `Bearer ${token}` } : { 'x-api-key': key };
  const response = await fetch(`${server.baseUrl}/api/v1/answers`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ query: 'When may goods be returned?', sources: [source], stream: true }),
  });
  const reading = response.text();
  return { status: response.status, reading, writing };
}

/** Ends an open stream, and fails unless it ends in time with an error, as does the request to the model. */
async function endsBy(auth: Auth, end: () => Promise<unknown>): Promise<void> {
  const { status, reading, writing } = await openStream(auth);
  assert.equal(status, 200);
  const upstream = await writing;
  const cut = once(upstream, 'close');
  const watch = startWatch();
  await end();
  const text = await reading;
  watch.within(endsWithinMs, 'The end');
  await cut;
  assert.match(text, /^event: delta/);
  const events = text.trim().split('\n\n');
  assert.match(events.at(-1) ?? '', /^event: error\ndata: {"error":{"code":"forbidden"/);
  assert.doesNotMatch(text, /event: answer/);
  await until(() => server.services.streams.size === 0);
}

test('a stream ends when its key is revoked', async () => {
  const made = await server.api<{ id: string; full_key: string }>('POST', '/api/v1/keys', {
    key: world.app.secretKey,
    body: { type: 'secret' },
  });
  await endsBy({ key: made.body.full_key }, () =>
    server.api('DELETE', `/api/v1/keys/${made.body.id}`, { key: world.app.secretKey }),
  );
});

test('a stream ends when its token is revoked', async () => {
  const made = await server.api<{ access_token: string }>('POST', `/api/v1/users/${world.member.id}/tokens`, {
    key: world.app.secretKey,
    body: {},
  });
  await endsBy({ token: made.body.access_token }, () =>
    server.api('POST', `/api/v1/users/${world.member.id}/sessions/revoke`, { key: world.app.secretKey }),
  );
});

test('a stream ends when its token expires', async () => {
  const made = await server.api<{ access_token: string; expires_in: number }>(
    'POST',
    `/api/v1/users/${world.member.id}/tokens`,
    { key: world.app.secretKey, body: {} },
  );
  await endsBy({ token: made.body.access_token }, async () => {
    clock.advance((made.body.expires_in + 1) * 1_000);
  });
});

test('a stream ends when a document that it was written from is hidden from its reader', async () => {
  const made = await server.api<{ access_token: string }>('POST', `/api/v1/users/${world.member.id}/tokens`, {
    key: world.app.secretKey,
    body: {},
  });
  await endsBy({ token: made.body.access_token }, () =>
    app.send('PATCH', `/knowledge_documents/${document}/acl`, { grants: [] }),
  );
  await app.send('PATCH', `/knowledge_documents/${document}/acl`, grants);
});

test('streams of answers count for the share of their app', async () => {
  const key = { key: world.app.secretKey };
  const open = [await openStream(key), await openStream(key)];
  const refused = await openStream(key);
  assert.equal(refused.status, 429);
  assert.match(await refused.reading, /"code":"rate_limited"/);
  for (const { writing } of open) (await writing).end('data: [DONE]\n\n');
  for (const { reading } of open) await reading;
  await until(() => server.services.streams.size === 0);
  model.script = () => 'They may be returned [1].';
  const body = { query: 'When may goods be returned?', sources: [source] };
  assert.equal((await app.send('POST', '/answers', body)).status, 200);
});
