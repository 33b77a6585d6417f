import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { parseId } from '../../../src/lib/ids.ts';
import type { TestApp } from '../../support/provisioner.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { setJobAside } from '../../support/set-aside-job.ts';

type Job = { id: string; task: string; about?: string; reason: string; crashes: number; attempts: number };
type Jobs = { data: Job[]; total_entries: number };

let server: TestServer;
let app: TestApp;

before(async () => {
  server = await startTestServer({ env: { QUARRY_JOB_WORKERS: '0' } });
  app = await server.provision.app();
});
after(() => server.close());

async function list(key: string, query = ''): Promise<Jobs> {
  const answer = await server.api<Jobs>('GET', `/api/v1/jobs${query}`, { key });
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
}

test('a job that is set aside is listed with its reason and the resource that waits for it, and can be retried', async () => {
  const key = app.secretKey;
  const created = await server.api<{ id: string }>('POST', '/api/v1/extractions', {
    key,
    body: { url: 'https://harbour.example/', mode: 'link', destination_kind: 'storage', destination_path: 'out' },
  });
  assert.equal(created.status, 202, created.text);
  assert.deepEqual((await list(key)).data, []);
  await server.db`
    update jobs set attempts = max_attempts, last_error = 'it is poisoned', crashes = 3
    where payload ->> 'crawl_id' = ${parseId('extraction', created.body.id) ?? ''}`;
  await setJobAside(server.services.db, 'embed_documents', { appId: app.app.uuid });
  const { data, total_entries } = await list(key);
  assert.equal(total_entries, 2);
  const job = data.find(({ about }) => about === created.body.id);
  assert.ok(job);
  assert.deepEqual([job.task, job.reason, job.crashes, job.attempts], ['crawl', 'it is poisoned', 3, 12]);
  assert.equal((await list(key, '?page_size=1&page=2')).data.length, 1);

  const path = `/protected/api/v1/developer/apps/${app.app.id}/jobs`;
  const shown = await server.api<Jobs>('GET', path, { token: app.developerToken });
  assert.deepEqual(shown.body.data, data);
  assert.equal((await server.api('POST', `${path}/${job.id}/retry`, { token: app.developerToken })).status, 202);
  assert.equal((await list(key)).total_entries, 1);
  const due = await server.db`
    select 1 from jobs
    where payload ->> 'crawl_id' = ${parseId('extraction', created.body.id) ?? ''} and locked_by is null and attempts = 0 and run_at <= now()`;
  assert.equal(due.length, 1);
  for (const id of [job.id, 'job_zzz', 'x', `job_${'0'.repeat(22)}`, `job_7${'0'.repeat(21)}`])
    assert.equal((await server.api('POST', `/api/v1/jobs/${id}/retry`, { key })).status, 404, id);
});

test('a job whose subject was deleted or is in another sandbox is not shown', async () => {
  const sandbox = await server.provision.sandbox(app);
  const before = (await list(app.secretKey)).total_entries;
  const user = await server.provision.user(sandbox);
  const made = await server.api<{ id: string }>('POST', '/api/v1/knowledge_sources', {
    key: sandbox.secretKey,
    body: { type: 'knowledge/documents', user: user.id },
  });
  assert.equal(made.status, 201, made.text);
  const sourceId = parseId('source', made.body.id);
  await setJobAside(server.services.db, 'compact_index', { appId: app.app.uuid, sourceId });
  const [job] = (await list(sandbox.secretKey)).data;
  assert.equal(job?.about, made.body.id);
  assert.equal((await list(app.secretKey)).total_entries, before);
  const path = `/api/v1/jobs/${job?.id}/retry`;
  assert.equal((await server.api('POST', path, { key: app.secretKey })).status, 404);
  assert.equal(
    (await server.api('DELETE', `/api/v1/knowledge_sources/${made.body.id}`, { key: sandbox.secretKey })).status,
    204,
  );
  assert.deepEqual((await list(sandbox.secretKey)).data, []);
  assert.equal((await server.api('POST', path, { key: sandbox.secretKey })).status, 404);
});
