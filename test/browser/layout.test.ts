import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, afterEach, test } from 'node:test';
import type { Page } from 'playwright-core';
import { parseId } from '../../src/lib/ids.ts';
import { ConsoleTest, scrollsSideways, takesPictures } from '../support/browser.ts';
import { chart, loadApp } from '../support/console.ts';
import { pixel } from '../support/files.ts';
import { knowledgeOf } from '../support/knowledge.ts';
import { setJobAside } from '../support/set-aside-job.ts';

const it = await ConsoleTest.start();
after(() => it.close());
afterEach(it.closePages);
const { provision, db, api } = it.server;
const app = await loadApp(it.server);
const key = app.secretKey;
const org = await provision.org(app);
const user = await provision.user(app, { org, role: 'member' });
await db`update users set email = 'ada.of.the.outer.harbour@harbour.example' where id = ${user.uuid}`;
const long = 'a-rather-long-name-that-nobody-has-shortened-and-that-has-no-space-in-it-at-all.md';
const file = await create('/files', {
  filename: long,
  content_type: 'text/markdown',
  data: Buffer.from(
    '# Title\n\n| a very wide table | with | many | columns | that | is | wider | than | a | phone |\n|---|---|---|---|---|---|---|---|---|---|\n| 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 |\n',
  ).toString('base64'),
});
const extraction = await create('/extractions', { file, destination_kind: 'storage' });
const knowledge = knowledgeOf(it.server, { key });
const source = await knowledge.createSource({
  ...{ org: org.id, metadata: { name: 'Harbour rules' }, version_retention_days: 30 },
});
const document = await knowledge.push(source, `# Fees\n\n${'A berth costs twelve euros. '.repeat(30)}`, {
  title: 'Fees',
  acl: {
    grants: [
      { principal_type: 'user', principal: user.id },
      { principal_type: 'org_role', principal: 'admin' },
    ],
  },
});
const team = await create('/teams', { name: 'Pilots', org: org.id });
await create(`/teams/${team}/members`, { user: user.id });
const agent = await create('/agents', { name: 'Harbour agent', lookup_key: 'harbour', org: org.id });
await create('/installations', { agent, kind: 'thread/messages' });
const thread = await create('/threads', { title: 'Night watch', agent });
await create('/sandboxes', { name: 'Rehearsal' });
await create('/identity_issuers', { issuer: 'https://login.harbour.example', audience: 'quarry' });
const webhook = await create('/webhooks', {
  url: 'https://crm.harbour.example/hooks/quarry',
  events: ['file.created', 'order.paid'],
});
await api('PUT', '/api/v1/secrets/CRM_TOKEN', { key, body: { value: 'v' } });
await api('PUT', `/api/v1/kv/${'k'.repeat(200)}`, { key, body: { value: 'v'.repeat(500), user: user.id } });
const workflow = {
  kind: 'WorkflowGraph',
  version: 1,
  start_node: 'start',
  nodes: [
    { id: 'start', kind: 'trigger', on_success: 'done' },
    { id: 'done', kind: 'complete', result: 1 },
  ],
};
const automation = await create('/automations', {
  name: 'Mooring request',
  lookup_key: 'mooring',
  type: 'invoked',
  workflow,
});
await api('POST', `/api/v1/automations/${automation}/activate`, { key });
const run = (await api<{ id: string }>('POST', '/api/v1/automations/mooring/invoke', { key, body: {} })).body.id;
await setJobAside(
  it.server.services.db,
  'compact_index',
  { appId: app.app.uuid, sourceId: parseId('source', source) },
  'poisoned: the process that did this job ended meanwhile',
);

async function create(path: string, body: unknown): Promise<string> {
  const answer = await api<{ id: string }>('POST', `/api/v1${path}`, { key, body });
  assert.equal(answer.status, 201, answer.text);
  return answer.body.id;
}

