import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import type { TestApp } from '../../support/provisioner.ts';
import { type ErrorBody, startTestServer, type TestServer } from '../../support/server.ts';

const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const dayMs = 24 * 60 * minuteMs;

let now = Date.now();
let server: TestServer;
let app: TestApp;
let source: string;
let url: string;

before(async () => {
  server = await startTestServer({ clock: { now: () => new Date(now) } });
  app = await server.provision.app();
});
after(() => server.close());
beforeEach(async () => {
  const agent = await server.provision.agent(app);
  const installed = await send<{ id: string; inbound_url: string }>('POST', '/installations', {
    agent: agent.id,
    kind: 'webhook/inbound',
  });
  const found = await send<{ data: { id: string }[] }>('GET', `/knowledge_sources?installation=${installed.body.id}`);
  [source, url] = [found.body.data[0]?.id ?? '', installed.body.inbound_url];
});

type Posted = { status: number; ingestion: string | undefined; code: string | undefined };

function send<T = Record<string, unknown>>(method: string, path: string, body?: unknown) {
  return server.api<T>(method, `/api/v1${path}`, { key: app.secretKey, ...(body === undefined ? {} : { body }) });
}

const secretPath = () => `/knowledge_sources/${source}/inbound_url/signing_secret`;

async function setSecret(body: object = {}): Promise<{ secret: string; previous_secret_until?: string }> {
  const made = await send<{ secret: string; previous_secret_until?: string }>('POST', secretPath(), body);
  assert.equal(made.status, 201, made.text);
  return made.body;
}

async function post(text: string, headers: Record<string, string> = {}): Promise<Posted> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'text/plain', ...headers },
    body: text,
  });
  const body = (await response.json()) as { ingestion?: string } & Partial<ErrorBody>;
  return { status: response.status, ingestion: body.ingestion, code: body.error?.code };
}

/** The headers of the official library. */
function sign(secret: string, text: string, { id = 'msg_1', at = now } = {}): Record<string, string> {
  const date = new Date(at);
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at / secondMs)),
    'webhook-signature': new Webhook(secret).sign(id, date, text),
  };
}

async function countIngestions(): Promise<number> {
  const list = await send<{ total_entries: number }>('GET', `/knowledge_sources/${source}/ingestions`);
  return list.body.total_entries;
}

test('a source with a signing secret accepts what the official library has signed, and nothing else', async () => {
  const { secret } = await setSecret();
  assert.match(secret, /^whsec_/);
  const accepted = await post('A walrus.', sign(secret, 'A walrus.'));
  assert.deepEqual([accepted.status, accepted.code], [202, undefined]);
  const other = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  const signed = sign(secret, 'A walrus.', { id: 'msg_2' });
  const without = (name: string) => Object.fromEntries(Object.entries(signed).filter(([key]) => key !== name));
  const refused: [string, Record<string, string>, string][] = [
    ['A walrus.', {}, 'unauthenticated'],
    ['A walrus.', without('webhook-id'), 'unauthenticated'],
    ['A walrus.', without('webhook-timestamp'), 'unauthenticated'],
    ['A walrus.', without('webhook-signature'), 'unauthenticated'],
    ['A walrus.', sign(other, 'A walrus.', { id: 'msg_2' }), 'invalid_credentials'],
    ['A seal.', signed, 'invalid_credentials'],
    ['A walrus.', { ...signed, 'webhook-id': 'msg_3' }, 'invalid_credentials'],
    ['A walrus.', { ...signed, 'webhook-id': 'm'.repeat(256) }, 'invalid_credentials'],
    ['A walrus.', { ...signed, 'webhook-timestamp': `${signed['webhook-timestamp']}.0` }, 'invalid_credentials'],
    ['A walrus.', { ...signed, 'webhook-signature': 'v1,' }, 'invalid_credentials'],
    ['A walrus.', { ...signed, 'webhook-signature': `v1a,${'A'.repeat(44)}` }, 'invalid_credentials'],
  ];
  for (const [text, headers, code] of refused)
    assert.deepEqual(await post(text, headers), { status: 401, ingestion: undefined, code }, JSON.stringify(headers));
  const among = { ...signed, 'webhook-signature': `v1,${'A'.repeat(43)}= ${signed['webhook-signature']}` };
  assert.equal((await post('A walrus.', among)).status, 202);
  assert.equal(await countIngestions(), 2);
});

test('a signature of more than five minutes ago or ahead is refused', async () => {
  const { secret } = await setSecret();
  const at = (difference: number) =>
    post('Text.', sign(secret, 'Text.', { id: `msg_${difference}`, at: now + difference }));
  for (const minutes of [-6, 6]) {
    const late = await at(minutes * minuteMs);
    assert.deepEqual([late.status, late.code], [401, 'invalid_credentials']);
  }
  for (const minutes of [-4, 4]) assert.equal((await at(minutes * minuteMs)).status, 202);
});

