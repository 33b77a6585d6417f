import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { addJob } from '../../../src/jobs/queue.ts';
import { limits } from '../../../src/lib/limits.ts';
import { startEmbeddingService } from '../../support/embedding-service.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

/* Models that accept requests and do not respond, beside models that do. */

const silent = await startEmbeddingService();
const other = await startEmbeddingService();
const clock = new ManualClock();
const server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.1' }, logLevel: 'fatal', clock });
after(async () => {
  await server.close();
  await Promise.all([silent.close(), other.close()]);
});
afterEach(() => {
  silent.silentOn = undefined;
  for (const response of silent.hanging.splice(0)) response.destroy();
});
const { api, db } = server;
const app = await server.provision.app();
const { jobsOfAppMax } = limits.jobWaits.embed_documents;

/** Sources and models of one space. */
async function inSpace(scope: Parameters<typeof server.provision.org>[0]) {
  const key = scope.secretKey;
  const { id: org } = await server.provision.org(scope);
  const knowledge = knowledgeOf(server, { key });
  return {
    async createModel(name: string, url: string): Promise<void> {
      const body = {
        name,
        kind: 'embedding',
        provider: 'openai',
        model: 'm',
        url,
        dimensions: 64,
        timeout_seconds: 3_600,
      };
      const made = await api('POST', '/api/v1/models', { key, body });
      assert.equal(made.status, 201, made.text);
    },
    /** A source with a document that the model does not embed yet. */
    async createSource(embedder: string): Promise<string> {
      const body = { org, type: 'knowledge/documents' };
      const { id } = (await api<{ id: string }>('POST', '/api/v1/knowledge_sources', { key, body })).body;
      await knowledge.push(id, 'Bitterns boom unseen.');
      await api('PATCH', `/api/v1/knowledge_sources/${id}`, { key, body: { embedder } });
      return id;
    },
    statusOf: async (source: string) =>
      (
        await api<{ status: string; serving: string | null; error?: string }>(
          'GET',
          `/api/v1/knowledge_sources/${source}/embedding`,
          { key },
        )
      ).body,
  };
}

/** Has jobs that were put off try again, as if their time had come. */
async function hurryJobs(): Promise<void> {
  await db`update jobs set run_at = now() where task = 'embed_documents' and locked_by is null and run_at > now()`;
}

test('models that do not respond make room for another one, and are tried again later', async () => {
  const space = await inSpace(app);
  silent.silentOn = 'Bitterns';
  const waiting: string[] = [];
  for (let i = 0; i < jobsOfAppMax; i++) {
    await space.createModel(`silent-${i}`, silent.url);
    waiting.push(await space.createSource(`silent-${i}`));
  }
  await silent.waitForOpenRequests(jobsOfAppMax);
  await space.createModel('other', other.url);
  const source = await space.createSource('other');
  clock.advance(9_000);
  await hurryJobs();
  assert.equal((await space.statusOf(source)).status, 'running');
  assert.deepEqual(
    await Promise.all(waiting.map(async (each) => (await space.statusOf(each)).error)),
    waiting.map(() => undefined),
  );

  clock.advance(60_000);
  await until(async () => {
    await hurryJobs();
    return (await space.statusOf(source)).serving === 'other';
  });
  const failed = (await Promise.all(waiting.map(space.statusOf))).filter(({ status }) => status === 'failed');
  assert.ok(failed.length > 0);
  for (const { error } of failed) assert.match(error ?? '', /did not respond, and many others/);

  silent.silentOn = undefined;
  for (const response of silent.hanging.splice(0)) response.destroy();
  clock.advance(3_600_000);
  const order = { appId: app.app.uuid };
  await server.server.work.tasks.embed_documents?.(order, { jobId: '0' } as never);
  await until(async () => {
    await hurryJobs();
    const all = await Promise.all(waiting.map(space.statusOf));
    return all.every(({ status }) => status === 'ready');
  });
});

test('a model that does not respond delays no model of the same name in another sandbox', async () => {
  const one = await inSpace(app);
  const two = await inSpace(await server.provision.sandbox(app));
  await one.createModel('same', silent.url);
  await two.createModel('same', other.url);
  silent.silentOn = 'Bitterns';
  const waiting = await one.createSource('same');
  await silent.waitForOpenRequests(1);
  const source = await two.createSource('same');
  await until(async () => (await two.statusOf(source)).serving === 'same');
  assert.equal((await one.statusOf(waiting)).status, 'running');
});

test('the job of an older version, which names no sandbox, has the sources of its model embedded', async () => {
  const space = await inSpace(app);
  await space.createModel('old', other.url);
  other.broken = 503;
  const source = await space.createSource('old');
  await until(async () => (await space.statusOf(source)).status === 'failed');
  other.broken = undefined;
  const moveRecurring = async (days: number) => {
    const { count } = await db`
      update jobs set run_at = run_at + make_interval(days => ${days})
      where key = 'recurring/embed_documents' and locked_by is null`;
    return count > 0;
  };
  // Nothing but the old job may notice that the retry is due.
  await until(() => moveRecurring(1));
  await db`update knowledge_embedders set retry_at = null`;
  const order = { appId: app.app.uuid, embedder: 'old' };
  await addJob(db, 'embed_documents', order, { key: `embed_documents/${order.appId}/${order.embedder}` });
  await until(async () => (await space.statusOf(source)).serving === 'old');
  await moveRecurring(-1);
});
