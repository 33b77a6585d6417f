import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { ConsoleTest } from '../support/browser.ts';
import { loadApp } from '../support/console.ts';

const it = await ConsoleTest.start();
after(() => it.close());
afterEach(it.closePages);
const { api } = it.server;
const app = await loadApp(it.server);

test('a model for embeddings is created with its dimensions, prefixes and input types, which others do not have', async () => {
  const page = await it.openAsDeveloper(app, '/console/models');
  await page.getByRole('button', { name: 'New model' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill('meanings');
  await dialog.getByLabel('Model', { exact: true }).fill('e5');
  assert.equal(await dialog.getByLabel('Dimensions').count(), 0);
  await dialog.getByLabel('Kind').selectOption('embedding');
  await dialog.getByLabel('Dimensions').fill('384');
  await dialog.getByLabel('Text before a question').fill('query: ');
  await dialog.getByLabel('Text before a passage').fill('passage: ');
  await dialog.getByLabel('Input type of a question').fill('query');
  await dialog.getByLabel('Input type of a passage').fill('a document');
  await dialog.getByLabel('Weight in hybrid search').fill('0.25');
  await dialog.getByLabel('Address').fill('https://models.example/v1');
  const create = dialog.getByRole('button', { name: 'Create the model' });
  await create.click();
  await dialog.getByText('must have only letters, digits and . _ -').waitFor();
  await dialog.getByLabel('Input type of a passage').fill('document');
  await create.click();
  await dialog.waitFor({ state: 'detached' });
  await page.getByRole('table', { name: 'Models of this app' }).getByText('meanings').waitFor();

  // What was filled for another kind is not sent.
  await page.getByRole('button', { name: 'New model' }).click();
  await dialog.getByLabel('Name').fill('writer');
  await dialog.getByLabel('Model', { exact: true }).fill('gpt');
  await dialog.getByLabel('Kind').selectOption('embedding');
  await dialog.getByLabel('Dimensions').fill('8');
  await dialog.getByLabel('Kind').selectOption('');
  await dialog.getByLabel('Address').fill('https://models.example/v1');
  await create.click();
  await dialog.waitFor({ state: 'detached' });

  const { body } = await api<{ data: Record<string, unknown>[] }>('GET', '/api/v1/models', { key: app.secretKey });
  const members = ({ name, kind, dimensions, ...more }: Record<string, unknown>) => [
    ...[name, kind, dimensions, more.query_prefix, more.passage_prefix],
    ...[more.query_input_type, more.passage_input_type, more.fusion_weight],
  ];
  assert.deepEqual(body.data.map(members).sort(), [
    ['meanings', 'embedding', 384, 'query: ', 'passage: ', 'query', 'document', 0.25],
    ['writer', ...Array(7).fill(undefined)],
  ]);
});
