import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { AutomationsClient, graphOf } from '../support/automations.ts';
import { ConsoleTest } from '../support/browser.ts';
import { until } from '../support/until.ts';

/*
 * What strangers name and write, in every place where the console shows it: names, metadata, Markdown and pictures. A
 * script that ran would set an attribute of the page; the policy that would stop it is not what is tried here.
 */
const it = await ConsoleTest.start();
after(() => it.close());
afterEach(it.closePages);

const mark = "document.documentElement.setAttribute('data-ran','yes')";
const attacks = [
  `<img src=x onerror="${mark}">`,
  `"><svg/onload=${mark}>`,
  `<script>${mark}</script>`,
  `'-${mark}-'`,
  `javascript:${mark}`,
  `{{constructor.constructor("${mark}")()}}`,
  `</title></textarea><iframe srcdoc="<script>parent.${mark}</script>">`,
];
const markdown = [
  '# Heading',
  ...attacks,
  `[link](javascript:${mark})`,
  `[upper](JaVaScRiPt:${mark})`,
  `[entity](java&#x0A;script:${mark})`,
  `[data](data:text/html;base64,${Buffer.from(`<script>${mark}</script>`).toString('base64')})`,
  `![picture](javascript:${mark})`,
  `![outside](http://127.0.0.1:9/pixel.png)`,
  `<a href="javascript:${mark}">html</a>`,
  `| a | b |\n|---|---|\n| ${attacks[0]} | [x](vbscript:${mark}) |`,
  `\`\`\`html\n${attacks[2]}\n\`\`\``,
].join('\n\n');
const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="${mark}"><script>${mark}</script><foreignObject><body xmlns="http://www.w3.org/1999/xhtml"><img src="x" onerror="${mark}"/></body></foreignObject></svg>`;

test('nothing that a stranger names or writes runs, becomes an element or a dangerous link', async () => {
  const { provision, api } = it.server;
  const app = await provision.app();
  const make = async (path: string, body: object) => {
    const {
      status,
      body: made,
      text,
    } = await api<{ id: string }>('POST', `/api/v1${path}`, { key: app.secretKey, body });
    assert.ok(status === 200 || status === 201, `${path}: ${text}`);
    return made.id;
  };
  const metadata = Object.fromEntries(attacks.map((attack) => [attack, attack]));
  const upload = (filename: string, type: string, data: string) =>
    make('/files', { filename, content_type: type, data: Buffer.from(data).toString('base64') });
  for (const attack of attacks) await upload(`${attack}.txt`, 'text/plain', attack);
  const files = [
    await upload(`${attacks[0]}.md`, 'text/markdown', markdown),
    await upload(`${attacks[1]}.svg`, 'image/svg+xml', svg),
    await upload(`${attacks[2]}.html`, 'text/html', `<body>${attacks.join('')}</body>`),
  ];
  const org = await make('/orgs', { name: attacks[0] });
  const agent = await make('/agents', { name: attacks[1], org });
  const source = await make('/knowledge_sources', { type: 'knowledge/documents', org, metadata });
  const ingestion = await make(`/knowledge_sources/${source}/ingest`, {
    title: attacks[0],
    metadata,
    content: { data: markdown, content_type: 'text/markdown', filename: `${attacks[3]}.md` },
  });
  await until(async () => {
    const { body } = await api<{ status: string }>('GET', `/api/v1/knowledge_ingestions/${ingestion}`, {
      key: app.secretKey,
    });
    assert.notEqual(body.status, 'failed');
    return body.status === 'succeeded';
  });
  const documents = await api<{ data: { id: string }[] }>('GET', '/api/v1/knowledge_documents', { key: app.secretKey });
  const user = await make('/users', { email: 'a@example.test', name: attacks[2] });
  await make('/kv', { user, key: attacks[0], value: attacks[1] });
  const extraction = await make('/extractions', { file: files[0], destination_kind: 'storage' });

  for (const [at, value] of [svg, JSON.stringify({ [attacks[0] ?? '']: attacks }), markdown].entries())
    await make('/kv', { user, key: `${at}/${attacks[1]}`, value });
  const automations = new AutomationsClient(it.server, app);
  const failing = { id: 'f', kind: 'fail', message: `{{$.text}} ${attacks[2]}` };
  const automation = await automations.createAutomation({
    ...{ name: attacks[0], description: attacks[1], lookup_key: 'attack' },
    workflow: graphOf(
      { id: 't', kind: 'transform', value: { [attacks[0] ?? '']: '{{$.text}}' }, on_success: 'f' },
      failing,
    ),
  });
  const run = await automations.waitForEnd(
    (await automations.invoke(automation.id, { payload: { text: attacks[0], [attacks[1] ?? '']: attacks } })).id,
  );
  assert.equal(run.status, 'failed', JSON.stringify(run));
  const hook = { url: `https://example.com/?${encodeURI(attacks[0] ?? '')}`, events: ['*'], description: attacks[1] };
  const webhook = await make('/webhooks', hook);

  const page = await it.openAsDeveloper(app, '/console/files');
  const places: [path: string, shown: string][] = [
    ['/console/files', `${attacks[0]}.txt`],
    ...files.map((id, index): [string, string] => [`/console/files/${id}`, `${attacks[index]}`]),
    ['/console/agents', attacks[1] ?? ''],
    [`/console/agents/${agent}`, attacks[1] ?? ''],
    ['/console/knowledge', ''],
    [`/console/knowledge/documents/${documents.body.data[0]?.id}`, attacks[0] ?? ''],
    [`/console/extractions/${extraction}`, ''],
    ['/console/kv', attacks[0] ?? ''],
    ['/console/users', attacks[2] ?? ''],
    ['/console/automations', attacks[0] ?? ''],
    [`/console/automations/${automation.id}`, attacks[0] ?? ''],
    ['/console/runs', ''],
    [`/console/runs/${run.id}`, attacks[2] ?? ''],
    ['/console/webhooks', ''],
    [`/console/webhooks/${webhook}`, attacks[1] ?? ''],
  ];
  for (const [path, shown] of places) {
    await page.goto(path);
    await page.getByRole('main').waitFor();
    if (shown !== '') await page.getByText(shown).first().waitFor({ state: 'attached' });
    const found = (await page.evaluate(`({
      ran: document.documentElement.getAttribute('data-ran'),
      elements: [...document.querySelectorAll('main script, main iframe[srcdoc], main [onerror], main [onload], main svg script')].map((each) => each.outerHTML),
      links: [...document.querySelectorAll('a[href], img[src], iframe[src]')].map((each) => each.getAttribute('href') ?? each.getAttribute('src')),
    })`)) as { ran: string | null; elements: string[]; links: string[] };
    assert.deepEqual([path, found.ran, found.elements], [path, null, []]);
    for (const link of found.links)
      assert.doesNotMatch(link, /^\s*(?:javascript|vbscript|data:text)|127\.0\.0\.1:9\//i, path);
  }
  assert.deepEqual(it.problems, []);
});

