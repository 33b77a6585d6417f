import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { AssistantFlow, callback } from '../../support/assistant.ts';
import { responses, type SitePages, startSite } from '../../support/fixture-site.ts';
import { type ErrorBody, sendRequest, startTestServer } from '../../support/server.ts';

/* What hostile clients, pages and people try at the authorization server. */
let ahead = 0;
const clock = { now: () => new Date(Date.now() + ahead) };
const server = await startTestServer({ clock, env: { QUARRY_MCP_OAUTH: 'true', QUARRY_FETCH_ALLOW: '127.0.0.1' } });
const pages: SitePages = {};
const site = await startSite(pages);
after(async () => {
  await server.close();
  await site.close();
});
const { api, provision } = server;
const app = await provision.app();
const user = await provision.user(app);
const flow = new AssistantFlow(server, app.publishableKey, user.token);
const web = 'https://assistant.example/callback';
const clientId = await flow.register({ redirect_uris: [callback, web, 'https://assistant.example/other?keep=1'] });
/** Limits count by minute. */
const waitForTurns = () => {
  ahead += 61_000;
};

test('codes go nowhere else: every other address is an error without a redirect', async () => {
  waitForTurns();
  const others = [
    'https://evil.example/callback',
    'https://assistant.example.evil.example/callback',
    'https://assistant.example/callback/../other',
    'https://assistant.example/callback/',
    'https://assistant.example/callback?next=https://evil.example',
    'https://assistant.example/callback#fragment',
    'https://assistant.example@evil.example/callback',
    'https://assistant.example\\@evil.example/callback',
    'HTTPS://assistant.example/callback',
    'http://assistant.example/callback',
    'https://assistant.example:8443/callback',
    'javascript:alert(1)',
    'javascript://assistant.example/%0aalert(1)',
    'data:text/html,x',
    '//assistant.example/callback',
    '/callback',
    'http://127.0.0.1:4999/callback/more',
    'http://127.0.0.1:4999/callback#f',
    'http://127.0.0.1@evil.example/callback',
    'http://127.0.0.1:4999@evil.example/callback',
    'http://127.0.0.1.evil.example/callback',
    'http://localhost:4999/callback',
    'https://127.0.0.1:4999/callback',
    `${web}\u0000`,
  ];
  for (const redirect of others) {
    const refused = await flow.authorize(flow.parameters(clientId, { redirect_uri: redirect }));
    assert.deepEqual(
      [refused.status, refused.body.error, refused.headers.get('location')],
      [400, 'invalid_redirect_uri', null],
      redirect,
    );
  }
  for (const redirect of [callback, 'http://127.0.0.1/callback', 'http://127.0.0.1:61000/callback', web])
    assert.equal((await flow.authorize(flow.parameters(clientId, { redirect_uri: redirect }))).status, 302, redirect);
});

test('a browser gets the error as a page that runs nothing and cannot be framed', async () => {
  waitForTurns();
  const query = flow.parameters('<script>alert(1)</script>', { redirect_uri: 'javascript:alert(1)' });
  const page = await flow.authorize(query, { accept: 'text/html' });
  assert.deepEqual([page.status, page.headers.get('content-type')], [401, 'text/html; charset=utf-8']);
  assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'none'.*frame-ancestors 'none'/);
  assert.doesNotMatch(page.text, /<script|javascript:/);
  const consent = await api('GET', '/console/connect?key=pk_x&request=x');
  assert.equal(consent.headers.get('x-frame-options'), 'DENY');
  assert.match(consent.headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/);
});

