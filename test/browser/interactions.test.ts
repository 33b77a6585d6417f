import assert from 'node:assert/strict';
import { loadavg } from 'node:os';
import { test } from 'node:test';
import type { CDPSession, Page } from 'playwright-core';
import { ConsoleTest } from '../support/browser.ts';
import { loadApp } from '../support/console.ts';
import { fillRichly, startRichModel } from '../support/rich-app.ts';

/*
 * How long the console takes from a click or a key to the next paint, with Chromium's processor slowed four times.
 * `npm run screens:inp` measures it, on a machine that does nothing else; `npm test` never does.
 */
const isMeasured = process.env.QUARRY_INP !== undefined;
const slower = 4;

type Interaction = { name: string; duration: number; delay: number; handlers: number };

/** Collects the duration of each interaction, as browsers measure it: the longest of its events. */
const observe = `
  window.interactions = new Map();
  new PerformanceObserver((list) => {
    for (const { interactionId, duration, name, startTime, processingStart, processingEnd } of list.getEntries())
      if (interactionId > 0 && duration >= (window.interactions.get(interactionId)?.duration ?? 0))
        window.interactions.set(interactionId, {
          name, duration, delay: Math.round(processingStart - startTime), handlers: Math.round(processingEnd - processingStart) });
  }).observe({ type: 'event', durationThreshold: 16, buffered: true });`;

type Step = [name: string, run: () => Promise<unknown>];

/** What a person does in a minute, step by step. */
function stepsOf(page: Page): Step[] {
  const menu = page.getByRole('navigation', { name: 'Sections' });
  const go = (name: string): Step => [
    `open ${name}`,
    async () => {
      await menu.getByRole('link', { name, exact: true }).click();
      await page
        .locator('main#content h1')
        .getByText(name, { exact: name !== 'Overview' })
        .first()
        .waitFor();
      await page.locator('.skeleton').first().waitFor({ state: 'detached' });
    },
  ];
  const table = page.getByRole('table', { name: 'Files' });
  const palette = page.getByPlaceholder('A page, an action, or a name or id');
  const type = (text: string) => page.keyboard.type(text, { delay: 80 });
  const sections = ['Files', 'Runs', 'Automations', 'Knowledge', 'Key-value', 'Users', 'Webhooks'];
  return [
    ...[...sections, ...sections].map(go),
    go('Files'),
    ...['Name', 'Size', 'Added', 'Name', 'Size'].map(
      (column): Step => [`sort by ${column}`, () => table.getByRole('button', { name: column }).click()],
    ),
    ...[1, 2, 3].map((row): Step => ['select a row', () => table.getByRole('checkbox').nth(row).click()]),
    ['focus the search', () => page.getByLabel('Search files by name').click()],
    ['search files', () => type('rules of berths')],
    go('Language models'),
    ...['Calls', 'Usage', 'Budgets'].map(
      (tab): Step => [`tab ${tab}`, () => page.getByRole('tab', { name: tab }).click()],
    ),
    go('Users'),
    ['open a dialog', () => page.getByRole('button', { name: 'New user' }).click()],
    ['focus a field', () => page.getByLabel('E-mail').click()],
    ['type in a field', () => type('ada@harbour')],
    ['close the dialog', () => page.keyboard.press('Escape')],
    ['discard', () => page.getByRole('button', { name: 'Discard' }).click()],
    [
      'open the palette',
      async () => {
        await page.getByRole('dialog').waitFor({ state: 'detached' });
        await page.keyboard.press('Control+k');
        await palette.waitFor();
      },
    ],
    ['type in the palette', () => type('runs')],
    ['close the palette', () => page.keyboard.press('Escape')],
  ];
}

/** Seconds of processor time that the page's thread has used, of which how many for scripts, styles and layout. */
async function processorTime(session: CDPSession): Promise<Record<string, number>> {
  const { metrics } = await session.send('Performance.getMetrics');
  return Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
}

test('the time from an interaction to the next paint', { timeout: 600_000, skip: !isMeasured }, async (t) => {
  const model = await startRichModel();
  const it = await ConsoleTest.start({ env: model.env });
  t.after(async () => {
    await it.close();
    await model.close();
  });
  const app = await loadApp(it.server);
  await fillRichly(it.server, app);
  const page = await it.openAsDeveloper(app, `/console/${app.app.id}/overview`);
  // What is loaded when a page is first opened is not part of the interaction with it.
  for (const [, run] of stepsOf(page)) await run();
  const session = await page.context().newCDPSession(page);
  await session.send('Emulation.setCPUThrottlingRate', { rate: slower });
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  await page.evaluate(observe);
  const all: (Interaction & { step: string })[] = [];
  for (const [step, run] of stepsOf(page)) {
    await page.evaluate('window.interactions.clear()');
    const before = await processorTime(session);
    await run();
    await page.waitForTimeout(400);
    const after = await processorTime(session);
    const used = ['TaskDuration', 'ScriptDuration', 'LayoutDuration', 'RecalcStyleDuration'].map((name) =>
      Math.round(((after[name] ?? 0) - (before[name] ?? 0)) * 1_000),
    );
    const found = (await page.evaluate('[...window.interactions.values()]')) as Interaction[];
    all.push(...found.map((one) => ({ ...one, step: `${step} (processor ms: ${used.join(', ')})` })));
  }
  // Shorter ones than 16 ms are not reported.
  const durations = all.map(({ duration }) => duration).sort((a, b) => a - b);
  const at = (part: number) => durations[Math.ceil(durations.length * part) - 1];
  t.diagnostic(`load ${loadavg()[0]?.toFixed(1)}, processor slowed ${slower} times`);
  t.diagnostic(`${durations.length} interactions: p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, longest ${at(1)} ms`);
  for (const { step, duration, delay, handlers } of all.sort((a, b) => b.duration - a.duration).slice(0, 16))
    t.diagnostic(`${duration} ms (delay ${delay}, handlers ${handlers}): ${step}`);
  assert.ok(durations.length >= 50, `only ${durations.length} interactions were measured`);
});