test('characters that turn text are shown as codes, wherever the console shows a name', async () => {
  const { provision, api } = it.server;
  const app = await provision.app();
  const turned = 'a\u202eb\u2066c';
  const make = async (path: string, body: object) => {
    const {
      status,
      body: made,
      text,
    } = await api<{ id: string }>('POST', `/api/v1${path}`, { key: app.secretKey, body });
    assert.ok(status === 200 || status === 201, `${path}: ${text}`);
    return made.id;
  };
  const org = await make('/orgs', { name: turned });
  const team = await make('/teams', { name: turned, org });
  const user = await make('/users', { email: 'turned@example.test', name: turned, org });
  const agent = await make('/agents', { name: turned, org });
  await make('/knowledge_sources', { type: 'knowledge/documents', org, metadata: { name: turned } });
  await make('/files', { filename: `${turned}.txt`, content_type: 'text/plain', data: '', org });
  await make('/kv', { user, key: turned, value: turned });
  await make('/keys', { type: 'publishable', name: turned });
  await make('/sandboxes', { name: turned });
  await make('/threads', { title: turned, user });
  await make('/webhooks', { url: 'https://example.com/', events: ['*'], description: turned });
  await new AutomationsClient(it.server, app).createAutomation({
    ...{ name: turned, description: turned },
    workflow: graphOf({ id: 't', kind: 'transform', value: 1 }),
  });

  const page = await it.openAsDeveloper(app, '/console/files');
  const lists = [
    'orgs',
    'teams',
    'users',
    'agents',
    'knowledge',
    'files',
    'kv',
    'keys',
    'sandboxes',
    'threads',
    'webhooks',
  ];
  const paths = [...lists, 'automations', `orgs/${org}`, `teams/${team}`, `users/${user}`, `agents/${agent}`];
  for (const path of paths) {
    await page.goto(`/console/${path}`);
    await page.getByText('a<U+202E>b<U+2066>c').first().waitFor({ state: 'attached' });
    const written = await page.evaluate(
      "[...document.querySelectorAll('body *')].flatMap((each) => [...[...each.attributes].map((one) => one.value), ...[...each.childNodes].map((one) => one.nodeValue ?? '')]).filter((text) => /[\\u202a-\\u202e\\u2066-\\u2069]/.test(text))",
    );
    assert.deepEqual([path, written], [path, []]);
  }
  assert.deepEqual(it.problems, []);
});

test('a long name that is written from right to left is cut at its end in a list, on a phone beside its label', async () => {
  const app = await it.server.provision.app();
  const name = 'שם ארוך מאוד של משתמש שאין לו מקום בטבלה '.repeat(6);
  const post = (path: string, body: object) =>
    it.server.api<{ id: string }>('POST', `/api/v1${path}`, { key: app.secretKey, body });
  const { id: org } = (await post('/orgs', { name })).body;
  assert.equal((await post('/users', { email: 'rtl@example.test', name, org })).status, 201);
  const page = await it.openAsDeveloper(app, '/console/users');
  const isVisible = (selector: string, offset: number) =>
    page.evaluate(`(() => {
      const find = (node) => node.nodeType === 3 ? (node.data.startsWith('שם ארוך') ? node : undefined) : [...node.childNodes].map(find).find(Boolean);
      const cell = document.querySelector('table.list tbody ${selector}');
      const range = document.createRange();
      range.setStart(find(cell), ${offset});
      range.setEnd(find(cell), ${offset} + 1);
      const letter = range.getBoundingClientRect();
      const box = cell.getBoundingClientRect();
      return letter.left >= box.left - 1 && letter.right <= Math.min(box.right, innerWidth) + 1;
    })()`);
  await page.locator('.principal', { hasText: 'שם ארוך' }).waitFor();
  for (const width of [1440, 375]) {
    await page.setViewportSize({ width, height: 900 });
    for (const selector of ['td.main', 'td .principal'])
      assert.deepEqual(
        [width, selector, await isVisible(selector, 0), await isVisible(selector, 200)],
        [width, selector, true, false],
      );
  }
});
