import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { formatId, newUuid } from '../../../src/lib/ids.ts';
import { sweepAuth } from '../../../src/sign-in/sweep.ts';
import { type ApiOptions, type ErrorBody, startTestServer } from '../../support/server.ts';

/** Signing in, refreshing and signing out; which headers count; what ends a credential. */

let now = Date.UTC(2031, 0, 1);
const server = await startTestServer({ clock: { now: () => new Date(now) } });
after(() => server.close());
const { api, provision, db } = server;
/** Failed sign-ins are in the directory. */
const { home = server.services } = server;
const { app, org, otherApp } = await provision.world();
const sandbox = await provision.sandbox(app);
const password = 'correct horse battery';

type Session = {
  token: string;
  access_token: string;
  refresh_token: string;
  token_type: string;
  expires_in: number;
  user: { id: string };
};

let made = 0;
/** Sign-in attempts are counted by the minute; each test has minutes of its own. */
function laterMinute(): void {
  now += 120_000;
}

async function newUser(options: { password?: string; key?: string } = {}) {
  const email = `u${++made}@example.test`;
  const created = await api<{ id: string }>('POST', '/api/v1/users', {
    key: options.key ?? app.secretKey,
    body: { email, ...(options.password === undefined ? {} : { password: options.password }) },
  });
  assert.equal(created.status, 201, created.text);
  return { id: created.body.id, email };
}

const login = <T = Session>(email: string, secret: string, key = app.publishableKey) =>
  api<T>('POST', '/api/v1/auth/login', { key, body: { email, password: secret } });
const refresh = <T = Session>(token: string, key = app.publishableKey) =>
  api<T>('POST', '/api/v1/auth/refresh', { key, body: { refresh_token: token } });
const me = (options: ApiOptions) => api<{ id: string }>('GET', '/api/v1/users/me', options);

test('signing in returns a session with the access token under both names, and the user', async () => {
  laterMinute();
  const { id, email } = await newUser({ password });
  for (const [address, key] of [
    [email, app.publishableKey],
    [email.toUpperCase(), app.secretKey],
  ] as const) {
    const { status, body } = await login(address, password, key);
    assert.equal(status, 200);
    assert.equal(body.token, body.access_token);
    assert.deepEqual([body.token_type, body.expires_in, body.user.id], ['Bearer', 3600, id]);
    assert.match(body.refresh_token, /^rt_/);
    assert.equal((await me({ token: body.token })).body.id, id);
    assert.equal((await me({ token: body.token, key: app.publishableKey })).body.id, id);
    assert.equal((await me({ token: body.token, headers: { 'x-archastro-api-key': app.publishableKey } })).status, 200);
  }
});

test('a wrong password, an unknown address, a user of another app and one without a password get the same bytes', async () => {
  laterMinute();
  const known = await newUser({ password });
  const silent = await newUser();
  const abroad = await newUser({ password, key: otherApp.secretKey });
  const sandboxed = await newUser({ password, key: sandbox.secretKey });
  const answers: string[] = [];
  for (const [address, secret] of [
    [known.email, 'wrong password'],
    ['nobody@example.test', password],
    [abroad.email, password],
    [silent.email, password],
    [sandboxed.email, password],
  ] as const) {
    const answer = await login<ErrorBody>(address, secret);
    assert.equal(answer.status, 401);
    assert.equal(answer.body.error.code, 'invalid_credentials');
    answers.push(answer.text);
  }
  assert.equal(new Set(answers).size, 1);
  laterMinute();
  assert.equal((await login(sandboxed.email, password, sandbox.publishableKey)).status, 200);
  assert.equal((await login(sandboxed.email, password)).status, 401);
});

test('failed sign-ins are limited to 5 a minute for an e-mail and address and 10 for an address, even with the right password', async () => {
  laterMinute();
  const { email } = await newUser({ password });
  for (let attempt = 0; attempt < 5; attempt++) assert.equal((await login(email, 'wrong password')).status, 401);
  const limited = await login<ErrorBody>(email, password);
  assert.deepEqual([limited.status, limited.body.error.code], [429, 'rate_limited']);
  const seconds = Number(limited.headers.get('retry-after'));
  assert.ok(seconds >= 1 && seconds <= 60);
  // The same for an address that nobody has, in whatever case.
  laterMinute();
  for (let attempt = 0; attempt < 5; attempt++)
    assert.equal((await login(attempt % 2 ? 'NOBODY2@example.test' : 'nobody2@example.test', 'x')).status, 401);
  assert.equal((await login('Nobody2@example.test', 'x')).status, 429);
  const other = await newUser({ password });
  for (let attempt = 5; attempt < 10; attempt++)
    assert.equal((await login(`n${attempt}@example.test`, 'x')).status, 401, `attempt ${attempt}`);
  assert.equal((await login(other.email, password)).status, 429);
  laterMinute();
  assert.equal((await login(other.email, password)).status, 200);
});

