import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { AssistantFlow, callback, MemoryOAuth } from '../../support/assistant.ts';
import { responses, type SitePages, startSite } from '../../support/fixture-site.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

/* How assistants connect by OAuth, with this server as the authorization server. */
let ahead = 0;
const clock = { now: () => new Date(Date.now() + ahead) };
const server = await startTestServer({ clock, env: { QUARRY_MCP_OAUTH: 'true', QUARRY_FETCH_ALLOW: '127.0.0.1' } });
const site = await startSite({ '/slow': responses.silent });
after(async () => {
  await server.close();
  await site.close();
});
const { api, provision } = server;
const app = await provision.app();
const user = await provision.user(app);
// The clock moves by months.
const lasting = await api<{ token: string }>('POST', `/api/v1/users/${user.id}/tokens`, {
  token: user.token,
  body: { expires_in_days: 3_000 },
});
user.token = lasting.body.token;
/** Personal tokens connect no assistant. */
async function signIn(): Promise<string> {
  const made = await api<{ token: string }>('POST', `/api/v1/users/${user.id}/tokens`, { key: app.secretKey });
  return made.body.token;
}
const flow = new AssistantFlow(server, app.publishableKey, signIn);
const day = 24 * 3_600_000;

type Listed = { data: { id: string; name: string; user: string; scopes: string[]; redirect_host: string }[] };
const listed = async (credential: { token?: string; key?: string }, query = '') =>
  (await api<Listed>('GET', `/api/v1/connected_assistants${query}`, credential)).body.data;

test('the official MCP client finds this server, registers, signs the user in, calls a tool and refreshes', async () => {
  const url = new URL(flow.resource);
  const oauth = new MemoryOAuth();
  const first = new StreamableHTTPClientTransport(url, { authProvider: oauth });
  await assert.rejects(new Client({ name: 'test', version: '1' }).connect(first));
  const asked = oauth.asked;
  assert.ok(asked !== undefined);
  assert.equal(asked.origin + asked.pathname, `${flow.issuer}/authorize`);
  assert.deepEqual(
    ['resource', 'code_challenge_method', 'scope'].map((name) => asked.searchParams.get(name)),
    [flow.resource, 'S256', 'files extractions knowledge automations kv'],
  );
  const request = await flow.request(asked.searchParams);
  const shown = await api('GET', `/api/v1/assistant_request?request=${request}`, { token: user.token });
  assert.deepEqual(shown.body, {
    name: 'Official client',
    is_verified: false,
    redirect_host: '127.0.0.1:4999',
    is_local: true,
    scopes: ['files', 'extractions', 'knowledge', 'automations', 'kv'],
  });
  const decided = await flow.decide(request);
  const back = new URL(decided.body.redirect_url);
  assert.equal(back.origin + back.pathname, callback);
  assert.deepEqual(
    [back.searchParams.get('state'), back.searchParams.get('iss')],
    ['state of the client', flow.issuer],
  );
  await first.finishAuth(back.searchParams);

  const mcp = new Client({ name: 'test', version: '1' });
  await mcp.connect(new StreamableHTTPClientTransport(url, { authProvider: oauth }));
  const written = await mcp.callTool({ name: 'kv_put', arguments: { key: 'theme', value: 'dark' } });
  assert.notEqual(written.isError, true, JSON.stringify(written));
  const entry = await api<{ value: string }>('GET', '/api/v1/kv/theme', { token: user.token });
  assert.equal(entry.body.value, 'dark');

  const before = oauth.kept.get('tokens') as { access_token: string };
  ahead += 2 * 3_600_000;
  assert.notEqual((await mcp.callTool({ name: 'kv_get', arguments: { key: 'theme' } })).isError, true);
  assert.notEqual((oauth.kept.get('tokens') as { access_token: string }).access_token, before.access_token);
  await mcp.close();
});

