import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, afterEach, test } from 'node:test';
import { unzipSync } from 'fflate';
import type { Certificate } from '../../src/erasures/store.ts';
import { findSigner } from '../../src/ledger/statement.ts';
import { ConsoleTest, scrollsSideways } from '../support/browser.ts';
import { choosePrincipal, loadApp } from '../support/console.ts';
import { startSite } from '../support/fixture-site.ts';
import { startGitServer } from '../support/git-server.ts';
import { knowledgeOf } from '../support/knowledge.ts';

const site = await startSite({
  '/': `<!doctype html><title>Pilot book</title><main><h1>Pilot book</h1><p>${'Pilots board at the outer buoy. '.repeat(12)}</p></main>`,
});
const repository = await startGitServer({
  authorization: `Basic ${Buffer.from('x-access-token:tide-token').toString('base64')}`,
});
const it = await ConsoleTest.start({ env: { QUARRY_FETCH_ALLOW: '127.0.0.1' } });
after(async () => {
  await it.close();
  await site.close();
  repository.close();
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

test('a document shows who sees it, and is restricted to people and groups that are found by name', async () => {
  const { api, provision } = it.server;
  const key = app.secretKey;
  const client = knowledgeOf(it.server, { key });
  const org = await provision.org(app);
  const addUser = async (name: string) => {
    const body = { email: `${name.replace(' ', '.')}@example.com`, org: org.id, name };
    return (await api<{ id: string }>('POST', '/api/v1/users', { key, body })).body.id;
  };
  await addUser('Nora Berg');
  const leaver = await addUser('Olaf Lund');
  const group = { namespace: 'port', external_id: 'g-17', name: 'Harbour pilots' };
  assert.equal((await api('POST', '/api/v1/groups', { key, body: group })).status, 201);
  const source = await client.createSource({ org: org.id, metadata: { name: 'Staff' } });
  const document = await client.push(source, 'Salaries of next year.', { title: 'Salaries' });
  const page = await it.openAsDeveloper(app, `/console/knowledge/documents/${document}?tab=access`);
  const dialog = page.getByRole('dialog');
  const panel = page.getByRole('tabpanel');
  const open = () => page.getByRole('button', { name: 'Change access' }).click();
  const add = async (kind: string, name: string) => {
    await dialog.getByLabel('Add').selectOption(kind);
    await choosePrincipal(page, dialog.getByLabel('Which'), name);
  };
  await panel.getByText('Every reader of the source sees this document.').waitFor();
  await open();
  await dialog.getByRole('radio', { name: 'Only some of them' }).check();
  await dialog.getByText('Without a name, only developers and secret keys see the document.').waitFor();
  await add('user', 'Nora');
  await add('group', 'pilots');
  await dialog.getByRole('listitem').getByText('Harbour pilots').waitFor();
  await dialog.getByLabel('Add').selectOption('org_role');
  await dialog.getByLabel('Role').selectOption('admin');
  await it.picture(page, 'document-access-dialog');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await panel.getByText('Of the readers of the source, only these see this document:').waitFor();
  const shown = async () => (await panel.getByRole('listitem').allInnerTexts()).sort();
  assert.deepEqual(await shown(), ['Group Harbour pilots', 'Role in the organisation admin', 'User Nora Berg']);
  await page.getByText('restricted', { exact: true }).waitFor();
  await it.picture(page, 'document-access');

  // Someone who is deleted while the dialog is open is named at their row.
  await open();
  await dialog.getByRole('button', { name: /Remove Role/ }).click();
  await dialog.getByRole('button', { name: /Remove User/ }).click();
  await add('user', 'Olaf');
  assert.equal((await api('DELETE', `/api/v1/users/${leaver}`, { key })).status, 204);
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.getByRole('listitem').filter({ hasText: 'User' }).getByText('not found').waitFor();
  await dialog.getByRole('button', { name: /Remove User/ }).click();
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.waitFor({ state: 'detached' });
  await panel.getByText('Nora Berg').waitFor({ state: 'detached' });
  assert.deepEqual(await shown(), ['Group Harbour pilots']);

  await open();
  await dialog.getByRole('radio', { name: 'Every reader of the source' }).check();
  await dialog.getByRole('button', { name: 'Save' }).click();
  await panel.getByText('Every reader of the source sees this document.').waitFor();
  const left = await api<{ acl?: object }>('GET', `/api/v1/knowledge_documents/${document}`, { key });
  assert.equal(left.body.acl, undefined);
});

test('a document of a file that more people read is not restricted, and the dialog leads to the file', async () => {
  const { api, provision } = it.server;
  const key = app.secretKey;
  const client = knowledgeOf(it.server, { key });
  const org = await provision.org(app);
  const reader = await provision.user(app, { org });
  const body = { filename: 'pay.txt', content_type: 'text/plain', data: btoa('Salaries.'), org: org.id };
  const file = await api<{ id: string }>('POST', '/api/v1/files', { key, body });
  const source = await client.createSource({ org: org.id });
  await client.ingest(source, { file: file.body.id });
  const listed = await api<{ data: { id: string }[] }>('GET', `/api/v1/knowledge_documents?source=${source}`, { key });
  const address = `/console/knowledge/documents/${listed.body.data[0]?.id}?tab=access`;
  const page = await it.openAsDeveloper(app, address, 'phone', { colorScheme: 'dark' });
  const dialog = page.getByRole('dialog');
  await page.getByRole('button', { name: 'Change access' }).click();
  await dialog.getByRole('radio', { name: 'Only some of them' }).check();
  await choosePrincipal(page, dialog.getByLabel('Which'), reader.email);
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.getByRole('alert').getByText('restrict the file first').waitFor();
  await it.picture(page, 'document-access-phone');
  assert.equal(await scrollsSideways(page), false);
  await dialog.getByRole('link', { name: 'see who reads it' }).click();
  await page.getByRole('heading', { name: 'pay.txt' }).waitFor();
});

test('a document is edited, its versions are read, compared and restored, and so is its source', async () => {
  const client = knowledgeOf(it.server, { key: app.secretKey });
  const user = await it.server.provision.user(app);
  const source = await client.createSource({ user: user.id, metadata: { name: 'Tide tables' } });
  const document = await client.push(source, 'High water at six.\nLow water at noon.\n', { title: 'Tides' });
  const page = await it.openAsDeveloper(app, `/console/knowledge/${source}?tab=settings`, 'desktop', {
    timezoneId: 'UTC',
  });
  const dialog = page.getByRole('dialog');
  const tab = (name: string) => page.getByRole('tab', { name, exact: true });
  await page.getByLabel('Keep old versions for').fill('30');
  await page.getByRole('button', { name: 'Save the retention' }).click();
  await tab('History').waitFor();

  await page.goto(`/console/knowledge/documents/${document}`);
  await page.getByRole('button', { name: 'Edit' }).click();
  await dialog.getByLabel('Title').fill('Tides of May');
  await dialog.getByLabel('Text').fill('High water at seven.\nLow water at noon.\n');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { name: 'Tides of May' }).waitFor();
  await tab('Versions').click();
  await page.getByRole('button', { name: 'Compare version 2' }).click();
  await dialog.getByText('title: “Tides” → “Tides of May”').waitFor();
  await dialog.getByText('+ High water at seven.').waitFor();
  await it.picture(page, 'knowledge-comparison');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Read version 1' }).click();
  await dialog.getByText('High water at six.').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Restore version 1' }).click();
  await dialog.getByRole('button', { name: 'Restore it' }).click();
  await page.getByRole('heading', { name: 'Tides', exact: true }).waitFor();
  await page.getByRole('button', { name: 'Restore version 2' }).waitFor();
  await it.picture(page, 'knowledge-versions');

  const path = `/knowledge_documents/${document}/versions/2`;
  const { body: second } = await client.send<{ created_at: string }>('GET', path);
  await page.goto(`/console/knowledge/${source}?tab=history`);
  await page.getByLabel('To the time').fill(second.created_at.slice(0, -1));
  await page.getByRole('button', { name: 'Show what would change' }).click();
  await page.getByText('1 document changed, 0 brought back, 0 deleted.').waitFor();
  await it.picture(page, 'knowledge-history');
  await page.getByRole('button', { name: 'Restore the source…' }).click();
  await dialog.getByRole('button', { name: 'Restore it' }).click();
  await tab('Documents').click();
  await page.getByRole('link', { name: 'Tides of May' }).click();
  await page.getByRole('button', { name: 'Delete' }).click();
  await dialog.getByRole('button', { name: 'Delete the document' }).click();
  await tab('History').click();
  await page.getByRole('button', { name: 'Restore Tides of May' }).click();
  await dialog.getByRole('button', { name: 'Restore it' }).click();
  await page.getByText('Documents that are deleted stay here').waitFor();
  await tab('Documents').click();
  await page.getByRole('link', { name: 'Tides of May' }).waitFor();
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

test('a repository is set up with a token, its failed pull is explained, and deletions wait for a person', async () => {
  const page = await it.openAsDeveloper(app, '/console/knowledge');
  const org = await it.server.provision.org(app);
  repository.commit({ 'docs/tides.md': '# Tides', 'docs/wind.md': '# Wind', 'docs/ice.md': '# Ice', 'x.ts': '1' });
  await page.getByRole('button', { name: 'New source' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('radio', { name: 'Git repository' }).check();
  await dialog.getByLabel('Name', { exact: true }).fill('Handbook');
  await dialog.getByLabel('URL', { exact: true }).fill(repository.url);
  await dialog.getByLabel('Include paths (optional)').fill('docs/*');
  await dialog.getByLabel('Token (optional)').fill('wrong');
  await dialog.getByLabel('Owner').click();
  await page.getByPlaceholder('Name, e-mail or id').fill(org.id);
  await page.getByRole('option').first().click();
  await dialog.getByRole('button', { name: 'Create the source' }).click();
  await page.getByRole('button', { name: 'Read it now' }).click();
  await page.getByText('The repository needs other credentials.').waitFor();

  await page.getByRole('tab', { name: 'Settings' }).click();
  await page.getByText('Pulls sign in with stored credentials.').waitFor();
  assert.equal(await page.getByLabel('Token (optional)').inputValue(), '');
  assert.equal(await page.getByLabel('Include paths (optional)').inputValue(), 'docs/*');
  // The page has one primary button, whatever can be saved on it.
  assert.deepEqual(await page.locator('main .button.primary').allTextContents(), ['Read it now']);
  await page.getByRole('button', { name: 'Create the URL' }).click();
  assert.match(await page.getByLabel('Inbound URL').inputValue(), /\/api\/v1\/inbound\/.{20}/);
  await page.getByLabel('Token (optional)').fill('tide-token');
  await page.getByRole('button', { name: 'Replace the credentials' }).click();
  await page.getByRole('button', { name: 'Replace the credentials', disabled: true }).waitFor();
  await page.getByRole('button', { name: 'Read it now' }).click();
  // Only then does the next pull start another ingestion.
  await page.getByRole('tab', { name: 'Ingestions' }).click();
  await page.getByRole('table', { name: 'Ingestions' }).getByText('Succeeded').waitFor();
  await page.getByRole('tab', { name: 'Documents' }).click();
  await page.getByRole('link', { name: 'tides.md' }).waitFor();
  assert.equal(await page.getByRole('link', { name: 'x.ts' }).count(), 0);

  repository.commit({ 'docs/tides.md': null, 'docs/wind.md': null });
  await page.getByRole('button', { name: 'Read it now' }).click();
  await page.getByText('2 documents would be deleted, of 3.').waitFor();
  await page.getByRole('tab', { name: 'Ingestions' }).click();
  await page.getByText('2 deletions held').waitFor();
  await page.getByRole('row').filter({ hasText: 'Failed' }).getByRole('button', { name: /^…/ }).click();
  await dialog.getByText('fetch_failed').waitFor();
  await dialog.getByText('Close', { exact: true }).click();
  await page.getByRole('button', { name: 'Delete 2 documents…' }).click();
  await dialog.getByRole('button', { name: 'Delete 2 documents', exact: true }).click();
  await page.getByText('2 documents would be deleted, of 3.').waitFor({ state: 'detached' });
  await page.getByRole('tab', { name: 'Documents' }).click();
  await page.getByRole('link', { name: 'tides.md' }).waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'ice.md' }).waitFor();
});

test('a user is exported, then erased after the name was typed, and shown as done only when the server says so', async () => {
  const { provision, db } = it.server;
  const user = await provision.user(app);
  await db`update users set email = 'ada@harbour.example' where id = ${user.uuid}`;
  const page = await it.openAsDeveloper(app, `/console/users/${user.id}`);
  const exported = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Export everything' }).click();
  const entries = unzipSync(readFileSync(await (await exported).path()));
  assert.ok(entries['export.json'] !== undefined, Object.keys(entries).join());

  let isHeld = true;
  await page.route('**/api/v1/erasures/ers_*', async (route) => {
    const response = await route.fetch();
    const json = (await response.json()) as object;
    await route.fulfill({ response, json: isHeld ? { ...json, status: 'running', completed_at: undefined } : json });
  });
  await page.getByRole('button', { name: 'Erase…' }).click();
  const dialog = page.getByRole('dialog');
  const erase = dialog.getByRole('button', { name: 'Erase the user' });
  await dialog.getByLabel('Type “ada@harbour.example” to confirm').fill('ada@harbour');
  assert.equal(await erase.isDisabled(), true);
  await dialog.getByLabel('Type “ada@harbour.example” to confirm').fill('ada@harbour.example');
  await erase.click();
  await page.getByText('The server deletes in the background').waitFor();
  assert.equal(await page.getByText('The signed certificate').count(), 0);
  isHeld = false;
  const saved = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download the certificate' }).click();
  const certificate = JSON.parse(readFileSync(await (await saved).path(), 'utf8')) as Certificate;
  assert.ok(findSigner('quarry:erasure:1', certificate));
  assert.equal(certificate.statement.user, user.id);
  await page.getByRole('navigation', { name: 'Breadcrumbs' }).getByRole('link', { name: 'Erasures' }).click();
  await page.getByRole('link', { name: `User …${user.id.slice(-8)}` }).waitFor();
});

test('a document whose title is empty or blank is named by its id: it is opened, found and erased like others', async () => {
  const knowledge = knowledgeOf(it.server, { key: app.secretKey });
  const org = await it.server.provision.org(app);
  const source = await knowledge.createSource({ org: org.id });
  const empty = await knowledge.push(source, 'Ballast water is exchanged at sea.', { title: '' });
  const blank = await knowledge.push(source, 'Ballast of stone is landed at the pier.', { title: ' ' });
  const page = await it.openAsDeveloper(app, `/console/knowledge/${source}?tab=search`);
  await page.getByLabel('Question or words').fill('ballast');
  await page.getByRole('button', { name: 'Search', exact: true }).click();
  for (const id of [empty, blank])
    await page.getByRole('region', { name: 'Hits' }).getByRole('link', { name: id }).waitFor();
  await page.getByRole('tab', { name: 'Documents' }).click();
  await page.getByRole('link', { name: blank }).waitFor();
  await page.getByRole('link', { name: empty }).click();
  await page.getByRole('heading', { name: empty }).waitFor();
  await page.getByRole('button', { name: 'Erase…' }).click();
  await page.getByRole('dialog').getByLabel(`Type “${empty}” to confirm`).waitFor();
});