test('a refresh token works once; a second use ends its family and no other session', async () => {
  laterMinute();
  const { id, email } = await newUser({ password });
  const first = (await login(email, password)).body;
  const bystander = (await login(email, password)).body;
  const second = await refresh(first.refresh_token);
  assert.equal(second.status, 200, second.text);
  assert.equal(second.body.token, second.body.access_token);
  assert.notEqual(second.body.refresh_token, first.refresh_token);
  assert.equal((await me({ token: second.body.token })).body.id, id);
  const reused = await refresh<ErrorBody>(first.refresh_token);
  assert.deepEqual([reused.status, reused.body.error.code], [401, 'invalid_credentials']);
  assert.equal((await refresh(second.body.refresh_token)).status, 401);
  assert.equal((await refresh(bystander.refresh_token)).status, 200);
});

test('of two concurrent refreshes one wins, and the family ends', async () => {
  laterMinute();
  const { email } = await newUser({ password });
  const { refresh_token: token } = (await login(email, password)).body;
  const both = await Promise.all([refresh(token), refresh(token)]);
  assert.deepEqual(both.map(({ status }) => status).sort(), [200, 401]);
  const winner = both.find(({ status }) => status === 200);
  assert.equal((await refresh(winner?.body.refresh_token ?? '')).status, 401);
});

test("a refresh token with another app's or sandbox's key is 401 and stays valid; unknown and expired ones are 401", async () => {
  laterMinute();
  const { email } = await newUser({ password });
  const { refresh_token: token } = (await login(email, password)).body;
  assert.equal((await refresh(token, otherApp.publishableKey)).status, 401);
  assert.equal((await refresh(token, sandbox.publishableKey)).status, 401);
  assert.equal((await refresh('rt_unknown')).status, 401);
  const renewed = await refresh(token);
  assert.equal(renewed.status, 200);
  now += 31 * 24 * 3600 * 1000;
  assert.equal((await refresh(renewed.body.refresh_token)).status, 401);
});

test('signing out returns 204 and ends the session, once or twice, known or not', async () => {
  laterMinute();
  const { email } = await newUser({ password });
  const { refresh_token: token } = (await login(email, password)).body;
  const logout = (refreshToken: string) =>
    api('POST', '/api/v1/auth/logout', { key: app.publishableKey, body: { refresh_token: refreshToken } });
  for (const each of [token, token, 'rt_unknown']) {
    const answer = await logout(each);
    assert.deepEqual([answer.status, answer.text], [204, '']);
  }
  assert.equal((await refresh(token)).status, 401);
  assert.equal((await api('POST', '/api/v1/auth/logout', { key: app.publishableKey, body: {} })).status, 422);
});

test('an access token that has expired is 401 expired_token, one that was altered invalid_credentials', async () => {
  laterMinute();
  const { email } = await newUser({ password });
  const { token } = (await login(email, password)).body;
  assert.equal((await me({ token })).status, 200);
  const [head, claims, signature] = token.split('.');
  const none = Buffer.from('{"alg":"none","typ":"JWT"}').toString('base64url');
  for (const altered of [
    `${head}.${claims}.${'A'.repeat(43)}`,
    `${none}.${claims}.`,
    `${head}.${signature}.${claims}`,
  ]) {
    const answer = await api<ErrorBody>('GET', '/api/v1/users/me', { token: altered });
    assert.deepEqual([answer.status, answer.body.error.code], [401, 'invalid_credentials'], altered);
  }
  now += 3_600_000;
  const expired = await api<ErrorBody>('GET', '/api/v1/users/me', { token });
  assert.deepEqual([expired.status, expired.body.error.code], [401, 'expired_token']);
});

test('a personal token ends exactly on time, however recently it was used', async () => {
  laterMinute();
  const { id, email } = await newUser({ password });
  const { token } = (await login(email, password)).body;
  const body = { name: 'Laptop', expires_in_days: 1 };
  const personal = await api<{ token: string }>('POST', `/api/v1/users/${id}/tokens`, { token, body });
  now += 24 * 3_600_000 - 1;
  assert.equal((await me({ token: personal.body.token })).status, 200);
  now += 1;
  assert.equal((await me({ token: personal.body.token })).status, 401);
});

