import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { ComputingThreads } from '../../../src/knowledge/computing/threads.ts';
import { flushBundles, lockIndex, mergeSegments } from '../../../src/knowledge/index/store.ts';
import { type Json, knowledgeOf } from '../../support/knowledge.ts';
import { sendRequest, startTestServer } from '../../support/server.ts';

const server = await startTestServer();
const threads = new ComputingThreads({ sizeMin: 0 });
/** Computes all searches in threads, as those of large sources. */
const beside = await startTestServer({ beside: server, threads });
const withSmallCache = await startTestServer({ beside: server, env: { QUARRY_SEARCH_CACHE_MB: '1' } });
after(async () => {
  await withSmallCache.close();
  await beside.close();
  await threads.close();
  await server.close();
});

const subjects = ['harbour ships anchor night', 'mountain goats climb ridge', 'garden flower bloom spring'];

/** Trains what is due; waits for a training that the ingestion has started itself. */
async function learn(appId: string): Promise<void> {
  for (;;) {
    await server.server.work.tasks.learn_sources?.({ appId }, {
      signal: new AbortController().signal,
      waitOutside: <T>(wait: () => Promise<T>) => wait(),
    } as never);
    const [model] = await server.db`select 1 from knowledge_models where lease_holder is null and dimensions > 0`;
    if (model) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test('searches have the same results in threads as without, in every mode', async () => {
  const world = await server.provision.world();
  const { secretKey: key } = world.app;
  const app = knowledgeOf(server, { key });
  const source = await app.createSource({ org: world.org.id });
  const passage = (i: number) =>
    `# Part ${i}\n\n${subjects[i % 3]} number${i % 17} ${'and so on with the words of it. '.repeat(30 + (i % 5))}\n\n`;
  await app.ingest(
    source,
    {
      items: Array.from({ length: 30 }, (_item, i) => ({
        content: { data: Array.from({ length: 12 }, (_part, j) => passage(i * 12 + j)).join('') },
        title: `Places ${i}`,
        metadata: { shelf: i % 2 },
      })),
    },
    'ingest/batch',
  );
  const compare = async () => {
    const queries = ['goats', 'ships at night', 'number3 flower bloom garden spring words', '"anchor night"', 'mount*'];
    for (const mode of ['fulltext', 'vector', 'hybrid'])
      for (const query of queries)
        for (const more of [{}, { filter: { shelf: 1 } }]) {
          const body = { query, mode, explain: true, max_results: 50, ...more };
          const path = `/api/v1/knowledge_sources/${source}/search`;
          const [here, there] = await Promise.all(
            [server, beside].map(({ baseUrl }) => sendRequest<Json>(baseUrl, 'POST', path, { key, body })),
          );
          assert.equal(here?.status, 200, here?.text);
          assert.deepEqual(there?.body, here?.body, `${mode}: ${query}`);
          if (query === 'goats') assert.ok(here !== undefined && (here.body.data as unknown[]).length > 0);
        }
  };
  await compare();
  await learn(world.app.app.uuid);
  await compare();
  // Documents that arrive later extend what both have cached.
  await app.push(source, `${subjects[1]} goats again, long after the others. `.repeat(40), { title: 'Late' });
  await compare();
});

test('searches have the same results whether a source fits into the cache or not, and in threads', async () => {
  const world = await server.provision.world();
  const { secretKey: key } = world.app;
  const app = knowledgeOf(server, { key });
  const source = await app.createSource({ org: world.org.id });
  // Searches read 200 vectors each, of 2 KiB: a source of more than eight times as many is never read as a whole.
  const perBatch = 100;
  for (let first = 0; first < 1_800; first += perBatch)
    await app.ingest(
      source,
      {
        items: Array.from({ length: perBatch }, (_item, i) => ({
          content: { data: `walk ${subjects[(first + i) % 3]} number${(first + i) % 400}` },
        })),
      },
      'ingest/batch',
    );
  const path = `/api/v1/knowledge_sources/${source}/search`;
  const queries = ['number17 ships', 'number18 anchor', 'mountain goats number391', 'walk number5'].flatMap((query) =>
    ['vector', 'fulltext', 'hybrid'].map((mode) => ({ query, mode })),
  );
  const search = ({ baseUrl }: { baseUrl: string }) =>
    Promise.all(
      queries.map(async ({ query, mode }) => {
        const body = { query, mode, explain: true, max_results: 100, min_similarity: 0 };
        return (await sendRequest<Json>(baseUrl, 'POST', path, { key, body })).body;
      }),
    );
  const expected = await search(server);
  for (const [i, { data }] of expected.entries())
    if (queries[i]?.mode === 'vector') assert.equal((data as unknown[]).length, 100);
  // Again, so that some vectors are cached.
  for (let round = 0; round < 3; round++)
    for (const found of await Promise.all([server, beside, withSmallCache].map(search)))
      assert.deepEqual(found, expected);
});

test('what a search has cached of a source stays right when segments are added, merged and emptied', async () => {
  const world = await server.provision.world();
  const app = knowledgeOf(server, { key: world.app.secretKey });
  const source = await app.createSource({ org: world.org.id });
  const [row] = await server.db<{ id: string }[]>`
    select source_id as id from knowledge_indexes where app_id = ${world.app.app.uuid}`;
  const key = { appId: world.app.app.uuid, sourceId: row?.id ?? '' };
  const documents: string[] = [];
  const check = async () => {
    for (const { baseUrl } of [server, beside]) {
      const found = await Promise.all(
        ['goats', 'number1 goats', 'absent goats'].map(async (query) => {
          const body = { query, mode: 'fulltext', max_results: 50 };
          const path = `/api/v1/knowledge_sources/${source}/search`;
          const { data } = (await sendRequest<Json>(baseUrl, 'POST', path, { key: world.app.secretKey, body })).body;
          return (data as { document: string }[]).map(({ document }) => document).sort();
        }),
      );
      for (const ids of found) assert.deepEqual(ids, documents.toSorted());
    }
  };
  // A level of eight segments is full.
  for (let i = 0; i < 10; i++) {
    documents.push(await app.push(source, `goats number${i % 3}`));
    await server.db.begin(async (tx) => {
      const state = await lockIndex(tx, key);
      assert.ok(state);
      await flushBundles(tx, key, state);
    });
    await check();
    if (await server.db.begin((tx) => mergeSegments(tx, key))) await check();
  }
  const segments = await server.db`select 1 from knowledge_segments where source_id = ${key.sourceId}`;
  assert.equal(segments.count, 3);
  const [first = ''] = documents.splice(0, 1);
  assert.equal((await app.send('DELETE', `/knowledge_documents/${first}`)).status, 204);
  await check();
});
