import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { openS3Objects } from '../../../src/blob/s3.ts';
import { startSite } from '../../support/fixture-site.ts';
import { startGitServer } from '../../support/git-server.ts';
import { type Json, knowledgeOf, type TestIngestion } from '../../support/knowledge.ts';
import { startS3Server } from '../../support/s3-server.ts';
import { startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

/*
 * Pulls whose process goes away in the middle: another one takes them up. The server of the requests runs no jobs, so the
 * processes that pull can be stopped one after another.
 */

let now = Date.now();
const clock = { now: () => new Date(now) };
const env = { QUARRY_FETCH_ALLOW: '127.0.0.0/8' };
const server = await startTestServer({ env: { ...env, QUARRY_JOB_WORKERS: '0' }, clock });
const startWorker = () => startTestServer({ env, beside: server, clock });
const ends: (() => unknown)[] = [];
after(async () => {
  for (const end of ends) await end();
  await server.close();
});
const world = await server.provision.world();
const app = knowledgeOf(server, { key: world.app.secretKey });
const count = 60;
const each = <T>(make: (number: number) => T): T[] => Array.from({ length: count }, (_, number) => make(number));

type Listed = { data: { external_id: string }[]; total_entries: number };
async function list(source: string): Promise<Listed['data']> {
  const found: Listed['data'] = [];
  for (let page = 1; ; page += 1) {
    const path = `/knowledge_documents?source=${source}&page_size=100&page=${page}`;
    const { data } = (await app.send<Listed>('GET', path)).body;
    found.push(...data);
    if (data.length < 100) return found;
  }
}

/** Sources of each kind, with `count` documents. */
const kinds: Record<string, () => Promise<Json>> = {
  async 'git/repository'() {
    const repository = await startGitServer({});
    ends.push(() => repository.close());
    repository.commit(Object.fromEntries(each((n) => [`docs/${n}.md`, `Text of file ${n}.`])));
    return { payload: { url: repository.url } };
  },
  async 's3/bucket'() {
    const s3 = await startS3Server();
    const objects = openS3Objects(s3.options, '');
    ends.push(
      () => objects.close(),
      () => s3.stop(),
    );
    for (const n of each((number) => number))
      await objects.put(`docs/${n}.md`, Buffer.from(`Text of object ${n}.`), { contentType: 'text/markdown' });
    return {
      payload: { bucket: 'blobs', url: s3.options.endpoint, prefix: 'docs/' },
      credentials: { access_key_id: 'test', secret_access_key: 'test' },
    };
  },
  async 'web/feed'() {
    const items = each(
      (n) => `<item><title>Entry ${n}</title><guid>urn:${n}</guid><description>Text ${n}.</description></item>`,
    );
    const site = await startSite({ '/feed': `<rss version="2.0"><channel>${items.join('')}</channel></rss>` });
    ends.push(() => site.close());
    return { payload: { url: `${site.origin}/feed` } };
  },
};

/** Stops a process in the middle of a pull. On a busy machine, a pull may have ended by then: another one is begun. */
async function interruptPull(
  type: string,
  create: () => Promise<Json>,
): Promise<{ source: string; ingestion: string }> {
  for (;;) {
    const source = await app.createSource({ org: world.org.id, type, ...(await create()) });
    const started = await app.send<TestIngestion>('POST', `/knowledge_sources/${source}/ingest`, { pull: true });
    assert.equal(started.status, 201, started.text);
    const first = await startWorker();
    await until(async () => (await list(source)).length > 0);
    await first.close();
    if ((await list(source)).length < count) return { source, ingestion: started.body.id };
  }
}

for (const [type, create] of Object.entries(kinds)) {
  test(`a pull of ${type} whose process stops in the middle is finished by another one, each document once`, async () => {
    const { source, ingestion } = await interruptPull(type, create);
    const second = await startWorker();
    try {
      const ended = await app.waitForIngestion(ingestion);
      assert.equal(ended.status, 'succeeded', JSON.stringify(ended));
      const found = (await list(source)).map(({ external_id }) => external_id);
      assert.deepEqual([found.length, new Set(found).size], [count, count]);
    } finally {
      await second.close();
    }
  });

  test(`${type} is pulled by its schedule`, async () => {
    const { payload, ...more } = await create();
    const given = { ...more, payload: { ...(payload as Json), schedule: '0 * * * *' } };
    const source = await app.createSource({ org: world.org.id, type, ...given });
    const worker = await startWorker();
    try {
      assert.deepEqual(await list(source), []);
      now += 61 * 60_000;
      await worker.services.db`select add_job('start_pulls', '{}')`;
      await until(async () => (await list(source)).length === count);
    } finally {
      await worker.close();
    }
  });
}