test('a client that is the URL of its metadata document connects without registering', async (t) => {
  const pages: SitePages = {};
  const documents = await startSite(pages);
  t.after(() => documents.close());
  const id = `${documents.origin}/assistant.json`;
  const document = {
    client_id: id,
    client_name: 'Documented',
    redirect_uris: [callback],
    logo_uri: 'http://10.0.0.1/',
  };
  pages['/assistant.json'] = JSON.stringify(document);
  const back = await flow.allow(flow.parameters(id));
  assert.equal((await flow.exchange(id, back.get('code') ?? '')).status, 200);
  const [connected] = await listed({ token: user.token });
  assert.deepEqual([connected?.name, (connected as { url?: string } | undefined)?.url], ['Documented', id]);
});

test('a token works at its MCP endpoint alone, and only as far as its scopes', async () => {
  const { tokens } = await flow.connect('kv:read knowledge');
  assert.equal(tokens.scope, 'knowledge kv:read');
  const { access_token: token } = tokens;
  const list = await flow.call(token);
  assert.equal(list.status, 200, list.text);
  assert.match(list.text, /"kv_get"/);
  assert.doesNotMatch(list.text, /"kv_put"|"upload_file"/);
  const call = { method: 'tools/call', params: { name: 'kv_put', arguments: { key: 'a', value: 1 } } };
  assert.match((await flow.call(token, call)).text, /does not exist/);

  const other = await provision.app();
  for (const [path, options] of [
    ['/api/v1/kv', { token }],
    ['/api/v1/kv', { token, key: app.publishableKey }],
    ['/api/v1/connected_assistants', { token, key: app.publishableKey }],
  ] as const)
    assert.equal((await api('GET', path, options)).status, 401, path);
  assert.equal((await flow.call(token, undefined, '/mcp')).status, 401);
  assert.equal((await flow.call(token, undefined, `/mcp/${other.publishableKey}`)).status, 401);
  for (const forged of [`${token.slice(0, -3)}abc`, token.slice(4), `mat_${user.token}`, 'mat_e30.e30.e30'])
    assert.equal((await flow.call(forged)).status, 401, forged);
  ahead += 3_700_000;
  const late = await flow.call(token);
  assert.deepEqual([late.status, (late.body as ErrorBody).error.code], [401, 'expired_token']);
  assert.match(late.headers.get('www-authenticate') ?? '', /error="invalid_token", resource_metadata=/);
});

test('the user may grant less than the assistant asks for, but not more, and may refuse', async () => {
  const clientId = await flow.register();
  const query = flow.parameters(clientId, { scope: 'files kv' });
  const more = await flow.decide(await flow.request(query), { decision: 'allow', scopes: ['knowledge'] });
  assert.equal(more.status, 422);
  const back = await flow.allow(query, { decision: 'allow', scopes: ['kv:read'] });
  assert.equal((await flow.exchange(clientId, back.get('code') ?? '')).body.scope, 'kv:read');
  const refused = await flow.allow(query, { decision: 'refuse' });
  assert.deepEqual(
    [refused.get('error'), refused.get('state'), refused.get('iss'), refused.get('code')],
    ['access_denied', 'a state', flow.issuer, null],
  );
});

