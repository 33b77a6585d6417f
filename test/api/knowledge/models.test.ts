import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { openAiEmbedder } from '../../../src/content/embed/openai.ts';
import { openReranker } from '../../../src/content/models/reranker.ts';
import { startEmbeddingService } from '../../support/embedding-service.ts';
import { type Json, knowledgeOf } from '../../support/knowledge.ts';
import { startRerankingService } from '../../support/reranking-service.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';

const embedding = await startEmbeddingService();
const reranking = await startRerankingService();
const server = await startTestServer({
  env: {
    QUARRY_EMBEDDER: 'openai',
    QUARRY_EMBED_URL: embedding.url,
    QUARRY_EMBED_MODEL: 'test',
    QUARRY_EMBED_MODEL_DIMENSIONS: '64',
    QUARRY_EMBED_DIMENSIONS: '32',
    QUARRY_EMBED_QUERY_PREFIX: 'search_query: ',
    QUARRY_EMBED_DOCUMENT_PREFIX: 'search_document: ',
    QUARRY_EMBED_BATCH: '3',
    QUARRY_EMBED_QUERY_MS: '60000',
    QUARRY_EMBED_CONCURRENCY: '2',
    QUARRY_RERANK_URL: reranking.url,
    QUARRY_RERANK_MODEL: 'rerank-test',
    QUARRY_RERANK_KEY: 'rerank-key',
    QUARRY_RERANK_MS: '4000',
  },
});
after(async () => {
  await server.close();
  await embedding.close();
  await reranking.close();
});
const world = await server.provision.world();
const app = knowledgeOf(server, { key: world.app.secretKey });
const org = { org: world.org.id };

type Result = { data: (Json & { content: string; score: number; explain?: Json })[]; rerank_unavailable?: string };

async function search(source: string, body: Json) {
  const answer = await app.send<Result>('POST', `/knowledge_sources/${source}/search`, body);
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
}

const contents = ({ data }: Result) => data.map(({ content }) => content);

test('questions and passages reach the embedder with their own prefixes, passages in batches', async () => {
  const source = await app.createSource(org);
  embedding.texts.length = 0;
  embedding.batches.length = 0;
  await app.push(
    source,
    Array.from({ length: 12 }, (_v, i) => `# Part ${i}\n\n${`Iron ${i}. `.repeat(250)}`).join('\n\n'),
  );
  assert.ok(embedding.texts.length > 5);
  assert.ok(embedding.texts.every((text) => text.startsWith('search_document: ')));
  // Two requests run together, so that the last batch may arrive before the one that precedes it.
  const batches = embedding.batches.toSorted((a, b) => b - a);
  assert.deepEqual([...new Set(batches.slice(0, -1))], [3]);
  embedding.texts.length = 0;
  assert.ok((await search(source, { query: 'iron', mode: 'vector' })).data.length > 0);
  assert.deepEqual(embedding.texts, ['search_query: iron']);
});

test('vectors are cut to the stored dimensions and scaled to length 1; their model has a different name', async () => {
  const source = await app.createSource(org);
  await app.push(source, 'Storks nest on roofs.');
  const [row] = await server.db<{ model: string; content: Buffer }[]>`
    select model, content from knowledge_vectors where app_id = ${world.app.app.uuid} limit 1`;
  assert.match(row?.model ?? '', /^openai:test:64:first-32:prefix-[0-9a-f]{8}$/);
  const bytes = Uint8Array.from(row?.content ?? []);
  const vector = new Float16Array(bytes.buffer);
  assert.equal(vector.length, 32);
  assert.ok(Math.abs(Math.hypot(...vector) - 1) < 0.01);
  const [hit] = (await search(source, { query: 'Storks nest on roofs.', mode: 'vector', explain: true })).data;
  const whole = openAiEmbedder({ baseUrl: embedding.url, model: 'test', dimensions: 64 });
  const texts = ['search_query: Storks nest on roofs.', 'search_document: Storks nest on roofs.'];
  const [query = [], passage = []] = (await whole.embed(texts, 'query')).map((one) => [...one.slice(0, 32)]);
  const dot = query.reduce((sum, value, i) => sum + value * (passage[i] ?? 0), 0);
  const cosine = dot / (Math.hypot(...query) * Math.hypot(...passage));
  assert.ok(Math.abs(Number(hit?.explain?.similarity) - cosine) < 0.01);
});

test('an app has no more concurrent requests to the embedder than the settings allow', async () => {
  const source = await app.createSource(org);
  embedding.silentOn = 'gannet';
  const searches = Array.from({ length: 5 }, () => search(source, { query: 'gannet' }));
  await embedding.waitForOpenRequests(2);
  // A request of another app has a place of its own.
  const other = await server.provision.world();
  const its = knowledgeOf(server, { key: other.app.secretKey });
  await its.push(await its.createSource({ org: other.org.id }), 'Fulmars.');
  assert.equal(embedding.hanging.length, 2);
  embedding.silentOn = undefined;
  for (const response of embedding.hanging.splice(0)) response.destroy();
  await Promise.all(searches);
});

