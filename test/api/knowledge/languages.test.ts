import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, test } from 'node:test';
import { gradeRanking } from '../../../src/cli/client/measures.ts';
import { listSourcesToCompact } from '../../../src/knowledge/index/store.ts';
import { type Json, knowledgeOf } from '../../support/knowledge.ts';
import { startTestServer } from '../../support/server.ts';

const server = await startTestServer();
after(() => server.close());
const world = await server.provision.world();
const app = knowledgeOf(server, { key: world.app.secretKey });
const org = { org: world.org.id };
const run = { signal: new AbortController().signal } as never;

type Questions = {
  name: string;
  documents: { id: string; text: string }[];
  queries: { query: string; relevant: string[] }[];
};
const file = new URL('../../fixtures/languages/questions.json', import.meta.url);
const sets = JSON.parse(readFileSync(file, 'utf8')) as Questions[];

async function fillWithAll(source: string): Promise<void> {
  const items = sets.flatMap(({ documents }) =>
    documents.map(({ id, text }) => ({ content: { data: text }, metadata: { id } })),
  );
  await app.ingest(source, { items }, 'ingest/batch');
}

const find = async (source: string, query: string, more: Json = {}) =>
  (await app.search(source, { query, ...more })).map((hit) => hit.content);

test('one source is searched in Chinese, Japanese, Korean, Thai and five European languages', async () => {
  const source = await app.createSource(org);
  await fillWithAll(source);
  for (const { name, queries } of sets) {
    let sum = 0;
    for (const { query, relevant } of queries) {
      const hits = await app.search(source, { query, mode: 'fulltext' });
      const ranking = hits.map((hit) => [String((hit.metadata as Json).id)]);
      sum += gradeRanking(new Map(relevant.map((id) => [id, 1])), ranking).ndcg;
    }
    assert.ok(sum / queries.length > 0.9, `${name}: ${sum / queries.length}`);
  }
});

test('each document is stemmed in its own language, and a query finds the word forms of all of them', async () => {
  const source = await app.createSource(org);
  const german = 'Die Häuser am Hafen wurden im letzten Jahr von der Stadt verkauft.';
  const english = 'The harbour was sold to a company, and its houses were torn down last year.';
  await app.push(source, german);
  await app.push(source, english);
  assert.deepEqual(await find(source, 'Haus', { mode: 'fulltext' }), [german]);
  assert.deepEqual(await find(source, 'selling a house', { mode: 'fulltext' }), [english]);
  assert.deepEqual(await find(source, '"its house"', { mode: 'fulltext' }), [english]);
  // Neither text is found by the other's stop words.
  assert.deepEqual(await find(source, 'wer verkaufte die Häuser', { mode: 'fulltext' }), [german]);
  const [hit] = await app.search(source, { query: 'das verkaufte Haus', highlights: true });
  const highlights = (hit?.highlights ?? []) as { start: number; end: number }[];
  const marked = highlights.map(({ start, end }) => german.slice(start, end));
  assert.deepEqual(marked, ['Häuser', 'verkauft']);
});

test('a language that the source names applies to all of its documents', async () => {
  const source = await app.createSource({ ...org, payload: { language: 'english' } });
  const german = 'Die Häuser am Hafen wurden im letzten Jahr von der Stadt verkauft.';
  await app.push(source, german);
  assert.deepEqual(await find(source, 'Haus', { mode: 'fulltext' }), []);
  assert.deepEqual(await find(source, 'Häuser', { mode: 'fulltext' }), [german]);
});

test('a job reads the words of an older index again, and searches find every document meanwhile', async () => {
  const source = await app.createSource(org);
  const texts = [
    '시립도서관은 월요일에 쉬며, 책은 이 주 동안 빌릴 수 있습니다.',
    'The library closes on Mondays.',
    'Die Bücherei hat montags geschlossen.',
  ];
  for (const text of texts) await app.push(source, text);
  const [key] = await server.db<{ appId: string; sourceId: string }[]>`
    select app_id, id as source_id from knowledge_sources order by created_at desc limit 1`;
  assert.ok(key);
  // The server's own job, which looks each minute, must not be the first.
  await server.db`
    update jobs set run_at = now() + interval '1 hour' where key = 'recurring/purge_sources'`;
  // As an older version left it: words unstemmed, and those of the first document missing.
  await server.db`update knowledge_indexes set analysis = 0, languages = '{none}' where source_id = ${key.sourceId}`;
  await server.db`update knowledge_documents set language = 'none' where source_id = ${key.sourceId}`;
  await server.db`
    delete from knowledge_bundles where source_id = ${key.sourceId} and first_ordinal = (
      select min(first_ordinal) from knowledge_bundles where source_id = ${key.sourceId})`;
  assert.deepEqual(await find(source, '도서관', { mode: 'fulltext' }), []);
  assert.deepEqual(await find(source, 'Mondays library', { mode: 'fulltext' }), []);

  assert.deepEqual([...(await listSourcesToCompact(server.db, 1_000, 20))], [key]);
  await server.server.work.tasks.compact_index?.(key, run);
  assert.deepEqual([...(await listSourcesToCompact(server.db, 1_000, 20))], []);
  assert.deepEqual(await find(source, '도서관', { mode: 'fulltext' }), [texts[0]]);
  assert.deepEqual(await find(source, 'a closed library', { mode: 'fulltext' }), [texts[1]]);
  assert.deepEqual(await find(source, 'Büchereien', { mode: 'fulltext' }), [texts[2]]);
  const [index] =
    await server.db`select languages, chunk_count from knowledge_indexes where source_id = ${key.sourceId}`;
  assert.deepEqual(index, { languages: ['english', 'german', 'none'], chunkCount: 3 });
});
