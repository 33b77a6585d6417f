import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { AutomationsClient, graphOf } from '../support/automations.ts';
import { ConsoleTest, scrollsSideways } from '../support/browser.ts';
import { loadApp } from '../support/console.ts';
import { isSigned, WebhookReceiver } from '../support/webhook-receiver.ts';

const it = await ConsoleTest.start({ env: { QUARRY_FETCH_ALLOW: '127.0.0.1' } });
const receiver = await WebhookReceiver.start();
after(async () => {
  await it.close();
  await receiver.close();
});
afterEach(it.closePages);

test('a webhook is created with chosen events, tested, its deliveries read and repeated, its secret rotated, and paused', async () => {
  const app = await loadApp(it.server);
  const page = await it.openAsDeveloper(app, '/console/webhooks');
  await page.getByRole('button', { name: 'New webhook' }).first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('URL').fill(`${receiver.origin}/orders`);
  await dialog.getByLabel('file.created').check();
  await dialog.getByLabel('Your own events').fill('order.paid order.shipped');
  await dialog.getByRole('button', { name: 'Create the webhook' }).click();
  const secret = await dialog.getByLabel('The secret').inputValue();
  await dialog.getByText('standardwebhooks').waitFor();
  await dialog.getByRole('button', { name: 'I have copied it' }).click();
  const row = page.getByRole('table', { name: 'Webhooks' }).locator('tbody tr').first();
  await row.getByText('order.paid').waitFor();
  await row.getByRole('link').click();

  await page.getByRole('button', { name: 'Send a test event' }).click();
  const deliveries = page.getByRole('table', { name: 'Deliveries' }).locator('tbody tr');
  await deliveries.filter({ hasText: 'webhook.test' }).getByText('delivered').waitFor();
  const [tested] = await receiver.waitFor('/orders', 1);
  assert.ok(tested && isSigned(tested, secret));

  // The log is live, says why a delivery failed, and repeats it.
  receiver.respond = (response) => response.writeHead(500).end();
  const body = { name: 'order.paid', payload: { total: 7 } };
  await it.server.api('POST', '/api/v1/events', { key: app.secretKey, body });
  const paid = deliveries.filter({ hasText: 'order.paid' });
  await paid.getByText('500').waitFor();
  await page.getByLabel('Filter by state').selectOption('pending');
  await deliveries.filter({ hasText: 'webhook.test' }).waitFor({ state: 'detached' });
  await paid.getByRole('button', { name: 'Attempts' }).click();
  await dialog.getByText('refused').waitFor();
  await it.picture(page, 'webhook-attempts');
  await page.keyboard.press('Escape');
  receiver.respond = (response) => response.end();
  await page.getByLabel('Filter by state').selectOption('');
  await paid.getByRole('button', { name: 'Deliver again' }).click();
  await paid.getByText('delivered').waitFor();
  const messages = await receiver.waitFor('/orders', 3);
  assert.deepEqual(messages.at(-1)?.event.data, { total: 7 });
  await it.picture(page, 'webhook');
  assert.equal(await scrollsSideways(page), false);

  await page.getByRole('button', { name: 'Rotate the secret' }).click();
  await dialog.getByLabel('How long the old secret stays valid').selectOption('3600');
  await dialog.getByRole('button', { name: 'Rotate it' }).click();
  const rotated = await dialog.getByLabel('The new secret').inputValue();
  assert.notEqual(rotated, secret);
  await dialog.getByRole('button', { name: 'I have copied it' }).click();
  await page.getByText('Old secret valid until').waitFor();

  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByText('It is paused.', { exact: true }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Send a test event' }).isDisabled(), true);
  await page.getByRole('button', { name: 'Resume' }).click();
  await page.getByRole('button', { name: 'Pause' }).waitFor();

  await page.getByRole('button', { name: 'Edit' }).click();
  await dialog.getByLabel('All events').check();
  await dialog.getByRole('button', { name: 'Save' }).click();
  await page.getByText('all events').waitFor();
  await page.getByRole('button', { name: 'Delete' }).click();
  await dialog.getByRole('button', { name: 'Delete the webhook' }).click();
  await page.getByText('No webhooks yet').waitFor();
});

test('a webhook wakes a function for runs of chosen automations, and says why it is paused', async () => {
  const app = await loadApp(it.server);
  const client = new AutomationsClient(it.server, app);
  const program = { kind: 'WorkflowProgram', version: 1, name: 'remind' };
  const { id } = await client.createAutomation({ name: 'Remind', lookup_key: 'remind', workflow: program });
  const graph = graphOf({ id: 'done', kind: 'complete', result: 1 });
  await client.createAutomation({ name: 'Count the boats', workflow: graph });
  const page = await it.openAsDeveloper(app, '/console/webhooks');
  await page.getByRole('button', { name: 'New webhook' }).first().click();
  const dialog = page.getByRole('dialog', { name: 'New webhook' });
  await dialog.getByRole('radio', { name: 'Runs to execute' }).check();
  await dialog.getByLabel('URL').fill(`${receiver.origin}/function`);
  await dialog.getByRole('button', { name: 'Add an automation' }).click();
  await page.getByRole('option', { name: 'Remind' }).waitFor();
  assert.equal(await page.getByRole('option').count(), 1);
  await page.getByRole('option', { name: 'Remind' }).click();
  await dialog.getByRole('button', { name: 'Remove Remind' }).waitFor();
  await it.picture(page, 'webhook-function-new');
  await dialog.getByRole('button', { name: 'Create the webhook' }).click();
  await page.getByRole('dialog').getByText('@quarry/client/serve').waitFor();
  await page.getByRole('button', { name: 'I have copied it' }).click();
  const row = page.getByRole('table', { name: 'Webhooks' }).locator('tbody tr');
  await row.getByText('runs of 1 automation').waitFor();
  await row.getByRole('link').click();
  await page.getByRole('link', { name: 'Remind' }).waitFor();

  await client.invoke(id);
  const [message] = await receiver.waitFor('/function', 1);
  assert.equal(message?.event.type, 'automation_run.ready');
  await page.getByRole('button', { name: 'Pause' }).click();
  const paused = page.getByRole('status').filter({ hasText: 'The function is not woken.' });
  await paused.getByText('Runs wait.').waitFor();
  await it.picture(page, 'webhook-function');
  await page.getByRole('button', { name: 'Resume' }).click();
  await paused.waitFor({ state: 'detached' });
});

test('a URL that may not be fetched is refused at its field', async () => {
  const page = await it.openAsDeveloper(await loadApp(it.server), '/console/webhooks');
  await page.getByRole('button', { name: 'New webhook' }).first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('URL').fill('http://10.0.0.1/');
  await dialog.getByLabel('All events').check();
  await dialog.getByRole('button', { name: 'Create the webhook' }).click();
  const field = dialog.locator('.field', { has: page.getByLabel('URL') });
  await field.locator('.hint.wrong').waitFor();
});