test('a copy of an accepted request is refused; a retry of its sender gets the first ingestion', async () => {
  const { secret } = await setSecret();
  const headers = sign(secret, 'Once.');
  const copies = await Promise.all(Array.from({ length: 4 }, () => post('Once.', headers)));
  assert.deepEqual(copies.map(({ status }) => status).sort(), [202, 409, 409, 409]);
  const first = copies.find(({ status }) => status === 202)?.ingestion;
  now += 10 * secondMs;
  const retried = sign(secret, 'Once.');
  assert.deepEqual(await post('Once.', retried), { status: 202, ingestion: first, code: undefined });
  assert.deepEqual((await post('Once.', retried)).status, 409);
  assert.equal(await countIngestions(), 1);
  now += 3 * dayMs;
  assert.equal((await post('Once.', sign(secret, 'Once.'))).ingestion, first);
});

test('message ids are kept for seven days', async () => {
  const { secret } = await setSecret();
  assert.equal((await post('Text.', sign(secret, 'Text.'))).status, 202);
  const count = async () => {
    await server.server.work.tasks.purge_sources?.({}, {} as never);
    const [row] = await server.db<[{ total: number }]>`select count(*)::int as total from inbound_messages`;
    return row.total;
  };
  now += 6 * dayMs;
  assert.ok((await count()) > 0);
  now += 2 * dayMs;
  assert.equal(await count(), 0);
});

test('after a rotation the previous secret is accepted until the overlap ends', async () => {
  const given = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;
  assert.deepEqual(await setSecret({ secret: given }), { secret: given });
  const { secret, previous_secret_until: until } = await setSecret({ overlap_seconds: 60 });
  assert.equal(until, new Date(now + minuteMs).toISOString());
  const shown = await send('GET', `/knowledge_sources/${source}/inbound_url`);
  assert.deepEqual(shown.body, { url, signed: true, previous_secret_until: until });
  assert.equal((await post('a', sign(given, 'a', { id: 'a' }))).status, 202);
  now += minuteMs;
  assert.equal((await post('b', sign(given, 'b', { id: 'b' }))).status, 401);
  assert.equal((await post('b', sign(secret, 'b', { id: 'b' }))).status, 202);
  assert.deepEqual((await send('GET', `/knowledge_sources/${source}/inbound_url`)).body, { url, signed: true });
  await setSecret({ overlap_seconds: 0 });
  assert.equal((await post('c', sign(secret, 'c', { id: 'c' }))).status, 401);
});

test('the secret stays with the source when its URL is replaced, and ends with its removal', async () => {
  const { secret } = await setSecret();
  url = (await send<{ url: string }>('POST', `/knowledge_sources/${source}/inbound_url`)).body.url;
  assert.equal((await post('Text.')).status, 401);
  assert.equal((await post('Text.', sign(secret, 'Text.'))).status, 202);
  assert.equal((await send('DELETE', secretPath())).status, 204);
  assert.deepEqual((await send('GET', `/knowledge_sources/${source}/inbound_url`)).body, { url, signed: false });
  assert.equal((await post('Text.')).status, 202);
});

test('a bad secret or overlap is 422 and changes nothing', async () => {
  for (const [body, field] of [
    [{ secret: 'hello' }, 'secret'],
    [{ secret: `whsec_${Buffer.alloc(23).toString('base64')}` }, 'secret'],
    [{ secret: `whsec_${Buffer.alloc(65).toString('base64')}` }, 'secret'],
    [{ secret: `whsec_${'?'.repeat(43)}` }, 'secret'],
    [{ overlap_seconds: -1 }, 'overlap_seconds'],
    [{ overlap_seconds: 604_801 }, 'overlap_seconds'],
    [{ overlap: 1 }, 'overlap'],
  ] as const) {
    const refused = await send<ErrorBody>('POST', secretPath(), body);
    assert.deepEqual([refused.status, refused.body.error.fields[0]?.field], [422, field]);
  }
  assert.equal((await post('Text.')).status, 202);
  const user = await server.provision.user(app);
  const plain = await send<{ id: string }>('POST', '/knowledge_sources', {
    type: 'knowledge/documents',
    user: user.id,
  });
  const path = `/knowledge_sources/${plain.body.id}/inbound_url/signing_secret`;
  assert.equal((await send('POST', path, {})).status, 404);
  assert.equal((await send('DELETE', path)).status, 404);
});

test('signed messages are identified by webhook-id, not by Idempotency-Key', async () => {
  const { secret } = await setSecret();
  const refused = await post('Text.', { ...sign(secret, 'Text.'), 'idempotency-key': 'k' });
  assert.deepEqual([refused.status, refused.code], [422, 'invalid_parameters']);
});
