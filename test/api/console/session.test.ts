import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { hashPassword } from '../../../src/users/passwords.ts';
import type { TestScope, TestUser } from '../../support/provisioner.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';

type Session = {
  kind: string;
  csrf_token: string;
  expires_at: string;
  user?: { id: string; email: string };
  app?: { id: string; name: string };
  developer?: { id: string; name: string };
};

let now = new Date('2030-01-01T00:00:00Z');
const server = await startTestServer({ clock: { now: () => now } });
after(() => server.close());
const { api, db, provision } = server;
/** Developers and their sessions are in the directory's database, if there are cells. */
const { db: developers } = server.home ?? server;
const app = await provision.app();
const sandbox = await provision.sandbox(app);
const password = 'correct horse';
const passwordHash = await hashPassword(password);

async function userWithPassword(scope: TestScope = app): Promise<TestUser> {
  const user = await provision.user(scope);
  await db`update users set password_hash = ${passwordHash} where app_id = ${scope.app.uuid} and id = ${user.uuid}`;
  return user;
}

/** Signs in, each time a minute later than the last, so that no limit of attempts is met by accident. */
function signIn(body: unknown, headers: Record<string, string> = {}) {
  now = new Date(now.getTime() + 60_000);
  return api<Session & ErrorBody>('POST', '/console/session', { body, headers });
}

async function opened(body: unknown) {
  const answer = await signIn(body);
  assert.equal(answer.status, 201, answer.text);
  const cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? '';
  const csrf = answer.body.csrf_token;
  return { cookie, csrf, session: answer.body, headers: { cookie, 'x-quarry-csrf': csrf } };
}

const asUser = (user: TestUser, scope: TestScope = app) =>
  opened({ publishable_key: scope.publishableKey, email: user.email, password });
const asDeveloper = (token = app.developerToken) => opened({ developer_token: token });

test('a user who signs in with e-mail and password acts as that user', async () => {
  const user = await userWithPassword();
  const { session, headers } = await asUser(user);
  assert.equal(session.kind, 'user');
  assert.equal(session.user?.id, user.id);
  assert.deepEqual(session.app, { ...session.app, id: app.app.id, name: 'Test app' });
  const me = await api<{ id: string }>('GET', '/api/v1/users/me', { headers });
  assert.equal(me.body.id, user.id, me.text);
});

test('a user of a sandbox signs in with the sandbox’s key, and stays inside it', async () => {
  const user = await userWithPassword(sandbox);
  assert.equal((await signIn({ publishable_key: app.publishableKey, email: user.email, password })).status, 401);
  const { headers } = await asUser(user, sandbox);
  const me = await api<{ sandbox: string }>('GET', '/api/v1/users/me', { headers });
  assert.equal(me.body.sandbox, sandbox.sandbox.id);
});

test('a developer who signs in with a token chooses app and sandbox like with the token', async () => {
  const { session, headers } = await asDeveloper();
  assert.equal(session.kind, 'developer');
  assert.match(session.developer?.id ?? '', /^dva_/);
  const other = await provision.app();
  const inApp = { ...headers, 'x-app': app.app.id };
  assert.equal((await api('GET', '/protected/api/v1/developer/apps', { headers })).status, 200);
  assert.equal((await api('GET', `/protected/api/v1/developer/apps/${app.app.id}/keys`, { headers })).status, 200);
  assert.equal((await api('GET', `/protected/api/v1/developer/apps/${other.app.id}`, { headers })).status, 404);
  const without = await api<ErrorBody>('GET', '/api/v1/files', { headers });
  assert.equal(without.body.error.code, 'app_scope_required');
  assert.equal((await api('GET', '/api/v1/files', { headers: inApp })).status, 200);
  assert.equal((await api('GET', '/api/v1/files', { headers: { ...headers, 'x-app': other.app.id } })).status, 403);
  const inSandbox = { ...inApp, 'x-sandbox': sandbox.sandbox.id };
  const file = { filename: 'a.txt', content_type: 'text/plain', data: 'YQ==' };
  const made = await api<{ sandbox: string }>('POST', '/api/v1/files', { headers: inSandbox, body: file });
  assert.equal(made.body.sandbox, sandbox.sandbox.id, made.text);
});

