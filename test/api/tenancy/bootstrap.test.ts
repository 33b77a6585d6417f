import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { type AppCredentials, bootstrapIfEmpty, mintCredentials } from '../../../src/apps/bootstrap.ts';
import { rewrapKeys } from '../../../src/tenancy/rotation-store.ts';
import { Secrets } from '../../../src/tenancy/secrets.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';

let server: TestServer;
before(async () => {
  server = await startTestServer();
});
after(() => server.close());

test('on an empty database exactly one of many processes creates the first credentials, and they work', async () => {
  const { db, secrets } = server.services;
  const kept: AppCredentials[] = [];
  const made = await Promise.all([1, 2, 3, 4].map(() => bootstrapIfEmpty(db, secrets, (each) => kept.push(each))));
  const first = made.find((each) => each !== undefined);
  assert.equal(made.filter((each) => each !== undefined).length, 1);
  assert.deepEqual(kept, [first]);
  const { status, body } = await server.api('GET', '/protected/api/v1/developer/apps', {
    token: first?.developerToken ?? '',
  });
  assert.equal(status, 200);
  assert.equal((body.data as { id: string }[])[0]?.id, first?.app);
});

test('credentials that cannot be stored are not created', async () => {
  const { db, secrets } = server.services;
  await db`delete from sandboxes`;
  await db`delete from apps`;
  await db`delete from developers`;
  const full = () => {
    throw new Error('No space left on device');
  };
  await assert.rejects(bootstrapIfEmpty(db, secrets, full), /No space left/);
  assert.equal((await db`select id from developers`).length, 0);
  assert.equal(await mintCredentials(db), undefined);
});

test('after a rotation of the root secret, keys, inbound URLs, signing secrets and app secrets are the same, wrapped by the new one', async () => {
  const { app, secretKey: key } = await server.provision.app();
  const { db, secrets, config } = server.services;
  await server.api('PUT', '/api/v1/secrets/TOKEN', { key, body: { value: 'of the app' } });
  const agent = await server.api<{ id: string }>('POST', '/api/v1/agents', { key, body: { name: 'a' } });
  const body = { agent: agent.body.id, kind: 'webhook/inbound' };
  assert.equal((await server.api('POST', '/api/v1/installations', { key, body })).status, 201);
  const [source] = (await server.api<{ data: { id: string }[] }>('GET', '/api/v1/knowledge_sources', { key })).body
    .data;
  const signing = `/api/v1/knowledge_sources/${source?.id}/inbound_url/signing_secret`;
  for (const _ of ['previous', 'current']) await server.api('POST', signing, { key, body: {} });
  const issuer = {
    ...{ issuer: 'https://login.example.com', audience: 'https://api.example.com' },
    console: { client_id: 'quarry', client_secret: 'of the console' },
  };
  assert.equal((await server.api('POST', '/api/v1/identity_issuers', { key, body: issuer })).status, 201);
  const stored = async () =>
    db<{ wrapped: Buffer }[]>`select capability_key as wrapped from apps where id = ${app.uuid}
      union all select value from app_secrets where app_id = ${app.uuid}
      union all select inbound_token from knowledge_sources where app_id = ${app.uuid}
      union all select inbound_secret from knowledge_sources where app_id = ${app.uuid}
      union all select inbound_previous_secret from knowledge_sources where app_id = ${app.uuid}
      union all select client_secret from identity_issuers where app_id = ${app.uuid}`;
  const plain = async (by: Secrets) => (await stored()).map(({ wrapped }) => by.unwrap(wrapped).plain.toString('hex'));
  const before = (await plain(secrets)).sort();
  assert.equal(before.length, 6);
  const next = randomBytes(32).toString('hex');
  const rotated = new Secrets(next, config.secret);
  assert.ok((await rewrapKeys(db, rotated)) >= 1);
  assert.equal(await rewrapKeys(db, rotated), 0);
  assert.deepEqual((await plain(new Secrets(next))).sort(), before);
});
