import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { networkOf } from '../../../src/lib/network.ts';
import { hashPassword } from '../../../src/users/passwords.ts';
import type { TestApp } from '../../support/provisioner.ts';
import { type ErrorBody, startTestServer, type TestServer } from '../../support/server.ts';
import { speedTest, startWatch } from '../../support/speed.ts';

/* How often somebody may try to sign in, counted by all processes together. */

let now = Date.UTC(2032, 0, 1);
const clock = { now: () => new Date(now) };
let server: TestServer;
let other: TestServer;
let app: TestApp;
let passwordHash: string;
const password = 'correct horse battery';

before(async () => {
  const env = { QUARRY_TRUST_PROXY: '127.0.0.1' };
  server = await startTestServer({ clock, env });
  other = await startTestServer({ clock, env, beside: server });
  app = await server.provision.app();
  passwordHash = await hashPassword(password);
});
after(async () => {
  await other.close();
  await server.close();
});

/** Each test has an hour of its own. */
function laterHour(): void {
  now += 2 * 3_600_000;
}

async function newUser(): Promise<string> {
  const { uuid, email } = await server.provision.user(app);
  await server.db`update users set password_hash = ${passwordHash} where app_id = ${app.app.uuid} and id = ${uuid}`;
  return email;
}

let addresses = 0;
const newAddress = () => `198.51.${Math.floor(++addresses / 250)}.${(addresses % 250) + 1}`;

function login(email: string, secret: string, from: string, at = server) {
  return at.api<ErrorBody>('POST', '/api/v1/auth/login', {
    key: app.publishableKey,
    body: { email, password: secret },
    headers: { 'x-forwarded-for': from },
  });
}

const statusOf = async (...given: Parameters<typeof login>) => (await login(...given)).status;

test('five failures a minute for an e-mail from one address, in a window that slides', async () => {
  laterHour();
  const email = await newUser();
  const from = newAddress();
  // At the end of a minute by the clock on the wall.
  now += 50_000;
  const began = now;
  for (let failure = 0; failure < 5; failure++) {
    assert.equal(await statusOf(email, 'wrong', from), 401);
    now += 1_000;
  }
  for (const after of [6_000, 15_000, 35_000, 59_000]) {
    now = began + after;
    const refused = await login(email, password, from);
    assert.deepEqual([refused.status, refused.body.error.code], [429, 'rate_limited'], `${after} ms`);
    assert.equal(refused.headers.get('retry-after'), String(60 - after / 1_000));
  }
  now = began + 60_000;
  assert.equal(await statusOf(email, 'wrong', from), 401);
  assert.equal(await statusOf(email, 'wrong', from), 429);
});

test('ten failures a minute from one address, for any e-mails', async () => {
  laterHour();
  const email = await newUser();
  const from = newAddress();
  for (let failure = 0; failure < 10; failure++) assert.equal(await statusOf(`n${failure}@x.test`, 'x', from), 401);
  assert.equal(await statusOf(email, password, from), 429);
  assert.equal(await statusOf(email, password, newAddress()), 200);
  now += 60_000;
  assert.equal(await statusOf(email, password, from), 200);
});

test('failed attempts by strangers do not lock the owner out, even a hundred in an hour', async () => {
  laterHour();
  const email = await newUser();
  const home = newAddress();
  assert.equal(await statusOf(email, password, home), 200);
  for (let failure = 0; failure < 20; failure++)
    assert.deepEqual(
      await Promise.all(Array.from({ length: 5 }, () => statusOf(email, 'wrong', newAddress()))),
      [401, 401, 401, 401, 401],
    );
  const stranger = await login(email, password, newAddress());
  assert.equal(stranger.status, 429);
  assert.ok(Number(stranger.headers.get('retry-after')) > 3_000);
  assert.equal(await statusOf(email, password, home), 200);
  now += 3_600_000;
  assert.equal(await statusOf(email, password, newAddress()), 200);
});