test('a client registers only addresses that can be trusted with a code', async () => {
  waitForTurns();
  const addresses = [
    'javascript:alert(1)',
    'data:text/html,x',
    'http://assistant.example/callback',
    'https://assistant.example/callback#f',
    'https://user:password@assistant.example/',
    'https://@assistant.example/',
    'https://assistant.example/?code=mine',
    'https://assistant.example/?iss=https://other.example',
    'assistant://callback',
    'https:assistant.example',
    'https://assistant.example/ space',
    'https://\u0430ssistant.example/',
    `https://assistant.example/${'a'.repeat(1_000)}`,
    '',
    7,
    null,
  ];
  const register = (body: object) => api<{ error: string }>('POST', `/oauth/${flow.key}/register`, { body });
  for (const address of addresses) {
    const refused = await register({ redirect_uris: [address] });
    assert.equal(refused.status, 400, String(address));
    assert.ok(['invalid_redirect_uri', 'invalid_request'].includes(refused.body.error), refused.text);
  }
  for (const metadata of [
    { redirect_uris: [] },
    { redirect_uris: Array.from({ length: 21 }, (_, at) => `${web}${at}`) },
    { client_name: 'x'.repeat(101) },
    { client_name: 'evil\u202egnp' },
    { client_name: ' ' },
    { grant_types: ['client_credentials'] },
    { response_types: ['token'] },
  ])
    assert.equal((await register({ redirect_uris: [web], ...metadata })).status, 400, JSON.stringify(metadata));
  const odd = await register({
    redirect_uris: [web],
    token_endpoint_auth_method: 'client_secret_basic',
    client_uri: 'javascript:alert(1)',
  });
  assert.deepEqual(
    [
      odd.status,
      (odd.body as { client_uri?: string }).client_uri,
      (odd.body as { token_endpoint_auth_method?: string }).token_endpoint_auth_method,
    ],
    [201, undefined, 'none'],
  );
});

test('a client of one app is unknown at another, and altered ids are unknown', async () => {
  waitForTurns();
  const other = await provision.app();
  const there = new AssistantFlow(server, other.publishableKey, (await provision.user(other)).token);
  for (const id of [
    clientId,
    `${clientId}A`,
    clientId.slice(0, -2),
    'qmc_',
    'qmc_AAAA',
    'someone',
    'https://',
    `${site.origin}/`,
  ]) {
    const refused = await there.authorize(there.parameters(id));
    assert.deepEqual([refused.status, refused.body.error], [401, 'invalid_client'], id);
  }
  // What this server encrypts for other purposes is not a client.
  const request = await flow.request(flow.parameters(clientId));
  assert.equal((await flow.authorize(flow.parameters(`qmc_${request}`))).body.error, 'invalid_client');
  const started = { cookie: `quarry_sign_in=${clientId.slice(4)}` };
  assert.equal((await api('GET', '/console/oidc/callback?code=a&state=b', { headers: started })).status, 401);
});

test('requests that are wrong in any other way return to the client with the reason, its state and the issuer', async () => {
  waitForTurns();
  const cases: [Record<string, string>, string][] = [
    [{ response_type: 'token' }, 'unsupported_response_type'],
    [{ response_type: '' }, 'unsupported_response_type'],
    [{ response_mode: 'fragment' }, 'invalid_request'],
    [{ code_challenge_method: 'plain' }, 'invalid_request'],
    [{ code_challenge_method: '' }, 'invalid_request'],
    [{ code_challenge: '' }, 'invalid_request'],
    [{ code_challenge: 'short' }, 'invalid_request'],
    [{ scope: 'app' }, 'invalid_scope'],
    [{ scope: 'files everything' }, 'invalid_scope'],
    [{ resource: 'https://other.example/mcp' }, 'invalid_target'],
    [{ resource: `${server.baseUrl}/mcp` }, 'invalid_target'],
    [{ request: 'e30.e30.' }, 'request_not_supported'],
    [{ request_uri: 'https://evil.example/' }, 'request_uri_not_supported'],
  ];
  for (const [given, error] of cases) {
    const sent = await flow.authorize(
      flow.parameters(clientId, { redirect_uri: 'https://assistant.example/other?keep=1', ...given }),
    );
    const back = new URL(sent.headers.get('location') ?? 'none:');
    assert.deepEqual(
      ['keep', 'error', 'state', 'iss', 'code'].map((name) => back.searchParams.get(name)),
      ['1', error, 'a state', flow.issuer, null],
      JSON.stringify(given),
    );
  }
});

