import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { parseId } from '../../../src/lib/ids.ts';
import { type ModelCall, startNamedEmbedders } from '../../support/named-embedders.ts';
import { startRerankingService } from '../../support/reranking-service.ts';

/* How the models that sources and searches name weigh in the results of a search. */

const it = await startNamedEmbedders();
const reranking = await startRerankingService();
after(async () => {
  await it.close();
  await reranking.close();
});
const {
  createModel,
  createSource,
  embeddingOf,
  embedDue,
  untilServing,
  search,
  first,
  second,
  server,
  world,
  key,
  app,
} = it;
const { api } = it.server;

test('an alias sends a question as the model that answers expects it', async () => {
  const one = await createModel(first.url, { model: 'twin', query_prefix: 'ask: ' });
  const other = await createModel(second.url, { model: 'twin', query_prefix: 'question: ' });
  const alias = { name: 'twins', models: [one.name, other.name] };
  assert.equal((await api('POST', '/api/v1/model_aliases', { key, body: alias })).status, 201);
  const source = await createSource({ embedder: 'twins' });
  await app.push(source, 'Coots squabble.');
  await search(source, 'who squabbles');
  first.broken = 503;
  assert.equal((await search(source, 'who quarrels')).vectors_unavailable, undefined);
  assert.deepEqual(first.texts, ['Coots squabble.', 'ask: who squabbles']);
  assert.deepEqual(second.texts, ['question: who quarrels']);
});

test('a model weighs in hybrid searches as much as its fusion_weight says, from the next search on', async () => {
  const model = await createModel(first.url, { fusion_weight: 0.01 });
  const source = await createSource({ embedder: model.name });
  const pointing = (at: number) => (data: Record<string, unknown>[]) => {
    for (const each of data) each.embedding = Array.from({ length: 64 }, (_, i) => (i === at ? 1 : 0));
  };
  first.alter = pointing(0);
  await app.push(source, 'Cranes dance. Dancing cranes dance for cranes.');
  first.alter = pointing(1);
  await app.push(source, 'Storks clatter on the roof, and nobody has seen them dance like cranes in the marshes do.');
  const best = async () => (await search(source, 'cranes dance', 'hybrid')).data[0]?.content.slice(0, 6);
  const weigh = async (fusion_weight: number | null) => {
    const path = `/api/v1/models/${model.id}`;
    const changed = await api<{ fusion_weight?: number }>('PATCH', path, { key, body: { fusion_weight } });
    assert.deepEqual([changed.status, changed.body.fusion_weight], [200, fusion_weight ?? undefined], changed.text);
  };
  assert.equal(await best(), 'Cranes');
  await weigh(2.5);
  assert.equal(await best(), 'Storks');
  await weigh(0.01);
  assert.equal(await best(), 'Cranes');
  await weigh(null);
  assert.equal(await best(), 'Storks');
  assert.equal((await embeddingOf(source)).status, 'ready');
  assert.equal(first.texts.filter((text) => text.includes('marshes')).length, 1);
});

test('several embedders in one search are fused by rank, with one call of each', async () => {
  const one = await createModel(first.url);
  const other = await createModel(second.url);
  const sources = [
    await createSource({ embedder: one.name }),
    await createSource({ embedder: one.name }),
    await createSource({ embedder: other.name }),
    await createSource(),
  ];
  for (const [i, source] of sources.entries()) await app.push(source, `Puffin colony ${i} on the cliff.`);
  for (const each of [first, second]) Object.assign(each, { texts: [] });
  for (const mode of ['vector', 'hybrid']) {
    const body = { query: 'puffin colony', mode, sources };
    const found = await api<{ data: { source: string }[] }>('POST', '/api/v1/knowledge_search', { key, body });
    assert.equal(found.status, 200, found.text);
    assert.deepEqual(new Set(found.body.data.map(({ source }) => source)), new Set(sources));
  }
  assert.deepEqual([first.texts, second.texts], [Array(2).fill('puffin colony'), Array(2).fill('puffin colony')]);
});

