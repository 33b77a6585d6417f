import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { parseId } from '../../../src/lib/ids.ts';
import { startEmbeddingService } from '../../support/embedding-service.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import { startRerankingService } from '../../support/reranking-service.ts';
import { startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

/* Sources that name a model of the registry as their embedder. */

const first = await startEmbeddingService();
const second = await startEmbeddingService();
const reranking = await startRerankingService();
const server = await startTestServer({
  env: { QUARRY_FETCH_ALLOW: '127.0.0.1', QUARRY_EMBED_QUERY_MS: '30000' },
  logLevel: 'fatal',
});
after(async () => {
  await server.close();
  await Promise.all([first.close(), second.close(), reranking.close()]);
});
const { api } = server;
const world = await server.provision.world();
const key = world.app.secretKey;
const app = knowledgeOf(server, { key });
const org = world.org.id;
beforeEach(() => {
  for (const each of [first, second])
    Object.assign(each, {
      broken: undefined,
      alter: undefined,
      silentOn: undefined,
      texts: [],
      batches: [],
      bodies: [],
    });
});

type Embedding = Record<string, unknown> & {
  embedder: string | null;
  serving: string | null;
  status: string;
  embedded: number;
  tokens: number;
  cost: number;
  estimate?: { documents: number; tokens: number; cost: number | null };
};
type Call = Record<string, unknown> & { status: string; operation?: string };
let names = 0;

async function createModel(url: string, more: Record<string, unknown> = {}): Promise<{ id: string; name: string }> {
  const name = `embedder-${++names}`;
  const body = { name, kind: 'embedding', provider: 'openai', model: name, url, dimensions: 64, ...more };
  const made = await api<{ id: string }>('POST', '/api/v1/models', { key, body });
  assert.equal(made.status, 201, made.text);
  return { id: made.body.id, name };
}

async function createSource(more: Record<string, unknown> = {}): Promise<string> {
  const body = { org, type: 'knowledge/documents', ...more };
  const made = await api<{ id: string }>('POST', '/api/v1/knowledge_sources', { key, body });
  assert.equal(made.status, 201, made.text);
  return made.body.id;
}

const name = (source: string, embedder: string | null) =>
  api<{ embedder?: string }>('PATCH', `/api/v1/knowledge_sources/${source}`, { key, body: { embedder } });

async function embeddingOf(source: string, query = ''): Promise<Embedding> {
  const got = await api<Embedding>('GET', `/api/v1/knowledge_sources/${source}/embedding${query}`, { key });
  assert.equal(got.status, 200, got.text);
  return got.body;
}

/** Runs what is due for the sources of the app, as if their retries were due now. */
async function embedDue(): Promise<void> {
  await server.db`update knowledge_embedders set retry_at = null`;
  const signal = new AbortController().signal;
  await server.server.work.tasks.embed_documents?.({ appId: world.app.app.uuid }, {
    signal,
    waitOutside: <T>(work: () => Promise<T>) => work(),
  } as never);
}

async function untilServing(source: string, embedder: string | null): Promise<Embedding> {
  await until(async () => {
    const { serving, status } = await embeddingOf(source);
    return serving === embedder && status === 'ready';
  });
  return embeddingOf(source);
}

async function search(source: string, query: string, mode = 'vector') {
  const body = { query, mode };
  const found = await api<{ data: { content: string }[]; vectors_unavailable?: string }>(
    'POST',
    `/api/v1/knowledge_sources/${source}/search`,
    { key, body },
  );
  assert.equal(found.status, 200, found.text);
  return found.body;
}

async function spacesOf(source: string): Promise<string[]> {
  const rows = await server.db<{ model: string }[]>`
    select distinct model from knowledge_vectors where source_id = ${parseId('source', source) ?? ''} order by model`;
  return rows.map(({ model }) => model);
}

test('a model for embeddings is checked, and is no model that writes text', async () => {
  const base = { name: 'bad', kind: 'embedding', provider: 'openai', model: 'm', url: first.url, dimensions: 64 };
  const { dimensions: _none, ...withoutDimensions } = base;
  const cases: [Record<string, unknown>, string][] = [
    [withoutDimensions, 'dimensions'],
    [{ ...base, provider: 'google', url: undefined, key: 'k' }, 'provider'],
    [{ ...base, kind: undefined }, 'dimensions'],
    [{ ...base, kind: undefined, dimensions: undefined, batch_texts: 5 }, 'batch_texts'],
    [{ ...base, kind: 'rerank', dimensions: undefined, query_prefix: 'query: ' }, 'query_prefix'],
    [{ ...base, passage_prefix: '' }, 'passage_prefix'],
    [{ ...base, kind: 'speech' }, 'kind'],
    [{ ...base, passage_input_type: 'a document' }, 'passage_input_type'],
    [{ ...base, fusion_weight: 0 }, 'fusion_weight'],
    [{ ...base, fusion_weight: 10.5 }, 'fusion_weight'],
    [{ ...base, kind: undefined, dimensions: undefined, fusion_weight: 0.5 }, 'fusion_weight'],
    [{ ...base, kind: 'rerank', dimensions: undefined, query_input_type: 'query' }, 'query_input_type'],
    [{ ...base, kind: undefined, dimensions: undefined, provider: 'cohere' }, 'provider'],
  ];
  for (const [body, field] of cases) {
    const made = await api<{ error: { fields: { field: string }[] } }>('POST', '/api/v1/models', { key, body });
    assert.deepEqual([made.status, made.body.error.fields[0]?.field], [422, field], made.text);
  }
  const model = await createModel(first.url, { batch_texts: 3 });
  const listed = await api<{ data: Record<string, unknown>[] }>('GET', '/api/v1/available_models', { key });
  const found = listed.body.data.find((each) => each.name === model.name);
  assert.deepEqual([found?.purpose, found?.dimensions], ['embedding', 64]);
  const wrong = { name: 'writer', provider: 'openai', model: 'm', url: first.url };
  assert.equal((await api('POST', '/api/v1/models', { key, body: wrong })).status, 201);
  for (const embedder of ['nobody', 'writer']) {
    const body = { org, type: 'knowledge/documents', embedder };
    const refused = await api<{ error: { fields: { field: string }[] } }>('POST', '/api/v1/knowledge_sources', {
      key,
      body,
    });
    assert.deepEqual([refused.status, refused.body.error.fields[0]?.field], [422, 'embedder'], refused.text);
  }
});

test('only a secret key or a developer names the embedder, and a source without one shows none', async () => {
  const { name: embedder } = await createModel(first.url);
  const body = { type: 'knowledge/documents', embedder };
  const user = await server.provision.user(world.app, { org: world.org });
  const refused = await api('POST', '/api/v1/knowledge_sources', {
    token: user.token,
    body: { ...body, user: user.id },
  });
  assert.equal(refused.status, 403, refused.text);
  const plain = await api<Record<string, unknown>>('GET', `/api/v1/knowledge_sources/${await createSource()}`, { key });
  assert.ok(!('embedder' in plain.body));
});

test('a source embeds with its model, whose calls are recorded and charged; others cost nothing', async () => {
  const { name: embedder } = await createModel(first.url, { key: 'own', prices: { input: 3_000_000, output: 0 } });
  const source = await createSource({ embedder });
  await app.push(source, '# Herons\n\nHerons stand in shallow water.');
  assert.equal(first.texts.length, 1);
  const embedding = await embeddingOf(source);
  assert.deepEqual([embedding.status, embedding.embedded], ['ready', 1]);
  assert.match((await search(source, 'herons in water')).data[0]?.content ?? '', /Herons stand/);
  assert.deepEqual(await spacesOf(source), [`openai:${embedder}:64`]);
  const calls = await api<{ data: Call[] }>('GET', `/api/v1/model_calls?model=${embedder}`, { key });
  assert.deepEqual(
    calls.body.data.map(({ operation, status }) => [operation, status]),
    [
      ['embeddings', 'succeeded'],
      ['embeddings', 'succeeded'],
    ],
  );
  assert.ok(calls.body.data.every(({ cost, prompt_tokens }) => Number(cost) === 3 * Number(prompt_tokens)));
  const plain = await createSource();
  await app.push(plain, 'Storks nest on roofs.');
  await search(plain, 'storks');
  assert.equal(first.texts.length, 2);
});

test('another embedder works in the background: the old vectors serve until all documents have new ones', async () => {
  const source = await createSource();
  const texts = [
    'Herons wade.',
    'Wrens sing.',
    'Owls hoot.',
    'Swifts scream.',
    'Geese honk.',
    'Larks rise.',
    'Kites soar.',
  ];
  for (const text of texts) await app.push(source, text);
  const { name: embedder } = await createModel(first.url, { batch_texts: 3, prices: { input: 2_000_000, output: 0 } });
  const before = await embeddingOf(source, `?embedder=${embedder}`);
  assert.deepEqual([before.embedder, before.serving, before.status], [null, null, 'ready']);
  assert.equal(before.estimate?.documents, 7);
  assert.equal(before.estimate?.cost, 2 * (before.estimate?.tokens ?? 0));

  // Half of the documents are embedded when the service breaks down.
  first.silentOn = 'Swifts';
  assert.equal((await name(source, embedder)).body.embedder, embedder);
  await first.waitForOpenRequests(1);
  const during = await embeddingOf(source);
  assert.deepEqual([during.embedder, during.serving, during.status], [embedder, null, 'running']);
  assert.match((await search(source, 'swifts scream')).data[0]?.content ?? '', /Swifts/);
  await app.push(source, 'Dippers arrive meanwhile.');
  assert.match((await search(source, 'dippers arrive meanwhile')).data[0]?.content ?? '', /Dippers/);
  first.silentOn = undefined;
  for (const response of first.hanging.splice(0)) response.destroy();
  const done = await untilServing(source, embedder);
  assert.deepEqual([done.documents, done.embedded], [8, 8]);
  assert.equal(done.cost, 2 * done.tokens);
  assert.ok(first.batches.every((size) => size <= 3));
  assert.equal(new Set(first.texts).size, first.texts.length, 'nothing is embedded twice');
  assert.deepEqual(await spacesOf(source), [`openai:${embedder}:64`]);
  assert.match((await search(source, 'dippers arrive meanwhile')).data[0]?.content ?? '', /Dippers/);

  // Back to the installation's, and to the model again.
  await name(source, null);
  const back = await untilServing(source, null);
  assert.deepEqual([back.embedder, back.embedded], [null, 8]);
  const found = (await search(source, 'dippers arrive meanwhile')).data.map(({ content }) => content);
  assert.equal(new Set(found).size, found.length);
  await name(source, embedder);
  await untilServing(source, embedder);
  const again = (await search(source, 'dippers arrive meanwhile')).data.map(({ content }) => content);
  assert.match(again[0] ?? '', /Dippers/);
  assert.equal(new Set(again).size, again.length);
});

test('an embedder that changes its dimensions fails, and the old vectors serve', async () => {
  const source = await createSource();
  await app.push(source, 'Terns dive for fish.');
  const { id, name: embedder } = await createModel(second.url);
  second.alter = (data) => {
    for (const row of data) row.embedding = (row.embedding as number[]).slice(0, 32);
  };
  await name(source, embedder);
  await until(async () => (await embeddingOf(source)).status === 'failed');
  const failed = await embeddingOf(source);
  assert.match(String(failed.error), /32 dimensions, not 64/);
  assert.deepEqual([failed.serving, failed.embedded], [null, 0]);
  const found = await search(source, 'terns');
  assert.equal(found.data.length, 1);
  assert.equal(found.vectors_unavailable, undefined);
  // The model is corrected: its space is another one.
  const corrected = await api('PATCH', `/api/v1/models/${id}`, { key, body: { dimensions: 32 } });
  assert.equal(corrected.status, 200, corrected.text);
  await untilServing(source, embedder);
  assert.deepEqual(await spacesOf(source), [`openai:${embedder}:32`]);
});

test('a model that does not respond delays only the sources that use it', async () => {
  const silent = await createModel(first.url, { timeout_seconds: 3_600 });
  const other = await createModel(second.url);
  const waiting = await createSource();
  await app.push(waiting, 'Bitterns boom unseen.');
  first.silentOn = 'Bitterns';
  await name(waiting, silent.name);
  await first.waitForOpenRequests(1);
  const source = await createSource();
  await app.push(source, 'Avocets sweep the mud.');
  await name(source, other.name);
  assert.equal((await untilServing(source, other.name)).embedded, 1);
  assert.equal((await embeddingOf(waiting)).embedded, 0);
  assert.equal(first.hanging.length, 1, 'one job at a time asks a model');
  first.silentOn = undefined;
  for (const response of first.hanging.splice(0)) response.destroy();
  await untilServing(waiting, silent.name);
});

test('what a model does not respond to in time is sent once, and again when the retry of its source is due', async () => {
  const { name: embedder } = await createModel(first.url, { timeout_seconds: 1 });
  const source = await createSource();
  await app.push(source, 'Bitterns boom unseen.');
  first.silentOn = ' ';
  first.hanging = [];
  await name(source, embedder);
  await until(async () => (await embeddingOf(source)).status === 'failed');
  // The document, and a harmless text that tells whether that was the reason.
  assert.equal(first.hanging.length, 2);
  assert.match(String((await embeddingOf(source)).error), /did not respond in time/);
  first.silentOn = undefined;
  await embedDue();
  assert.equal((await untilServing(source, embedder)).embedded, 1);
});

test('prefixes go before questions and passages, and another one for passages embeds all documents again', async () => {
  const prefixes = { query_prefix: 'query: ', passage_prefix: 'passage: ' };
  const { id, name: embedder } = await createModel(first.url, prefixes);
  const source = await createSource({ embedder });
  await app.push(source, 'Ospreys carry fish.');
  await search(source, 'who carries fish');
  assert.deepEqual(first.texts, ['passage: Ospreys carry fish.', 'query: who carries fish']);
  const space = (await spacesOf(source))[0];

  const change = async (body: object) => {
    const changed = await api<Record<string, unknown>>('PATCH', `/api/v1/models/${id}`, { key, body });
    assert.equal(changed.status, 200, changed.text);
    first.texts = [];
    await embedDue();
    return changed.body;
  };
  assert.equal((await change({ query_prefix: null })).query_prefix, undefined);
  await search(source, 'who dives');
  assert.deepEqual(first.texts, ['who dives']);
  assert.deepEqual(await spacesOf(source), [space]);

  await change({ passage_prefix: 'search_document: ' });
  await until(async () => (await spacesOf(source))[0] !== space);
  assert.equal((await untilServing(source, embedder)).embedded, 1);
  assert.equal((await spacesOf(source)).length, 1);
  assert.deepEqual(first.texts, ['search_document: Ospreys carry fish.']);
});

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

test('a service is told what is a question and what is a passage, as Voyage takes it and as Cohere does', async () => {
  const types = { query_input_type: 'query', passage_input_type: 'document' };
  const voyage = await createModel(first.url, { ...types, model: 'voyage-3.5' });
  const cohere = await createModel(second.url, { provider: 'cohere', model: 'embed-v4.0', key: 'own' });
  for (const { name: embedder } of [voyage, cohere]) {
    const source = await createSource({ embedder });
    await app.push(source, 'Grebes dance.');
    assert.equal((await search(source, 'grebes dance')).data.length, 1);
  }
  const model = 'voyage-3.5';
  assert.deepEqual(first.bodies, [
    { model, input: ['Grebes dance.'], input_type: 'document' },
    { model, input: ['grebes dance'], input_type: 'query' },
  ]);
  const asked = { model: 'embed-v4.0', embedding_types: ['float'] };
  assert.deepEqual(second.bodies, [
    { ...asked, texts: ['Grebes dance.'], input_type: 'search_document' },
    { ...asked, texts: ['grebes dance'], input_type: 'search_query' },
  ]);
  const calls = await api<{ data: Call[] }>('GET', `/api/v1/model_calls?model=${cohere.name}`, { key });
  assert.deepEqual(
    calls.body.data.map((call) => [call.provider, call.prompt_tokens]),
    [
      ['cohere', 7],
      ['cohere', 7],
    ],
  );
  // Another type of passages makes other vectors.
  const source = await createSource({ embedder: voyage.name });
  await app.push(source, 'Grebes dive.');
  const [space] = await spacesOf(source);
  const body = { passage_input_type: null };
  first.silentOn = 'dive';
  first.hanging = [];
  assert.equal((await api('PATCH', `/api/v1/models/${voyage.id}`, { key, body })).status, 200);
  assert.equal((await embeddingOf(source)).status, 'running');
  await first.waitForOpenRequests(1);
  assert.equal((await embeddingOf(source)).status, 'running');
  first.silentOn = undefined;
  for (const response of first.hanging.splice(0)) response.destroy();
  await untilServing(source, voyage.name);
  assert.notDeepEqual(await spacesOf(source), [space]);
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
  assert.equal((await api('POST', '/api/v1/models', { key, body })).status, 201);
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
  const calls = await api<{ data: Call[] }>('GET', '/api/v1/model_calls?model=judge', { key });
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
