import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { hashPassword } from '../../../src/users/passwords.ts';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import type { TestApp, TestResource, TestUser } from '../../support/provisioner.ts';
import { type ApiOptions, startTestServer, type TestServer } from '../../support/server.ts';
import { startWatch } from '../../support/speed.ts';
import { until } from '../../support/until.ts';

/* What ends a credential, and everything that hangs on it, in every process. */

let server: TestServer;
/** Another process of the same installation. */
let other: TestServer;
let app: TestApp;
let passwordHash: string;
const password = 'correct horse battery';
const endsWithinMs = 2_000;

before(async () => {
  server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.1' } });
  other = await startTestServer({
    beside: server,
    env: { QUARRY_PARSE_WORKERS: '1', QUARRY_FETCH_ALLOW: '127.0.0.1' },
  });
  app = await server.provision.app();
  passwordHash = await hashPassword(password);
});
after(async () => {
  await other.close();
  await server.close();
});

type Session = { access_token: string; refresh_token: string };
let addresses = 0;

async function newUser(org?: TestResource): Promise<TestUser> {
  const user = await server.provision.user(app, org === undefined ? {} : { org });
  await server.db`update users set password_hash = ${passwordHash} where app_id = ${app.app.uuid} and id = ${user.uuid}`;
  return user;
}

async function signIn(user: TestUser): Promise<Session> {
  const body = { email: user.email, password };
  const answer = await server.api<Session>('POST', '/api/v1/auth/login', { key: app.publishableKey, body });
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
}

async function personalToken(options: ApiOptions, body: object = {}) {
  return server.api<{ token: string; expires_at: string; error: { fields: { field: string }[] } }>(
    'POST',
    '/api/v1/users/me/tokens',
    { ...options, body: { name: `token ${++addresses}`, ...body } },
  );
}

async function consoleSession(user: TestUser): Promise<Record<string, string>> {
  const body = { publishable_key: app.publishableKey, email: user.email, password };
  const answer = await server.api<{ csrf_token: string }>('POST', '/console/session', { body });
  assert.equal(answer.status, 201, answer.text);
  return {
    cookie: answer.headers.get('set-cookie')?.split(';')[0] ?? '',
    'x-quarry-csrf': answer.body.csrf_token,
  };
}

const me = (options: ApiOptions, at = server) =>
  at.api('GET', '/api/v1/users/me', options).then(({ status }) => status);
const refresh = (token: string, at = server) =>
  at
    .api('POST', '/api/v1/auth/refresh', { key: app.publishableKey, body: { refresh_token: token } })
    .then(({ status }) => status);

/** Everything that one user is signed in by; all of it works in both processes. */
async function everyCredential(user: TestUser) {
  const session = await signIn(user);
  const personal = (await personalToken({ token: session.access_token })).body.token;
  const held: Record<string, ApiOptions> = {
    'access token': { token: session.access_token },
    'minted access token': { token: (await mintedSession(user)).access_token },
    'personal token': { token: personal },
    'console session': { headers: await consoleSession(user) },
  };
  for (const [name, options] of Object.entries(held))
    for (const at of [server, other]) assert.equal(await me(options, at), 200, name);
  return { held, session };
}

async function mintedSession(user: TestUser): Promise<Session> {
  const answer = await server.api<Session>('POST', `/api/v1/users/${user.id}/tokens`, { key: app.secretKey, body: {} });
  assert.equal(answer.status, 201, answer.text);
  return answer.body;
}

/** Asks until the answer is 401, and fails when that takes longer than it may. */
async function endsIn(at: TestServer, name: string, options: ApiOptions): Promise<void> {
  const watch = startWatch();
  await until(async () => (await me(options, at)) === 401);
  watch.within(endsWithinMs, `The end of ${name}`);
}

