import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { readHeadFiles } from '../../src/cli/ledger-report.ts';
import { parseId } from '../../src/lib/ids.ts';
import { AutomationsClient, graphOf } from '../support/automations.ts';
import { ConsoleTest, scrollsSideways } from '../support/browser.ts';
import { loadApp } from '../support/console.ts';
import { chatEvent, startLanguageModel, toolCallEvents } from '../support/language-model.ts';

const model = await startLanguageModel();
const it = await ConsoleTest.start({ env: { QUARRY_LLM_URL: model.url, QUARRY_LLM_MODEL: 'pilot' } });
after(async () => {
  await it.close();
  await model.close();
});
afterEach(it.closePages);
const app = await loadApp(it.server);

const mooring = {
  name: 'Mooring request',
  lookup_key: 'mooring',
  type: 'invoked',
  input_schema: { type: 'object', properties: { ship: { type: 'string' }, metres: { type: 'integer' } } },
  workflow: {
    kind: 'WorkflowGraph',
    version: 1,
    start_node: 'start',
    nodes: [
      { id: 'start', kind: 'trigger', on_success: 'large' },
      { id: 'large', kind: 'conditional', when: '$.metres > 60', on_true: 'pilot', on_false: 'berth' },
      {
        id: 'pilot',
        kind: 'wait_for_signal',
        name: 'pilot_assigned',
        timeout_seconds: 3600,
        on_timeout: 'refused',
        on_success: 'berth',
      },
      { id: 'berth', kind: 'transform', value: { berth: 'B12', ship: '{{$.ship}}' }, on_success: 'done' },
      { id: 'done', kind: 'complete', result: '{{$nodes.berth}}' },
      { id: 'refused', kind: 'fail', message: 'No pilot was free.' },
    ],
  },
};

test('an automation is created from the example, run, and its result read', async () => {
  const page = await it.openAsDeveloper(app, '/console/automations');
  await page.getByRole('link', { name: 'New automation' }).first().click();
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByRole('heading', { name: 'Hello' }).waitFor();
  await page.getByRole('button', { name: 'Activate' }).click();
  await page.getByText('Press “Run…”').waitFor();
  await page.getByRole('button', { name: 'Run…' }).click();
  await page.getByLabel('Payload').fill('{"name": "Ada"}');
  await page.getByRole('button', { name: 'Run it' }).click();
  const result = page.locator('section').filter({ has: page.getByRole('heading', { name: 'Result' }) });
  await result.getByText('"greeting": "Hello Ada"').waitFor();
  const completed = page.getByRole('listitem').filter({ hasText: 'node completed greet' });
  await completed.locator('summary').click();
  await completed.getByText('"payload": "Hello Ada"').waitFor();
  await page.getByRole('button', { name: 'greet transform · done' }).waitFor();
});

test('a run is watched as it goes: waiting, signalled, completed; another is cancelled and run again', async () => {
  const key = app.secretKey;
  const made = await it.server.api<{ id: string }>('POST', '/api/v1/automations', { key, body: mooring });
  await it.server.api('POST', `/api/v1/automations/${made.body.id}/activate`, { key });
  const page = await it.openAsDeveloper(app, `/console/automations/${made.body.id}`);
  await page.getByRole('button', { name: 'Run…' }).click();
  await page.getByText('"metres": 0').waitFor();
  await page.getByLabel('Payload').fill('{"ship": "Alba", "metres": 90}');
  await page.getByRole('button', { name: 'Run it' }).click();
  await page.getByRole('button', { name: 'pilot wait for signal · waiting' }).waitFor();
  await it.picture(page, 'run-waiting');
  await page.getByRole('button', { name: 'Send a signal' }).click();
  await page.getByLabel('Payload').fill('{"pilot": "Mara"}');
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await page.getByText('"berth": "B12"').first().waitFor();
  await page.getByRole('button', { name: 'done complete · done' }).waitFor();
  const journal = page.getByRole('region', { name: 'Journal' });
  await journal.getByText('signal received').waitFor();
  await journal.getByText('run completed').waitFor();
  await it.picture(page, 'run');
  await page.getByRole('button', { name: 'berth transform · done' }).click();
  await page.getByRole('heading', { name: 'Journal of berth' }).waitFor();

  await page.getByRole('button', { name: 'Run again', exact: true }).click();
  await page.getByText('retry of an earlier run').waitFor();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'Cancel the run' }).click();
  await page.getByText('cancelled', { exact: true }).waitFor();
  await page
    .getByRole('heading', { name: /^Run of/ })
    .getByRole('link')
    .click();
  await page.locator('table.list tbody tr').nth(1).waitFor();
  await it.picture(page, 'automation');

  // The list is live: a run that begins elsewhere appears by itself.
  await it.server.api('POST', `/api/v1/automations/mooring/invoke`, {
    key,
    body: { payload: { ship: 'Boreas', metres: 10 } },
  });
  await page.locator('table.list tbody tr').nth(2).waitFor();
});

