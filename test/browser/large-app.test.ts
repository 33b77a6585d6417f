import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import type { Page } from 'playwright-core';
import { ConsoleTest, scrollsSideways } from '../support/browser.ts';
import { loadApp } from '../support/console.ts';
import { fillApp } from '../support/large-app.ts';

/*
 * Every table with 10,000 rows behind it. With QUARRY_LOOK=1, pictures of all pages in both themes at each width go to
 * test/output/screenshots.
 */

const rows = 10_000;
// Nothing here needs a job, and the jobs of so many runs would take longer than the test.
const it = await ConsoleTest.start({ env: { QUARRY_JOB_WORKERS: '0' } });
after(() => it.close());
afterEach(it.closePages);
const app = await loadApp(it.server);
const looking = process.env.QUARRY_LOOK !== undefined;
const large = await fillApp(it.server, app, { rows, users: looking ? rows : 200 });

const pages: Record<string, string> = {
  ...{ overview: '/overview', users: '/users', orgs: '/orgs', teams: '/teams', agents: '/agents', threads: '/threads' },
  ...{ files: '/files', runs: '/runs', kv: '/kv', knowledge: '/knowledge', automations: '/automations' },
  ...{ audit: '/audit', 'audit-credentials': '/audit?tab=credentials', usage: '/usage', keys: '/keys' },
  ...{ webhooks: '/webhooks', secrets: '/secrets', sandboxes: '/sandboxes', installations: '/installations' },
  ...{ apps: '/apps', extractions: '/extractions' },
  source: `/knowledge/${large.source}`,
  automation: `/automations/${large.automation}`,
  extraction: `/extractions/${large.extraction}`,
};

async function visit(page: Page, path: string): Promise<void> {
  await page.evaluate(`history.pushState(null, '', '/console${path}')`);
  await page.locator('table.list tbody tr, .counts, .quotas').first().waitFor();
  await page.locator('.skeleton').first().waitFor({ state: 'detached' });
}

/** Tables that are wider than their place: cells beyond the edge are out of sight. */
const wideTables = `[...document.querySelectorAll('.scroller')]
  .filter((element) => element.scrollWidth > element.clientWidth + 1)
  .map((element) => element.querySelector('table').getAttribute('aria-label'))`;

test('with 10,000 rows of each kind, every table fits in windows of 1440 to 390 pixels', async () => {
  const page = await it.openAsDeveloper(app, '/console/files');
  await page.locator('table.list').waitFor();
  const wide: string[] = [];
  for (const [name, path] of Object.entries(pages)) {
    await visit(page, path);
    for (const width of [1_440, 1_150, 890, 820, 630, 390]) {
      await page.setViewportSize({ width, height: width > 820 ? 900 : 1_100 });
      if (await scrollsSideways(page)) wide.push(`${name} at ${width}: the page`);
      wide.push(...((await page.evaluate(wideTables)) as string[]).map((table) => `${name} at ${width}: ${table}`));
      for (const colorScheme of looking ? (['light', 'dark'] as const) : []) {
        await page.emulateMedia({ colorScheme });
        await it.picture(page, `large-${width}-${colorScheme}-${name}`);
      }
    }
  }
  assert.deepEqual(wide, []);
});

test('a table of 10,000 rows draws those in view, and reaches the last', async (t) => {
  const page = await it.open(`/console?key=${app.publishableKey}`);
  await page.getByLabel('E-mail').fill(large.reader.email);
  await page.getByLabel('Password').fill(large.reader.password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  const drawn = () => page.locator('table.list tbody tr:not(.gap)').count();
  const session = await page.context().newCDPSession(page);
  const heap = async () => {
    await session.send('HeapProfiler.collectGarbage');
    return (await session.send('Runtime.getHeapUsage')).usedSize / 1_048_576;
  };
  await page.locator('main#content h1').waitFor();
  const before = await heap();
  const began = Date.now();
  await visit(page, '/kv');
  t.diagnostic(
    `${rows} entries: shown after ${Date.now() - began} ms, ${((await heap()) - before).toFixed(1)} MiB of heap`,
  );
  assert.ok((await drawn()) < 60, `${await drawn()} rows are drawn`);
  const scroller = page.getByRole('group', { name: 'Entries, scrollable' });
  const scrolling = Date.now();
  await scroller.evaluate((element) => element.scrollTo(0, element.scrollHeight));
  await page.getByRole('button', { name: 'mooring/ships/0', exact: true }).waitFor();
  t.diagnostic(`the last row is drawn ${Date.now() - scrolling} ms after scrolling to it`);
  assert.ok((await drawn()) < 60, `${await drawn()} rows are drawn`);
  await page.getByRole('button', { name: 'Key', exact: true }).click();
  const sorting = Date.now();
  await scroller.evaluate((element) => element.scrollTo(0, 0));
  await page.getByRole('button', { name: 'customs/ships/2', exact: true }).waitFor();
  t.diagnostic(`sorted by key after ${Date.now() - sorting} ms`);
});
