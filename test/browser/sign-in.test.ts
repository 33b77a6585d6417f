import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { hashPassword } from '../../src/users/passwords.ts';
import { ConsoleTest } from '../support/browser.ts';
import { choosePlace, loadApp, placeOf, signOut } from '../support/console.ts';

const it = await ConsoleTest.start();
after(() => it.close());
afterEach(it.closePages);
const { provision, db, api } = it.server;
const app = await loadApp(it.server);
const org = await provision.org(app);
await db`update orgs set name = 'Pilots' where id = ${org.uuid}`;
await provision.sandbox(app);
const user = await provision.user(app, { org, role: 'member' });
await db`update users set email = 'ada@harbour.example', name = 'Ada Pilot', password_hash = ${await hashPassword('tide and time')}
  where id = ${user.uuid}`;

test('a user signs in with e-mail, password and the key in their link, sees their app and org, and signs out', async () => {
  const page = await it.open(`/console/files?key=${app.publishableKey}`);
  await page.getByLabel('E-mail').fill('ada@harbour.example');
  await page.getByLabel('Password', { exact: true }).fill('wrong');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').getByText('The e-mail address or the password is wrong.').waitFor();
  await it.picture(page, 'sign-in');
  await page.getByLabel('Password', { exact: true }).fill('tide and time');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('ada@harbour.example').waitFor();
  await page.getByText('Harbour authority').first().waitFor();
  await page.getByText('Pilots').waitFor();

  const cookies = await page.context().cookies();
  const session = cookies.find(({ name }) => name === 'quarry_session');
  assert.equal(session?.httpOnly, true);
  assert.equal(session?.sameSite, 'Strict');
  assert.equal(await page.evaluate('document.cookie'), '');
  assert.equal(await page.evaluate('JSON.stringify(localStorage).includes("csu_")'), false);

  await page.reload();
  await page.getByText('ada@harbour.example').waitFor();
  await signOut(page);
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await page.reload();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
});

test('a user works with what is theirs: files, a source, entries, tokens, and an automation that they may start', async () => {
  const key = app.secretKey;
  const nodes = [
    { id: 'start', kind: 'trigger', on_success: 'done' },
    { id: 'done', kind: 'complete', result: 'Berth {{$.berth}}' },
  ];
  const workflow = { kind: 'WorkflowGraph', version: 1, start_node: 'start', nodes };
  const body = { name: 'Book', lookup_key: 'book', type: 'invoked', invoke_auth: 'any', workflow };
  const automation = await api<{ id: string }>('POST', '/api/v1/automations', { key, body });
  await api('POST', `/api/v1/automations/${automation.body.id}/activate`, { key });
  await api('POST', '/api/v1/kv', { key, body: { key: 'theirs', value: '1', user: (await provision.user(app)).id } });

  const page = await it.open(`/console?key=${app.publishableKey}`);
  await page.getByLabel('E-mail').fill('ada@harbour.example');
  await page.getByLabel('Password', { exact: true }).fill('tide and time');
  await page.getByRole('button', { name: 'Sign in' }).click();
  const file = { name: 'mine.txt', mimeType: 'text/plain', buffer: Buffer.from('mine') };
  await page.locator('input[type=file]').setInputFiles(file);
  await page.locator('table.list').getByRole('link', { name: 'mine.txt' }).waitFor();

  await page.getByRole('link', { name: 'Knowledge' }).click();
  await page.getByRole('button', { name: 'Create the first source' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Create the source' }).click();
  await page.getByText('No documents yet').waitFor();

  await page.getByRole('link', { name: 'Key-value' }).click();
  await page.getByRole('button', { name: 'Write the first entry' }).click();
  await page.getByRole('dialog').getByLabel('Key').fill('colour');
  await page.getByRole('dialog').getByLabel('Value').fill('"blue"');
  await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click();
  await page.getByRole('button', { name: 'colour', exact: true }).waitFor();
  assert.equal(await page.getByText('theirs').count(), 0);

  await page.getByRole('link', { name: 'Automations' }).click();
  await page.getByLabel('Automation', { exact: true }).selectOption({ label: 'Book' });
  await page.getByLabel('Payload').fill('{"berth": 7}');
  await page.getByRole('button', { name: 'Run it' }).click();
  await page.getByText('"Berth 7"').first().waitFor();

  await page.getByRole('link', { name: 'Keys and tokens' }).click();
  await page.getByRole('button', { name: 'Create a token' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Create the token' }).click();
  const token = await page.getByRole('textbox', { name: 'The new token' }).inputValue();
  assert.equal((await api<{ id: string }>('GET', '/api/v1/users/me', { token })).body.id, user.id);
});

test('a developer chooses app, sandbox and organisation, and everything then belongs there', async () => {
  const page = await it.openAsDeveloper(app, '/console/keys');
  await choosePlace(page, 'Test sandbox');
  await page.getByRole('heading', { name: 'API keys of the sandbox' }).waitFor();
  await page.reload();
  await placeOf(page).getByText('Test sandbox').waitFor();
  await page.getByRole('heading', { name: 'API keys of the sandbox' }).waitFor();
  await choosePlace(page, 'Production');
  await choosePlace(page, 'Pilots');
  await placeOf(page).click();
  await page.getByRole('button', { name: 'New app' }).click();
  await page.getByLabel('Name').fill('Second app');
  await page.getByRole('button', { name: 'Create the app' }).click();
  await placeOf(page).getByText('Second app').waitFor();
  await page.getByRole('heading', { name: 'First steps' }).waitFor();
  await placeOf(page).getByText('All organisations').waitFor();
});

test('a session that was ended elsewhere leads back to signing in, and on to the same page', async () => {
  const page = await it.openAsDeveloper(app, '/console/knowledge');
  await page.getByText('No sources yet').waitFor();
  await db`delete from console_developer_sessions`;
  await page.getByRole('link', { name: 'Key-value' }).click();
  await page.getByText('Your session has ended').waitFor();
  await page.getByLabel('Developer token', { exact: true }).fill(app.developerToken);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Key-value' }).waitFor();
});

test('a developer without an app is led to their first one', async () => {
  const lonely = await provision.app();
  await db`delete from apps where id = ${lonely.app.uuid}`;
  const page = await it.openAsDeveloper(lonely, '/console');
  await page.getByText('Create your first app').waitFor();
  await page.getByLabel('Name').fill('Lighthouse');
  await page.getByRole('button', { name: 'Create the app' }).click();
  await page.getByRole('heading', { name: 'First steps' }).waitFor();
  assert.equal((await api('GET', '/protected/api/v1/developer/apps', { token: lonely.developerToken })).status, 200);
});
