import assert from 'node:assert/strict';
import { createHmac, createPublicKey } from 'node:crypto';
import { after, test } from 'node:test';
import { SignJWT } from 'jose';
import { ManualClock } from '../../support/manual-clock.ts';
import { type ApiOptions, type ErrorBody, startTestServer } from '../../support/server.ts';
import { startIssuer } from '../../support/token-issuer.ts';

const clock = new ManualClock(new Date('2030-01-01T00:00:00.500Z'));
const server = await startTestServer({ clock, env: { QUARRY_FETCH_ALLOW: '127.0.0.0/8' } });
const { api, provision, db } = server;
const audience = 'https://quarry.example';
const issuer = await startIssuer(() => clock.now(), audience);
after(async () => {
  await server.close();
  await issuer.close();
});

type User = { id: string; email?: string; name?: string; org?: string; org_role?: string } & ErrorBody;

/** An app that trusts the issuer. */
async function trusting(settings: Record<string, unknown> = { create_users: true }) {
  const app = await provision.app();
  const body = { issuer: issuer.issuer, audience, ...settings };
  const made = await api<{ id: string }>('POST', '/api/v1/identity_issuers', { key: app.secretKey, body });
  assert.equal(made.status, 201, made.text);
  return { ...app, issuerPath: `/api/v1/identity_issuers/${made.body.id}` };
}
const me = (key: string, token: string, options: ApiOptions = {}) =>
  api<User>('GET', '/api/v1/users/me', { key, token, ...options });
async function refused(key: string, token: string, code = 'invalid_credentials') {
  const answer = await me(key, token);
  assert.deepEqual([answer.status, answer.body.error?.code], [401, code], answer.text);
}

test('a publishable key and a token of the issuer are the user (app, sandbox, issuer, sub)', async () => {
  const app = await trusting();
  const first = await me(app.publishableKey, await issuer.sign('ada', { name: 'Ada' }));
  assert.deepEqual([first.status, first.body.name], [200, 'Ada'], first.text);
  const again = await me(app.publishableKey, await issuer.sign('ada', { name: 'Another', email: 'x@example.test' }));
  assert.equal(again.body.id, first.body.id);
  assert.notEqual((await me(app.publishableKey, await issuer.sign('bob'))).body.id, first.body.id);
  const other = await trusting();
  assert.notEqual((await me(other.publishableKey, await issuer.sign('ada'))).body.id, first.body.id);

  const token = await issuer.sign('ada');
  assert.equal((await api('GET', '/api/v1/users/me', { token })).status, 401);
  assert.equal((await me((await provision.app()).publishableKey, token)).status, 401);
  const sandbox = await provision.sandbox(app);
  assert.equal((await me(sandbox.publishableKey, token)).status, 401);
});

test('concurrent first requests create one user', async () => {
  const app = await trusting();
  const token = await issuer.sign('many');
  const tokens = await Promise.all(Array.from({ length: 8 }, (_, i) => issuer.sign('many', { n: i })));
  const all = await Promise.all([token, ...tokens].map((each) => me(app.publishableKey, each)));
  assert.equal(new Set(all.map(({ body }) => body.id)).size, 1);
  assert.equal((await db`select 1 from users where app_id = ${app.app.uuid}`).length, 1);
});

test('an unknown account is 401 unless the app creates users', async () => {
  const app = await trusting({});
  await refused(app.publishableKey, await issuer.sign('nobody'));
  assert.equal((await db`select 1 from users where app_id = ${app.app.uuid}`).length, 0);
});

