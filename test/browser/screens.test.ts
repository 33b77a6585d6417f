import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import type { Page } from 'playwright-core';
import { ConsoleTest } from '../support/browser.ts';
import { loadApp } from '../support/console.ts';
import { fillRichly, startRichModel } from '../support/rich-app.ts';
import { findLayoutProblems, screensOf } from '../support/screens.ts';

/*
 * Screens of the console with much, little and nothing to show. `npm run screens` visits every screen at every width in
 * both themes and takes pictures of them (test/output/screenshots); `npm test` visits a few.
 */
const isWhole = process.env.QUARRY_SCREENS !== undefined;
const widths = isWhole ? [375, 640, 768, 1440, 1920] : [375, 640, 1440];
const themes = isWhole ? (['light', 'dark'] as const) : (['light'] as const);
const few = new Set(['overview', 'runs', 'run', 'files', 'approvals', 'model-budgets', 'webhook', 'audit']);

const model = await startRichModel();
const it = await ConsoleTest.start({ env: model.env });
after(async () => {
  await it.close();
  await model.close();
});
afterEach(it.closePages);
const app = await loadApp(it.server);
const empty = await loadApp(it.server, 'Lighthouse');
const ids = await fillRichly(it.server, app);
const screens = Object.entries(screensOf(ids)).filter(([name]) => isWhole || few.has(name));

async function look(page: Page, name: string, path: string): Promise<string[]> {
  await page.evaluate(`history.pushState(null, '', '/console${path}')`);
  await page.locator('main#content h1, main#content .empty, [role=alert]').first().waitFor();
  await page.locator('.skeleton:not(.design *)').first().waitFor({ state: 'detached' });
  const found: string[] = [];
  for (const width of widths)
    for (const colorScheme of themes) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      await it.picture(page, `${name}-${width}-${colorScheme}`);
      const problems = await findLayoutProblems(page);
      found.push(...problems.map((problem) => `${name}, ${width} px, ${colorScheme}: ${problem}`));
    }
  return found;
}

const limits = { timeout: 1_200_000 };

test('no screen of a full app sticks out, overlaps or is cut without a sign', limits, async () => {
  const page = await it.openAsDeveloper(app, `/console/${app.app.id}/overview`);
  const problems: string[] = [];
  for (const [name, path] of screens) problems.push(...(await look(page, name, `/${app.app.id}${path}`)));
  assert.deepEqual(problems, []);
});

test('nor does one of an app with nothing', limits, async () => {
  const page = await it.openAsDeveloper(empty, `/console/${empty.app.id}/overview`);
  const problems: string[] = [];
  for (const [name, path] of screens.filter(([, path]) => !/_\w{22}/.test(path)))
    problems.push(...(await look(page, `empty-${name}`, `/${empty.app.id}${path}`)));
  assert.deepEqual(problems, []);
});

test('nor does one whose requests fail', limits, async () => {
  const page = await it.openAsDeveloper(app, `/console/${app.app.id}/design`);
  await page.route('**/api/v1/**', (route) =>
    route.fulfill({
      status: 409,
      json: { error: { code: 'conflict', message: 'The scales of the outer quay are broken. '.repeat(4) } },
    }),
  );
  const problems: string[] = [];
  for (const [name, path] of screens.filter(([, path]) => !/_\w{22}|design/.test(path))) {
    problems.push(...(await look(page, `failed-${name}`, `/${app.app.id}${path}`)));
    const says = page.locator('main#content [role=alert]').first();
    // These two show what they load only after a question.
    if (!['search', 'answers'].includes(name)) await says.getByText('The scales of the outer quay').waitFor();
    // Nothing looks as if it would still arrive.
    if ((await page.locator('.waiting-figure').count()) > 0) problems.push(`${name} waits without end`);
  }
  assert.deepEqual(problems, []);
});

test(
  'nor does one of an app whose names are as long as they may be, and an end of a name has whole characters',
  limits,
  async () => {
    const long = await loadApp(it.server, 'Long names');
    const key = long.secretKey;
    const workflow = { kind: 'WorkflowGraph', version: 1, start_node: 'c', nodes: [{ id: 'c', kind: 'complete' }] };
    const names = ['Harbourmaster'.repeat(15), 'ميناء السفن '.repeat(16), '\u{1f6a2}'.repeat(90)];
    for (const [at, name] of names.entries()) {
      const made = await it.server.api<{ id: string }>('POST', '/api/v1/orgs', { key, body: { name } });
      const org = made.body.id;
      const automation = { name, lookup_key: `long-${at}`, type: 'invoked', workflow };
      const user = { name, email: `${'u'.repeat(60)}${at}@${'harbour.'.repeat(20)}example`, org };
      const filename = `${name}.md`;
      for (const [path, body] of [
        ['automations', automation],
        [`automations/long-${at}/activate`, undefined],
        [`automations/long-${at}/invoke`, {}],
        ['users', user],
        ['agents', { name, lookup_key: `${'k'.repeat(190)}${at}`, org }],
        ['files', { filename, content_type: 'text/markdown', data: '', org }],
      ] as const) {
        const { status, text } = await it.server.api('POST', `/api/v1/${path}`, { key, body });
        assert.ok(status < 300, text);
      }
    }
    const page = await it.openAsDeveloper(long, `/console/${long.app.id}/overview`);
    const problems: string[] = [];
    for (const name of ['overview', 'automations', 'runs', 'users', 'agents', 'files'])
      problems.push(...(await look(page, `long-${name}`, `/${long.app.id}/${name}`)));
    assert.deepEqual(problems, []);
    const turned = { filename: 'report\u202efdp.exe', content_type: 'text/plain', data: '' };
    assert.equal((await it.server.api('POST', '/api/v1/files', { key, body: turned })).status, 201);
    await page.reload();
    await page.getByRole('link', { name: 'report<U+202E>fdp.exe' }).click();
    await page.getByRole('heading', { name: 'report<U+202E>fdp.exe' }).waitFor();
    await page.goBack();
    await page.locator('.middle').first().waitFor();
    for (const end of await page.locator('.middle > :last-child').allTextContents())
      assert.ok(end.isWellFormed() && end.endsWith('.md'), end);
  },
);