/** Every page, by the name of its picture, and what is there when it is. */
const pages: Record<string, [path: string, sign: string]> = {
  files: ['/files', 'Added'],
  file: [`/files/${file}`, 'many'],
  extractions: ['/extractions', 'Started before'],
  extraction: [`/extractions/${extraction}`, 'many'],
  knowledge: ['/knowledge', 'Harbour rules'],
  'knowledge-source': [`/knowledge/${source}`, 'Fees'],
  'knowledge-search': [`/knowledge/${source}?tab=search`, 'Maximum hits'],
  'knowledge-history': [`/knowledge/${source}?tab=history`, 'No deleted documents'],
  'knowledge-settings': [`/knowledge/${source}?tab=settings`, 'Keep old versions for'],
  'knowledge-document': [`/knowledge/documents/${document}`, 'twelve euros'],
  'knowledge-versions': [`/knowledge/documents/${document}?tab=versions`, 'current'],
  'knowledge-access': [`/knowledge/documents/${document}?tab=access`, 'Of the readers of the source'],
  overview: ['/overview', 'Recent activity'],
  automations: ['/automations', 'Mooring request'],
  'automation-new': ['/automations/new', 'Save and run'],
  automation: [`/automations/${automation}`, 'atr_'],
  'automation-definition': [`/automations/${automation}?tab=definition`, 'Save and run'],
  'automation-versions': [`/automations/${automation}?tab=versions`, 'start_node'],
  runs: ['/runs', 'Mooring request'],
  run: [`/runs/${run}`, 'run completed'],
  kv: ['/kv', 'kkkk'],
  config: ['/config', 'No entries yet'],
  keys: ['/keys', 'publishable'],
  secrets: ['/secrets', 'CRM_TOKEN'],
  users: ['/users', 'ada.of.the.outer.harbour'],
  user: [`/users/${user.id}`, 'Personal tokens'],
  orgs: ['/orgs', 'Created'],
  org: [`/orgs/${org.id}`, 'Changed'],
  teams: ['/teams', 'Pilots'],
  team: [`/teams/${team}`, 'Members'],
  agents: ['/agents', 'Harbour agent'],
  agent: [`/agents/${agent}`, 'Search the agent’s knowledge'],
  threads: ['/threads', 'Night watch'],
  thread: [`/threads/${thread}`, 'Post the message'],
  installations: ['/installations', 'thread/messages'],
  models: ['/models', 'Available'],
  'model-calls': ['/models?tab=calls', 'No calls yet'],
  'model-usage': ['/models?tab=usage', 'Nothing was used yet'],
  'model-budgets': ['/models?tab=budgets', 'No budgets yet'],
  design: ['/design', 'Every component'],
  webhooks: ['/webhooks', 'crm.harbour.example'],
  webhook: [`/webhooks/${webhook}`, 'No deliveries yet'],
  issuers: ['/issuers', 'login.harbour.example'],
  usage: ['/usage', 'Pages today'],
  audit: ['/audit', 'When'],
  'audit-credentials': ['/audit?tab=credentials', 'Refused'],
  sandboxes: ['/sandboxes', 'Rehearsal'],
  apps: ['/apps', 'Harbour authority'],
  erasures: ['/erasures', 'Nothing was erased yet'],
  jobs: ['/jobs', 'poisoned'],
};

/** Goes there as a link of the console does. */
async function visit(page: Page, [path, sign]: [string, string]): Promise<void> {
  await page.evaluate(`history.pushState(null, '', '/console${path}')`);
  await page.locator('main#content').getByText(sign).first().waitFor({ state: 'attached' });
  await page.locator('.skeleton:not(.design *)').first().waitFor({ state: 'detached' });
}

/** Words in the rendered page with less contrast to what is behind them than WCAG 2.1 AA asks for (1.4.3). */
const weakContrasts = `(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const colors = new Map();
  const read = (color) => {
    if (!colors.has(color)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = color;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      colors.set(color, { rgb: [r, g, b], a: a / 255 });
    }
    return colors.get(color);
  };
  const light = ({ rgb }) => {
    const [r, g, b] = rgb.map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = read(getComputedStyle(at).backgroundColor);
      if (color.a > 0.9) return color;
    }
    return read('white');
  };
  const weak = [];
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== '');
    if (!own || element.closest('svg, option, :disabled, .over') || element.getClientRects().length === 0) continue;
    const [a, b] = [light(read(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) weak.push(element.textContent.trim().slice(0, 40) + ' ' + ratio.toFixed(2));
  }
  return weak;
})()`;