test('a code works once, soon, and for its client, address and verifier', async () => {
  const clientId = await flow.register();
  const codeOf = async () => (await flow.allow(flow.parameters(clientId))).get('code') ?? '';
  const code = await codeOf();
  const stranger = await flow.register({ client_name: 'Stranger' });
  const wrong: [string, Record<string, string>][] = [
    [stranger, {}],
    [clientId, { redirect_uri: 'http://127.0.0.1:5000/callback' }],
    [clientId, { code_verifier: 'x'.repeat(43) }],
    [clientId, { code_verifier: '' }],
    [clientId, { code: `${code.slice(0, -1)}${code.endsWith('a') ? 'b' : 'a'}` }],
  ];
  for (const [client, given] of wrong) {
    const refused = await flow.exchange(client, code, given);
    assert.deepEqual([refused.status, refused.body.error], [400, 'invalid_grant'], JSON.stringify(given));
  }
  const other = await flow.exchange(clientId, code, { resource: `${server.baseUrl}/mcp` });
  assert.deepEqual([other.status, other.body.error], [400, 'invalid_target']);
  const { status, body: tokens } = await flow.exchange(clientId, code);
  assert.equal(status, 200);
  assert.equal((await flow.call(tokens.access_token)).status, 200);
  // The second use ends what the first one got.
  assert.equal((await flow.exchange(clientId, code)).body.error, 'invalid_grant');
  assert.equal((await flow.call(tokens.access_token)).status, 401);
  assert.equal((await flow.refresh(clientId, tokens.refresh_token)).body.error, 'invalid_grant');

  const late = await codeOf();
  ahead += 121_000;
  assert.equal((await flow.exchange(clientId, late)).body.error, 'invalid_grant');
});

test('of two requests with the same code, at most one gets tokens, and they end', async () => {
  const clientId = await flow.register();
  const code = (await flow.allow(flow.parameters(clientId))).get('code') ?? '';
  const both = await Promise.all([flow.exchange(clientId, code), flow.exchange(clientId, code)]);
  assert.deepEqual(both.map(({ status }) => status).sort(), [200, 400]);
  const won = both.find(({ status }) => status === 200);
  assert.equal((await flow.call(won?.body.access_token ?? '')).status, 401);
});

test('a refresh token works once; an old one ends the connection, an invented one does nothing', async () => {
  const { clientId, tokens } = await flow.connect('kv');
  const invented = `${tokens.refresh_token.slice(0, 30)}${'x'.repeat(82)}`;
  assert.equal(invented.length, tokens.refresh_token.length);
  assert.equal((await flow.refresh(clientId, invented)).body.error, 'invalid_grant');
  assert.equal((await flow.refresh(await flow.register(), tokens.refresh_token)).body.error, 'invalid_grant');
  assert.equal((await flow.refresh(clientId, tokens.refresh_token, { scope: 'files' })).body.error, 'invalid_scope');
  const narrower = await flow.refresh(clientId, tokens.refresh_token, { scope: 'kv:read' });
  assert.deepEqual([narrower.status, narrower.body.scope], [200, 'kv:read']);
  assert.doesNotMatch((await flow.call(narrower.body.access_token)).text, /"kv_put"/);
  const next = await flow.refresh(clientId, narrower.body.refresh_token);
  assert.deepEqual([next.status, next.body.scope], [200, 'kv']);
  assert.equal((await flow.refresh(clientId, tokens.refresh_token)).body.error, 'invalid_grant');
  assert.equal((await flow.refresh(clientId, next.body.refresh_token)).body.error, 'invalid_grant');
  assert.equal((await flow.call(next.body.access_token)).status, 401);
});

test('a refresh whose response was lost can be repeated for 30 seconds, until its successor is used', async () => {
  const { clientId, tokens } = await flow.connect('kv');
  const old = tokens.refresh_token;
  // Both requests of a client that sends two get the same, so that it may keep either.
  const both = await Promise.all([flow.refresh(clientId, old), flow.refresh(clientId, old)]);
  assert.deepEqual(
    both.map(({ status }) => status),
    [200, 200],
  );
  ahead += 10_000;
  const third = await flow.refresh(clientId, old, { scope: 'kv:read' });
  assert.deepEqual([third.status, third.body.scope], [200, 'kv:read']);
  assert.equal(new Set([...both, third].map(({ body }) => body.refresh_token)).size, 1);
  assert.notEqual(third.body.refresh_token, old);
  assert.equal((await flow.call(third.body.access_token)).status, 200);
  assert.equal((await flow.refresh(clientId, old, { scope: 'files' })).body.error, 'invalid_scope');
  const next = await flow.refresh(clientId, third.body.refresh_token);
  assert.equal(next.status, 200);
  // Its successor was used, so this is not the client whose response was lost.
  assert.equal((await flow.refresh(clientId, old)).body.error, 'invalid_grant');
  assert.equal((await flow.call(next.body.access_token)).status, 401);
  assert.equal((await flow.refresh(clientId, next.body.refresh_token)).body.error, 'invalid_grant');
});