test('deleting a user ends all their credentials immediately', async () => {
  laterMinute();
  const { id, email } = await newUser({ password });
  const session = (await login(email, password)).body;
  const minted = await api<Session>('POST', `/api/v1/users/${id}/tokens`, { key: app.secretKey, body: {} });
  const personal = await api<{ token: string }>('POST', `/api/v1/users/${id}/tokens`, {
    token: session.token,
    body: { name: 'Laptop' },
  });
  assert.deepEqual([minted.status, personal.status], [201, 201]);
  assert.match(personal.body.token, /^sat_/);
  const tokens = [session.token, minted.body.token, personal.body.token];
  for (const token of tokens) assert.equal((await me({ token })).body.id, id);
  assert.equal((await api('DELETE', `/api/v1/users/${id}`, { key: app.secretKey })).status, 204);
  for (const token of tokens) assert.equal((await me({ token })).status, 401);
  for (const token of [session.refresh_token, minted.body.refresh_token])
    assert.equal((await refresh(token)).status, 401);
  assert.equal((await login(email, password)).status, 401);
  const [left] = await db<{ count: number }[]>`
    select count(*)::integer as count from refresh_tokens t where t.user_id not in (select u.id from users u)`;
  assert.equal(left?.count, 0);
});

test('deleting a sandbox ends its keys and the tokens of its users', async () => {
  const gone = await provision.sandbox(app);
  const user = await provision.user(gone);
  assert.equal((await me({ token: user.token })).status, 200);
  assert.equal((await api('DELETE', `/api/v1/sandboxes/${gone.sandbox.id}`, { key: app.secretKey })).status, 204);
  assert.equal((await me({ token: user.token })).status, 401);
  assert.equal((await api('GET', '/api/v1/users', { key: gone.secretKey })).status, 401);
  const developer = { 'x-app': app.app.id, 'x-sandbox': gone.sandbox.id };
  assert.equal((await api('GET', '/api/v1/users', { token: app.developerToken, headers: developer })).status, 403);
});

test('a revoked key stops working immediately, is still listed, and its value is never shown again', async () => {
  type Key = { id: string; full_key?: string; type: string; revoked_at?: string; hint: string };
  const created = await api<Key>('POST', '/api/v1/keys', { key: app.secretKey, body: { type: 'secret', name: 'CI' } });
  const key = created.body.full_key ?? '';
  assert.match(key, /^sk_/);
  assert.equal((await api('GET', '/api/v1/users', { key })).status, 200);
  const shown = await api<Key>('GET', `/api/v1/keys/${created.body.id}`, { key: app.secretKey });
  assert.equal(shown.body.full_key, undefined);
  assert.equal((await api('DELETE', `/api/v1/keys/${created.body.id}`, { key: app.secretKey })).status, 204);
  assert.equal((await api('GET', '/api/v1/users', { key })).status, 401);
  const listed = await api<{ data: Key[] }>('GET', '/api/v1/keys', { key: app.secretKey });
  const found = listed.body.data.find(({ id }) => id === created.body.id);
  assert.ok(found?.revoked_at);
  assert.ok(!listed.text.includes(key));
  const stored = await db<{ digest: Buffer; hint: string }[]>`select digest, hint from api_keys`;
  assert.ok(!stored.some((row) => row.hint.length > 12 || row.digest.length !== 32));
});

test('a secret key beside a user token of the same app makes the caller the user', async () => {
  const user = await provision.user(app);
  const beside = await me({ key: app.secretKey, token: user.token });
  assert.equal(beside.body.id, user.id);
  assert.equal(
    (await api('POST', '/api/v1/orgs', { key: app.secretKey, token: user.token, body: { name: 'x' } })).status,
    403,
  );
  const alone = await api<ErrorBody>('GET', '/api/v1/users/me', { key: app.secretKey });
  assert.equal(alone.status, 404);
});

test('a developer chooses app and sandbox by header; unknown or foreign ones are 403, none is app_scope_required', async () => {
  const token = app.developerToken;
  const at = (headers: Record<string, string>) => api<ErrorBody>('GET', '/api/v1/users', { token, headers });
  const none = await at({});
  assert.deepEqual([none.status, none.body.error.code], [403, 'app_scope_required']);
  assert.equal((await at({ 'x-app': app.app.id })).status, 200);
  assert.equal((await at({ 'x-app': app.app.id.replace('dap_', 'app_') })).status, 200);
  for (const headers of [
    { 'x-app': otherApp.app.id },
    { 'x-app': formatId('app', newUuid()) },
    { 'x-app': 'garbage' },
    { 'x-app': '' },
    { 'x-app': app.app.id, 'x-sandbox': formatId('sandbox', newUuid()) },
    { 'x-app': app.app.id, 'x-sandbox': 'garbage' },
    { 'x-app': app.app.id, 'x-sandbox': '' },
    { 'x-app': app.app.id, 'x-sandbox': 'sbx_0000000000000000000000' },
  ])
    assert.equal((await at(headers as Record<string, string>)).status, 403, JSON.stringify(headers));
  assert.equal(
    (await at({ 'x-app': app.app.id, 'x-sandbox': sandbox.sandbox.id.replace('sbx_', 'dsb_') })).status,
    200,
  );
});

