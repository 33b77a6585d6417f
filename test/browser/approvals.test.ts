import { after, afterEach, test } from 'node:test';
import { AutomationsClient, graphOf } from '../support/automations.ts';
import { ConsoleTest } from '../support/browser.ts';
import { loadApp } from '../support/console.ts';

const it = await ConsoleTest.start();
after(() => it.close());
afterEach(it.closePages);
const app = await loadApp(it.server);
const client = new AutomationsClient(it.server, app);

const { id: invoices } = await client.createAutomation({
  name: 'Book invoices',
  workflow: graphOf(
    { id: 'read', kind: 'transform', value: { total: '{{$.total}}' }, on_success: 'ask' },
    {
      id: 'ask',
      kind: 'approve',
      question: 'Book the invoice of {{$nodes.read.total}} EUR?',
      form: {
        type: 'object',
        required: ['ok', 'account'],
        properties: {
          ok: { type: 'boolean', title: 'Book it' },
          account: { type: 'string', enum: ['4400', '4930'], title: 'Account' },
          note: { type: 'string', title: 'Note' },
        },
        additionalProperties: false,
      },
      timeout_seconds: 86_400,
      on_success: 'check',
    },
    { id: 'check', kind: 'conditional', when: '$nodes.ask.ok', on_true: 'booked', on_false: 'refused' },
    {
      id: 'booked',
      kind: 'complete',
      result: { account: '{{$nodes.ask.data.account}}', total: '{{$nodes.read.total}}' },
    },
    { id: 'refused', kind: 'fail', code: 'refused', message: 'Not booked' },
  ),
});

test('an approval is answered in its form, which the schema makes, and the run continues', async () => {
  const run = await client.invoke(invoices, { payload: { total: 1200 } });
  await client.waitUntilWaiting(run.id);
  const page = await it.openAsDeveloper(app, '/console/approvals');
  const card = page.getByRole('region', { name: 'Book the invoice of 1200 EUR?' });
  await card.waitFor();
  await card.getByLabel('Account').selectOption('4930');
  await card.getByLabel('Note').fill('Fits the order.');
  await it.picture(page, 'approvals');
  await card.getByRole('button', { name: 'Book it' }).click();
  await page.getByText('Nothing waits for an answer').waitFor();
  await client.waitForEnd(run.id);
  await page.getByLabel('Filter by state').selectOption('answered');
  await card.getByText('"account": "4930"').waitFor();
});

test('a run is run again from a node with another output, and compared with the old one', async () => {
  const run = await client.invoke(invoices, { payload: { total: 50 } });
  await client.waitUntilWaiting(run.id);
  const { body } = await client.call<{ data: { id: string }[] }>('GET', `/approvals?run=${run.id}`);
  await client.call('POST', `/approvals/${body.data[0]?.id}/answer`, { data: { ok: false, account: '4400' } });
  await client.waitForEnd(run.id);
  const page = await it.openAsDeveloper(app, `/console/runs/${run.id}`);
  await page.getByRole('button', { name: 'Continue from the failure' }).waitFor();
  await page.getByRole('button', { name: 'ask approve · done' }).click();
  await page.getByRole('button', { name: 'Run again from here' }).click();
  await page.getByLabel('Outputs to replace').fill('{"read": {"total": 70}}');
  await it.picture(page, 'run-again');
  await page.getByRole('button', { name: 'Start', exact: true }).click();
  await page.getByText('retry of an earlier run').waitFor();
  await page.getByRole('region', { name: 'Waits for' }).getByRole('link', { name: 'an approval' }).click();
  const card = page.getByRole('region', { name: 'Book the invoice of 70 EUR?' });
  await card.getByLabel('Account').selectOption('4400');
  await card.getByRole('button', { name: 'Book it' }).click();
  await page.getByText('Nothing waits for an answer').waitFor();
  await page.goto(`${it.server.baseUrl}/console/runs/${run.id}`);
  await page.getByText('Run again:').getByRole('link').click();
  await page.getByRole('link', { name: 'compare' }).click();
  const table = page.getByRole('table', { name: 'Comparison' });
  await table.getByText('"total": 70').first().waitFor();
  await table.getByText('did not run').first().waitFor();
  await it.picture(page, 'run-compare');
});

test('a person without an account answers by a link', async () => {
  const run = await client.invoke(invoices, { payload: { total: 9 } });
  await client.waitUntilWaiting(run.id);
  const { body } = await client.call<{ data: { id: string }[] }>('GET', `/approvals?run=${run.id}`);
  const link = await client.call<{ url: string }>('POST', `/approvals/${body.data[0]?.id}/links`, {
    to: 'ada@example.com',
  });
  const page = await it.open(new URL(link.body.url).pathname);
  await page.getByRole('heading', { name: 'Book the invoice of 9 EUR?' }).waitFor();
  await it.picture(page, 'approval-link');
  await page.getByLabel('Account').selectOption('4400');
  await page.getByRole('button', { name: 'Refuse' }).click();
  await page.getByText('This question has been answered.').waitFor();
  await client.waitForEnd(run.id);
});
