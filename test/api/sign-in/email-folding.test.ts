import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { foldEmail } from '../../../src/tenancy/email.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';
import { startIssuer } from '../../support/token-issuer.ts';

/* One folding of addresses, of ASCII letters only, for sign-in, its limits and links to accounts. */

const audience = 'https://quarry.example';
const issuer = await startIssuer(() => new Date(), audience);
const server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.0/8' } });
after(async () => {
  await server.close();
  await issuer.close();
});
const { api, provision, db } = server;
const app = await provision.app();
const password = 'correct horse battery';
const create = (email: string) =>
  api<ErrorBody & { id: string }>('POST', '/api/v1/users', { key: app.secretKey, body: { email, password } });
const signIn = async (email: string, given = password) =>
  (await api('POST', '/api/v1/auth/login', { key: app.publishableKey, body: { email, password: given } })).status;

test('an address with other letters that lower-case to the same is another address', async () => {
  assert.equal((await create('Kiki@example.com')).status, 201);
  assert.equal(await signIn('kiki@EXAMPLE.com'), 200);
  // İ (U+0130) and the Kelvin sign (U+212A) lower-case to ASCII letters in PostgreSQL, or in JavaScript, or in both.
  for (const email of ['k\u0130ki@example.com', '\u212Aiki@example.com', 'ki\u212Ai@example.com'])
    assert.equal(await signIn(email), 401, email);
});

test('attempts are counted for the address that is signed in to', async () => {
  const { email } = await provision.user(app);
  const statuses = new Set<number>();
  for (let n = 0; n < 6; n++) statuses.add(await signIn(n % 2 === 0 ? email : email.toUpperCase(), 'wrong'));
  assert.ok(statuses.has(429), [...statuses].join());
});

test('an issuer links no account by an address that only looks the same', async () => {
  const other = await provision.app();
  const body = { issuer: issuer.issuer, audience, create_users: true, link_by_email: true };
  await api('POST', '/api/v1/identity_issuers', { key: other.secretKey, body });
  const mike = await api<{ id: string }>('POST', '/api/v1/users', {
    key: other.secretKey,
    body: { email: 'mike@example.com' },
  });
  const token = await issuer.sign('stranger', { email: 'mi\u212Ae@example.com', email_verified: true });
  const me = await api<{ id: string; email?: string }>('GET', '/api/v1/users/me', { key: other.publishableKey, token });
  assert.equal(me.status, 200, me.text);
  assert.notEqual(me.body.id, mike.body.id);
  const own = await issuer.sign('mike', { email: 'MIKE@example.com', email_verified: true });
  const linked = await api<{ id: string }>('GET', '/api/v1/users/me', { key: other.publishableKey, token: own });
  assert.equal(linked.body.id, mike.body.id);
});

test('PostgreSQL and JavaScript fold every character alike', async () => {
  const [row] = await db<{ differing: number }[]>`
    select count(*)::integer as differing from generate_series(1, 1114111) as code
    where code not between 55296 and 57343 and lower(chr(code) collate "C") <>
      case when code between 65 and 90 then chr(code + 32) else chr(code) end`;
  assert.equal(row?.differing, 0);
  assert.equal(foldEmail('AZ\u0130\u212A\u00C9az'), 'az\u0130\u212A\u00C9az');
});
