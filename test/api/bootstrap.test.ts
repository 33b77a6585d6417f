import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { type AppCredentials, bootstrapIfEmpty, mintCredentials, rewrapKeys } from '../../src/apps/bootstrap.ts';
import { Secrets } from '../../src/tenancy/secrets.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

let server: TestServer;
before(async () => {
  server = await startTestServer();
});
after(() => server.close());

test('on an empty database exactly one of many processes makes the first credentials, and they work', async () => {
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

test('credentials that cannot be kept are not made', async () => {
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

test('after the root secret was rotated the stored keys are the same, wrapped by the new one', async () => {
  const { app } = await server.provision.app();
  const { db, secrets, config } = server.services;
  const stored = async () => {
    const [row] = await db<{ key: Buffer }[]>`select capability_key as key from apps where id = ${app.uuid}`;
    return row?.key ?? Buffer.alloc(0);
  };
  const before = secrets.unwrap(await stored()).plain;
  const next = randomBytes(32).toString('hex');
  const rotated = new Secrets(next, config.secret);
  assert.ok((await rewrapKeys(db, rotated)) >= 1);
  assert.equal(await rewrapKeys(db, rotated), 0);
  assert.deepEqual(new Secrets(next).unwrap(await stored()).plain, before);
});
