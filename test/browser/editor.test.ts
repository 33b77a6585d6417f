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

test('the editor completes and explains members, kinds and nodes, in YAML and in JSON', async () => {
  const page = await it.openAsDeveloper(app, '/console/automations/new');
  const editor = page.locator('.cm-editor').getByRole('textbox', { name: 'Definition' });
  const options = page.locator('.cm-tooltip-autocomplete').getByRole('option');
  const offer = (name: string) => options.filter({ hasText: new RegExp(`^${name}`) }).first();
  const offers = (name: string) => offer(name).waitFor();
  // Not by Enter, which the editor takes for a new line as long as the list has just opened.
  const take = (name: string) => offer(name).click();
  await editor.click();
  await page.keyboard.press('Control+End');
  await page.keyboard.insertText('    - id: count\n      kind: ');
  await page.keyboard.type('kv_');
  await offers('kv_get');
  await page.keyboard.type('se');
  await take('kv_set');
  await editor.getByText('kind: kv_set').waitFor();
  await page.keyboard.insertText('\n      ');
  await page.keyboard.type('ke');
  await take('key');
  await editor.getByText('key:').waitFor();
  await page.keyboard.insertText('visits\n      on_success: ');
  await page.keyboard.type('d');
  await offers('done');
  await it.picture(page, 'automation-editor');
  await take('done');
  await editor.getByText('on_success: done').last().waitFor();
  // An expression offers the nodes.
  await page.keyboard.insertText('\n      value: "{{$nodes');
  await page.keyboard.type('.');
  await offers('greet');
  await page.keyboard.press('Escape');
  await page.keyboard.insertText('greet}}"\n');

  await editor.getByText('start_node').hover();
  await page.locator('.explanation').getByText('The id of the node that runs first.').waitFor();

  await page.getByLabel('Language').selectOption('json');
  await page.getByRole('button', { name: 'count kv set' }).click();
  await editor.getByText('"kind": "kv_set"').click();
  await page.keyboard.press('End');
  await page.keyboard.insertText('\n        "us');
  await page.keyboard.type('e');
  await offers('user');
});

test('a key that is typed between a redraw of the page and its effects stays in the text', async () => {
  const page = await it.openAsDeveloper(app, '/console/automations/new');
  const editor = page.locator('.cm-editor').getByRole('textbox', { name: 'Definition' });
  await editor.click();
  await page.keyboard.press('Control+End');
  await page.evaluate(`{
    const status = document.querySelector('.toolbar [role=status]');
    const type = (text) => document.execCommand('insertText', false, text);
    const redrawn = new MutationObserver(() => { redrawn.disconnect(); type('second'); });
    redrawn.observe(status, { childList: true, characterData: true, subtree: true });
    type('# first ');
  }`);
  await page.getByText('Not saved').waitFor();
  await editor.getByText('# first second').waitFor();
});

test('the graph is beside the text: each shows the place of the other, and a mistake leaves the last graph', async () => {
  const page = await it.openAsDeveloper(app, '/console/automations/new');
  const editor = page.locator('.cm-editor').getByRole('textbox', { name: 'Definition' });
  const graph = page.getByRole('region', { name: 'Graph of the definition' });
  await graph.getByRole('button', { name: 'greet transform' }).click();
  await page.locator('.cm-activeLine').getByText('id: greet').waitFor();
  await editor.getByText('kind: complete').click();
  await graph.getByRole('button', { name: 'done complete', pressed: true }).waitFor();
  await page.keyboard.press('Control+End');
  await page.keyboard.insertText('    - id: more\n      kind: fail\n      message: No\n');
  await graph.getByRole('button', { name: 'more fail', pressed: true }).waitFor();
  await page.keyboard.insertText('  ]broken: [');
  await page
    .getByText(/problem/)
    .first()
    .waitFor();
  assert.equal(await graph.getByRole('button', { name: 'more fail' }).count(), 1);
});

test('versions are compared side by side', async () => {
  const workflow = (result: string) => graphOf({ id: 'done', kind: 'complete', result });
  const { id } = await client.createAutomation({ name: 'Compare', workflow: workflow('old') });
  await client.call('PATCH', `/automations/${id}`, { workflow: workflow('new') });
  const page = await it.openAsDeveloper(app, `/console/automations/${id}?tab=versions`);
  const differences = page.getByRole('region', { name: 'Differences' });
  const left = await differences.getByText('result: old').boundingBox();
  const right = await differences.getByText('result: new').boundingBox();
  assert.ok(left && right && left.y === right.y && left.x < right.x, JSON.stringify({ left, right }));
  await it.picture(page, 'automation-versions');
  await page.getByLabel('Layout').selectOption('below');
  await page
    .getByText('+ result: new')
    .or(page.getByText(/\+\s+result: new/))
    .first()
    .waitFor();
  await page.reload();
  assert.equal(await page.getByLabel('Layout').inputValue(), 'below');
});
