import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { ConsoleTest, pdfDrawn } from '../support/browser.ts';
import { choosePrincipal, loadApp } from '../support/console.ts';
import { docx, pdfOfPages } from '../support/documents.ts';
import { startSite } from '../support/fixture-site.ts';
import { startLanguageModel } from '../support/language-model.ts';

const page = (title: string, links: string[]) => `<!doctype html><title>${title}</title><main><h1>${title}</h1>
  <p>${'The harbour opens with the tide, and closes with it again. '.repeat(8)}</p>
  ${links.map((link) => `<p><a href="${link}">${link}</a></p>`).join('')}</main>`;
let release = (): void => {};
const held = new Promise<void>((resolve) => {
  release = resolve;
});
const site = await startSite({
  '/': page('Harbour guide', ['/tides', '/gone', '/slow']),
  '/tides': page('Tides', []),
  '/slow': async (_request, response) => {
    await held;
    response.setHeader('content-type', 'text/html');
    response.end(page('Slow boats', []));
  },
});
const model = await startLanguageModel();
model.script = () => '{"title":"Harbour report","cranes":[{"load":"20 t"}],"year":"unknown"}';
const env = { QUARRY_FETCH_ALLOW: '127.0.0.1', QUARRY_LLM_URL: model.url, QUARRY_LLM_MODEL: 'small' };
const it = await ConsoleTest.start({ env });
after(async () => {
  await model.close();
  release();
  await it.close();
  await site.close();
});
afterEach(it.closePages);
const app = await loadApp(it.server);

test('a document is uploaded and extracted, and its Markdown is shown beside the original', async () => {
  const browser = await it.openAsDeveloper(app, '/console/extractions');
  await browser.getByText('No extraction yet').waitFor();
  await browser.getByLabel('Or a new one').setInputFiles({
    name: 'harbour.docx',
    mimeType: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
    buffer: Buffer.from(docx()),
  });
  await browser.locator('option:checked', { hasText: 'harbour.docx' }).waitFor({ state: 'attached' });
  await browser.getByRole('button', { name: 'Extract' }).click();
  const markdown = browser.getByRole('region', { name: 'Markdown' });
  await markdown.getByRole('heading', { name: 'Harbour report' }).waitFor();
  await browser.getByRole('region', { name: 'Original' }).getByText('No preview').waitFor();
  await markdown.getByRole('switch', { name: 'Show as text' }).click();
  await markdown.getByText('# Harbour report').waitFor();
});

test('data by a schema is shown with each value at its place in the text', async () => {
  const data = Buffer.from('# Harbour report\n\nThe new crane lifts 20 t, and the old one 10 t.\n').toString('base64');
  const { body } = await it.server.api<{ id: string }>('POST', '/api/v1/files', {
    key: app.secretKey,
    body: { filename: 'cranes.md', content_type: 'text/markdown', data },
  });
  const browser = await it.openAsDeveloper(app, `/console/extractions?file=${body.id}`);
  await browser.getByText('Data by a schema').click();
  await browser.getByRole('switch', { name: 'Take data from each text' }).click();
  const editor = browser.getByRole('textbox', { name: 'JSON Schema of the data' });
  await editor.fill('{"type": ');
  await browser.getByText('This is not JSON').waitFor();
  await editor.fill('{"type": "object", "properties": {"title": {"type": "string"}}}');
  await browser.getByLabel('Instructions').fill('Loads in tons.');
  await browser.getByRole('button', { name: 'Extract' }).click();
  const values = browser.getByRole('region', { name: 'Data' });
  await values.getByText('cranes › 0 › load').waitFor();
  await values.getByText('unknown not found in the text').waitFor();
  await values.getByRole('button', { name: '20 t' }).click();
  await browser.locator('mark.chosen', { hasText: '20 t' }).waitFor();
  await browser.locator('mark', { hasText: 'Harbour report' }).click();
  await values.getByRole('button', { name: 'Harbour report', pressed: true }).waitFor();
  assert.match(model.requests.at(-1)?.messages[0]?.content ?? '', /Loads in tons\./);
  await it.picture(browser, 'extraction-data');
});

test('a PDF is shown beside its Markdown', async () => {
  const report = [
    'Ships came and went with the tide all year, and the outer mole was mended in May.',
    'In June the new crane was tried with twenty tons, and it lifted them without a sound.',
    'Autumn brought three storms. The harbour was closed for eleven days in all.',
    'The pilots counted four hundred and twelve ships, nine more than the year before.',
    'Most of them came for stone, some for shelter, and two because they had lost their way.',
  ];
  const pages = [report, ['A berth costs twelve euros a metre and night.', 'Fishing boats pay half of it.']];
  const data = Buffer.from(pdfOfPages(pages)).toString('base64');
  const { body } = await it.server.api<{ id: string }>('POST', '/api/v1/files', {
    key: app.secretKey,
    body: { filename: 'harbour-report.pdf', content_type: 'application/pdf', data },
  });
  const browser = await it.openAsDeveloper(app, `/console/files/${body.id}`);
  await browser.getByRole('link', { name: 'Extract text' }).click();
  await browser.locator('option:checked', { hasText: 'harbour-report.pdf' }).waitFor({ state: 'attached' });
  await browser.getByRole('button', { name: 'Extract' }).click();
  await browser.getByRole('region', { name: 'Markdown' }).getByText('outer mole').waitFor();
  await pdfDrawn(browser);
  await browser.getByRole('heading', { name: 'harbour-report.pdf' }).waitFor();
  await it.picture(browser, 'extraction');
});