const ways: [string, (user: TestUser, token: string) => Promise<{ status: number }>, number][] = [
  [
    'a change of the password',
    (user) =>
      server.api('PATCH', `/api/v1/users/${user.id}`, { key: app.secretKey, body: { password: 'another password' } }),
    200,
  ],
  [
    'an operator who ends all sessions',
    (user) => server.api('POST', `/api/v1/users/${user.id}/sessions/revoke`, { key: app.secretKey }),
    204,
  ],
  [
    'a developer who ends all sessions',
    (user) =>
      server.api('POST', `/protected/api/v1/developer/apps/${app.app.id}/users/${user.id}/sessions/revoke`, {
        token: app.developerToken,
      }),
    204,
  ],
  [
    'the user who ends all sessions',
    (_user, token) => server.api('POST', '/api/v1/users/me/sessions/revoke', { token }),
    204,
  ],
];
for (const lost of [false, true])
  for (const [way, end, status] of ways)
    test(`${way} ends every credential of the user in every process${lost ? ', even when the notification is lost' : ''}`, async () => {
      const user = await newUser();
      const bystander = await newUser();
      const { held, session } = await everyCredential(user);
      const bystanders = await everyCredential(bystander);
      if (lost) await server.db`alter table users disable trigger users_changed`;
      if (lost) await server.db`alter table personal_tokens disable trigger personal_tokens_changed`;
      try {
        const answer = await end(user, session.access_token);
        assert.equal(answer.status, status);
        await Promise.all(
          Object.entries(held).flatMap(([name, options]) =>
            [server, other].map((at) => endsIn(at, `${name} (${at === server ? 'here' : 'there'})`, options)),
          ),
        );
      } finally {
        await server.db`alter table users enable trigger users_changed`;
        await server.db`alter table personal_tokens enable trigger personal_tokens_changed`;
      }
      for (const at of [server, other]) assert.equal(await refresh(session.refresh_token, at), 401);
      const tokens = await server.api<{ data: { revoked_at?: string }[] }>('GET', `/api/v1/users/${user.id}/tokens`, {
        key: app.secretKey,
      });
      assert.ok(tokens.body.data.every(({ revoked_at }) => revoked_at !== undefined));
      for (const options of Object.values(bystanders.held)) assert.equal(await me(options), 200);
      assert.equal(await me({ token: (await mintedSession(user)).access_token }), 200);
    });

test('tokens created or refreshed while all sessions end are also ended', async () => {
  const user = await newUser();
  for (let round = 0; round < 5; round++) {
    const session = await mintedSession(user);
    const [renewed, personal] = await Promise.all([
      server.api<Session>('POST', '/api/v1/auth/refresh', {
        key: app.publishableKey,
        body: { refresh_token: session.refresh_token },
      }),
      personalToken({ token: session.access_token }),
      server.api('POST', `/api/v1/users/${user.id}/sessions/revoke`, { key: app.secretKey }),
    ]);
    await endsIn(server, 'the old access token', { token: session.access_token });
    if (renewed.status === 200) {
      assert.equal(await me({ token: renewed.body.access_token }), 401);
      assert.equal(await refresh(renewed.body.refresh_token), 401);
    }
    if (personal.status === 201) assert.equal(await me({ token: personal.body.token }), 401);
  }
});

test('an end user cannot end other users’ sessions', async () => {
  const [user, victim] = [await newUser(), await newUser()];
  const held = await mintedSession(victim);
  for (const id of [victim.id, 'usr_0000000000000000000000']) {
    const answer = await server.api('POST', `/api/v1/users/${id}/sessions/revoke`, { token: user.token });
    assert.equal(answer.status, 403);
  }
  assert.equal(await me({ token: held.access_token }), 200);
});

test('signing out also ends the access token, immediately here and within two seconds in other processes', async () => {
  const user = await newUser();
  const [session, bystander] = [await mintedSession(user), await mintedSession(user)];
  for (const at of [server, other]) assert.equal(await me({ token: session.access_token }, at), 200);
  const body = { refresh_token: session.refresh_token };
  assert.equal((await server.api('POST', '/api/v1/auth/logout', { key: app.publishableKey, body })).status, 204);
  assert.equal(await me({ token: session.access_token }), 401);
  await endsIn(other, 'the access token', { token: session.access_token });
  assert.equal(await me({ token: bystander.access_token }), 200);
});

test('a refresh token that is used twice ends the access tokens of its session', async () => {
  const user = await newUser();
  const session = await mintedSession(user);
  assert.equal(await refresh(session.refresh_token), 200);
  assert.equal(await refresh(session.refresh_token), 401);
  assert.equal(await me({ token: session.access_token }), 401);
});

test('a personal token creates no token that outlives it', async () => {
  const user = await newUser();
  const { body: parent } = await personalToken({ token: user.token }, { expires_in_days: 2 });
  const longer = await personalToken({ token: parent.token }, { expires_in_days: 3 });
  assert.deepEqual([longer.status, longer.body.error.fields[0]?.field], [422, 'expires_in_days']);
  const shorter = await personalToken({ token: parent.token }, { expires_in_days: 1 });
  assert.equal(shorter.status, 201);
  const unsaid = await personalToken({ token: parent.token });
  assert.equal(unsaid.status, 201);
  assert.equal(unsaid.body.expires_at, parent.expires_at);
  const grandchild = await personalToken({ token: unsaid.body.token });
  assert.equal(grandchild.body.expires_at, parent.expires_at);
});

const waits = graphOf({ id: 'w', kind: 'wait_for_signal', name: 'go' });

