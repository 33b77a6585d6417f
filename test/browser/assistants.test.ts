import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';
import type { Page } from 'playwright-core';
import { AssistantFlow, callback, MemoryOAuth } from '../support/assistant.ts';
import { ConsoleTest } from '../support/browser.ts';
import { loadApp } from '../support/console.ts';
import { startProvider } from '../support/oidc-provider.ts';

const it = await ConsoleTest.start({ env: { QUARRY_MCP_OAUTH: 'true', QUARRY_FETCH_ALLOW: '127.0.0.0/8' } });
const { api, baseUrl } = it.server;
const provider = await startProvider({ redirectUris: [`${baseUrl}/console/oidc/callback`, callback] });
after(async () => {
  await it.close();
  await provider.close();
});
afterEach(it.closePages);
const app = await loadApp(it.server);
const password = 'correct horse battery';
const assistant = new AssistantFlow(it.server, app.publishableKey, '');

async function createUser(email: string) {
  const made = await api<{ id: string }>('POST', '/api/v1/users', { key: app.secretKey, body: { email, password } });
  assert.equal(made.status, 201, made.text);
  return made.body.id;
}

/** The official client begins to connect. It stops where it needs a person with a browser. */
async function beginToConnect(name: string) {
  const asked: string[] = [];
  const oauth = new MemoryOAuth(undefined, name);
  const transport = new StreamableHTTPClientTransport(new URL(assistant.resource), {
    authProvider: oauth,
    fetch: async (url, init) => {
      const response = await fetch(url, init);
      asked.push(`${response.status} ${new URL(url).pathname.replaceAll(app.publishableKey, 'KEY')}`);
      return response;
    },
  });
  await assert.rejects(new Client({ name, version: '1' }).connect(transport), UnauthorizedError);
  assert.ok(oauth.asked !== undefined);
  return { oauth, transport, asked, address: oauth.asked.href };
}

