import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import { Client, type OAuthClientProvider, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { startProvider } from '../../support/oidc-provider.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';

/* With `oidc-provider`, a certified OpenID provider, as the issuer. */
const server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.0/8' } });
const { api, provision } = server;
const provider = await startProvider({
  redirectUris: [`${server.baseUrl}/console/oidc/callback`, 'http://127.0.0.1:9/callback'],
});
after(async () => {
  await server.close();
  await provider.close();
});

const app = await provision.app();
const client = { client_id: 'console', client_secret: 'console-secret' };
const body = { issuer: provider.issuer, audience: 'https://quarry.example', create_users: true, console: client };
const made = await api<{ id: string; console: object }>('POST', '/api/v1/identity_issuers', {
  key: app.secretKey,
  body,
});
assert.equal(made.status, 201, made.text);

test('the secret of a client is never shown', () => {
  assert.deepEqual(made.body.console, { client_id: 'console' });
});

async function begin(): Promise<{ url: string; cookie: string }> {
  const start = await api<{ url: string }>('POST', '/console/oidc/start', {
    body: { publishable_key: app.publishableKey, identity_issuer: made.body.id },
  });
  assert.equal(start.status, 201, start.text);
  return { url: start.body.url, cookie: (start.headers.get('set-cookie') ?? '').split(';')[0] ?? '' };
}

test('a user signs in to the console at the issuer, by authorization code with PKCE', async () => {
  const path = `/console/oidc/issuers?publishable_key=${app.publishableKey}`;
  const listed = await api<{ data: { id: string; issuer: string }[] }>('GET', path);
  assert.deepEqual(listed.body.data, [{ id: made.body.id, issuer: provider.issuer }]);
  const { url, cookie } = await begin();
  const asked = new URL(url).searchParams;
  assert.deepEqual([asked.get('code_challenge_method'), asked.get('response_type')], ['S256', 'code']);
  const back = new URL(await provider.signIn(url, 'ada'));
  assert.equal(back.origin + back.pathname, `${server.baseUrl}/console/oidc/callback`);

  const callback = `${back.pathname}${back.search}`;
  for (const headers of [{}, { cookie: (await begin()).cookie }])
    assert.equal((await api<ErrorBody>('GET', callback, { headers })).status, 401);
  const done = await api('GET', callback, { headers: { cookie } });
  assert.deepEqual([done.status, done.headers.get('location')], [302, '/console/'], done.text);
  const session =
    done.headers
      .getSetCookie()
      .find((each) => each.startsWith('quarry_session='))
      ?.split(';')[0] ?? '';
  const opened = await api<{ kind: string; user: { id: string } }>('GET', '/console/session', {
    headers: { cookie: session },
  });
  assert.deepEqual([opened.status, opened.body.kind], [200, 'user'], opened.text);
  // A code works once.
  assert.equal((await api('GET', callback, { headers: { cookie } })).status, 401);
});

test('a failed sign-in shows a browser a page with the reason and a link back; a program gets JSON', async () => {
  const { cookie } = await begin();
  const path = '/console/oidc/callback?error=access_denied&state=wrong';
  const page = await api('GET', path, { headers: { cookie, accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } });
  assert.equal(page.status, 401);
  assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8');
  assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'none'/);
  assert.match(page.text, /You are not signed in.*This sign-in is not valid.*href="\/console\/"/s);
  const { body } = await api<ErrorBody>('GET', path, { headers: { cookie } });
  assert.equal(body.error.code, 'invalid_credentials');
});

test('an MCP client finds the issuer, signs in with OAuth and calls a tool', async () => {
  const url = `${server.baseUrl}/mcp/${app.publishableKey}`;
  const refused = await api('POST', `/mcp/${app.publishableKey}`, { body: {} });
  const metadata = `${server.baseUrl}/.well-known/oauth-protected-resource/mcp/${app.publishableKey}`;
  assert.deepEqual(
    [refused.status, refused.headers.get('www-authenticate')],
    [401, `Bearer resource_metadata="${metadata}"`],
  );
  const described = await api('GET', new URL(metadata).pathname);
  assert.deepEqual(described.body, {
    resource: url,
    resource_name: 'Quarry',
    authorization_servers: [provider.issuer],
    scopes_supported: ['openid'],
    bearer_methods_supported: ['header'],
  });

  let asked: URL | undefined;
  const kept = new Map<string, unknown>();
  const oauth: OAuthClientProvider = {
    redirectUrl: 'http://127.0.0.1:9/callback',
    clientMetadata: { redirect_uris: ['http://127.0.0.1:9/callback'], client_name: 'test' },
    clientInformation: () => ({ client_id: 'mcp' }),
    tokens: () => kept.get('tokens') as never,
    saveTokens: (tokens) => void kept.set('tokens', tokens),
    redirectToAuthorization: (to) => {
      asked = to;
    },
    saveCodeVerifier: (verifier) => void kept.set('verifier', verifier),
    codeVerifier: () => String(kept.get('verifier')),
  };
  const first = new StreamableHTTPClientTransport(new URL(url), { authProvider: oauth });
  await assert.rejects(new Client({ name: 'test', version: '1' }).connect(first));
  assert.ok(asked !== undefined);
  assert.equal(asked.searchParams.get('resource'), url);
  const back = new URL(await provider.signIn(asked.href, 'ada'));
  await first.finishAuth(back.searchParams);

  const mcp = new Client({ name: 'test', version: '1' });
  await mcp.connect(new StreamableHTTPClientTransport(new URL(url), { authProvider: oauth }));
  const written = await mcp.callTool({ name: 'kv_put', arguments: { key: 'theme', value: 'dark' } });
  assert.notEqual(written.isError, true, JSON.stringify(written));
  await mcp.close();
});

test('an issuer that does not send JSON is an error page, not a failure of the server', async (t) => {
  const issuer = createServer((request, response) => {
    const own = `http://${request.headers.host}`;
    const discovery = {
      issuer: own,
      jwks_uri: `${own}/jwks`,
      authorization_endpoint: `${own}/in`,
      token_endpoint: `${own}/token`,
    };
    response.end(
      request.url?.endsWith('openid-configuration') ? JSON.stringify(discovery) : '<html>Maintenance</html>',
    );
  });
  t.after(() => {
    issuer.close();
    issuer.closeAllConnections();
  });
  await new Promise<void>((resolve) => issuer.listen(0, '127.0.0.1', resolve));
  const broken = await api<{ id: string }>('POST', '/api/v1/identity_issuers', {
    key: app.secretKey,
    body: { ...body, issuer: `http://127.0.0.1:${(issuer.address() as AddressInfo).port}` },
  });
  const start = await api<{ url: string }>('POST', '/console/oidc/start', {
    body: { publishable_key: app.publishableKey, identity_issuer: broken.body.id },
  });
  const state = new URL(start.body.url).searchParams.get('state');
  const cookie = (start.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
  const callback = (accept: string) =>
    fetch(`${server.baseUrl}/console/oidc/callback?code=abc&state=${state}`, {
      headers: { cookie, accept },
      redirect: 'manual',
    });
  const page = await callback('text/html');
  assert.equal(page.status, 401);
  assert.match(page.headers.get('content-type') ?? '', /text\/html/);
  assert.match(await page.text(), /did not sign you in/);
  assert.equal((await callback('application/json')).status, 401);
});