test('a site is read before one’s eyes, and pages that failed say why', async () => {
  const browser = await it.openAsDeveloper(app, '/console/extractions');
  await browser.getByRole('link', { name: 'harbour-report.pdf' }).waitFor();
  await browser.getByRole('tab', { name: 'From the web' }).click();
  await browser.getByLabel('Address').fill(`${site.origin}/`);
  await browser.getByLabel('Scope').selectOption('site');
  await browser.getByLabel('Maximum pages').fill('10');
  await it.picture(browser, 'extractions');
  await browser.getByRole('button', { name: 'Extract' }).click();
  await browser.getByText('running').waitFor();
  // The second page is read and waits until it is known what the pages repeat.
  await browser.getByText('2 pages read of 4 found, 1 failed').waitFor();
  await it.picture(browser, 'extraction-running');
  release();
  await browser.locator('.lead').getByText('done', { exact: true }).waitFor();
  await browser
    .getByRole('row')
    .filter({ hasText: `${site.origin}/gone` })
    .getByText('failed')
    .waitFor();
  await browser.getByRole('button', { name: 'Slow boats', exact: true }).click();
  await browser
    .getByRole('region', { name: 'Original' })
    .getByRole('link', { name: `${site.origin}/slow` })
    .waitFor();
  await browser.getByRole('region', { name: 'Markdown' }).getByText('The harbour opens with the tide').waitFor();
  await it.picture(browser, 'extraction-site');
  await browser.getByRole('button', { name: 'Remove' }).click();
  await browser.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await browser.getByRole('heading', { name: 'Extractions' }).waitFor();
});

test('every option of a site is in the form, an error is shown at its field, and running again repeats them all', async () => {
  const browser = await it.openAsDeveloper(app, '/console/extractions');
  const agent = await it.server.api<{ id: string }>('POST', '/api/v1/agents', {
    key: app.secretKey,
    body: { name: 'Reader' },
  });
  await browser.getByRole('tab', { name: 'From the web' }).click();
  await browser.getByLabel('Address').fill(`${site.origin}/`);
  await browser.getByLabel('Scope').selectOption('site');
  await browser.getByLabel('Maximum pages').fill('5');
  await browser.getByLabel('Maximum depth of links').fill('1');
  await browser.getByLabel('Sitemap').selectOption('skip');
  await browser.getByLabel('Only these paths').fill('tides');
  await browser.getByLabel('Not these paths').fill('/gone\n/slow');
  await browser.getByLabel('Subdomains too').check();
  await browser.getByLabel('Also what robots.txt disallows').check();
  await browser.getByText('Destination', { exact: true }).click();
  await browser.getByLabel('Stored as').selectOption('config');
  await browser.getByLabel('Name prefix').fill('guides/harbour');
  await choosePrincipal(browser, browser.getByRole('button', { name: 'Agent: None' }), 'Reader');
  await browser.getByRole('button', { name: 'Extract', exact: true }).click();
  const only = browser.locator('.field', { has: browser.getByLabel('Only these paths') });
  await only.locator('.hint.wrong').waitFor();
  await browser.getByLabel('Only these paths').fill('/$\n/tides');
  await browser.getByText('As code').click();
  await browser.getByLabel('This extraction: curl').getByText('"ignore_robots": true').waitFor();
  await it.picture(browser, 'extraction-options');
  await browser.getByRole('button', { name: 'Extract', exact: true }).click();
  await browser.locator('.lead').getByText('done', { exact: true }).waitFor();
  const first = browser.url();
  await browser.getByRole('button', { name: 'Run again' }).click();
  await browser.waitForURL((url) => url.href !== first);
  await browser.locator('.lead').getByText('done', { exact: true }).waitFor();
  const read = (url: string) =>
    it.server.api<Record<string, unknown>>('GET', `/api/v1/extractions/${url.split('/').at(-1)}`, {
      key: app.secretKey,
    });
  for (const url of [first, browser.url()]) {
    const { body } = await read(url);
    assert.deepEqual(Object.fromEntries(Object.keys(options).map((name) => [name, body[name]])), {
      ...options,
      agent: agent.body.id,
    });
  }
});

const options = {
  ...{ mode: 'site', max_pages: 5, max_depth: 1, sitemap: 'skip', allow_subdomains: true, ignore_robots: true },
  ...{ include_paths: ['/$', '/tides'], exclude_paths: ['/gone', '/slow'] },
  ...{ destination: { kind: 'config', path_prefix: 'guides/harbour' }, agent: '' },
};

test('an address that may not be read is refused at the field', async () => {
  const browser = await it.openAsDeveloper(app, '/console/extractions');
  await browser.getByRole('tab', { name: 'From the web' }).click();
  await browser.getByLabel('Address').fill('http://169.254.169.254/latest');
  await browser.getByRole('button', { name: 'Extract' }).click();
  await browser.locator('input[aria-invalid=true]').waitFor();
  await browser.getByRole('alert').waitFor();
});
