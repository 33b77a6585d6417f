import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { ConsoleTest } from '../support/browser.ts';
import { loadApp } from '../support/console.ts';

const it = await ConsoleTest.start();
after(() => it.close());
afterEach(it.closePages);
const app = await loadApp(it.server);

test('the API reference opens without a violation of its policy, loads nothing from elsewhere, tries an operation, shows examples with its own address, and finds operations by any of their words', async () => {
  const page = await it.open('about:blank');
  const elsewhere: string[] = [];
  page.on('request', (request) => {
    if (!request.url().startsWith(it.server.baseUrl) && !request.url().startsWith('data:')) {
      elsewhere.push(request.url());
    }
  });
  // Its address before there were guides beside it.
  await page.goto('/docs');
  await page.waitForURL('**/docs/api');
  assert.equal(await page.title(), 'Quarry API');
  await page.getByRole('button', { name: 'Authorize' }).click();
  await page.locator('.auth-container').filter({ hasText: 'x-api-key' }).getByRole('textbox').fill(app.secretKey);
  await page.locator('.auth-container').filter({ hasText: 'x-api-key' }).getByRole('button', { name: 'Apply' }).click();
  await page.getByRole('button', { name: 'Close' }).first().click();
  await page.locator('#operations-tag-Apps').click();
  const operation = page.locator('#operations-Apps-listKeys');
  await operation.locator('.opblock-summary').click();
  await operation.getByRole('button', { name: 'Try it out' }).click();
  await operation.getByRole('button', { name: 'Execute' }).click();
  await operation.locator('.live-responses-table .response-col_status').filter({ hasText: '200' }).waitFor();
  await it.picture(page, 'reference');

  await page.getByText('Your shell', { exact: true }).click();
  await page.getByText(`export BASE=${it.server.baseUrl}`).waitFor();
  const search = page.getByRole('searchbox', { name: 'Search operations' });
  await search.fill('inbound secret url');
  const found = page.locator('.opblock');
  await page.locator('#operations-Knowledge-getInboundUrl').waitFor();
  assert.equal(await page.locator('#operations-Apps-listKeys').count(), 0);
  const few = await found.count();
  assert.ok(few > 0 && few < 10, String(few));
  await it.picture(page, 'reference-search');
  await page.locator('#operations-Knowledge-getInboundUrl .opblock-summary').click();
  await page.getByText('Callers: user, secret key, developer.').waitFor();
  await search.fill('createTeam');
  await page.locator('#operations-Teams-createTeam .opblock-summary').click();
  await page.locator('#operations-Teams-createTeam').getByText('"Reads everything."').first().waitFor();
  await it.picture(page, 'reference-example');
  await search.fill('getExtraction');
  const extraction = page.locator('#operations-Extractions-getExtraction');
  await extraction.locator('.opblock-summary').click();
  await extraction
    .getByRole('combobox')
    .filter({ hasText: 'schema' })
    .selectOption({ label: 'Data that validates against a schema' });
  await extraction.getByText('"ACME GmbH"').first().waitFor();
  await search.fill('zzz');
  await page.locator('.opblock').first().waitFor({ state: 'detached' });
  await search.fill('');
  await page.locator('#operations-tag-Teams').waitFor();
  assert.deepEqual(elsewhere, []);
});