test('a refresh repeated later, or by another client, ends the connection', async () => {
  for (const [wait, other] of [
    [31_000, false],
    [0, true],
  ] as const) {
    const { clientId, tokens } = await flow.connect('kv');
    const next = await flow.refresh(clientId, tokens.refresh_token);
    ahead += wait;
    const by = other ? await flow.register() : clientId;
    assert.equal((await flow.refresh(by, tokens.refresh_token)).body.error, 'invalid_grant');
    assert.equal((await flow.refresh(clientId, next.body.refresh_token)).body.error, 'invalid_grant');
    assert.equal((await flow.call(next.body.access_token)).status, 401);
  }
});

test('a connection that is not used for 30 days ends, and its row is deleted', async () => {
  const { clientId, tokens } = await flow.connect();
  ahead += 29 * day;
  const next = await flow.refresh(clientId, tokens.refresh_token);
  assert.equal(next.status, 200);
  ahead += 31 * day;
  assert.equal((await flow.refresh(clientId, next.body.refresh_token)).body.error, 'invalid_grant');
  await server.server.work.tasks.sweep_assistants?.({} as never, {} as never);
  const [left] = await server.db<[{ count: number }]>`select count(*) as count from assistant_grants`;
  assert.equal(left.count, 0);
});

test('users see and disconnect their own assistants, keys those of all users; other users and apps see none', async () => {
  const [mine, theirs] = [await flow.connect('kv'), await provision.user(app)];
  const [one] = await listed({ token: user.token });
  assert.deepEqual(
    [one?.name, one?.user, one?.scopes, one?.redirect_host],
    ['Helper', user.id, ['kv'], '127.0.0.1:4999'],
  );
  assert.deepEqual(await listed({ token: theirs.token }), []);
  assert.deepEqual(await listed({ key: (await provision.app()).secretKey }), []);
  assert.equal((await listed({ key: app.secretKey })).length, 1);
  assert.deepEqual(await listed({ key: app.secretKey }, `?user=${theirs.id}`), []);
  const path = `/api/v1/connected_assistants/${one?.id}`;
  assert.equal((await api('DELETE', path, { token: theirs.token })).status, 404);
  assert.equal((await api('GET', path, { token: theirs.token })).status, 404);
  assert.equal((await api('DELETE', path, { token: user.token })).status, 204);
  assert.equal((await flow.call(mine.tokens.access_token)).status, 401);
  assert.equal((await flow.refresh(mine.clientId, mine.tokens.refresh_token)).body.error, 'invalid_grant');

  const again = await flow.connect();
  const [other] = await listed({ key: app.secretKey });
  assert.equal((await api('DELETE', `/api/v1/connected_assistants/${other?.id}`, { key: app.secretKey })).status, 204);
  assert.equal((await flow.call(again.tokens.access_token)).status, 401);
});

test('an assistant that revokes its token disconnects itself, and no other', async () => {
  const [one, other] = [await flow.connect(), await flow.connect()];
  for (const form of [
    { token: 'nothing' },
    { token: one.tokens.access_token },
    { client_id: other.clientId, token: one.tokens.access_token },
  ])
    assert.equal((await flow.form('revoke', form)).status, 200);
  assert.equal((await flow.call(one.tokens.access_token)).status, 200);
  assert.equal((await flow.form('revoke', { client_id: one.clientId, token: one.tokens.refresh_token })).status, 200);
  assert.equal((await flow.call(one.tokens.access_token)).status, 401);
  assert.equal(
    (await flow.form('revoke', { client_id: other.clientId, token: other.tokens.access_token })).status,
    200,
  );
  assert.equal((await flow.call(other.tokens.access_token)).status, 401);
});