async function openStream(thing: string, options: ApiOptions): Promise<IncomingMessage> {
  const outgoing = request(`${other.baseUrl}/api/v1/${thing}/stream`, {
    agent: false,
    headers: {
      ...(options.key === undefined ? {} : { 'x-api-key': options.key }),
      ...(options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }),
      ...options.headers,
    },
  });
  outgoing.end();
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  assert.equal(response.statusCode, 200);
  await once(response, 'data');
  return response;
}

/** Reads the stream to its end, which must come in time. */
async function streamEnds(name: string, response: IncomingMessage): Promise<void> {
  const watch = startWatch();
  response.resume();
  if (!response.readableEnded) await once(response, 'end');
  watch.within(endsWithinMs, `The end of ${name}`);
}

test('a revoked credential of any kind loses its open event streams within two seconds', async () => {
  const client = new AutomationsClient(server, app);
  const { id } = await client.createAutomation({ workflow: waits });
  const user = await newUser();
  const invoked = await server.api<{ id: string }>('POST', `/api/v1/automations/${id}/invoke`, {
    token: user.token,
    body: {},
  });
  const session = await signIn(user);
  const leaving = await signIn(user);
  const { body: personal } = await personalToken({ token: session.access_token });
  const made = await server.api<{ id: string; full_key: string }>('POST', '/api/v1/keys', {
    key: app.secretKey,
    body: { type: 'secret' },
  });
  const cookie = await consoleSession(user);
  const run = `automation_runs/${invoked.body.id}`;
  const open = {
    'a session that is signed out': await openStream(run, { token: leaving.access_token }),
    'a revoked key': await openStream(run, { key: made.body.full_key }),
    'a personal token': await openStream(run, { token: personal.token }),
    'an access token': await openStream(run, { token: session.access_token }),
    'a console session': await openStream(run, { headers: cookie }),
  };
  const bystander = await openStream(run, { key: app.secretKey });
  await server.api('POST', '/api/v1/auth/logout', {
    key: app.publishableKey,
    body: { refresh_token: leaving.refresh_token },
  });
  await streamEnds('a session that is signed out', open['a session that is signed out']);
  await server.api('DELETE', `/api/v1/keys/${made.body.id}`, { key: app.secretKey });
  await streamEnds('a revoked key', open['a revoked key']);
  await server.api('POST', `/api/v1/users/${user.id}/sessions/revoke`, { key: app.secretKey });
  await Promise.all(
    (['a personal token', 'an access token', 'a console session'] as const).map((name) => streamEnds(name, open[name])),
  );
  assert.equal(bystander.readableEnded, false);
  bystander.destroy();
});

test('a reader who no longer sees a run or an extraction loses its open event streams within two seconds', async (t) => {
  const org = await server.provision.org(app);
  const [leaver, mate, bystander] = await Promise.all([newUser(org), newUser(org), newUser(org)]);
  const team = await server.provision.team(app, {
    members: [
      [mate, 'member'],
      [bystander, 'member'],
    ],
  });
  const agent = await server.provision.agent(app, { team });
  const client = new AutomationsClient(server, app);
  const runOf = async (owner: object) => {
    const { id } = await client.createAutomation({ workflow: waits, ...owner });
    return `automation_runs/${(await client.invoke(id)).id}`;
  };
  const ofOrg = await runOf({ org: org.id });
  const ofTeam = await runOf({ team: team.id });
  const silent = createServer(() => {});
  t.after(() => {
    silent.closeAllConnections();
    silent.close();
  });
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const extraction = await server.api<{ id: string }>('POST', '/api/v1/extractions', {
    key: app.secretKey,
    body: {
      url: `http://127.0.0.1:${(silent.address() as AddressInfo).port}/`,
      mode: 'link',
      destination_kind: 'storage',
      agent: agent.id,
    },
  });
  const path = `extractions/${extraction.body.id}`;
  const open = {
    leaver: await openStream(ofOrg, { token: leaver.token }),
    mate: await openStream(ofTeam, { token: mate.token }),
    extraction: await openStream(path, { token: mate.token }),
  };
  const staying = await Promise.all(
    [ofOrg, ofTeam, path].map((thing) => openStream(thing, { token: bystander.token })),
  );
  await server.api('PATCH', `/api/v1/users/${leaver.id}`, { key: app.secretKey, body: { org: null } });
  await streamEnds('a user who left the org', open.leaver);
  await server.api('DELETE', `/api/v1/teams/${team.id}/members/${mate.id}`, { key: app.secretKey });
  await streamEnds('a user who left the team, its run', open.mate);
  await streamEnds('a user who left the team, its extraction', open.extraction);
  for (const stream of staying) {
    assert.equal(stream.readableEnded, false);
    stream.destroy();
  }
});