test('without its model, a source is searched by full text with a warning, and documents wait for their vectors', async () => {
  const { id, name: embedder } = await createModel(first.url);
  const source = await createSource({ embedder });
  await app.push(source, 'Curlews call at dusk.');
  first.broken = 400;
  const found = await search(source, 'curlews', 'hybrid');
  assert.equal(found.data.length, 1);
  assert.match(found.vectors_unavailable ?? '', /status 400/);
  const pushed = await app.ingest(source, { content: { data: 'Snipes drum at dawn.' } });
  assert.deepEqual([pushed.status, pushed.metadata.embedding], ['succeeded', 'pending']);
  first.broken = undefined;
  await embedDue();
  await untilServing(source, embedder);
  assert.equal((await search(source, 'snipes drum at dawn')).data.length, 2);
  assert.equal((await api('DELETE', `/api/v1/models/${id}`, { key })).status, 204);
  const after = await search(source, 'snipes', 'hybrid');
  assert.equal(after.data.length, 1);
  assert.match(after.vectors_unavailable ?? '', /cannot be used/);
});

test('a budget refuses vectors before they are computed, and compaction keeps them', async () => {
  const { name: embedder } = await createModel(second.url);
  const source = await createSource({ embedder });
  const document = await app.push(source, 'Rails hide in reeds.');
  const sourceId = parseId('source', source) ?? '';
  const before = second.texts.length;
  const place = { appId: world.app.app.uuid, sourceId };
  await server.server.work.tasks.compact_index?.(place, { signal: new AbortController().signal } as never);
  assert.equal(second.texts.length, before);
  assert.match((await search(source, 'rails in reeds')).data[0]?.content ?? '', /Rails hide/);
  const body = { subject: 'app', period: 'day', tokens: 1 };
  const budget = await api<{ id: string }>('POST', '/api/v1/model_budgets', { key, body });
  assert.equal(budget.status, 201, budget.text);
  const refused = await search(source, 'rails', 'hybrid');
  assert.match(refused.vectors_unavailable ?? '', /budget/i);
  assert.equal(second.texts.length, before + 1);
  assert.equal((await api('DELETE', `/api/v1/model_budgets/${budget.body.id}`, { key })).status, 204);
  assert.equal((await api('DELETE', `/api/v1/knowledge_documents/${document}`, { key })).status, 204);
});

test('a search names the model that reranks, whose calls are recorded, and goes without it if it fails', async () => {
  const url = reranking.url.replace(/\/rerank$/, '');
  const body = { name: 'judge', kind: 'rerank', provider: 'openai', model: 'judge-1', url, key: 'own' };
  const writer = { name: 'writer', provider: 'openai', model: 'm', url: first.url };
  for (const model of [body, writer])
    assert.equal((await api('POST', '/api/v1/models', { key, body: model })).status, 201);
  const source = await createSource();
  await app.push(source, 'Gulls are good at stealing chips.');
  await app.push(source, 'Gulls are the best, best at stealing chips, says who has none left of the chips.');
  type Found = { data: { content: string; score: number }[]; rerank_unavailable?: string };
  const path = `/api/v1/knowledge_sources/${source}/search`;
  const ask = (more: object) =>
    api<Found & { error: { fields: { field: string }[] } }>('POST', path, {
      key,
      body: { query: 'gulls chips', ...more },
    });
  const found = await ask({ rerank_model: 'judge', mode: 'fulltext' });
  assert.deepEqual(
    found.body.data.map(({ score }) => score),
    [2, 0],
    found.text,
  );
  assert.deepEqual([reranking.requests[0]?.model, reranking.requests[0]?.key], ['judge-1', 'Bearer own']);
  const calls = await api<{ data: ModelCall[] }>('GET', '/api/v1/model_calls?model=judge', { key });
  assert.deepEqual([calls.body.data[0]?.operation, calls.body.data[0]?.status], ['rerank', 'succeeded']);
  reranking.broken = { status: 400, body: '{}' };
  const failed = await ask({ rerank_model: 'judge' });
  assert.equal(failed.body.data.length, 2);
  assert.match(failed.body.rerank_unavailable ?? '', /status 400/);
  for (const more of [
    { rerank_model: 'nobody' },
    { rerank_model: 'writer' },
    { rerank_model: 'judge', rerank: false },
  ]) {
    const refused = await ask(more);
    assert.deepEqual([refused.status, refused.body.error.fields[0]?.field], [422, 'rerank_model'], refused.text);
  }
});