test('connections end with the sessions of their user', async () => {
  const own = await provision.user(app);
  const theirs = new AssistantFlow(server, app.publishableKey, own.token);
  const { clientId, tokens } = await theirs.connect();
  const changed = await api('PATCH', `/api/v1/users/${own.id}`, {
    key: app.secretKey,
    body: { password: 'a new password 1' },
  });
  assert.equal(changed.status, 200, changed.text);
  assert.equal((await theirs.call(tokens.access_token)).status, 401);
  assert.equal((await theirs.refresh(clientId, tokens.refresh_token)).body.error, 'invalid_grant');
});

test('a call in progress ends when its assistant is disconnected', async () => {
  const { tokens } = await flow.connect('extractions');
  const params = { name: 'extract_url', arguments: { url: `${site.origin}/slow`, wait_seconds: 300 } };
  const waiting = flow.call(tokens.access_token, { method: 'tools/call', params });
  await site.waitForRequest('/slow');
  const [connected] = await listed({ token: user.token });
  assert.equal(
    (await api('DELETE', `/api/v1/connected_assistants/${connected?.id}`, { token: user.token })).status,
    204,
  );
  assert.match((await waiting).text, /invalid_credentials.*"isError":true/);
});

test('with the setting off, nothing of it exists', async (t) => {
  const off = await startTestServer({ beside: server });
  t.after(() => off.close());
  const closed = new AssistantFlow(off, app.publishableKey, user.token);
  assert.equal((await off.api('GET', `/.well-known/oauth-authorization-server/oauth/${closed.key}`)).status, 404);
  assert.equal((await closed.authorize('')).status, 404);
  assert.equal((await closed.form('token', {})).status, 404);
  const metadata = await off.api('GET', `/.well-known/oauth-protected-resource/mcp/${closed.key}`);
  assert.deepEqual(metadata.body.authorization_servers, []);
});

test('an app’s developer switches it off for their app: nothing of it exists there, and what was connected ends', async () => {
  const other = await provision.app();
  const user = await provision.user(other);
  const closed = new AssistantFlow(server, other.publishableKey, user.token);
  const path = `/protected/api/v1/developer/apps/${other.app.id}`;
  const set = (assistants: boolean) =>
    api<{ assistants?: boolean }>('PATCH', path, { token: other.developerToken, body: { assistants } });
  const isThere = async () =>
    (await api('GET', `/.well-known/oauth-authorization-server/oauth/${closed.key}`)).status === 200;
  const { clientId, tokens } = await closed.connect('kv');
  const asked = await closed.request(closed.parameters(clientId));
  assert.equal((await set(true)).body.assistants, undefined);
  assert.equal((await closed.call(tokens.access_token, { method: 'tools/list' })).status, 200);

  assert.equal((await set(false)).body.assistants, false);
  assert.equal(
    (await api<{ assistants?: boolean }>('GET', path, { token: other.developerToken })).body.assistants,
    false,
  );
  assert.deepEqual([await isThere(), (await closed.form('token', {})).status], [false, 404]);
  assert.equal((await closed.authorize('kv')).status, 404);
  const metadata = await api('GET', `/.well-known/oauth-protected-resource/mcp/${closed.key}`);
  assert.deepEqual(metadata.body.authorization_servers, []);
  const call = () => closed.call(tokens.access_token, { method: 'tools/list' });
  await until(async () => (await call()).status === 401);
  // What a user was asked before.
  assert.equal((await closed.decide(asked)).status, 409);
  assert.deepEqual(await listed({ token: user.token }), []);
  assert.equal((await api('GET', `/.well-known/oauth-authorization-server/oauth/${flow.key}`)).status, 200);

  await set(true);
  assert.equal(await isThere(), true);
  await closed.connect('kv');
});
