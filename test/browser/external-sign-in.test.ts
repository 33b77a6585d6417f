import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { ConsoleTest } from '../support/browser.ts';
import { startProvider } from '../support/oidc-provider.ts';

const it = await ConsoleTest.start({ env: { QUARRY_FETCH_ALLOW: '127.0.0.0/8' } });
const { api, baseUrl, provision } = it.server;
const provider = await startProvider({
  redirectUris: [`${baseUrl}/console/oidc/callback`, 'http://127.0.0.1:9/callback'],
});
after(async () => {
  await it.close();
  await provider.close();
});
afterEach(it.closePages);

test('a developer adds an issuer, and a user then signs in to the console there', async () => {
  const app = await provision.app();
  const developer = await it.openAsDeveloper(app, '/console/issuers');
  await developer.getByRole('button', { name: 'New issuer' }).first().click();
  await developer.getByLabel('Issuer', { exact: true }).fill(provider.issuer);
  await developer.getByLabel('Audience').fill('https://quarry.example');
  await developer.getByLabel('Create a user for an unknown account').check();
  await it.picture(developer, 'new-issuer');
  await developer.getByRole('button', { name: 'Add the issuer' }).click();
  await developer.getByRole('cell', { name: provider.issuer, exact: true }).waitFor();
  await it.picture(developer, 'issuers');
  const { body } = await api<{ data: { id: string; create_users: boolean }[] }>('GET', '/api/v1/identity_issuers', {
    key: app.secretKey,
  });
  assert.deepEqual(
    body.data.map(({ create_users }) => create_users),
    [true],
  );
  const client = { client_id: 'console', client_secret: 'console-secret' };
  await api('PATCH', `/api/v1/identity_issuers/${body.data[0]?.id}`, { key: app.secretKey, body: { console: client } });

  const user = await it.open(`/console?key=${app.publishableKey}`);
  const button = user.getByRole('button', { name: `Continue with ${new URL(provider.issuer).host}` });
  await button.waitFor();
  await it.picture(user, 'external-sign-in');
  await button.click();
  await user.locator('main#content').waitFor();
  assert.equal(new URL(user.url()).origin, baseUrl);
});
