import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { parseId } from '../../../src/lib/ids.ts';
import { AssistantFlow } from '../../support/assistant.ts';
import { EventStream } from '../../support/event-stream.ts';
import { responses, startSite } from '../../support/fixture-site.ts';
import { startProvider } from '../../support/oidc-provider.ts';
import { startTestServer } from '../../support/server.ts';
import { startIssuer } from '../../support/token-issuer.ts';
import { until } from '../../support/until.ts';

/* What users obtain with a sign-in at an issuer ends with the issuer, like its tokens. */

const server = await startTestServer({ env: { QUARRY_MCP_OAUTH: 'true', QUARRY_FETCH_ALLOW: '127.0.0.0/8' } });
const { api, provision, baseUrl } = server;
const audience = 'https://quarry.example';
const issuer = await startIssuer(() => new Date(), audience);
const provider = await startProvider({ redirectUris: [`${baseUrl}/console/oidc/callback`, 'http://127.0.0.1:9/back'] });
const site = await startSite({ '/slow': responses.silent });
after(async () => {
  await server.close();
  await issuer.close();
  await provider.close();
  await site.close();
});
const app = await provision.app();
const key = app.secretKey;

type Headers = Record<string, string>;
const bearer = (token: string): Headers => ({ authorization: `Bearer ${token}` });
const signIn = async (subject: string): Promise<Headers> => ({
  'x-api-key': app.publishableKey,
  ...bearer(await issuer.sign(subject)),
});
const status = async (path: string, headers: Headers) => (await api('GET', path, { headers })).status;

/** Trusts an issuer. Returns its path. */
async function trust(body: object): Promise<string> {
  const made = await api<{ id: string }>('POST', '/api/v1/identity_issuers', {
    key,
    body: { audience, create_users: true, ...body },
  });
  assert.equal(made.status, 201, made.text);
  return `/api/v1/identity_issuers/${made.body.id}`;
}

async function createToken(headers: Headers): Promise<string> {
  const made = await api<{ token: string }>('POST', '/api/v1/users/me/tokens', { headers, body: {} });
  assert.equal(made.status, 201, made.text);
  return made.body.token;
}

/** Connects an assistant as the user with these headers. Returns its access and refresh token. */
async function connect(headers: Headers) {
  const flow = new AssistantFlow(server, app.publishableKey, '');
  const clientId = await flow.register();
  const request = await flow.request(flow.parameters(clientId));
  const decided = await api<{ redirect_url: string }>('POST', '/api/v1/assistant_request', {
    headers,
    body: { request, decision: 'allow' },
  });
  assert.equal(decided.status, 200, decided.text);
  const code = new URL(decided.body.redirect_url).searchParams.get('code') ?? '';
  const { body: tokens } = await flow.exchange(clientId, code);
  const call = async () => (await flow.call(tokens.access_token)).status;
  const refresh = async () => (await flow.refresh(clientId, tokens.refresh_token)).status;
  /** A call that waits for a page that never comes. */
  const wait = () => {
    const params = { name: 'extract_url', arguments: { url: `${site.origin}/slow`, wait_seconds: 300 } };
    return flow.call(tokens.access_token, { method: 'tools/call', params });
  };
  return { call, refresh, wait };
}

