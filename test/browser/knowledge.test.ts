import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { ConsoleTest } from '../support/browser.ts';
import { choosePrincipal, loadApp } from '../support/console.ts';
import { startSite } from '../support/fixture-site.ts';
import { knowledgeOf } from '../support/knowledge.ts';

const site = await startSite({
  '/': `<!doctype html><title>Pilot book</title><main><h1>Pilot book</h1><p>${'Pilots board at the outer buoy. '.repeat(12)}</p></main>`,
});
const it = await ConsoleTest.start({ env: { QUARRY_FETCH_ALLOW: '127.0.0.1' } });
after(async () => {
  await it.close();
  await site.close();
});
afterEach(it.closePages);
const app = await loadApp(it.server);

const guide = `# Harbour guide

## Entering

Ships of more than 60 metres take a pilot at the outer buoy. The tide turns twice a day.

## Fees

A berth costs 12 euros a metre and night. Fishing boats pay half of the fee.

## Weather

The harbour closes when the wind is stronger than force nine. Storm signals are two red lights.
`;

const others = {
  'Mooring contract': `# Mooring contract\n\nThe berth is let by the year. ${'The tenant keeps the boat in order. '.repeat(9)}`,
  'Fish market': `# Fish market\n\nFishing boats land their catch before six. ${'Ice is shared by all who land there. '.repeat(6)}`,
};

/** Another document, by the API. */
async function push(pageUrl: string, title: string, data: string): Promise<void> {
  const knowledge = knowledgeOf(it.server, { key: app.secretKey });
  await knowledge.push(/cso_\w+/.exec(pageUrl)?.[0] ?? '', data, { title, metadata: { year: 2025 } });
}

test('a source is created, filled, browsed and searched, and each hit explains its rank', async () => {
  const page = await it.openAsDeveloper(app, '/console/knowledge');
  await page.getByRole('button', { name: 'Create the first source' }).click();
  const dialog = page.getByRole('dialog');
  // A new app has nobody to own a source yet.
  await dialog.getByLabel('Name of the organisation').fill('Pilots');
  await dialog.getByRole('button', { name: 'Create it' }).click();
  await dialog.getByText('has no organisation yet').waitFor({ state: 'detached' });
  await dialog.getByRole('radio', { name: 'Documents' }).check();
  await dialog.getByLabel('Name', { exact: true }).fill('Harbour rules');
  await dialog.getByLabel('Language (optional)').fill('english');
  await it.picture(page, 'knowledge-new');
  await dialog.getByRole('button', { name: 'Create the source' }).click();
  await page.getByRole('heading', { name: 'Harbour rules' }).waitFor();

  await page.getByRole('button', { name: 'Add the first document' }).click();
  await dialog.getByLabel('Title (optional)').fill('Harbour guide');
  await dialog.getByLabel('Text', { exact: true }).fill(guide);
  await dialog.getByLabel('Metadata').fill('{"year": 2026}');
  await dialog.getByRole('button', { name: 'Add the document' }).click();
  await page.getByRole('link', { name: 'Harbour guide' }).waitFor();

  for (const [title, text] of Object.entries(others)) await push(page.url(), title, text);
  await page.getByRole('tab', { name: 'Search' }).click();
  await page.getByLabel('Question or words').fill('what does a berth cost for fishing boats');
  await page.getByRole('button', { name: 'Search' }).click();
  const hits = page.getByRole('region', { name: 'Hits' });
  await hits
    .getByText(/Words: rank 1, BM25 \d/)
    .first()
    .waitFor();
  await hits
    .getByText(/Vectors: rank \d+, cosine 0\.\d/)
    .first()
    .waitFor();
  await hits
    .getByText(/in \d+ · weight \d/)
    .first()
    .waitFor();
  await it.picture(page, 'knowledge-search');
  const sourcePage = page.url();
  await page.goto('/console/knowledge');
  await page.getByRole('link', { name: 'Search everything' }).click();
  await page.getByLabel('Question or words').fill('when do fishing boats land their catch');
  await page.getByRole('button', { name: 'Search' }).click();
  await hits.getByRole('link', { name: 'Fish market' }).first().waitFor();
  await page.goto(sourcePage);
  await page.getByLabel('Mode').selectOption('fulltext');
  await page.getByLabel('Filter').fill('{"year": {"lt": 2000}}');
  await page.getByRole('button', { name: 'Search' }).click();
  await page.getByText('No results').waitFor();
  await page.getByLabel('Filter').fill('{"year": 2026');
  await page.getByRole('button', { name: 'Search' }).click();
  await page.getByRole('alert').getByText('This is not JSON').waitFor();

  await page.getByRole('tab', { name: 'Ingestions' }).click();
  await page.getByText('succeeded').nth(2).waitFor();
  await page.getByRole('tab', { name: 'Documents' }).click();
  await page.getByRole('link', { name: 'Harbour guide' }).click();
  await page.getByRole('heading', { name: 'Fees' }).waitFor();
  await page.getByRole('tab', { name: 'Chunks' }).click();
  await page
    .getByText(/lines \d+–\d+/)
    .first()
    .waitFor();
  await it.picture(page, 'knowledge-document');
  await page.getByRole('tab', { name: 'Metadata' }).click();
  await page.getByText('"year": 2026').waitFor();
});

test('a page of the web is ingested before one’s eyes; the form comes from the kind’s schema', async () => {
  const page = await it.openAsDeveloper(app, '/console/knowledge');
  await page.getByRole('button', { name: 'New source' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('radio', { name: 'Web site' }).check();
  for (const label of ['URL', 'Max pages (optional)', 'Include paths (optional)', 'Allow subdomains (optional)'])
    await dialog.getByLabel(label, { exact: true }).waitFor();
  await dialog.getByRole('radio', { name: 'Web page' }).check();
  assert.equal(await dialog.getByLabel('Max pages (optional)').count(), 0);
  await dialog.getByLabel('URL', { exact: true }).fill(`${site.origin}/`);
  await dialog.getByLabel('Schedule (optional)').fill('whenever');
  await choosePrincipal(page, dialog.getByLabel('Owner'), 'Pilots');
  await dialog.getByRole('button', { name: 'Create the source' }).click();
  await dialog.getByLabel('Schedule (optional)').and(page.locator('[aria-invalid=true]')).waitFor();
  await dialog.getByLabel('Schedule (optional)').fill('0 3 * * *');
  await dialog.getByRole('button', { name: 'Create the source' }).click();
  await page.getByRole('button', { name: 'Read it now' }).click();
  await page.getByRole('link', { name: 'Pilot book' }).click();
  await page.getByText('Pilots board at the outer buoy.').first().waitFor();

  await page.locator('.lead').getByRole('link').first().click();
  await page.getByRole('tab', { name: 'Settings' }).click();
  await page.getByRole('button', { name: 'Pause the source' }).click();
  await page.getByRole('button', { name: 'Activate the source' }).waitFor();
  await page.getByRole('button', { name: 'Delete the source' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete it' }).click();
  await page.getByRole('heading', { name: 'Knowledge' }).waitFor();
  await it.picture(page, 'knowledge');
});
