import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import type { Page } from 'playwright-core';
import { AutomationsClient, graphOf } from '../support/automations.ts';
import { ConsoleTest } from '../support/browser.ts';
import { loadApp } from '../support/console.ts';
import { knowledgeOf } from '../support/knowledge.ts';

/** Tabs that stay open while the server, the address or the data changes. */
const it = await ConsoleTest.start();
after(() => it.close());
afterEach(it.closePages);
const { provision, api } = it.server;
const app = await loadApp(it.server);
const key = app.secretKey;
const org = await provision.org(app);
const user = await provision.user(app);
const knowledge = knowledgeOf(it.server, { key });
for (let number = 1; number <= 7; number += 1)
  await knowledge.createSource({ org: org.id, metadata: { name: `Harbour rules ${number}` } });
const workflow = {
  kind: 'WorkflowGraph',
  version: 1,
  start_node: 'start',
  nodes: [
    { id: 'start', kind: 'trigger', on_success: 'done' },
    { id: 'done', kind: 'complete', result: 1 },
  ],
};
await api('POST', '/api/v1/automations', { key, body: { name: 'Mooring request', type: 'invoked', workflow } });

const menuLink = (page: Page, name: string) =>
  page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name });

/** Chunks that an upgrade has removed; `times` of them, then they are there again. */
async function removeChunks(page: Page, times: number): Promise<void> {
  let left = times;
  await page.route('**/console/assets/runs-page-*.js', (route) => {
    left -= 1;
    return left >= 0 ? route.fulfill({ status: 404, body: '' }) : route.continue();
  });
}

test('an open tab whose next page was replaced by an upgrade reloads once and shows it', async () => {
  const page = await it.openAsDeveloper(app, '/console/files');
  await page.getByRole('heading', { name: 'Files', level: 1 }).waitFor();
  await removeChunks(page, 1);
  await menuLink(page, 'Runs').click();
  await page.getByRole('heading', { name: 'Runs', level: 1 }).waitFor();
  it.problems.length = 0;
});

test('a page that does not load says so, and the rest of the console works', async () => {
  const page = await it.openAsDeveloper(app, '/console/files');
  await page.getByRole('heading', { name: 'Files', level: 1 }).waitFor();
  await page.route('**/console/assets/runs-page-*.js', (route) => route.abort());
  await menuLink(page, 'Runs').click();
  await page.getByRole('alert').getByText('This part of the console did not load').waitFor();
  await page.getByRole('button', { name: 'Reload the console' }).waitFor();
  await menuLink(page, 'Files').click();
  await page.getByRole('heading', { name: 'Files', level: 1 }).waitFor();
  it.problems.length = 0;
});

test('an address with an unknown app names it, offers the known ones, and asks nothing of it', async () => {
  const page = await it.openAsDeveloper(app, '/console/files');
  const refused: string[] = [];
  page.on('response', (response) => {
    if (response.status() >= 400) refused.push(response.url());
  });
  await page.goto(`/console/dap_${'a'.repeat(22)}/overview`);
  await page.getByRole('heading', { name: 'There is no such app' }).waitFor();
  assert.equal(refused.length, 1, refused.join('\n'));
  await page.getByRole('link', { name: 'Harbour authority' }).click();
  await page.getByText('Recent activity').waitFor();
});

test('the palette finds automations and sources by name', async () => {
  const page = await it.openAsDeveloper(app, '/console/files');
  await page.keyboard.press('Control+k');
  const input = page.getByPlaceholder('A page, an action, or a name or id');
  await input.fill('mooring');
  await page.getByRole('option', { name: 'Mooring request automation' }).waitFor();
  await input.fill('rules 3');
  await page.getByRole('option', { name: 'Harbour rules 3 source' }).click();
  await page.getByRole('heading', { name: 'Harbour rules 3' }).waitFor();
});

test('a list of sources takes one request, whatever its length, and finds them by name', async () => {
  const page = await it.openAsDeveloper(app, '/console/files');
  const asked: string[] = [];
  page.on('request', (request) => {
    const { pathname } = new URL(request.url());
    if (/knowledge_(documents|sources)/.test(pathname)) asked.push(pathname);
  });
  await menuLink(page, 'Knowledge').click();
  await page.getByRole('link', { name: 'Harbour rules 7' }).waitFor();
  await page.getByText('none yet').first().waitFor();
  assert.deepEqual(asked.sort(), ['/api/v1/knowledge_sources', '/api/v1/knowledge_sources/kinds']);
  await page.getByLabel('Search sources').fill('rules 4');
  await page.getByRole('link', { name: 'Harbour rules 7' }).waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'Harbour rules 4' }).waitFor();
});

test('a list that follows changes says when its requests fail', async () => {
  const page = await it.openAsDeveloper(app, '/console/runs');
  await page.getByText('Live', { exact: true }).waitFor();
  await page.route('**/api/v1/automation_runs?*', (route) =>
    route.fulfill({ status: 500, json: { error: { code: 'internal_error', message: 'Broken.' } } }),
  );
  await page.getByText('Not live: the last request failed').waitFor();
  it.problems.length = 0;
});

test('a run that is watched says when its requests fail, and follows again when they do not', async () => {
  const client = new AutomationsClient(it.server, app);
  const workflow = graphOf(
    { id: 'arrival', kind: 'wait_for_signal', name: 'arrived', on_success: 'done' },
    { id: 'done', kind: 'complete', result: 1 },
  );
  const { id } = await client.createAutomation({ name: 'Wait for arrival', workflow });
  const run = await client.invoke(id, { payload: {} });
  await client.waitUntilWaiting(run.id);
  const page = await it.openAsDeveloper(app, `/console/runs/${run.id}`);
  await page.getByText('Live', { exact: true }).waitFor();
  const error = { code: 'unavailable', message: 'The database is away.' };
  await page.route('**/journal?*', (route) => route.fulfill({ status: 503, json: { error } }));
  await page.getByText('Not live').waitFor();
  await page.unroute('**/journal?*');
  await page.getByText('Live', { exact: true }).waitFor();
  // The browser logs each 503.
  it.problems.length = 0;
});

test('prefixes of keys have counts only when all entries are listed', async () => {
  const operations = (from: number) =>
    Array.from({ length: 60 }, (_, at) => ({ op: 'put', key: `ships/${from + at}`, value: '1' }));
  const write = (from: number) =>
    api('POST', '/api/v1/kv_batch', { key, body: { operations: operations(from), user: user.id } });
  assert.equal((await write(0)).status, 200);
  const page = await it.openAsDeveloper(app, '/console/kv');
  await page.getByRole('button', { name: 'ships/ 60' }).waitFor();
  assert.equal((await write(100)).status, 200);
  await page.reload();
  await page.getByRole('button', { name: 'ships/', exact: true }).waitFor();
});

test('a sign-in link that is pasted into an open tab signs in', async () => {
  const page = await it.open('/console');
  await page.getByLabel('Developer token', { exact: true }).waitFor();
  const [asked] = await Promise.all([
    page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/console/session')),
    page.evaluate("location.hash = '#sign-in=a-code-that-is-not-valid'"),
  ]);
  assert.match(asked.postData() ?? '', /a-code-that-is-not-valid/);
  await page.getByLabel('Developer token', { exact: true }).waitFor();
});