/** Signs a user in to the console at the provider. Returns the headers of the session. */
async function openConsole(issuerPath: string, subject: string): Promise<Headers> {
  const start = await api<{ url: string }>('POST', '/console/oidc/start', {
    body: { publishable_key: app.publishableKey, identity_issuer: issuerPath.split('/').at(-1) },
  });
  const cookie = (start.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
  const back = new URL(await provider.signIn(start.body.url, subject));
  const done = await api('GET', `${back.pathname}${back.search}`, { headers: { cookie } });
  assert.equal(done.status, 302, done.text);
  const set = done.headers.getSetCookie().find((each) => each.startsWith('quarry_session='));
  const session = set?.split(';')[0] ?? '';
  const shown = await api<{ csrf_token: string }>('GET', '/console/session', { headers: { cookie: session } });
  return { cookie: session, 'x-quarry-csrf': shown.body.csrf_token };
}

async function openWatch(headers: Headers): Promise<EventStream> {
  const stream = await EventStream.open(`${baseUrl}/api/v1/kv_watch`, headers);
  assert.equal(stream.response.statusCode, 200);
  assert.ok(await stream.next());
  return stream;
}

test('personal tokens that were created with a token of an issuer end with the issuer, and their streams', async () => {
  const path = await trust({ issuer: issuer.issuer });
  const headers = await signIn('ada');
  const first = await createToken(headers);
  const second = await createToken(bearer(first));
  const { body: me } = await api<{ id: string }>('GET', '/api/v1/users/me', { headers });
  const byKey = await api<{ token: string }>('POST', `/api/v1/users/${me.id}/tokens`, {
    key,
    body: { type: 'personal' },
  });
  const streams = await Promise.all([first, second].map((token) => openWatch(bearer(token))));
  await api('PATCH', path, { key, body: { create_users: false } });
  assert.equal(await status('/api/v1/users/me', bearer(second)), 200, 'after a change of the issuer');
  assert.equal((await api('DELETE', path, { key })).status, 204);
  for (const [place, token] of [first, second].entries()) {
    assert.equal(await status('/api/v1/users/me', bearer(token)), 401, `token ${place}`);
    assert.equal(await streams[place]?.next(), undefined, `the stream of token ${place}`);
  }
  assert.equal(await status('/api/v1/users/me', bearer(byKey.body.token)), 200, 'a token that the app created');
});

test('an assistant that was connected with a token of an issuer is disconnected with the issuer, and its calls end', async () => {
  const path = await trust({ issuer: issuer.issuer });
  const assistant = await connect(await signIn('grace'));
  assert.equal(await assistant.call(), 200);
  const waiting = assistant.wait();
  await site.waitForRequest('/slow');
  assert.equal((await api('DELETE', path, { key })).status, 204);
  assert.match((await waiting).text, /invalid_credentials/);
  assert.deepEqual([await assistant.call(), await assistant.refresh()], [401, 400]);
  assert.deepEqual((await api<{ data: unknown[] }>('GET', '/api/v1/connected_assistants', { key })).body.data, []);
});

test('a console session that an issuer opened ends with the issuer, with all that was created in it', async () => {
  const client = { client_id: 'console', client_secret: 'console-secret' };
  const path = await trust({ issuer: provider.issuer, console: client });
  const headers = await openConsole(path, 'joan');
  assert.equal(await status('/api/v1/users/me', headers), 200);
  const [token, assistant] = [await createToken(headers), await connect(headers)];
  const link = await api<{ url: string }>('POST', '/api/v1/files/upload_urls', {
    headers,
    body: { filename: 'a.txt', content_type: 'text/plain' },
  });
  assert.equal(link.status, 201, link.text);
  const streams = [await openWatch(headers), await openWatch(bearer(token))];
  assert.equal((await api('DELETE', path, { key })).status, 204);
  assert.deepEqual(
    [await status('/api/v1/users/me', headers), await status('/api/v1/users/me', bearer(token))],
    [401, 401],
  );
  assert.deepEqual([await assistant.call(), await assistant.refresh()], [401, 400]);
  for (const stream of streams) assert.equal(await stream.next(), undefined);
  const { pathname, search } = new URL(link.body.url);
  const uploaded = await api('PUT', `${pathname}${search}`, {
    body: 'text',
    headers: { 'content-type': 'text/plain' },
  });
  assert.equal(uploaded.status, 403, uploaded.text);
});

test('a token that is created while the issuer is deleted is 401', async () => {
  const path = await trust({ issuer: issuer.issuer });
  const headers = await signIn('mary');
  await api('GET', '/api/v1/users/me', { headers });
  let answer: Promise<{ status: number; text: string }> | undefined;
  await server.db.begin(async (tx) => {
    await tx`delete from identity_issuers
      where app_id = ${app.app.uuid} and id = ${parseId('identityIssuer', path.split('/').at(-1) ?? '') ?? ''}`;
    let isOver = false;
    answer = api('POST', '/api/v1/users/me/tokens', { headers, body: {} });
    void answer.finally(() => {
      isOver = true;
    });
    const look = () => tx`select from pg_stat_activity where pg_backend_pid() = any(pg_blocking_pids(pid))`;
    await until(async () => isOver || (await look()).count > 0);
  });
  const { status: refused, text } = (await answer) ?? { status: 0, text: '' };
  assert.equal(refused, 401, text);
});