test('role changes apply to existing tokens immediately: org role, team role and membership', async () => {
  const user = await provision.user(app, { org, role: 'viewer' });
  const create = () =>
    api('POST', '/api/v1/agents', { token: user.token, body: { name: 'A', org: org.id } }).then(({ status }) => status);
  const setRole = (role: string) =>
    api('PATCH', `/api/v1/users/${user.id}`, { key: app.secretKey, body: { org_role: role } });
  assert.equal(await create(), 403);
  assert.equal((await setRole('member')).status, 200);
  assert.equal(await create(), 201);
  assert.equal((await setRole('viewer')).status, 200);
  assert.equal(await create(), 403);
  const team = await provision.team(app);
  const see = () => api('GET', `/api/v1/teams/${team.id}`, { token: user.token }).then(({ status }) => status);
  assert.equal(await see(), 404);
  await api('POST', `/api/v1/teams/${team.id}/members`, { key: app.secretKey, body: { user: user.id } });
  assert.equal(await see(), 200);
  await api('DELETE', `/api/v1/teams/${team.id}/members/${user.id}`, { key: app.secretKey });
  assert.equal(await see(), 404);
});

test('a user who moves to another org becomes a member, whatever their role was', async () => {
  type User = { org?: string; org_role?: string };
  const user = await provision.user(app, { org, role: 'admin' });
  const next = await provision.org(app);
  const change = (body: object) => api<User>('PATCH', `/api/v1/users/${user.id}`, { key: app.secretKey, body });
  const moved = await change({ org: next.id });
  assert.deepEqual([moved.body.org, moved.body.org_role], [next.id, 'member']);
  assert.equal((await change({ org_role: 'admin' })).body.org_role, 'admin');
  assert.equal((await change({ org: next.id })).body.org_role, 'admin', 'the same org changes nothing');
  await change({ org: null });
  assert.equal((await change({ org: org.id })).body.org_role, 'member');
  await change({ org: next.id, org_role: 'admin' });
  await api('DELETE', `/api/v1/orgs/${next.id}`, { key: app.secretKey });
  assert.equal((await change({ org: org.id })).body.org_role, 'member', 'its org was deleted');
});

test('no response and no log line of the database contains a password, and it can be changed', async () => {
  laterMinute();
  const { id, email } = await newUser({ password });
  const shown = await api('GET', `/api/v1/users/${id}`, { key: app.secretKey });
  assert.ok(!/password|argon2|\$/.test(shown.text));
  const [row] = await db<{ passwordHash: string }[]>`select password_hash from users where email = ${email}`;
  assert.match(row?.passwordHash ?? '', /^\$argon2id\$/);
  await api('PATCH', `/api/v1/users/${id}`, { key: app.secretKey, body: { password: 'another horse' } });
  assert.equal((await login(email, password)).status, 401);
  assert.equal((await login(email, 'another horse')).status, 200);
});

test('expired sign-in windows and refresh tokens are deleted', async () => {
  laterMinute();
  const { email } = await newUser({ password });
  const { refresh_token: token } = (await login(email, password)).body;
  assert.equal((await login(email, 'wrong password')).status, 401);
  const left = async () => {
    const [failures] = await home.db<{ hits: number }[]>`select count(*)::integer as hits from sign_in_failures`;
    const [session] = await db<{ tokens: number }[]>`select count(*)::integer as tokens from refresh_tokens`;
    return { ...failures, ...session };
  };
  const sweep = () => Promise.all([...new Set([server.services, home])].map((each) => sweepAuth(each)));
  await sweep();
  assert.ok(((await left()).hits ?? 0) > 0);
  assert.equal((await refresh(token)).status, 200);
  now += 31 * 24 * 3600 * 1000;
  await sweep();
  assert.deepEqual(await left(), { hits: 0, tokens: 0 });
});

test('a key that is sent as a bearer token is 401 with the name of the right header', async () => {
  for (const token of [app.secretKey, app.publishableKey]) {
    const refused = await api<ErrorBody>('GET', '/api/v1/kv', { token });
    assert.deepEqual([refused.status, refused.body.error.code], [401, 'invalid_credentials']);
    assert.match(refused.body.error.message, /in the header x-api-key/);
  }
});
