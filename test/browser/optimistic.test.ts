import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { AutomationsClient, graphOf } from '../support/automations.ts';
import { ConsoleTest } from '../support/browser.ts';
import { loadApp } from '../support/console.ts';

const it = await ConsoleTest.start();
after(() => it.close());
afterEach(it.closePages);
const app = await loadApp(it.server);
const client = new AutomationsClient(it.server, app);

test('a switch is shown before the server confirms it, and turns back if the server refuses', async () => {
  const workflow = graphOf({ id: 'done', kind: 'complete', result: 1 });
  const { id } = await client.createAutomation({ name: 'Moor', workflow });
  const page = await it.openAsDeveloper(app, `/console/automations/${id}`);
  let answer = () => {};
  const held = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const error = { code: 'conflict', message: 'Not at this moment.' };
  await page.route('**/pause', async (route) => {
    await held;
    await route.fulfill({ status: 409, json: { error } });
  });
  await page.getByRole('button', { name: 'Pause' }).click();
  const lead = page.locator('.lead');
  await lead.getByText('Paused').waitFor();
  answer();
  await page.getByText('Not at this moment.').waitFor();
  await lead.getByText('Active').waitFor();
  assert.equal((await client.call<{ status: string }>('GET', `/automations/${id}`)).body.status, 'running');
  await page.unroute('**/pause');
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByRole('button', { name: 'Activate' }).waitFor();
});

test('a deleted entry is restored with its time, unless its key was written meanwhile', async () => {
  const { api, provision } = it.server;
  const key = app.secretKey;
  const user = await provision.user(app);
  const write = (name: string, value: string) =>
    api('POST', '/api/v1/kv', { key, body: { key: name, value, user: user.id, ttl_seconds: 3_600 } });
  const read = (name: string) =>
    api<{ value: string; expires_at?: string }>('GET', `/api/v1/kv/${name}?user=${user.id}`, { key });
  await write('alba', 'B7');
  await write('boreas', 'B8');
  const page = await it.openAsDeveloper(app, '/console/kv');
  const remove = async (name: string) => {
    await page.getByRole('button', { name: `Delete ${name}` }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Delete the entry' }).click();
    // As long as it is open, nothing behind it has a role.
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('button', { name, exact: true }).waitFor({ state: 'detached' });
  };
  await remove('alba');
  assert.equal((await read('alba')).status, 404);
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByRole('button', { name: 'alba', exact: true }).waitFor();
  const restored = (await read('alba')).body;
  assert.equal(restored.value, 'B7');
  assert.ok(Math.abs(Date.parse(restored.expires_at ?? '') - Date.now() - 3_600_000) < 600_000);
  await remove('boreas');
  await write('boreas', 'another');
  await page.getByRole('button', { name: 'Undo' }).click();
  await page
    .getByText(/could not be restored/)
    .first()
    .waitFor();
  assert.equal((await read('boreas')).body.value, 'another');
});
