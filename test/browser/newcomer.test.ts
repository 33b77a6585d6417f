import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { ConsoleTest, scrollsSideways } from '../support/browser.ts';
import { loadApp } from '../support/console.ts';

const it = await ConsoleTest.start();
after(() => it.close());
afterEach(it.closePages);

test('a newcomer goes from the sign-in link to a searched document and a watched run without leaving the console', async () => {
  const app = await loadApp(it.server);
  const link = await it.server.server.createSignInLink(app.developerToken);
  const page = await it.open(`/#sign-in=${link?.code}`);
  await page.getByRole('heading', { name: 'First steps' }).waitFor();
  assert.equal(await page.evaluate('location.hash'), '');
  await it.picture(page, 'overview-fresh');

  const menu = page.getByRole('navigation', { name: 'Sections' });
  await menu.getByRole('link', { name: 'Organisations' }).click();
  await page.getByRole('button', { name: 'New organisation' }).first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name', { exact: true }).fill('Pilots');
  await dialog.getByRole('button', { name: 'Create the organisation' }).click();
  await page.getByRole('link', { name: 'Pilots' }).waitFor();

  await menu.getByRole('link', { name: 'Users' }).click();
  await page.getByRole('button', { name: 'New user' }).first().click();
  await dialog.getByLabel('E-mail').fill('nobody');
  await dialog.getByLabel('E-mail').fill('ada@harbour.example');
  await dialog.getByLabel('Name', { exact: true }).fill('Ada');
  await dialog.getByLabel('Password').fill('tide and time');
  await dialog.getByRole('button', { name: 'Create the user' }).click();
  await page.getByRole('link', { name: 'Ada' }).click();
  await page.getByRole('button', { name: 'Create a token' }).click();
  await dialog.getByRole('button', { name: 'Create the token' }).click();
  const token = await dialog.getByLabel('The new token').inputValue();
  const me = await it.server.api<{ email: string }>('GET', '/api/v1/users/me', { token });
  assert.equal(me.body.email, 'ada@harbour.example');
  await dialog.getByRole('button', { name: 'I have copied it' }).click();

  await menu.getByRole('link', { name: 'Teams' }).click();
  await page.getByRole('button', { name: 'New team' }).first().click();
  await dialog.getByLabel('Name', { exact: true }).fill('Night watch');
  await dialog.getByRole('button', { name: 'Create the team' }).click();
  await page.getByRole('link', { name: 'Night watch' }).click();
  await page.getByLabel(/^New member/).click();
  await page.getByPlaceholder('Name, e-mail or id').fill('ada');
  await page.getByRole('option', { name: 'Ada' }).click();
  await page.getByRole('button', { name: 'Add to the team' }).click();
  await page.getByRole('link', { name: 'Ada' }).waitFor();

  await menu.getByRole('link', { name: 'Knowledge' }).click();
  await page.getByRole('button', { name: 'Create the first source' }).click();
  await dialog.getByLabel('Owner').click();
  await page.getByPlaceholder('Name, e-mail or id').fill('Pilots');
  await page.getByRole('option', { name: 'Pilots' }).click();
  await dialog.getByRole('button', { name: 'Create the source' }).click();
  // The file of a drop becomes a document.
  await page.locator('input[type=file]').setInputFiles({
    name: 'fees.md',
    mimeType: 'text/markdown',
    buffer: Buffer.from('# Fees\n\nA berth costs twelve euros a night.\n'),
  });
  await page.getByRole('table', { name: 'Documents' }).getByRole('link', { name: 'fees.md' }).waitFor();
  await page.getByRole('tab', { name: 'Search' }).click();
  await page.getByLabel('Question or words').fill('what does a berth cost');
  await page.getByRole('button', { name: 'Search', exact: true }).click();
  await page.getByRole('region', { name: 'Hits' }).getByText('twelve euros').waitFor();
  // The question is in the address.
  await page.reload();
  await page.getByRole('region', { name: 'Hits' }).getByText('twelve euros').waitFor();

  await page.keyboard.press('Control+k');
  await page.getByPlaceholder('A page, an action, or a name or id').fill('New automation');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Save and run…' }).click();
  await dialog.getByRole('button', { name: 'Run it' }).click();
  await page.getByText('"greeting": "Hello Ada"').first().waitFor();
  await page.getByRole('button', { name: 'greet transform · done' }).click();
  await page.getByRole('region', { name: 'Node greet' }).getByText('"value": "Hello Ada"').waitFor();
  await page.getByRole('tab', { name: 'Waterfall' }).click();
  await page.getByRole('group', { name: 'Waterfall of the run' }).getByText('greet').first().waitFor();
  await it.picture(page, 'run-waterfall');
  assert.equal(await scrollsSideways(page), false);
});