test('an account is linked by e-mail only if the app wants it and the address is verified', async () => {
  const closed = await trusting({ create_users: true });
  const owner = await provision.user(closed);
  const claims = { email: owner.email, email_verified: true };
  const stranger = await me(closed.publishableKey, await issuer.sign('eve', claims));
  assert.notEqual(stranger.body.id, owner.id);
  assert.equal(stranger.body.email, undefined);

  const open = await trusting({ link_by_email: true });
  const user = await provision.user(open);
  await refused(open.publishableKey, await issuer.sign('eve', { email: user.email, email_verified: false }));
  await refused(open.publishableKey, await issuer.sign('eve', { email: user.email, email_verified: 'true' }));
  const verified = { email: user.email.toUpperCase(), email_verified: true };
  const linked = await me(open.publishableKey, await issuer.sign('ada', verified));
  assert.equal(linked.body.id, user.id, linked.text);
  await refused(open.publishableKey, await issuer.sign('second', verified));
});

test('a deleted account is not created again', async () => {
  const app = await trusting();
  const { body } = await me(app.publishableKey, await issuer.sign('gone'));
  assert.equal((await api('DELETE', `/api/v1/users/${body.id}`, { key: app.secretKey })).status, 204);
  await refused(app.publishableKey, await issuer.sign('gone', { n: 1 }));
  const { issuerPath } = app;
  await api('DELETE', issuerPath, { key: app.secretKey });
  const settings = { issuer: issuer.issuer, audience, create_users: true };
  await api('POST', '/api/v1/identity_issuers', { key: app.secretKey, body: settings });
  await refused(app.publishableKey, await issuer.sign('gone', { n: 2 }));
});

test('claims name only mapped organisations, roles and teams, follow the youngest token, and never make a developer', async () => {
  const app = await provision.app();
  const [org, other] = [await provision.org(app), await provision.org(app)];
  const team = await provision.team(app);
  const claims = {
    org: { claim: 'org', values: { acme: org.id } },
    role: { claim: 'roles', values: { boss: 'admin' } },
    teams: { claim: 'groups', values: { eng: team.id } },
  };
  const body = { issuer: issuer.issuer, audience, create_users: true, claims };
  assert.equal((await api('POST', '/api/v1/identity_issuers', { key: app.secretKey, body })).status, 201);
  const full = { org: 'acme', roles: ['boss', 'developer'], groups: ['eng', team.id, 'ops'] };
  const old = await issuer.sign('ada', { ...full, n: 0 });
  const seen = await me(app.publishableKey, old);
  assert.deepEqual([seen.body.org, seen.body.org_role], [org.id, 'admin'], seen.text);
  const members = () => db`select 1 from team_memberships where app_id = ${app.app.uuid} and team_id = ${team.uuid}`;
  assert.equal((await members()).length, 1);

  clock.advance(5_000);
  const less = await me(app.publishableKey, await issuer.sign('ada', { org: other.id, roles: 'boss', groups: [] }));
  assert.deepEqual([less.body.org, (await members()).length], [undefined, 0], less.text);
  clock.advance(5_000);
  assert.equal((await me(app.publishableKey, old)).body.org, undefined);

  const token = await issuer.sign('eve', {
    developer: true,
    role: 'developer',
    org: '__proto__',
    roles: ['constructor'],
  });
  assert.equal((await me(app.publishableKey, token)).body.org, undefined);
  const developer = await api('GET', `/protected/api/v1/developer/apps/${app.app.id}`, {
    key: app.publishableKey,
    token,
  });
  assert.equal(developer.status, 403);
  const foreign = {
    ...body,
    claims: { org: { claim: 'org', values: { x: (await provision.org(await provision.app())).id } } },
  };
  const wrong = await api<ErrorBody>('PATCH', '/api/v1/identity_issuers/nothing', { key: app.secretKey, body: {} });
  assert.equal(wrong.status, 404);
  const two = await api<ErrorBody>('POST', '/api/v1/identity_issuers', {
    key: (await provision.app()).secretKey,
    body: foreign,
  });
  assert.deepEqual([two.status, two.body.error.fields[0]?.field], [422, 'claims.org.values.x']);
});