/** Controls that a screen reader could not call by a name. */
const namelessControls = `[...document.querySelectorAll('input, select, textarea, button, iframe')].filter((element) => {
  if (element.hidden) return false;
  const labels = element.labels ? [...element.labels].map((label) => label.textContent).join('') : '';
  return !(element.getAttribute('aria-label') || labels || element.textContent || element.title);
}).map((element) => element.outerHTML.slice(0, 120))`;

test('the first page needs at most 170 KiB, compressed', async () => {
  const page = await it.openAsDeveloper(app, '/console/overview');
  await page.getByText('Recent activity').waitFor();
  const sizes = `performance.getEntriesByType('resource').filter(({ name }) => name.includes('/console/assets/'))
    .map(({ encodedBodySize }) => encodedBodySize)`;
  const loaded = (await page.evaluate(sizes)) as number[];
  const bytes = loaded.reduce((sum, size) => sum + size, 0);
  assert.ok(loaded.length > 3 && bytes > 50 * 1024, `${loaded.length} files of ${bytes} bytes`);
  assert.ok(bytes <= 170 * 1024, `${bytes} bytes`);
});

type Axe = { run(context: unknown, options: unknown): Promise<{ violations: Violation[] }> };
type Violation = { id: string; nodes: { target: string[] }[] };
/** Without copies of the HTML that it looks at, which take long to make. */
const axeSource = `${readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')}
  axe.configure({ noHtml: true });`;