test('failures are counted by all processes together', async () => {
  laterHour();
  const email = await newUser();
  const from = newAddress();
  for (const at of [server, other, server, other, server]) assert.equal(await statusOf(email, 'wrong', from, at), 401);
  for (const at of [server, other]) assert.equal(await statusOf(email, password, from, at), 429);
});

test('successes do not count as failures, even many concurrent ones', async () => {
  laterHour();
  const email = await newUser();
  const from = newAddress();
  const statuses = await Promise.all(
    Array.from({ length: 15 }, (_one, index) => statusOf(email, password, from, index % 2 ? server : other)),
  );
  assert.deepEqual(new Set(statuses), new Set([200]));
});

test('sixty sign-ins a minute for an e-mail from one address, whatever the password', async () => {
  laterHour();
  const email = await newUser();
  const from = newAddress();
  for (let count = 0; count < 4; count++)
    await Promise.all(Array.from({ length: 15 }, async () => assert.equal(await statusOf(email, password, from), 200)));
  assert.equal(await statusOf(email, password, from), 429);
  assert.equal(await statusOf(email, password, newAddress()), 200);
});

test('of many concurrent attempts, as many fail as a window has slots, and the rest are refused', async () => {
  laterHour();
  const email = await newUser();
  const from = newAddress();
  const statuses = await Promise.all(
    Array.from({ length: 16 }, (_one, index) => statusOf(email, 'wrong', from, index % 2 ? server : other)),
  );
  assert.equal(statuses.filter((status) => status === 401).length, 5);
  assert.equal(statuses.filter((status) => status === 429).length, 11);
});

test('an unknown e-mail gets the response of a known one: bytes and limits', async () => {
  laterHour();
  const known = await newUser();
  const unknown = 'nobody@example.test';
  const answers = await Promise.all([known, unknown].map((email) => login(email, 'wrong', newAddress())));
  assert.deepEqual(
    answers.map(({ status, text }) => [status, text]),
    Array(2).fill([401, answers[0]?.text]),
  );
  const refusals = await Promise.all(
    [known, unknown].map(async (email) => {
      const from = newAddress();
      for (let failure = 0; failure < 5; failure++) assert.equal(await statusOf(email, 'wrong', from), 401);
      const { status, text, headers } = await login(email, 'wrong', from);
      return [status, text, headers.get('retry-after')];
    }),
  );
  assert.equal(refusals[0]?.[0], 429);
  assert.deepEqual(refusals[0], refusals[1]);
});

speedTest('an unknown e-mail gets its response as fast as a known one', async () => {
  laterHour();
  const known = await newUser();
  const took: Record<string, number[]> = { known: [], unknown: [] };
  for (let round = 0; round < 10; round++) {
    const from = newAddress();
    for (const [kind, email] of Object.entries({ known, unknown: 'nobody@example.test' })) {
      const watch = startWatch();
      assert.equal((await login(email, 'wrong', from)).status, 401);
      took[kind]?.push(watch.passedMs());
    }
  }
  const median = (kind: string) => (took[kind] ?? []).sort((a, b) => a - b)[5] ?? 0;
  const ratio = median('known') / median('unknown');
  assert.ok(ratio > 0.5 && ratio < 2, `the known one takes ${ratio} times as long`);
});

test('attempts on an unknown e-mail count against its limit of a hundred an hour', async () => {
  laterHour();
  for (let failure = 0; failure < 20; failure++)
    await Promise.all(Array.from({ length: 5 }, () => login('ghost@example.test', 'wrong', newAddress())));
  assert.equal(await statusOf('ghost@example.test', 'wrong', newAddress()), 429);
});

test('an IPv6 subscriber is one address, and an IPv4 address in IPv6 spelling is itself', () => {
  assert.equal(networkOf('2001:db8:1:2:3:4:5:6'), networkOf('2001:db8:1:2::9'));
  assert.notEqual(networkOf('2001:db8:1:2::1'), networkOf('2001:db8:1:3::1'));
  assert.equal(networkOf('::ffff:192.0.2.1'), networkOf('192.0.2.1'));
});
