import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { ConsoleTest } from '../support/browser.ts';
import { choosePrincipal, loadApp } from '../support/console.ts';
import { until } from '../support/until.ts';

const it = await ConsoleTest.start();
after(() => it.close());
afterEach(it.closePages);
const { provision, db, api } = it.server;
const app = await loadApp(it.server);
const user = await provision.user(app);
await db`update users set email = 'ada@harbour.example' where id = ${user.uuid}`;

test('entries are written, found, changed and deleted; a concurrent change is not overwritten silently', async () => {
  const page = await it.openAsDeveloper(app, '/console/kv');
  await page.getByRole('button', { name: 'Write the first entry' }).click();
  const dialog = page.getByRole('dialog');
  await choosePrincipal(page, dialog.getByLabel('User'), 'ada@harbour.example');
  await dialog.getByLabel('Key').fill('ships/alba?50%');
  await dialog.getByLabel('Value').fill('{"metres":90}');
  await dialog.getByRole('button', { name: 'Format the JSON' }).click();
  await dialog.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('button', { name: 'ships/alba?50%', exact: true }).waitFor();
  for (const key of ['ships/boreas', 'settings/theme'])
    await api('POST', '/api/v1/kv', { key: app.secretKey, body: { key, value: '"x"', user: user.id } });
  await page.getByLabel('Keys that begin with').fill('ships/');
  await page.getByRole('button', { name: 'ships/boreas', exact: true }).waitFor();
  assert.equal(await page.getByText('settings/theme').count(), 0);
  await choosePrincipal(page, page.getByLabel('Whose entries'), 'ada@harbour.example');
  await page.getByRole('button', { name: 'ships/alba?50%', exact: true }).waitFor();
  await it.picture(page, 'kv');

  await page.getByRole('button', { name: 'ships/alba?50%', exact: true }).click();
  await dialog.getByLabel('Value').waitFor();
  const path = `/api/v1/kv/${encodeURIComponent('ships/alba?50%')}`;
  await api('PUT', path, { key: app.secretKey, body: { value: '{"metres":120}', user: user.id } });
  await dialog.getByLabel('Value').fill('{"metres":91}');
  // Back from another window, the console loads the entry again.
  let reloaded = false;
  void page
    .waitForResponse((response) => response.url().includes(path))
    .then(() => {
      reloaded = true;
    });
  await until(async () => {
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))");
    return reloaded;
  });
  assert.equal(await dialog.getByLabel('Value').textContent(), '{"metres":91}');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.getByText('It was changed while you were editing.').waitFor();
  await dialog.getByText('{"metres":120}').waitFor();
  await it.picture(page, 'kv-conflict');
  await dialog.getByRole('button', { name: 'Overwrite with mine' }).click();
  await page.getByRole('cell', { name: '{"metres":91}' }).waitFor();

  await page.getByRole('button', { name: 'Delete ships/boreas' }).click();
  await dialog.getByRole('button', { name: 'Delete the entry' }).click();
  await dialog.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'ships/boreas', exact: true }).waitFor({ state: 'detached' });
});

