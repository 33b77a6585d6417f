import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { AssistantFlow, callback } from '../support/assistant.ts';
import { ConsoleTest } from '../support/browser.ts';
import { startProvider } from '../support/oidc-provider.ts';

const it = await ConsoleTest.start({ env: { QUARRY_MCP_OAUTH: 'true', QUARRY_FETCH_ALLOW: '127.0.0.0/8' } });
const { api, baseUrl, provision } = it.server;
const provider = await startProvider({ redirectUris: [`${baseUrl}/console/oidc/callback`, callback] });
after(async () => {
  await it.close();
  await provider.close();
});
afterEach(it.closePages);
const app = await provision.app();
const password = 'correct horse battery';

async function createUser(email: string) {
  const made = await api<{ id: string }>('POST', '/api/v1/users', { key: app.secretKey, body: { email, password } });
  assert.equal(made.status, 201, made.text);
  return made.body.id;
}

test('a user signs in, allows an assistant a part of what it asks for, sees it and disconnects it', async () => {
  const user = await createUser('ada@example.com');
  const flow = new AssistantFlow(it.server, app.publishableKey, '');
  const clientId = await flow.register({ client_name: 'Research helper' });
  const query = flow.parameters(clientId, { scope: 'files knowledge kv:read' });
  let page = await it.open(`/oauth/${app.publishableKey}/authorize?${query}`);
  await page.getByText('An assistant wants to connect. Sign in as a user of the app.').waitFor();
  await page.getByLabel('E-mail').fill('ada@example.com');
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Connect Research helper?' }).waitFor();
  await page.getByLabel('Files').selectOption('nothing');
  await page.getByLabel('Knowledge, threads, installations').selectOption('read');
  assert.deepEqual(await page.getByLabel('Key-value').locator('option').allInnerTexts(), ['nothing', 'read']);
  assert.equal(await page.getByLabel('Webhooks').count(), 0);
  await it.picture(page, 'connect-assistant');

  const returned = page.waitForRequest((request) => request.url().startsWith(callback));
  await page.getByRole('button', { name: 'Connect' }).click();
  const back = new URL((await returned).url()).searchParams;
  const got = await flow.exchange(clientId, back.get('code') ?? '');
  assert.deepEqual([got.status, got.body.scope], [200, 'knowledge:read kv:read']);

  // In another tab: nobody listens at the callback, and its error page would interrupt the next navigation.
  page = await page.context().newPage();
  await page.goto('/console/keys');
  const row = page.getByRole('row', { name: /Research helper/ });
  await row.waitFor();
  await it.picture(page, 'connected-assistants');
  await row.getByRole('button', { name: /Disconnect/ }).click();
  await page.getByRole('button', { name: 'Disconnect the assistant' }).click();
  await page.getByText('None. A program that signs in to the MCP endpoint appears here.').waitFor();
  assert.equal((await flow.call(got.body.access_token)).status, 401);
  const left = await api<{ data: [] }>('GET', `/api/v1/connected_assistants?user=${user}`, { key: app.secretKey });
  assert.deepEqual(left.body.data, []);
});

test('a user refuses; the assistant is told, and a name that is HTML is shown as text', async () => {
  await createUser('grace@example.com');
  const flow = new AssistantFlow(it.server, app.publishableKey, '');
  const name = '<img src=x onerror=alert(1)>';
  const query = flow.parameters(await flow.register({ client_name: name }));
  const page = await it.open(`/oauth/${app.publishableKey}/authorize?${query}`, 'phone');
  await page.getByLabel('E-mail').fill('grace@example.com');
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: `Connect ${name}?` }).waitFor();
  await it.picture(page, 'connect-assistant-phone');
  const returned = page.waitForRequest((request) => request.url().startsWith(callback));
  await page.getByRole('button', { name: 'Refuse' }).click();
  const back = new URL((await returned).url()).searchParams;
  assert.deepEqual([back.get('error'), back.get('code'), back.get('iss')], ['access_denied', null, flow.issuer]);
});

test('a user who signs in at an issuer of the app comes back to the page', async () => {
  const console = { client_id: 'console', client_secret: 'console-secret' };
  const body = { issuer: provider.issuer, audience: 'https://quarry.example', create_users: true, console };
  assert.equal((await api('POST', '/api/v1/identity_issuers', { key: app.secretKey, body })).status, 201);
  const flow = new AssistantFlow(it.server, app.publishableKey, '');
  const page = await it.open(
    `/oauth/${app.publishableKey}/authorize?${flow.parameters(await flow.register({ client_name: 'Helper' }))}`,
  );
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
