import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { ConsoleTest } from '../support/browser.ts';
import { choosePlace, choosePrincipal, loadApp, placeOf, signOut } from '../support/console.ts';

const it = await ConsoleTest.start();
after(() => it.close());
afterEach(it.closePages);
const { provision, db, api } = it.server;
const app = await loadApp(it.server);
const user = await provision.user(app);
await db`update users set email = 'ada@harbour.example', name = 'Ada Lind' where id = ${user.uuid}`;

test('text that is not saved survives links, the back button, Escape and the end of the session', async () => {
  const page = await it.openAsDeveloper(app, '/console/overview');
  const menu = page.getByRole('navigation', { name: 'Sections' });
  await menu.getByRole('link', { name: 'Automations' }).click();
  await page.getByRole('link', { name: 'New automation' }).first().click();
  const editor = page.locator('.cm-editor').getByRole('textbox', { name: 'Definition' });
  const write = async (text: string) => {
    await editor.click();
    await page.keyboard.press('Control+a');
    await page.keyboard.press('Backspace');
    await page.keyboard.insertText(text);
  };
  await write('name: Typed by hand');
  await page
    .getByText('Not saved')
    .or(page.getByText(/problem/))
    .first()
    .waitFor();
  const asked: string[] = [];
  page.on('dialog', (dialog) => {
    asked.push(dialog.type());
    void dialog.dismiss();
  });
  const keepsText = async (question: string) => {
    const dialog = page.getByRole('dialog', { name: question });
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await dialog.waitFor({ state: 'detached' });
  };
  await menu.getByRole('link', { name: 'Files' }).click();
  await keepsText('Leave without saving?');
  await page.goBack();
  await keepsText('Leave without saving?');
  await signOut(page);
  await keepsText('Leave without saving?');
  await page.getByLabel('Template').selectOption('approval');
  await keepsText('Replace what you typed?');
  await page.close({ runBeforeUnload: true });
  await editor.getByText('Typed by hand').waitFor();
  assert.deepEqual(asked, ['beforeunload']);

  // The session ends elsewhere. Signed in again, the text is there, and is saved.
  await write(definition);
  await db`delete from console_developer_sessions`;
  await page.keyboard.insertText('# with care\n');
  await page.getByText('Your session has ended').waitFor();
  await page.getByLabel('Developer token', { exact: true }).fill(app.developerToken);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('Your session has ended').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByRole('heading', { name: 'Typed by hand' }).waitFor();
  await page.getByRole('tab', { name: 'Definition' }).click();
  await write(definition.replace('result: 1', 'result: 2'));
  await page.getByText('Not saved').waitFor();
  await page.getByRole('tab', { name: 'Versions' }).click();
  await keepsText('Leave without saving?');
  await editor.getByText('result: 2').waitFor();
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('Not saved').waitFor({ state: 'detached' });

  await menu.getByRole('link', { name: 'Users' }).click();
  await page.getByRole('button', { name: 'New user' }).first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('E-mail').fill('grace@harbour.example');
  await page.keyboard.press('Escape');
  await dialog.getByText('Discard your changes?').waitFor();
  await dialog.getByRole('button', { name: 'Keep editing' }).click();
  assert.equal(await dialog.getByLabel('E-mail').inputValue(), 'grace@harbour.example');
  await db`delete from console_developer_sessions`;
  await dialog.getByRole('button', { name: 'Create the user' }).click();
  await page.getByText('Your session has ended').waitFor();
  await page.getByLabel('Developer token', { exact: true }).fill(app.developerToken);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await dialog.getByRole('button', { name: 'Create the user' }).click();
  await page.getByRole('cell', { name: 'grace@harbour.example' }).first().waitFor();
});

const definition = `name: Typed by hand
type: invoked
workflow:
  kind: WorkflowGraph
  version: 1
  start_node: done
  nodes:
    - id: done
      kind: complete
      result: 1
`;

test('the address holds app, sandbox, organisation, page, filter and query: reload, back and links keep the place', async () => {
  const second = await provision.app();
  await db`update apps set developer_id = ${app.developerUuid}, name = 'Lighthouse' where id = ${second.app.uuid}`;
  const sandbox = await provision.sandbox(app);
  const org = await provision.org({ ...app, sandboxUuid: sandbox.sandboxUuid });
  const made = await api<{ id: string }>('POST', '/api/v1/files', {
    key: second.secretKey,
    body: { filename: 'lamp.txt', content_type: 'text/plain', data: 'bGFtcA==' },
  });
  const page = await it.openAsDeveloper(app, `/console/${app.app.id}/users`);
  await choosePlace(page, 'Test sandbox');
  await choosePlace(page, 'Test org');
  await page.waitForURL(`**/console/${app.app.id}/${sandbox.sandbox.id}/${org.id}/users`);
  await choosePlace(page, 'Harbour authority');
  await page.goto(`/console/${app.app.id}/users`);
  await page.getByLabel('Search users').fill('ada');
  await page.waitForURL('**/users?q=ada');
  await page.getByRole('link', { name: 'Ada Lind' }).click();
  await page.getByRole('heading', { name: 'Ada Lind' }).waitFor();
  await page.goBack();
  assert.equal(await page.getByLabel('Search users').inputValue(), 'ada');
  await page.reload();
  await page.getByRole('link', { name: 'Ada Lind' }).waitFor();
  assert.equal(await page.getByLabel('Search users').inputValue(), 'ada');

  await page.goto(`/console/${app.app.id}/audit?tab=credentials`);
  await page.getByRole('table', { name: 'Use of credentials' }).waitFor();
  await page.goto(`/console/${app.app.id}/files?sort=-size&type=image/*`);
  await page.getByText('No matching files').waitFor();
  assert.equal(await page.getByLabel('Filter by type').inputValue(), 'image/*');

  // A link into another app of the same developer leads there.
  await page.goto(`/console/${second.app.id}/files/${made.body.id}`);
  await page.getByRole('heading', { name: 'lamp.txt' }).waitFor();
  await placeOf(page).getByText('Lighthouse').waitFor();
  await page.goBack();
  await page.getByText('No matching files').waitFor();
});

test('a page stays mounted while the rest of the console loads', async () => {
  const page = await it.openAsDeveloper(app, '/console/files');
  const input = await page.locator('input[type=file]').elementHandle();
  await page.waitForLoadState('networkidle');
  assert.equal(await input?.evaluate((element) => element.isConnected), true);
});

test('the palette finds pages, actions and things by name, tabs obey the arrow keys, and an actor is chosen by e-mail', async () => {
  const page = await it.openAsDeveloper(app, `/console/${app.app.id}/audit`);
  await page.getByRole('tab', { name: 'Changes' }).focus();
  await page.keyboard.press('ArrowRight');
  await page.getByRole('tabpanel', { name: 'Use of credentials' }).waitFor();
  await page.keyboard.press('ArrowLeft');
  await page.getByRole('tabpanel', { name: 'Changes' }).waitFor();
  await choosePrincipal(page, page.getByLabel(/^Actor/), 'ada@harbour.example');
  await page.waitForURL(/actor=usr_/);
  await page.keyboard.press('Control+k');
  await page.getByPlaceholder('A page, an action, or a name or id').fill('Ada Lind');
  await page.getByRole('option', { name: /Ada Lind/ }).click();
  await page.getByRole('heading', { name: 'Ada Lind' }).waitFor();
});