test('the cookie alone is not a credential: without the CSRF token of its session every route returns 401', async () => {
  const user = await userWithPassword();
  const { cookie, csrf, headers } = await asUser(user);
  const others = await asDeveloper();
  const wrong: Record<string, string>[] = [
    { cookie },
    { cookie, 'x-quarry-csrf': '' },
    { cookie, 'x-quarry-csrf': 'x.y' },
    { cookie, 'x-quarry-csrf': `${csrf}x` },
    { cookie, 'x-quarry-csrf': csrf.replace(/^./, (first) => (first === 'A' ? 'B' : 'A')) },
    { cookie, 'x-quarry-csrf': others.csrf },
    { cookie: others.cookie, 'x-quarry-csrf': csrf },
    { 'x-quarry-csrf': csrf },
  ];
  for (const sent of wrong)
    for (const [method, path] of [
      ['GET', '/api/v1/users/me'],
      ['GET', '/api/v1/files'],
      ['POST', '/api/v1/kv'],
      ['GET', '/protected/api/v1/developer/apps'],
      ['DELETE', '/console/session'],
    ] as const) {
      const answer = await api<ErrorBody>(method, path, { headers: sent, ...(method === 'POST' ? { body: {} } : {}) });
      assert.equal(answer.status, 401, `${method} ${path} ${JSON.stringify(sent)}: ${answer.text}`);
      assert.equal(answer.body.error.type, 'authentication_error');
    }
  assert.equal((await api('GET', '/api/v1/users/me', { headers })).status, 200);
});

test('each read of the session returns a new CSRF token, and earlier ones stay valid', async () => {
  const { cookie, csrf } = await asDeveloper();
  const looked = await api<Session>('GET', '/console/session', { headers: { cookie } });
  assert.equal(looked.status, 200);
  assert.notEqual(looked.body.csrf_token, csrf);
  for (const token of [csrf, looked.body.csrf_token]) {
    const headers = { cookie, 'x-quarry-csrf': token };
    assert.equal((await api('GET', '/protected/api/v1/developer/apps', { headers })).status, 200);
  }
});

