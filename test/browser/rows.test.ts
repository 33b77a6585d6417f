import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import type { Page } from 'playwright-core';
import { ConsoleTest } from '../support/browser.ts';
import { loadApp } from '../support/console.ts';
import { fillApp } from '../support/large-app.ts';
import { findLayoutProblems } from '../support/screens.ts';

/*
 * Lists with 1, 50 and 10,000 rows, and on a network so slow that nothing has arrived yet. `npm run screens` visits every
 * list at every width and takes pictures (test/output/screenshots); `npm test` visits a few with 50 rows.
 */
const isWhole = process.env.QUARRY_SCREENS !== undefined;
const widths = isWhole ? [375, 768, 1440, 1920] : [375, 1440];
const counts = isWhole ? [1, 50, 10_000] : [50];

// Nothing here needs a job, and the jobs of so many runs would take longer than the test.
const it = await ConsoleTest.start({ env: { QUARRY_JOB_WORKERS: '0' } });
after(() => it.close());
afterEach(it.closePages);

const lists = ['files', 'runs', 'users', 'knowledge', 'automations', 'audit', 'kv', 'extractions', 'apps', 'overview'];
const others = ['orgs', 'teams', 'agents', 'threads', 'keys', 'webhooks', 'secrets', 'sandboxes', 'usage', 'answers'];
const pages = isWhole ? [...lists, ...others] : ['files', 'runs', 'overview'];

const apps = new Map<number, Awaited<ReturnType<typeof loadApp>>>();
for (const rows of counts) {
  const app = await loadApp(it.server);
  await fillApp(it.server, app, { rows, users: Math.min(rows, 200) });
  await it.server.db`drop table sample`;
  apps.set(rows, app);
}

const go = (page: Page, path: string) => page.evaluate(`history.pushState(null, '', '/console${path}')`);
/** Its heading is there, and what it asked for has arrived. */
async function isLoaded(page: Page): Promise<void> {
  await page.locator('main#content h1').waitFor();
  await page.locator('.skeleton:not(.design *), .waiting-figure').first().waitFor({ state: 'detached' });
}

async function problemsAtEachWidth(page: Page, name: string): Promise<string[]> {
  const found: string[] = [];
  for (const width of widths) {
    await page.setViewportSize({ width, height: 900 });
    await it.picture(page, `${name}-${width}`);
    found.push(...(await findLayoutProblems(page)).map((problem) => `${name}, ${width} px: ${problem}`));
  }
  return found;
}

test('no list sticks out or overlaps, whether it has one row or thousands', { timeout: 1_200_000 }, async () => {
  const problems: string[] = [];
  for (const [rows, app] of apps) {
    const page = await it.openAsDeveloper(app, `/console/${app.app.id}/design`);
    for (const name of pages) {
      await go(page, `/${app.app.id}/${name}`);
      await isLoaded(page);
      problems.push(...(await problemsAtEachWidth(page, `rows-${rows}-${name}`)));
    }
  }
  assert.deepEqual(problems, []);
});

/** How far what was drawn has moved without a click or a key, as browsers measure it; 0.1 is noticed by readers. */
const observeShifts = `
  window.shifts = 0;
  new PerformanceObserver((list) => {
    for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) window.shifts += value;
  }).observe({ type: 'layout-shift', buffered: false });`;
const shiftMax = 0.1;

test('while nothing has arrived each page has its heading, and what arrives moves nothing', {
  timeout: 1_200_000,
}, async () => {
  const app = apps.get(50);
  assert.ok(app);
  const page = await it.openAsDeveloper(app, `/console/${app.app.id}/design`);
  await page.locator('main#content h1').waitFor();
  await page.evaluate(observeShifts);
  const problems: string[] = [];
  for (const name of pages) {
    const network = Promise.withResolvers<void>();
    await page.route('**/api/v1/**', async (route) => {
      await network.promise;
      await route.continue();
    });
    await go(page, `/${app.app.id}/${name}`);
    await page.locator('main#content h1').waitFor();
    problems.push(...(await problemsAtEachWidth(page, `slow-${name}`)));
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
    await page.evaluate('window.shifts = 0');
    network.resolve();
    await isLoaded(page);
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
    const moved = Number(await page.evaluate('window.shifts'));
    if (moved > shiftMax) problems.push(`${name}: what was drawn moves by ${moved.toFixed(3)} when it loads`);
    await page.unrouteAll({ behavior: 'wait' });
  }
  assert.deepEqual(problems, []);
});