async function signInAsUser(page: Page, email: string) {
  await page.getByText('An assistant wants to connect. Sign in as a user of the app.').waitFor();
  await page.getByLabel('E-mail').fill(email);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** What the browser brings to the assistant's callback after a press of the button. */
async function returnBy(page: Page, button: string): Promise<URLSearchParams> {
  const returned = page.waitForRequest((request) => request.url().startsWith(callback));
  await page.getByRole('button', { name: button }).click();
  return new URL((await returned).url()).searchParams;
}

test('the official MCP client connects through the browser as far as its user allows, and is disconnected in the console', async () => {
  const user = await createUser('ada@example.com');
  const { oauth, transport, asked, address } = await beginToConnect('Research helper');
  assert.deepEqual(asked, [
    '401 /mcp/KEY',
    '200 /.well-known/oauth-protected-resource/mcp/KEY',
    '200 /.well-known/oauth-authorization-server/oauth/KEY',
    '201 /oauth/KEY/register',
  ]);
  let page = await it.open(address);
  await signInAsUser(page, 'ada@example.com');
  await page.getByRole('heading', { name: 'Connect Research helper?' }).waitFor();
  await page.getByText('It will act as ada@example.com in Harbour authority').waitFor();
  await page.getByLabel('Files').selectOption('nothing');
  await page.getByLabel('Knowledge, threads, installations').selectOption('read');
  assert.equal(await page.getByLabel('Webhooks').count(), 0);
  await it.picture(page, 'connect-assistant');
  await transport.finishAuth(await returnBy(page, 'Connect'));
  const tokens = oauth.kept.get('tokens') as { access_token: string; scope: string };
  assert.equal(tokens.scope, 'extractions knowledge:read automations kv');

  const client = new Client({ name: 'Research helper', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(assistant.resource), { authProvider: oauth }));
  const written = await client.callTool({ name: 'kv_put', arguments: { key: 'theme', value: 'dark' } });
  assert.notEqual(written.isError, true, JSON.stringify(written));
  const entry = await api<{ value: string }>('GET', `/api/v1/kv/theme?user=${user}`, { key: app.secretKey });
  assert.equal(entry.body.value, 'dark', entry.text);

  // In another tab: nobody listens at the callback, and its error page would interrupt the next navigation.
  page = await page.context().newPage();
  await page.goto('/console/keys');
  const row = page.getByRole('row', { name: /Research helper/ });
  await row.getByText('Extractions and config · Knowledge, threads, installations (read) · ').waitFor();
  await it.picture(page, 'connected-assistants');
  await row.getByRole('button', { name: /Disconnect/ }).click();
  await page.getByRole('button', { name: 'Disconnect the assistant' }).click();
  await page.getByText('None. A program that signs in to the MCP endpoint appears here.').waitFor();
  assert.equal((await assistant.call(tokens.access_token)).status, 401);
  oauth.asked = undefined;
  await assert.rejects(client.callTool({ name: 'kv_get', arguments: { key: 'theme' } }), UnauthorizedError);
  assert.ok(oauth.asked !== undefined, 'the client asks its user again');
  const left = await api<{ data: [] }>('GET', `/api/v1/connected_assistants?user=${user}`, { key: app.secretKey });
  assert.deepEqual(left.body.data, []);
  await client.close();
});

test('a user refuses; the assistant is told, and a name that is HTML is shown as text', async () => {
  await createUser('grace@example.com');
  const name = '<img src=x onerror=alert(1)>';
  const { oauth, transport, address } = await beginToConnect(name);
  const page = await it.open(address, 'phone', { colorScheme: 'dark' });
  await signInAsUser(page, 'grace@example.com');
  await page.getByRole('heading', { name: `Connect ${name}?` }).waitFor();
  await it.picture(page, 'connect-assistant-phone');
  const back = await returnBy(page, 'Refuse');
  assert.deepEqual([back.get('error'), back.get('code'), back.get('iss')], ['access_denied', null, assistant.issuer]);
  await assert.rejects(transport.finishAuth(back), { code: 'access_denied' });
  assert.equal(oauth.kept.get('tokens'), undefined);
});

test('an assistant that asks for less can be granted no more', async () => {
  await createUser('joan@example.com');
  const query = assistant.parameters(await assistant.register(), { scope: 'files kv:read' });
  const page = await it.open(`/oauth/${app.publishableKey}/authorize?${query}`);
  await signInAsUser(page, 'joan@example.com');
  const choices = (label: string) => page.getByLabel(label).locator('option').allInnerTexts();
  await page.getByLabel('Key-value').waitFor();
  assert.deepEqual(await choices('Key-value'), ['nothing', 'read']);
  assert.deepEqual(await choices('Files'), ['nothing', 'read', 'read and change']);
  assert.equal(await page.getByLabel('Knowledge, threads, installations').count(), 0);
});

test('a user who signs in at an issuer of the app comes back to the page', async () => {
  const console = { client_id: 'console', client_secret: 'console-secret' };
  const body = { issuer: provider.issuer, audience: 'https://quarry.example', create_users: true, console };
  assert.equal((await api('POST', '/api/v1/identity_issuers', { key: app.secretKey, body })).status, 201);
  const page = await it.open((await beginToConnect('Helper')).address);
  await page.getByRole('button', { name: `Continue with ${new URL(provider.issuer).host}` }).click();
  await page.getByRole('heading', { name: 'Connect Helper?' }).waitFor();
});

test('a developer is asked to sign in as a user, and an old request says what to do', async () => {
  const page = await it.openAsDeveloper(app, '/console/keys');
  const allowed = page.getByRole('switch', { name: 'Users may connect assistants' });
  await allowed.click();
  await page.getByRole('button', { name: 'Switch them off' }).click();
  await allowed.and(page.locator('[aria-checked=false]')).waitFor();
  const metadata = `/.well-known/oauth-authorization-server/oauth/${app.publishableKey}`;
  assert.equal((await api('GET', metadata)).status, 404);
  await allowed.click();
  await allowed.and(page.locator('[aria-checked=true]')).waitFor();
  assert.equal((await api('GET', metadata)).status, 200);
  await page.goto(`/console/connect?key=${app.publishableKey}&request=old`);
  await page.getByText('Only users of an app can connect assistants. Sign in as a user of the app.').waitFor();
  await createUser('mary@example.com');
  await page.getByLabel('E-mail').fill('mary@example.com');
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('is not valid or has expired. Start again in the assistant.').waitFor();
});
