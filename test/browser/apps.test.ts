import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { AutomationsClient, graphOf } from '../support/automations.ts';
import { ConsoleTest } from '../support/browser.ts';
import { loadApp } from '../support/console.ts';

const it = await ConsoleTest.start();
after(() => it.close());
afterEach(it.closePages);
const { db, provision } = it.server;
const app = await loadApp(it.server);
const others = [];
for (const name of ['Lighthouse', 'Pilotage', 'Customs']) {
  const other = await provision.app();
  await db`update apps set developer_id = ${app.developerUuid}, name = ${name} where id = ${other.app.uuid}`;
  others.push(other);
}
const [lighthouse = app] = others;

test('the page of all apps shows the traffic of each, what failed and what waits, without a burst of requests', async () => {
  const client = new AutomationsClient(it.server, lighthouse);
  const fail = graphOf({ id: 'stop', kind: 'fail', message: 'The lamp is broken.' });
  const { id: failing } = await client.createAutomation({ name: 'Light the lamp', workflow: fail });
  for (let count = 0; count < 2; count++) await client.waitForEnd((await client.invoke(failing)).id);
  const ask = graphOf(
    { id: 'ask', kind: 'approve', question: 'Order a lamp?', on_success: 'done' },
    { id: 'done', kind: 'complete', result: 1 },
  );
  const { id: asking } = await client.createAutomation({ name: 'Order a lamp', workflow: ask });
  await client.waitUntilWaiting((await client.invoke(asking)).id);

  const sandbox = await provision.sandbox(app);
  // In a sandbox, the page still shows production.
  const page = await it.openAsDeveloper(app, `/console/${app.app.id}/${sandbox.sandbox.id}/keys`);
  await page.waitForLoadState('networkidle');
  let open = 0;
  let most = 0;
  let total = 0;
  page.on('request', (request) => {
    if (!request.url().includes('/api/v1/') || request.url().includes('/protected/')) return;
    total += 1;
    open += 1;
    most = Math.max(most, open);
    void request.response().then(() => {
      open -= 1;
    });
  });
  await page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name: 'Apps' }).click();
  const row = page.getByRole('table', { name: 'Apps' }).getByRole('row', { name: /Lighthouse/ });
  await row.getByText('2 failed').waitFor();
  await row.getByText('1 waiting').waitFor();
  const together = page.getByRole('list', { name: 'All apps together, the last 30 days' });
  await together.locator('.waiting-figure').first().waitFor({ state: 'detached' });
  await together.getByText('in 1 app').first().waitFor();
  await it.picture(page, 'apps');
  assert.ok(total >= 20 && total <= 25, `${total} requests for four apps`);
  assert.ok(most <= 20, `${most} requests were open together`);
  await page.getByRole('button', { name: 'Needs attention' }).click();
  await page.getByRole('row').nth(1).getByText('Lighthouse').waitFor();
  await row.getByRole('link', { name: '2 failed' }).click();
  await page.getByRole('table', { name: 'Runs' }).getByText('Light the lamp').first().waitFor();
  assert.equal(new URL(page.url()).pathname, `/console/${lighthouse.app.id}/runs`);
});