test('ending all sessions also ends tokens that the issuer created before', async () => {
  const app = await trusting();
  const before = await issuer.sign('ada');
  const { body } = await me(app.publishableKey, before);
  assert.equal((await api('POST', `/api/v1/users/${body.id}/sessions/revoke`, { key: app.secretKey })).status, 204);
  await refused(app.publishableKey, before);
  await refused(app.publishableKey, await issuer.sign('ada', { n: 1 }));
  clock.advance(1_000);
  assert.equal((await me(app.publishableKey, await issuer.sign('ada'))).body.id, body.id);
  await refused(app.publishableKey, before);
});

test('an expired or early token, another audience, issuer or app is 401', async () => {
  const app = await trusting();
  const now = Math.floor(clock.now().getTime() / 1_000);
  await refused(app.publishableKey, await issuer.sign('ada', { aud: 'https://other.example' }));
  await refused(app.publishableKey, await issuer.sign('ada', { iss: 'http://127.0.0.1:1' }));
  await refused(app.publishableKey, await issuer.sign('ada', { exp: now - 61 }), 'expired_token');
  await refused(app.publishableKey, await issuer.sign('ada', { nbf: now + 61 }));
  await refused(app.publishableKey, await issuer.sign('ada', { iat: now + 61 }));
  for (const missing of ['sub', 'iat', 'exp', 'aud'])
    await refused(app.publishableKey, await issuer.sign('ada', { [missing]: undefined }));
  await refused(app.publishableKey, await issuer.sign('x'.repeat(256)));
  // Clocks may differ by a minute.
  for (const near of [{ exp: now - 55 }, { nbf: now + 55 }, { iat: now + 55 }])
    assert.equal((await me(app.publishableKey, await issuer.sign('ada', near))).status, 200);
  clock.advance(660_000);
  await refused(app.publishableKey, await issuer.sign('ada', { iat: now, exp: now + 600 }), 'expired_token');
});

test('`none`, a shared secret made of the public key, and a key from the token are refused', async () => {
  const app = await trusting();
  const [, payload = ''] = (await issuer.sign('ada')).split('.');
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const kid = String((await issuer.publicKey()).kid);
  for (const alg of ['none', 'None', 'NONE']) await refused(app.publishableKey, `${part({ alg, kid })}.${payload}.`);
  const pem = createPublicKey({ key: (await issuer.publicKey()) as never, format: 'jwk' }).export({
    type: 'spki',
    format: 'pem',
  });
  const head = part({ alg: 'HS256', kid });
  const mac = createHmac('sha256', pem).update(`${head}.${payload}`).digest('base64url');
  await refused(app.publishableKey, `${head}.${payload}.${mac}`);

  const secret = Buffer.alloc(32, 1);
  issuer.publish([
    { kty: 'oct', kid: 'shared', k: secret.toString('base64url'), alg: 'HS256' },
    await issuer.publicKey(),
  ]);
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>;
  const shared = await new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid: 'shared' }).sign(secret);
  await refused(app.publishableKey, shared);
  const attacker = await startIssuer(() => clock.now(), audience);
  const own = await attacker.sign(
    'ada',
    { iss: issuer.issuer },
    { jwk: await attacker.publicKey(), jku: `${attacker.issuer}/jwks` },
  );
  await refused(app.publishableKey, own);
  assert.equal(attacker.keyRequests(), 0);
  await attacker.close();
  const altered = (await issuer.sign('ada')).replace(/.{4}$/, 'AAAA');
  await refused(app.publishableKey, altered);
});

test('a rotated key is found by its unknown kid, and invented ones cost one request in 30 s', async () => {
  const app = await trusting();
  assert.equal((await me(app.publishableKey, await issuer.sign('ada'))).status, 200);
  clock.advance(31_000);
  await issuer.rotate();
  const before = issuer.keyRequests();
  assert.equal((await me(app.publishableKey, await issuer.sign('ada'))).status, 200);
  assert.equal(issuer.keyRequests(), before + 1);
  for (let i = 0; i < 5; i++) await refused(app.publishableKey, await issuer.sign('ada', {}, { kid: `invented-${i}` }));
  assert.equal(issuer.keyRequests(), before + 1);
});