test('a failed run shows the node, the reason and the files that it made', async () => {
  const key = app.secretKey;
  const nodes = [
    { id: 'start', kind: 'trigger', on_success: 'note' },
    {
      id: 'note',
      kind: 'file_write',
      filename: 'note.txt',
      content_type: 'text/plain',
      data: 'aGk=',
      on_success: 'sum',
    },
    { id: 'sum', kind: 'transform', value: '{{$error("The scales are broken")}}' },
  ];
  const workflow = { kind: 'WorkflowGraph', version: 1, start_node: 'start', nodes };
  const body = { name: 'Weigh', lookup_key: 'weigh', type: 'invoked', workflow };
  const made = await it.server.api<{ id: string }>('POST', '/api/v1/automations', { key, body });
  await it.server.api('POST', `/api/v1/automations/${made.body.id}/activate`, { key });
  const run = await it.server.api<{ id: string }>('POST', '/api/v1/automations/weigh/invoke', { key, body: {} });
  const page = await it.openAsDeveloper(app, `/console/runs/${run.body.id}`);
  await page.getByRole('alert').getByText('In the node sum.').waitFor();
  await page.getByRole('button', { name: 'sum transform · failed' }).waitFor();
  await page.getByRole('region', { name: 'Files' }).getByRole('link', { name: 'note.txt' }).click();
  await page.getByRole('heading', { name: 'note.txt' }).waitFor();
});

test('the text of a language model is shown while it is written, from a template of the editor', async () => {
  let finish = (): void => {};
  model.script = () => ({
    respond(response) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(chatEvent('{"topic": "deli'));
      finish = () => {
        const last = { finish_reason: 'stop' };
        response.end(`${chatEvent('very", "urgent": true}')}${chatEvent('', last)}data: [DONE]\n\n`);
      };
    },
  });
  const page = await it.openAsDeveloper(app, '/console/automations/new');
  await page.getByLabel('Template').selectOption('generate');
  await page.getByRole('button', { name: 'Save and run…' }).click();
  await page.getByRole('button', { name: 'Run it' }).click();
  const text = page.getByRole('region', { name: 'Text of sort' });
  await text.getByText('{"topic": "deli').waitFor();
  await it.picture(page, 'run-writing');
  finish();
  await page.getByText('"topic": "delivery"').first().waitFor();
  await text.waitFor({ state: 'detached' });
});

