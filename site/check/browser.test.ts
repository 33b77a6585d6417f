import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, afterEach, test } from 'node:test';
import type { Page } from 'playwright-core';
import { ConsoleTest, scrollsSideways } from '../../test/support/browser.ts';
import { loadApp } from '../../test/support/console.ts';
import { readContents } from '../contents.ts';

/* The built site as the server shows it. A page that violates its policy or fails makes `closePages` throw. */

const it = await ConsoleTest.start({ site: join(import.meta.dirname, '../dist') });
after(() => it.close());
afterEach(it.closePages);
const app = await loadApp(it.server);
const guides = readContents().flatMap(({ pages }) => pages.map(({ file }) => file.replace(/(?:index)?\.md$/, '')));

/** The requests of a page to any other host. */
function watchOthers(page: Page): string[] {
  const others: string[] = [];
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(it.server.baseUrl) && !/^(?:data|blob):/.test(url)) others.push(url);
  });
  return others;
}

for (const [view, scheme] of [
  ['desktop', 'light'],
  ['phone', 'dark'],
] as const)
  test(`every guide opens on a ${view} in ${scheme} mode, without a request to another host and without scrolling sideways`, async () => {
    const page = await it.open('about:blank', view, { colorScheme: scheme });
    const others = watchOthers(page);
    for (const guide of ['', ...guides]) {
      await page.goto(`/docs/${guide}`);
      await page.getByRole('heading', { level: 1 }).first().waitFor();
      assert.equal(await scrollsSideways(page), false, guide);
      assert.equal(await page.evaluate('document.documentElement.classList.contains("dark")'), scheme === 'dark');
    }
    await page.goto('/docs/');
    await it.picture(page, `site-${view}-${scheme}`);
    assert.deepEqual(others, []);
  });

test('search finds a guide without a network, and the chosen language of code stays on the next page', async () => {
  const page = await it.open('/docs/');
  const others = watchOthers(page);
  await page
    .getByRole('button', { name: /search/i })
    .first()
    .click();
  await page.getByRole('searchbox').or(page.locator('#localsearch-input')).first().fill('conditional writes');
  await page.locator('#localsearch-list a[href*="/docs/key-value"]').first().click();
  await page.waitForURL('**/docs/key-value**');
  const group = page.locator('.vp-code-group').first();
  await group.getByText('TypeScript', { exact: true }).click();
  await group.locator('.tab-of-code.active .language-ts').waitFor();
  await page.locator('.VPSidebar').getByRole('link', { name: 'Files', exact: true }).click();
  await page.waitForURL('**/docs/files');
  await page.locator('.vp-code-group .tab-of-code.active .language-ts').first().waitFor();
  assert.deepEqual(others, []);
});

test('the API reference may call the server, is searched, and its earlier addresses lead to operations', async () => {
  const page = await it.open('about:blank');
  const others = watchOthers(page);
  await page.goto('/docs#/Knowledge/getInboundUrl');
  await page.waitForFunction("location.pathname === '/docs/api' && location.hash.endsWith('/getInboundUrl')");
  await page.getByText('Get the secret URL at which').first().waitFor();
  await page.keyboard.press('Control+k');
  await page
    .getByPlaceholder(/search/i)
    .last()
    .fill('create a team');
  await page.getByRole('option', { name: /team/i }).first().waitFor();
  await it.picture(page, 'site-reference');
  const response = await page.evaluate(
    `fetch('/protected/api/v1/developer/apps', {headers: {authorization: 'Bearer ${app.developerToken}'}}).then(({status}) => status)`,
  );
  assert.equal(response, 200);
  assert.deepEqual(others, []);
});