test('no link to this server sends a person to an address that somebody registered, unless they want to go there', async () => {
  waitForTurns();
  const accept = { accept: 'text/html,application/xhtml+xml' };
  const odd = `https://evil.example/"><script>alert(1)</script>?a='`;
  const evil = await flow.register({ redirect_uris: [web, odd] });
  for (const [redirect, host] of [
    [web, 'assistant.example'],
    [odd, 'evil.example'],
  ] as const) {
    const query = flow.parameters(evil, { redirect_uri: redirect, response_type: 'token' });
    const page = await flow.authorize(query, accept);
    assert.deepEqual([page.status, page.headers.get('location')], [400, null], redirect);
    assert.match(page.headers.get('content-type') ?? '', /^text\/html/);
    assert.match(page.text, /response_type must be code/);
    assert.ok(page.text.includes(`>Back to ${host}</a>`), page.text);
    assert.ok(!page.text.includes('<script'), page.text);
    const [, link = ''] = /<a href="([^"]*)">/.exec(page.text) ?? [];
    const to = new URL(link.replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code))));
    assert.deepEqual([to.host, to.searchParams.get('error')], [host, 'unsupported_response_type']);
  }
  const local = await flow.authorize(flow.parameters(clientId, { response_type: 'token' }), accept);
  assert.deepEqual([local.status, new URL(local.headers.get('location') ?? 'none:').host], [302, '127.0.0.1:4999']);
  const right = await flow.authorize(flow.parameters(clientId, { redirect_uri: web }), accept);
  assert.match(right.headers.get('location') ?? '', /\/console\/connect\?/);
});

test('a repeated parameter is refused, at every endpoint', async () => {
  waitForTurns();
  const query = flow.parameters(clientId);
  for (const name of ['client_id', 'redirect_uri', 'state', 'scope', 'unknown']) {
    const refused = await flow.authorize(`${query}&${name}=a&${name}=b`);
    assert.deepEqual(
      [refused.status, refused.body.error, refused.headers.get('location')],
      [400, 'invalid_request', null],
      name,
    );
  }
  for (const path of ['token', 'revoke'] as const) {
    const refused = await flow.form(path, 'grant_type=refresh_token&token=a&client_id=a&client_id=b');
    assert.deepEqual([refused.status, refused.body.error], [400, 'invalid_request']);
  }
});

test('the token endpoint reads only small forms', async () => {
  waitForTurns();
  const send = (body: string, type: string) =>
    api<{ error: string }>('POST', `/oauth/${flow.key}/token`, { body, headers: { 'content-type': type } });
  assert.equal((await send('{"grant_type": "refresh_token"}', 'application/json')).body.error, 'invalid_request');
  assert.equal((await send(`grant_type=${'x'.repeat(20_000)}`, 'application/x-www-form-urlencoded')).status, 413);
  const password = await flow.form('token', { grant_type: 'password', username: user.email, password: 'x' });
  assert.deepEqual([password.status, password.body.error], [400, 'unsupported_grant_type']);
  assert.equal((await flow.form('token', '')).body.error, 'unsupported_grant_type');
});