test('keys are cached: users of an issuer that is down can sign in for a day, and an unknown issuer is 503', async () => {
  const app = await trusting();
  assert.equal((await me(app.publishableKey, await issuer.sign('ada'))).status, 200);
  issuer.fail(true);
  try {
    clock.advance(3_600_000);
    assert.equal((await me(app.publishableKey, await issuer.sign('ada'))).status, 200);
    const other = await trusting();
    const answer = await me(other.publishableKey, await issuer.sign('ada'));
    assert.deepEqual([answer.status, answer.body.error.code], [503, 'unavailable'], answer.text);
    assert.ok(answer.headers.get('retry-after'));
    clock.advance(24 * 3_600_000);
    assert.equal((await me(app.publishableKey, await issuer.sign('ada'))).status, 503);
  } finally {
    issuer.fail(false);
  }
});

test('an issuer must be https on the public internet', async () => {
  const app = await provision.app();
  for (const wrong of [
    'http://login.example.com',
    'https://10.0.0.1',
    'ftp://a.example',
    'nothing',
    'https://a.example/?x=1',
  ]) {
    const body = { issuer: wrong, audience };
    const answer = await api<ErrorBody>('POST', '/api/v1/identity_issuers', { key: app.secretKey, body });
    assert.deepEqual([wrong, answer.status, answer.body.error.fields[0]?.field], [wrong, 422, 'issuer']);
  }
});

test('a removed issuer ends its tokens', async () => {
  const app = await trusting();
  const token = await issuer.sign('ada');
  assert.equal((await me(app.publishableKey, token)).status, 200);
  assert.equal((await api('DELETE', app.issuerPath, { key: app.secretKey })).status, 204);
  await refused(app.publishableKey, token);
});

test('a subject that is not text that can be stored is 401, and shares no account', async () => {
  const app = await trusting();
  await me(app.publishableKey, await issuer.sign('a'));
  for (const sub of [5, 0, true, {}, ['a'], { a: 1 }, '', '\ud800', 'a\udc00', 'a\0', 'a'.repeat(256)])
    await refused(app.publishableKey, await issuer.sign('a', { sub: sub as string }));
  const before = await db`select 1 from external_accounts where app_id = ${app.app.uuid}`;
  assert.equal(before.length, 1);
  // Other claims in wrong forms do not matter, or are refused.
  for (const claims of [{ email: '\ud800@x.y', email_verified: true }, { name: '\ud800' }])
    assert.equal((await me(app.publishableKey, await issuer.sign('odd', claims))).status, 200);
  for (const claims of [{ iat: -1e300 }, { exp: 1e300 }, { iss: 5 as unknown as string }])
    await refused(app.publishableKey, await issuer.sign('odd', claims));
});

test('a signature with other unused bits is refused', async () => {
  const app = await trusting();
  const token = await issuer.sign('ada');
  assert.equal((await me(app.publishableKey, token)).status, 200);
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const last = alphabet.indexOf(token.at(-1) ?? '');
  // 256 bytes end with 2 bytes in 3 characters, of which the last has 2 unused bits.
  for (const bits of [1, 2, 3]) await refused(app.publishableKey, token.slice(0, -1) + alphabet[last ^ bits]);
  await refused(app.publishableKey, `${token}=`);
});

test('a token for the MCP endpoint alone is accepted there alone', async () => {
  const app = await trusting();
  const token = await issuer.sign('agent', { aud: `${server.baseUrl}/mcp/${app.publishableKey}` });
  const call = () =>
    api<{ result?: { content: { text: string }[]; isError?: boolean } }>('POST', `/mcp/${app.publishableKey}`, {
      token,
      headers: { accept: 'application/json, text/event-stream' },
      body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'kv_list', arguments: {} } },
    });
  const called = await call();
  assert.equal(called.status, 200, called.text);
  assert.doesNotMatch(called.text, /isError":true/);
  await refused(app.publishableKey, token);
  assert.equal((await call()).status, 200);
  await refused(app.publishableKey, token);
});