test('the cookie is HttpOnly and SameSite=Strict, and Secure where the page came by https', async () => {
  const plain = (await signIn({ developer_token: app.developerToken })).headers.get('set-cookie') ?? '';
  assert.match(plain, /^quarry_session=csd_[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/);
  const secure = await startTestServer({ env: { QUARRY_PUBLIC_URL: 'https://quarry.example.test' } });
  try {
    const { developerToken } = await secure.provision.app();
    const answer = await secure.api('POST', '/console/session', { body: { developer_token: developerToken } });
    assert.match(answer.headers.get('set-cookie') ?? '', /; Secure$/);
  } finally {
    await secure.close();
  }
});

test('no other origin may read the session’s responses with its cookie', async () => {
  const { cookie } = await asDeveloper();
  const headers = { cookie, origin: 'https://elsewhere.example.test' };
  const answer = await api('GET', '/console/session', { headers });
  assert.equal(answer.headers.get('access-control-allow-credentials'), null);
  assert.equal(answer.headers.get('cache-control'), 'no-store');
});

test('signing out ends the session immediately and deletes the cookie', async () => {
  for (const open of [async () => asUser(await userWithPassword()), () => asDeveloper()]) {
    const { headers, cookie } = await open();
    const out = await api('DELETE', '/console/session', { headers });
    assert.equal(out.status, 204);
    assert.match(out.headers.get('set-cookie') ?? '', /^quarry_session=; Path=\/; Max-Age=0; HttpOnly/);
    assert.equal((await api('GET', '/api/v1/files', { headers: { ...headers, 'x-app': app.app.id } })).status, 401);
    assert.equal((await api('GET', '/console/session', { headers: { cookie } })).status, 401);
    assert.equal((await api('DELETE', '/console/session', { headers })).status, 204);
  }
});

test('a session ends after its time, and its row is deleted', async () => {
  const { headers } = await asDeveloper();
  now = new Date(now.getTime() + 12 * 3_600_000 - 1_000);
  assert.equal((await api('GET', '/protected/api/v1/developer/apps', { headers })).status, 200);
  now = new Date(now.getTime() + 2_000);
  assert.equal((await api('GET', '/protected/api/v1/developer/apps', { headers })).status, 401);
  // With cells, the server of the directory sweeps them.
  if (server.home !== undefined) return;
  await server.server.work.tasks.sweep_console?.({}, { signal: AbortSignal.timeout(10_000) } as never);
  const [row] =
    await developers`select count(*)::int as left_over from console_developer_sessions where expires_at <= ${now}`;
  assert.equal(row?.leftOver, 0);
});

test('a session ends with the developer token that opened it, and with its user', async () => {
  const { developerToken } = await provision.app();
  const developer = await asDeveloper(developerToken);
  const other = await asDeveloper();
  await developers`update developer_tokens set revoked_at = now() where digest = sha256(${Buffer.from(developerToken)})`;
  const apps = (headers: Record<string, string>) => api('GET', '/protected/api/v1/developer/apps', { headers });
  assert.equal((await apps(developer.headers)).status, 401);
  assert.equal((await apps(other.headers)).status, 200);
  assert.equal((await signIn({ developer_token: developerToken })).status, 401);

  const user = await userWithPassword();
  const { headers, cookie } = await asUser(user);
  assert.equal((await api('GET', '/api/v1/users/me', { headers })).status, 200);
  await api('DELETE', `/api/v1/users/${user.id}`, { key: app.secretKey });
  assert.equal((await api('GET', '/api/v1/users/me', { headers })).status, 401);
  assert.equal((await api('GET', '/console/session', { headers: { cookie } })).status, 401);
});

test('another credential in the request takes precedence over the cookie', async () => {
  const { headers } = await asDeveloper();
  const user = await provision.user(app);
  now = new Date();
  const answer = await api<{ id: string }>('GET', '/api/v1/users/me', { headers, token: user.token });
  assert.equal(answer.body.id, user.id, answer.text);
  assert.equal((await api('GET', '/api/v1/files', { headers, key: app.publishableKey })).status, 401);
  now = new Date('2031-01-01T00:00:00Z');
});

test('invalid sign-ins are refused: the same 401 for every wrong pair, 422 for an invalid method', async () => {
  const user = await userWithPassword();
  const stranger = await userWithPassword(await provision.app());
  const key = app.publishableKey;
  const refused = [
    { publishable_key: key, email: user.email, password: 'wrong' },
    { publishable_key: key, email: 'nobody@example.test', password },
    { publishable_key: key, email: stranger.email, password },
  ];
  const answers = await Promise.all(refused.map((body) => signIn(body)));
  assert.deepEqual(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size, 1);
  assert.equal(answers[0]?.body.error.code, 'invalid_credentials');
  for (const body of [
    { developer_token: `dvt_${'x'.repeat(43)}` },
    { developer_token: app.secretKey },
    { publishable_key: app.secretKey, email: user.email, password },
    { publishable_key: 'pk_unknown-unknown', email: user.email, password },
  ])
    assert.equal((await signIn(body)).status, 401, JSON.stringify(body));
  const fieldsOf = async (body: unknown) => {
    const answer = await signIn(body);
    assert.equal(answer.status, 422, answer.text);
    return answer.body.error.fields.map(({ field }) => field);
  };
  assert.deepEqual(await fieldsOf({}), ['publishable_key', 'email', 'password']);
  assert.deepEqual(await fieldsOf({ email: 'a@example.test', password }), ['publishable_key']);
  assert.deepEqual(await fieldsOf({ developer_token: app.developerToken, email: 'a@example.test' }), ['email']);
});

test('failures are counted with those of auth/login: 5 a minute for an e-mail and address, 10 for an address', async () => {
  const user = await userWithPassword();
  now = new Date(Math.ceil(now.getTime() / 60_000) * 60_000 + 60_000);
  const body = { publishable_key: app.publishableKey, email: user.email, password: 'wrong' };
  const attempt = () => api('POST', '/console/session', { body });
  for (let count = 0; count < 3; count++) assert.equal((await attempt()).status, 401);
  const login = { email: user.email, password: 'wrong' };
  for (let count = 0; count < 2; count++)
    assert.equal((await api('POST', '/api/v1/auth/login', { key: app.publishableKey, body: login })).status, 401);
  const limited = await attempt();
  assert.equal(limited.status, 429);
  assert.match(limited.headers.get('retry-after') ?? '', /^\d+$/);
  const developer = () => api('POST', '/console/session', { body: { developer_token: `dvt_${'x'.repeat(43)}` } });
  for (let count = 0; count < 5; count++) assert.equal((await developer()).status, 401);
  assert.equal((await developer()).status, 429);
});

test('the code of a sign-in link opens one session as its developer, within ten minutes', async () => {
  const create = async (token = app.developerToken) => (await server.server.createSignInLink(token))?.code ?? '';
  const code = await create();
  const { session, headers } = await opened({ sign_in_code: code });
  assert.equal(session.kind, 'developer');
  assert.equal((await api('GET', '/protected/api/v1/developer/apps', { headers })).status, 200);
  const again = await signIn({ sign_in_code: code });
  assert.deepEqual([again.status, again.body.error.code], [401, 'invalid_credentials']);

  const late = await create();
  now = new Date(now.getTime() + 10 * 60_000);
  assert.equal((await signIn({ sign_in_code: late })).status, 401);
  for (const wrong of ['csl_', `csl_${'x'.repeat(43)}`, app.developerToken])
    assert.equal((await signIn({ sign_in_code: wrong })).status, 401);
  const both = await signIn({ sign_in_code: await create(), developer_token: app.developerToken });
  assert.equal(both.status, 422);
  assert.equal(both.body.error.fields[0]?.field, 'sign_in_code');

  const revoked = await provision.app();
  const useless = await create(revoked.developerToken);
  await developers`update developer_tokens set revoked_at = now() where developer_id = ${revoked.developerUuid}`;
  assert.equal((await signIn({ sign_in_code: useless })).status, 401);
});

test('a developer token creates links, of which the ten newest work; a session and a key create none', async () => {
  const path = '/protected/api/v1/developer/sign_in_links';
  const other = await provision.app();
  const codes: string[] = [];
  for (let count = 0; count < 11; count++) {
    now = new Date(now.getTime() + 1_000);
    const made = await api<{ url: string; expires_at: string }>('POST', path, { token: other.developerToken });
    assert.equal(made.status, 201, made.text);
    assert.ok(made.body.url.startsWith(`${server.baseUrl}/console#sign-in=csl_`), made.body.url);
    assert.equal(made.body.expires_at, new Date(now.getTime() + 10 * 60_000).toISOString());
    codes.push(made.body.url.split('=')[1] ?? '');
  }
  assert.equal((await signIn({ sign_in_code: codes[0] })).status, 401);
  const { headers } = await opened({ sign_in_code: codes[1] });
  assert.equal((await api('POST', path, { headers })).status, 403);
  assert.equal((await api('POST', path, { key: other.secretKey })).status, 403);
  assert.equal((await api('POST', path)).status, 401);
  const stored = await db<{ digest: Buffer }[]>`select digest from console_sign_in_links`;
  assert.ok(stored.every(({ digest }) => !codes.some((code) => digest.includes(Buffer.from(code.slice(4))))));
});

test('nothing that opens a session is stored in plain text', async () => {
  const { cookie } = await asDeveloper();
  const value = cookie.slice('quarry_session='.length);
  const rows = await db<{ digest: Buffer }[]>`select digest from console_developer_sessions`;
  assert.ok(rows.every(({ digest }) => digest.length === 32 && !digest.includes(Buffer.from(value.slice(4)))));
});

test('every path under /console returns the console’s page, which allows no inline script', async () => {
  const nonces = new Set<string>();
  for (const path of ['/console', '/console/files', '/console/runs/atr_x']) {
    const answer = await api('GET', path);
    assert.equal(answer.status, 200, answer.text);
    assert.match(answer.headers.get('content-type') ?? '', /^text\/html/);
    const policy = answer.headers.get('content-security-policy') ?? '';
    assert.match(policy, /default-src 'none'/);
    assert.match(policy, /script-src 127\.0\.0\.1:\d+\/console\/assets\/;/);
    assert.doesNotMatch(policy, /unsafe|\*/);
    assert.doesNotMatch(answer.text, /<script(?![^>]*\bsrc=)|<style|\son\w+=|QUARRY_NONCE/);
    assert.equal(answer.headers.get('cache-control'), 'no-store');
    // Style elements need the nonce, and each page has its own.
    const [, nonce = ''] = / 'nonce-([\w+/=]{24})'/.exec(policy) ?? [];
    assert.ok(answer.text.includes(`nonce="${nonce}"`), answer.text);
    nonces.add(nonce);
  }
  assert.equal(nonces.size, 3);
  const root = await api('GET', '/');
  assert.deepEqual([root.status, root.headers.get('location')], [302, '/console']);
  const [, script = ''] = /src="(\/console\/assets\/[^"]+)"/.exec((await api('GET', '/console')).text) ?? [];
  const asset = await api('GET', script);
  assert.equal(asset.status, 200);
  assert.equal(asset.headers.get('cache-control'), 'public, max-age=31536000, immutable');
  assert.match(asset.headers.get('content-type') ?? '', /^text\/javascript/);
  assert.equal((await api('GET', '/console/assets/absent-x.js')).status, 404);
  assert.equal((await api('GET', '/console/assets/..%2f..%2fpackage.json')).status, 404);
});