test('a user decides only for their own app, in time, and with their own credential', async () => {
  waitForTurns();
  const request = await flow.request(flow.parameters(clientId));
  const other = await provision.app();
  const stranger = await provision.user(other);
  const sandbox = await provision.user(await provision.sandbox(app));
  for (const token of [stranger.token, sandbox.token]) {
    const refused = await flow.decide(request, undefined, token);
    assert.equal(refused.status, 422, refused.text);
  }
  const { tokens } = await flow.connect();
  const asAssistant = await api('POST', '/api/v1/assistant_request', {
    ...{ token: tokens.access_token, key: app.publishableKey },
    body: { request, decision: 'allow' },
  });
  assert.equal(asAssistant.status, 401);
  assert.equal(
    (await api('POST', '/api/v1/assistant_request', { key: app.secretKey, body: { request, decision: 'allow' } }))
      .status,
    403,
  );
  // An assistant that a script connected would outlive the script's token.
  const script = await api<{ token: string }>('POST', '/api/v1/users/me/tokens', { token: user.token, body: {} });
  assert.match(script.body.token, /^sat_/);
  const byScript = await flow.decide(request, undefined, script.body.token);
  assert.equal(byScript.status, 403, byScript.text);
  for (const text of ['x', `${request}A`, clientId.slice(4)]) assert.equal((await flow.decide(text)).status, 422, text);
  // A page of another site can send the cookie of a session, but not its CSRF token.
  const forged = await api<ErrorBody>('POST', '/api/v1/assistant_request', {
    headers: { cookie: 'quarry_session=csu_x', origin: 'https://evil.example' },
    body: { request, decision: 'allow' },
  });
  assert.equal(forged.status, 401);
  ahead += 16 * 60_000;
  const fresh = await provision.user(app);
  assert.equal((await flow.decide(request, undefined, fresh.token)).status, 422);
});

test('a metadata document is fetched with care, and believed only about itself', async () => {
  waitForTurns();
  const fresh = new AssistantFlow(server, app.publishableKey, (await provision.user(app)).token);
  const at = (name: string) => `${site.origin}/${name}`;
  const document = (name: string, rest: object = {}) =>
    JSON.stringify({ client_id: at(name), redirect_uris: [web], ...rest });
  Object.assign(pages, {
    '/other': document('someone-else'),
    '/secret': document('secret', { token_endpoint_auth_method: 'client_secret_post' }),
    '/bad-uri': document('bad-uri', { redirect_uris: ['javascript:alert(1)'] }),
    '/no-uris': JSON.stringify({ client_id: at('no-uris') }),
    '/html': '<html></html>',
    '/array': '[]',
    '/null': 'null',
    '/moved': responses.redirect(at('good')),
    '/missing': responses.status(404),
    '/endless': responses.endless,
    '/bomb': responses.bomb,
    '/cut': responses.cut,
    '/junk': responses.junk,
    '/good': document('good'),
  });
  for (const name of Object.keys(pages)) {
    const sent = await fresh.authorize(fresh.parameters(at(name.slice(1)), { redirect_uri: web }));
    const isGood = name === '/good';
    assert.equal(sent.status, isGood ? 302 : 401, `${name}: ${sent.text}`);
    if (!isGood) assert.equal(sent.body.error, 'invalid_client', name);
  }
  for (const id of [
    'http://10.0.0.1/client',
    'https://169.254.169.254/client',
    `${site.origin}/good?a=1`,
    `${site.origin}/a/../good`,
    'file:///etc/passwd',
  ])
    assert.equal((await fresh.authorize(fresh.parameters(id, { redirect_uri: web }))).body.error, 'invalid_client', id);
  // The good one was fetched once.
  await fresh.authorize(fresh.parameters(at('good'), { redirect_uri: web }));
  assert.equal(site.requestCount('/good'), 1);
});

test('one address registers and authorizes a bounded number of times in a minute', async () => {
  waitForTurns();
  const statuses = [];
  for (let sent = 0; sent < 61; sent++) statuses.push((await flow.authorize(flow.parameters(clientId))).status);
  assert.deepEqual([statuses.indexOf(429), statuses.filter((status) => status === 302).length], [60, 60]);
  const late = await flow.authorize(flow.parameters(clientId));
  assert.equal(late.body.error, 'temporarily_unavailable');
  assert.ok(Number(late.headers.get('retry-after')) > 0);
});

test('only digests of codes and tokens are stored', async () => {
  waitForTurns();
  const fresh = new AssistantFlow(server, app.publishableKey, (await provision.user(app)).token);
  const { tokens } = await fresh.connect();
  const rows = JSON.stringify(await server.db`select row_to_json(g) from assistant_grants g`);
  for (const secret of [tokens.access_token, tokens.refresh_token]) assert.ok(!rows.includes(secret));
  assert.equal((await sendRequest(server.baseUrl, 'GET', `/oauth/pk_unknown/authorize`)).status, 404);
});