test('each first step creates something real, and the list is gone when all are done', async () => {
  const app = await loadApp(it.server);
  const page = await it.openAsDeveloper(app, `/console/${app.app.id}/overview`);
  const steps = page.getByRole('region', { name: 'First steps' });
  const back = async (done: number) => {
    await page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name: 'Overview' }).click();
    await steps.getByText(`${done} of 5`).waitFor();
  };
  const example = (name: string) => steps.getByRole('button', { name: new RegExp(name) }).click();
  // The app has keys.
  await back(1);
  await example('Upload a file');
  await page.getByRole('heading', { name: 'Opening hours', exact: true }).waitFor();
  await back(2);
  await example('Make a document searchable');
  await page.getByLabel('Question or words').fill('when is the office open');
  await page.getByRole('button', { name: 'Search', exact: true }).click();
  await page.getByRole('region', { name: 'Hits' }).getByText('from eight to five').waitFor();
  await back(3);
  await example('Run an automation');
  await page.getByText('"text": "Hello, Ada."').first().waitFor();
  await back(4);
  await steps.getByText('The same from your code').click();
  await steps.getByRole('tab', { name: 'curl' }).waitFor();
  await steps.getByRole('link', { name: 'Create the first user' }).click();
  await page.getByRole('button', { name: 'New user' }).first().click();
  await page.getByRole('dialog').getByLabel('E-mail').fill('ada@harbour.example');
  await page.getByRole('dialog').getByRole('button', { name: 'Create the user' }).click();
  await page.getByRole('cell', { name: 'ada@harbour.example' }).first().waitFor();
  await page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name: 'Overview' }).click();
  await page.getByRole('region', { name: 'Recent activity' }).waitFor();
  await steps.waitFor({ state: 'detached' });
});

test('runs are filtered in the address, and run again and cancelled together', async () => {
  const app = await loadApp(it.server);
  const key = app.secretKey;
  const nodes = [
    { id: 'w', kind: 'wait_for_signal', name: 'go', on_success: 'c' },
    { id: 'c', kind: 'complete', result: 1 },
  ];
  const workflow = { kind: 'WorkflowGraph', version: 1, start_node: 'w', nodes };
  const body = { name: 'Waits', lookup_key: 'waits', type: 'invoked', workflow };
  const made = await it.server.api<{ id: string }>('POST', '/api/v1/automations', { key, body });
  await it.server.api('POST', `/api/v1/automations/${made.body.id}/activate`, { key });
  for (let count = 0; count < 3; count++)
    await it.server.api('POST', '/api/v1/automations/waits/invoke', { key, body: {} });
  const page = await it.openAsDeveloper(app, '/console/runs');
  await page.getByLabel('Filter by state').selectOption('waiting');
  const rows = page.getByRole('table', { name: 'Runs' }).locator('tbody tr');
  await rows.nth(2).waitFor();
  await page.reload();
  assert.equal(await page.getByLabel('Filter by state').inputValue(), 'waiting');
  await page.getByLabel('Select all rows of Runs').check();
  await page.getByRole('button', { name: 'Cancel 3' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel 3' }).click();
  await page.getByText('3 cancelled').first().waitFor();
  await page.getByText('No matching runs').waitFor();
  await page.getByRole('button', { name: 'Show all' }).click();
  await rows.nth(2).waitFor();
  await rows.first().getByRole('link').click();
  // The node that waited is cancelled with its run.
  await page.getByRole('button', { name: 'w wait for signal · cancelled' }).waitFor();
});