/** What axe finds on the page, by WCAG 2.1 A and AA and its own best practices; in the dark only what has to do with colour. */
async function findViolations(page: Page, isDark: boolean): Promise<string[]> {
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axeSource);
  return page.evaluate(async (colourOnly) => {
    const { axe } = globalThis as unknown as { axe: Axe };
    const runOnly = colourOnly
      ? { runOnly: ['color-contrast', 'link-in-text-block'] }
      : { rules: { 'label-content-name-mismatch': { enabled: true }, 'target-size': { enabled: true } } };
    const { violations } = await axe.run({ exclude: ['iframe'] }, { resultTypes: ['violations'], ...runOnly });
    // Only these are sent: all that axe found to be right is much more.
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(' ')).join(', ')}`);
  }, isDark);
}

/** The rules that the console once broke, and a script that adds a part that breaks each of them. */
const brokenOnce = {
  'target-size': `for (const name of ['a', 'b']) {
      const button = main.appendChild(document.createElement('button'));
      button.textContent = name;
      Object.assign(button.style, { width: '9px', height: '9px', padding: '0', font: '8px serif' });
    }`,
  'scrollable-region-focusable': `const box = main.appendChild(document.createElement('div'));
    box.textContent = 'Long text';
    Object.assign(box.style, { height: '30px', overflow: 'auto' });
    Object.assign(box.appendChild(document.createElement('p')).style, { height: '300px' });`,
  'aria-required-children': `const list = main.appendChild(document.createElement('div'));
    list.setAttribute('role', 'listbox');
    list.setAttribute('aria-label', 'Names');
    const note = list.appendChild(document.createElement('span'));
    note.setAttribute('role', 'note');
    note.textContent = 'None';`,
};

/** What is wrong on any page: all of it is reported at the end. */
const problems: string[] = [];

/** `npm run prove -- --only console` also looks with axe at every page in the dark and on a phone; `npm test` at a few. */
const isWhole = process.env.QUARRY_SCREENS !== undefined;
/** Every component is on the first of them. */
const few = new Set(['design', 'automation-definition', 'run', 'knowledge-search', 'knowledge-access']);

async function assertAccessible(page: Page, name: string): Promise<void> {
  const isDarkToo = isWhole || few.has(name) || (takesPictures && darkPictures.includes(name));
  for (const colorScheme of isDarkToo ? (['light', 'dark'] as const) : (['light'] as const)) {
    await page.emulateMedia({ colorScheme });
    const weak = (await page.evaluate(weakContrasts)) as string[];
    const found = [...(await findViolations(page, colorScheme === 'dark')), ...weak];
    problems.push(...found.map((problem) => `${name}, ${colorScheme}: ${problem}`));
    if (colorScheme === 'dark' && darkPictures.includes(name)) await it.picture(page, `dark-${name}`);
  }
  assert.deepEqual(await page.evaluate(namelessControls), [], name);
  // Documents that are shown may have headings of their own.
  assert.equal(await page.locator('h1:not(.markdown h1)').count(), 1, name);
}

/** Eighty looks of axe take a machine that does much else longer than other tests. */
const pagesTimeoutMs = 600_000;
const phone = { width: 390, height: 780 };
const desktop = { width: 1280, height: 800 };

async function assertFitsPhone(page: Page, name: string): Promise<void> {
  if (isWhole || few.has(name))
    problems.push(...(await findViolations(page, false)).map((problem) => `${name}, phone: ${problem}`));
  assert.equal(await scrollsSideways(page), false, `${name} sticks out to the side`);
  await it.picture(page, `phone-${name}`);
}

test('the menu shows where the page is, however low the window', async () => {
  const page = await it.openAsDeveloper(app, `/console/${app.app.id}/overview`, 'desktop', {
    viewport: { width: 1280, height: 480 },
  });
  const link = page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name: 'Usage and quotas' });
  await page.evaluate(`history.pushState(null, '', '/console/${app.app.id}/usage')`);
  await page.getByRole('heading', { name: 'Usage and quotas' }).waitFor();
  const bottom = await link.evaluate((element) => element.getBoundingClientRect().bottom);
  assert.ok(bottom < 480, `its link ends at ${bottom} pixels`);
});

test('axe looks for what the console once broke', async () => {
  const page = await it.openAsDeveloper(app, '/console/files');
  for (const [rule, part] of Object.entries(brokenOnce)) {
    await page.evaluate(`{ const main = document.querySelector('main#content'); ${part} }`);
    const found = await findViolations(page, false);
    assert.ok(
      found.some((one) => one.startsWith(`${rule}:`)),
      `${rule} is not found, but ${found.join('; ')}`,
    );
  }
});

test('on a phone no page scrolls sideways; on a desktop axe finds nothing on any page, text has the contrast of WCAG AA, each control has a name, and there is one main heading', {
  timeout: pagesTimeoutMs,
}, async () => {
  const page = await it.openAsDeveloper(app, '/console/files', 'phone');
  for (const [name, where] of Object.entries(pages)) {
    await page.emulateMedia({ colorScheme: 'light' });
    await page.setViewportSize(phone);
    await visit(page, where);
    await assertFitsPhone(page, name);
    await page.setViewportSize(desktop);
    await assertAccessible(page, name);
  }
  assert.deepEqual(problems, []);
  // Dialogs, and the menu of a phone.
  for (const [path, button] of [
    ['/users', 'New user'],
    ['/webhooks', 'New webhook'],
    ['/models', 'New model'],
    [`/knowledge/documents/${document}?tab=access`, 'Change access'],
  ] as const) {
    await visit(page, [path, button]);
    await page.getByRole('button', { name: button }).first().click();
    await page.getByRole('dialog').waitFor();
    for (const colorScheme of isWhole ? (['light', 'dark'] as const) : (['light'] as const)) {
      await page.emulateMedia({ colorScheme });
      assert.deepEqual(await findViolations(page, colorScheme === 'dark'), [], `${button}, ${colorScheme}`);
    }
    await page.keyboard.press('Escape');
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize(phone);
  await page.getByRole('button', { name: 'Menu' }).click();
  await it.picture(page, 'phone-menu');
  await page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name: 'Knowledge' }).click();
  await page.getByRole('heading', { name: 'Knowledge' }).waitFor();
  await page.getByRole('button', { name: 'New source' }).click();
  await page.getByRole('dialog').waitFor();
  await assertFitsPhone(page, 'knowledge-new');
});

test('the system’s dark mode is followed; the switch overrides it and is stored', async () => {
  const page = await it.openAsDeveloper(app, '/console/files', 'desktop', { colorScheme: 'dark' });
  const ground = () => page.evaluate('getComputedStyle(document.documentElement).backgroundColor');
  assert.equal(await ground(), 'rgb(14, 15, 17)');
  await page.getByRole('button', { name: /^Account:/ }).click();
  await page.getByLabel('Appearance').selectOption('light');
  assert.equal(await ground(), 'rgb(255, 255, 255)');
  await page.reload();
  await page.locator('main#content').waitFor();
  assert.equal(await ground(), 'rgb(255, 255, 255)');
});

const darkPictures = ['files', 'extraction', 'knowledge-source', 'run', 'keys'];

test('the main action of each page is reached and used by keyboard alone, dialogs keep the focus and give it back', async () => {
  const page = await it.openAsDeveloper(app, '/console/files');
  for (const [path, name] of [
    ['/files', 'Choose files'],
    ['/extractions', 'Extract'],
    ['/knowledge', 'New source'],
    ['/users', 'New user'],
    ['/webhooks', 'New webhook'],
    ['/secrets', 'New secret'],
    ['/issuers', 'New issuer'],
    ['/kv', 'New entry'],
    ['/keys', 'New key'],
  ] as const) {
    await visit(page, [path, name]);
    await page.getByRole('button', { name, exact: true }).waitFor();
    await page.locator(`nav a[href$="${path}"][aria-current=page]`).waitFor();
    // The first stop of a page: it leads past the menu. On the first page, the menu is gone through.
    await page.getByRole('link', { name: 'Skip to content' }).focus();
    if (path !== '/files') await page.keyboard.press('Enter');
    let presses = 0;
    while ((await page.evaluate('document.activeElement.textContent')) !== name) {
      assert.ok(presses++ < (path === '/files' ? 45 : 12), `${name} is not reached`);
      await page.keyboard.press('Tab');
    }
    const outline = await page.evaluate('getComputedStyle(document.activeElement).outlineStyle');
    assert.equal(outline, 'solid', `the focus on ${name} is not seen`);
  }
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  for (let presses = 0; presses < 12; presses++) {
    await page.keyboard.press('Tab');
    const outside = await page.evaluate(
      "document.activeElement !== document.body && !document.querySelector('[role=dialog]').contains(document.activeElement)",
    );
    assert.equal(outside, false);
  }
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  // The dialog gives the focus back after it has left the page.
  await page.getByRole('button', { name: 'New key', exact: true }).and(page.locator(':focus')).waitFor();
});

test('lasting links of active contents open in a browser and run nothing', async () => {
  const script = "<script>document.documentElement.setAttribute('data-ran', 'yes')</script>";
  const html = Buffer.from(`<!doctype html><title>Page</title><body>${script}<p>Hello</p>`);
  const share = (filename: string, type: string, data: Uint8Array) =>
    api<{ share_url: string; url: string }>('POST', '/api/v1/files', {
      key,
      body: {
        filename,
        content_type: type,
        data: Buffer.from(data).toString('base64'),
        share: type.startsWith('image/'),
      },
    });
  const ran = 'document.documentElement.getAttribute("data-ran")';
  const picture = (await share('pixel.png', 'image/png', pixel)).body;
  const drawing = (await share('tides.svg', 'image/svg+xml', chart)).body;
  const lying = (await share('lie.png', 'image/png', html)).body;
  const agent = await api<{ profile_picture: { url: string } }>('POST', '/api/v1/agents', {
    key,
    body: {
      ...{ name: 'Pilot', org: org.id },
      profile_picture: { data: chart.toString('base64'), filename: 'pilot.svg', mime_type: 'image/svg+xml' },
    },
  });
  for (const url of [picture.share_url, drawing.share_url, lying.share_url, agent.body.profile_picture.url]) {
    const page = await it.open(url);
    assert.equal(await page.evaluate(ran), null, url);
    await page.context().close();
  }
  // The browser says that it has blocked the scripts.
  assert.ok(
    it.problems.every((problem) => /Blocked script execution|Content Security Policy/.test(problem)),
    it.problems.join('\n'),
  );
  it.problems.length = 0;

  const page = await it.open('/console');
  const download = page.waitForEvent('download');
  const active = (await share('page.html', 'text/html', html)).body;
  await page.goto(active.url).catch(() => undefined);
  assert.equal((await download).suggestedFilename(), 'page.html');
});