test('changes of others appear by themselves, entries expire when they should, and a selection is deleted together', async () => {
  const page = await it.openAsDeveloper(app, '/console/kv');
  const put = (key: string, body: object) =>
    api('PUT', `/api/v1/kv/${key}`, { key: app.secretKey, body: { value: '1', user: user.id, ...body } });
  await choosePrincipal(page, page.getByLabel('Whose entries'), 'ada@harbour.example');
  await page.getByText('Live', { exact: true }).waitFor();
  await put('live/a', {});
  const entry = (name: string) => page.getByRole('button', { name, exact: true });
  await entry('live/a').waitFor();
  await put('live/a', { value: 'seen' });
  await page.getByRole('cell', { name: 'seen' }).waitFor();
  await put('live/brief', { ttl_seconds: 3_600 });
  await entry('live/brief').waitFor();
  await put('live/brief', { ttl_seconds: 1 });
  await entry('live/brief').waitFor({ state: 'detached' });

  // An edit keeps the expiry, or changes it.
  await put('live/b', { ttl_seconds: 86_400 });
  await entry('live/b').click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Value').fill('kept');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('cell', { name: 'kept' }).waitFor();
  const read = async () => {
    const { body } = await api<{ expires_at?: string }>('GET', `/api/v1/kv/live/b?user=${user.id}`, {
      key: app.secretKey,
    });
    return body.expires_at === undefined ? undefined : (Date.parse(body.expires_at) - Date.now()) / 3_600_000;
  };
  assert.equal(Math.round((await read()) ?? 0), 24);
  await entry('live/b').click();
  await dialog.getByLabel('Expires').selectOption('after');
  await dialog.getByLabel('Time to live').fill('2');
  await dialog.getByLabel('Unit').selectOption('days');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('cell', { name: 'in 2 d', exact: true }).waitFor();
  assert.equal(Math.round((await read()) ?? 0), 48);

  await page.getByLabel('Keys that begin with').fill('live/');
  await page.getByLabel('Select all rows of Entries').check();
  await page.getByRole('button', { name: 'Delete 2' }).click();
  await dialog.getByRole('button', { name: 'Delete 2' }).click();
  await page.getByText('No matching entries').waitFor();
});

test('a key is created and shown once, opens the app, and after it is revoked does not', async () => {
  const page = await it.openAsDeveloper(app, '/console/keys');
  await page.getByRole('button', { name: 'New key' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name', { exact: true }).fill('Nightly import');
  await dialog.getByLabel('Expires').selectOption('After 30 days');
  await dialog.getByLabel('Only a part of the app').check();
  await dialog.getByLabel('Files').selectOption('read');
  await it.picture(page, 'key-new');
  await dialog.getByRole('button', { name: 'Create the key' }).click();
  const key = await dialog.getByLabel('The new key').inputValue();
  assert.match(key, /^sk_/);
  await dialog.getByRole('button', { name: 'Copy' }).click();
  await it.picture(page, 'key-once');
  // Requests to copy have the key in them already.
  await dialog.getByText('Try it').click();
  await dialog.getByLabel('Upload a file: curl').getByText(key).waitFor();
  assert.equal((await api('GET', '/api/v1/files', { key })).status, 200);
  assert.equal((await api('GET', '/api/v1/users', { key })).status, 403);
  await dialog.getByRole('button', { name: 'I have copied it' }).click();
  const row = page.getByRole('row').filter({ hasText: 'Nightly import' });
  await row.waitFor();
  await row.getByText('secret: files:read').waitFor();
  await row.getByText(/^\d+ \w{3,4} 20\d\d$/).waitFor();
  assert.equal(await page.getByText(key).count(), 0);
  await it.picture(page, 'keys');
  await row.getByRole('button', { name: /^Revoke/ }).click();
  await dialog.getByRole('button', { name: 'Revoke the key' }).click();
  await row.getByText('revoked').waitFor();
  assert.equal((await api('GET', '/api/v1/files', { key })).status, 401);
});

test('a personal token of a user is created, shown once and revoked', async () => {
  const page = await it.openAsDeveloper(app, '/console/keys');
  await choosePrincipal(page, page.getByLabel('Whose tokens'), 'ada@harbour.example');
  await page.getByRole('button', { name: 'Create a token' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill('Laptop');
  await dialog.getByRole('button', { name: 'Create the token' }).click();
  const token = await dialog.getByLabel('The new token').inputValue();
  assert.equal((await api<{ id: string }>('GET', '/api/v1/users/me', { token })).body.id, user.id);
  await dialog.getByRole('button', { name: 'I have copied it' }).click();
  await page.getByRole('button', { name: 'Revoke Laptop' }).click();
  await dialog.getByRole('button', { name: 'Revoke the token' }).click();
  await page.getByRole('row').filter({ hasText: 'Laptop' }).getByText('revoked').waitFor();
  assert.equal((await api('GET', '/api/v1/users/me', { token })).status, 401);
});
