import { after, afterEach, test } from 'node:test';
import { parseId } from '../../src/lib/ids.ts';
import { ConsoleTest } from '../support/browser.ts';
import { loadApp } from '../support/console.ts';
import { setJobAside } from '../support/set-aside-job.ts';

const it = await ConsoleTest.start();
after(() => it.close());
afterEach(it.closePages);
const app = await loadApp(it.server);

test('a developer sees why a job is set aside and what waits for it, and retries it', async () => {
  const { provision, api, services } = it.server;
  const page = await it.openAsDeveloper(app, '/console/jobs');
  await page.getByText('No job is set aside').waitFor();
  await it.picture(page, 'jobs-empty');

  const user = await provision.user(app);
  const source = await api<{ id: string }>('POST', '/api/v1/knowledge_sources', {
    key: app.secretKey,
    body: { type: 'knowledge/documents', user: user.id },
  });
  const payload = { appId: app.app.uuid, sourceId: parseId('source', source.body.id) };
  await setJobAside(services.db, 'compact_index', payload, 'The process died while it ran this job.');
  await page.reload();
  const row = page.getByRole('row').filter({ hasText: 'compact index' });
  await row.getByRole('link', { name: source.body.id }).waitFor();
  await row.getByText('The process died while it ran this job.').waitFor();
  await it.picture(page, 'jobs');
  await row.getByRole('button', { name: /^Retry/ }).click();
  await page.getByText('No job is set aside').waitFor();
});