test('a run that a limit delays says why, and a node of a language model shows its calls of tools', async () => {
  const client = new AutomationsClient(it.server, app);
  const wait = graphOf({ id: 'w', kind: 'wait_for_signal', name: 'go' });
  const limits = { rate: { limit: 1, per: '1d' }, concurrency: { key: 'ship', limit: 1 } };
  const limited = await client.createAutomation({ name: 'Send letters', workflow: wait, ...limits });
  const payload = { ship: 'Alba' };
  const active = await client.invoke(limited.id, { payload });
  await client.waitUntilWaiting(active.id);
  await client.invoke(limited.id, { payload });
  const last = await client.invoke(limited.id, { payload: { ship: 'Boreas' } });
  const page = await it.openAsDeveloper(app, `/console/automations/${limited.id}`);
  await page.getByText('At most 1 run starts in any day.').waitFor();
  await page.getByText('At most 1 run active for each ship.').waitFor();
  await page.getByRole('link', { name: '2 runs wait for their turn' }).waitFor();
  await page.getByText('a run with the same value in its payload ends').waitFor();
  await page.goto(`/console/runs/${last.id}`);
  const why = page.getByRole('region', { name: 'Has not started' });
  await why.getByText('waits for the rate of its automation').waitFor();
  await why.getByText('1 run is ahead of it.').waitFor();

  const price = graphOf({ id: 'done', kind: 'complete', result: { cents: 250 } });
  await client.createAutomation({ name: 'Price', lookup_key: 'price', description: 'Prices.', workflow: price });
  const calls = {
    raw: toolCallEvents([
      ['price', { article: 'pen' }],
      ['refund', {}],
    ]),
  };
  model.script = ({ messages }) => (messages.some(({ role }) => role === 'tool') ? 'A pen is 2.50.' : calls);
  const ask = { id: 'ask', kind: 'generate', messages: [{ role: 'user', content: 'What is a pen?' }] };
  const run = await client.runGraph(graphOf({ ...ask, tools: [{ automation: 'price' }] }), {});
  await page.goto(`/console/runs/${run.id}`);
  await page.getByRole('button', { name: 'ask generate · done' }).click();
  const panel = page.getByRole('region', { name: 'Node ask', exact: true });
  await panel.getByLabel('Arguments of price').getByText('"article": "pen"').waitFor();
  await panel.getByLabel('Result of price').getByText('"cents": 250').waitFor();
  await panel.getByText('unknown_tool').waitFor();
  await panel.getByText('10 in, 5 out').nth(1).waitFor();
  await panel.getByRole('button', { name: 'Details' }).click();
  await page.getByRole('region', { name: 'Node ask/price' }).waitFor();
});

test('"Verify" says that nothing was changed, then which entry was, and the downloaded head is one that quarry verify reads', async () => {
  const own = await loadApp(it.server, 'Customs');
  const key = own.secretKey;
  const nodes = [
    { id: 'start', kind: 'trigger', on_success: 'done' },
    { id: 'done', kind: 'complete', result: 1 },
  ];
  const workflow = { kind: 'WorkflowGraph', version: 1, start_node: 'start', nodes };
  const body = { name: 'Declare', lookup_key: 'declare', type: 'invoked', workflow };
  const made = await it.server.api<{ id: string }>('POST', '/api/v1/automations', { key, body });
  await it.server.api('POST', `/api/v1/automations/${made.body.id}/activate`, { key });
  const run = await it.server.api<{ id: string }>('POST', '/api/v1/automations/declare/invoke', { key, body: {} });
  const runId = parseId('automationRun', run.body.id) ?? '';
  const page = await it.openAsDeveloper(own, `/console/runs/${run.body.id}`, 'phone');
  const verify = page.getByRole('button', { name: 'Verify', exact: true });
  const clean = page.getByText(/^Verified up to segment \d+, .*nothing was changed/);
  const found = page.getByRole('alert');
  const lookAtBoth = async (name: string) => {
    assert.equal(await scrollsSideways(page), false, name);
    await it.picture(page, `phone-${name}`);
    await page.emulateMedia({ colorScheme: 'dark' });
    await it.picture(page, `phone-dark-${name}`);
    await page.emulateMedia({ colorScheme: 'light' });
  };

  await page.getByText('Details', { exact: true }).click();
  await verify.click();
  await clean.waitFor();
  await lookAtBoth('run-verified');
  const { db } = it.server;
  const rename = (node: string) => db`
    update automation_run_entries set node_id = ${node}
    where app_id = ${own.app.uuid} and run_id = ${runId} and type = 'node_started' and sequence = (
      select min(sequence) from automation_run_entries
      where app_id = ${own.app.uuid} and run_id = ${runId} and type = 'node_started')`;
  await rename('another');
  await verify.click();
  await found.getByText(`The entry was changed. Entry 2 of the journal of ${run.body.id}`).waitFor();
  await clean.waitFor({ state: 'detached' });
  await lookAtBoth('run-changed');
  await rename('start');

  await page.goto(`/console/${own.app.id}/audit`);
  await verify.click();
  await clean.waitFor();
  await lookAtBoth('audit-verified');
  const downloaded = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download head' }).click();
  const [head] = readHeadFiles([await (await downloaded).path()]);
  assert.equal(head?.appId, own.app.uuid);
  await db`update audit_entries set actor_id = ${runId} where app_id = ${own.app.uuid} and action = 'createAutomation'`;
  await verify.click();
  await found.getByText(/The entry was changed\. aud_\w+, segment \d+/).waitFor();
  await lookAtBoth('audit-changed');
});