test('the reranker orders hybrid results, and sees only passages that the search may return', async () => {
  const source = await app.createSource(org);
  const hidden = await app.createSource(org);
  await app.push(hidden, 'Terns best best best.');
  await app.push(source, 'Terns dive for fish, terns, terns.', { metadata: { shelf: 1 } });
  await app.push(source, 'Terns are best.', { title: 'Birds', metadata: { shelf: 1 } });
  await app.push(source, 'Terns of another shelf: best best.', { metadata: { shelf: 2 } });
  reranking.requests.length = 0;
  const found = await search(source, { query: 'terns', filter: { shelf: 1 }, max_results: 1, explain: true });
  assert.deepEqual(contents(found), ['Terns are best.']);
  assert.equal(found.data[0]?.score, 1);
  assert.equal(found.data[0]?.explain?.rank_before_reranking, 2);
  const [request] = reranking.requests;
  assert.deepEqual([request?.model, request?.query, request?.key], ['rerank-test', 'terns', 'Bearer rerank-key']);
  assert.deepEqual([...((request?.documents ?? []) as string[])].sort(), [
    'Birds\n\nTerns are best.',
    'Terns dive for fish, terns, terns.',
  ]);
  for (const without of [{ rerank: false }, { mode: 'fulltext' }]) {
    const plain = await search(source, { query: 'terns', filter: { shelf: 1 }, ...without });
    assert.equal(contents(plain)[0], 'Terns dive for fish, terns, terns.');
  }
  assert.equal(reranking.requests.length, 1);
  const text = await search(source, { query: 'terns', mode: 'fulltext', rerank: true });
  assert.equal(contents(text)[0], 'Terns of another shelf: best best.');
});

test('when the reranker is late, the response has the previous order and says so', async () => {
  const source = await app.createSource(org);
  for (const text of ['Skuas chase skuas.', 'Skuas: best.']) await app.push(source, text);
  const before = contents(await search(source, { query: 'skuas', rerank: false }));
  const failures: [() => void, RegExp][] = [
    [() => Object.assign(reranking, { silent: true }), /not reranked within 4000 ms/],
    [() => Object.assign(reranking, { broken: { status: 503, body: '' } }), /status 503/],
    [() => Object.assign(reranking, { broken: { status: 200, body: '{"results": []}' } }), /a score per text/],
    [() => Object.assign(reranking, { broken: { status: 200, body: 'null' } }), /a score per text/],
  ];
  for (const [fail, reason] of failures) {
    fail();
    const { rerank_unavailable, ...found } = await search(source, { query: 'skuas' });
    assert.match(String(rerank_unavailable), reason);
    assert.deepEqual(contents(found), before);
    Object.assign(reranking, { silent: false, broken: undefined });
  }
  const again = await search(source, { query: 'skuas' });
  assert.deepEqual([contents(again)[0], again.rerank_unavailable], ['Skuas: best.', undefined]);
});

test('a reranker without a model gets the requests of Text Embeddings Inference', async () => {
  const settings = { rerankUrl: reranking.teiUrl, rerankKey: undefined, rerankModel: undefined, rerankMs: 5_000 };
  const reranker = openReranker(settings);
  reranking.requests.length = 0;
  assert.deepEqual(await reranker?.rerank('app', 'q', ['none', 'best best', 'best']), [0, 2, 1]);
  assert.deepEqual(
    [reranking.requests[0]?.texts, reranking.requests[0]?.model, reranking.requests[0]?.key],
    [['none', 'best best', 'best'], undefined, undefined],
  );
  const gone = openReranker({ ...settings, rerankUrl: 'http://127.0.0.1:1/rerank' });
  assert.deepEqual(await gone?.rerank('app', 'q', ['x']), { unavailable: 'The reranking service cannot be reached.' });
  assert.equal(openReranker({ ...settings, rerankUrl: undefined }), undefined);
});

test('rerank on a server without a reranker is 422 on its member', async () => {
  const plain = await startTestServer();
  try {
    const tenant = await plain.provision.world();
    const its = knowledgeOf(plain, { key: tenant.app.secretKey });
    const source = await its.createSource({ org: tenant.org.id });
    const send = (rerank: boolean) =>
      its.send<ErrorBody>('POST', `/knowledge_sources/${source}/search`, { query: 'x', rerank });
    const refused = await send(true);
    assert.deepEqual([refused.status, refused.body.error?.fields[0]?.field], [422, 'rerank']);
    assert.equal((await send(false)).status, 200);
  } finally {
    await plain.close();
  }
});