test('an upload link ends with the rights of its creator', async () => {
  const org = await server.provision.org(app);
  const link = async (options: ApiOptions, owner: object) => {
    const answer = await server.api<{ url: string }>('POST', '/api/v1/files/upload_urls', {
      ...options,
      body: { filename: 'a.txt', content_type: 'text/plain', ...owner },
    });
    assert.equal(answer.status, 201, answer.text);
    return answer.body.url;
  };
  const put = async (url: string) => (await fetch(url, { method: 'PUT', body: 'text' })).status;
  const user = await newUser(org);
  const team = await server.provision.team(app, { org, members: [[user, 'member']] });
  const key = await server.api<{ id: string; full_key: string }>('POST', '/api/v1/keys', {
    key: app.secretKey,
    body: { type: 'secret' },
  });
  server.services.credentials.forget();
  const { access_token: token } = await mintedSession(user);

  const good = await link({ token }, { team: team.id });
  const ofTeam = await link({ token }, { team: team.id });
  assert.equal(await put(good), 201);
  await server.api('DELETE', `/api/v1/teams/${team.id}/members/${user.id}`, { key: app.secretKey });
  assert.equal(await put(ofTeam), 403, 'after leaving the team');

  const { body: personal } = await personalToken({ token });
  const byToken = await link({ token: personal.token }, {});
  const tokens = await server.api<{ data: { id: string }[] }>('GET', '/api/v1/users/me/tokens', { token });
  await server.api('DELETE', `/api/v1/users/me/tokens/${tokens.body.data[0]?.id}`, { token });
  assert.equal(await put(byToken), 403, 'after its token was revoked');

  const own = await link({ token }, {});
  await server.api('POST', `/api/v1/users/${user.id}/sessions/revoke`, { key: app.secretKey });
  assert.equal(await put(own), 403, 'after all sessions ended');

  const byKey = await link({ key: key.body.full_key }, { org: org.id });
  await server.api('DELETE', `/api/v1/keys/${key.body.id}`, { key: app.secretKey });
  assert.equal(await put(byKey), 403, 'after its key was revoked');

  const second = await newUser(org);
  const ofUser = await link({ token: (await mintedSession(second)).access_token }, {});
  await server.api('DELETE', `/api/v1/users/${second.id}`, { key: app.secretKey });
  assert.equal(await put(ofUser), 403, 'after its user was deleted');
});

/** Other spellings of base64url text that a lenient reader takes for the same bytes. */
function respelled(text: string): string[] {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const last = alphabet.indexOf(text.at(-1) ?? '');
  const spare = [...alphabet]
    .filter((_character, index) => index !== last)
    .map((character) => text.slice(0, -1) + character)
    .filter((each) => Buffer.from(each, 'base64url').equals(Buffer.from(text, 'base64url')));
  return [...spare, `${text}=`, `${text}A`, `${text}.`, `${text}~`, `${text} `];
}

test('a JWT, a signed URL, an upload link and a CSRF token are valid in one spelling only', async () => {
  const user = await newUser();
  const [head = '', claims = '', signature = ''] = user.token.split('.');
  assert.ok(respelled(signature).length > 5);
  for (const part of [0, 1, 2])
    for (const text of respelled([head, claims, signature][part] ?? '')) {
      const altered = [head, claims, signature].with(part, text).join('.');
      // What stands behind the header's value is not part of it.
      if (altered === altered.trim()) assert.equal(await me({ token: altered }), 401, altered);
    }
  const file = await server.api<{ url: string }>('POST', '/api/v1/files', {
    token: user.token,
    body: { filename: 'a.txt', content_type: 'text/plain', data: 'QQ==' },
  });
  const signed = new URL(file.body.url);
  assert.equal((await fetch(signed)).status, 200);
  const upload = await server.api<{ url: string }>('POST', '/api/v1/files/upload_urls', {
    token: user.token,
    body: { filename: 'a.txt', content_type: 'text/plain' },
  });
  const link = new URL(upload.body.url);
  const cookie = await consoleSession(user);
  for (const text of respelled(signed.searchParams.get('signature') ?? '')) {
    const url = new URL(signed);
    url.searchParams.set('signature', text);
    assert.equal((await fetch(url)).status, 403, text);
  }
  for (const text of respelled(link.searchParams.get('token') ?? '')) {
    const url = new URL(link);
    url.searchParams.set('token', text);
    assert.equal((await fetch(url, { method: 'PUT', body: 'text' })).status, 403, text);
  }
  for (const text of respelled(cookie['x-quarry-csrf'] ?? '').filter((each) => each === each.trim()))
    assert.equal(await me({ headers: { ...cookie, 'x-quarry-csrf': text } }), 401, text);
});
