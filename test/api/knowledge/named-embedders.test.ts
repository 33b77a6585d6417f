import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { parseId } from '../../../src/lib/ids.ts';
import { type ModelCall, startNamedEmbedders } from '../../support/named-embedders.ts';
import { until } from '../../support/until.ts';

/* How a source embeds whose embedder is a model of the registry. */

const it = await startNamedEmbedders();
after(it.close);
const {
  createModel,
  createSource,
  name,
  embeddingOf,
  embedDue,
  untilServing,
  search,
  spacesOf,
  first,
  second,
  server,
  world,
  key,
  app,
  org,
} = it;
const { api } = it.server;

test('a model for embeddings is checked, and is not a model that writes text', async () => {
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
  const calls = await api<{ data: ModelCall[] }>('GET', `/api/v1/model_calls?model=${embedder}`, { key });
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

test('the vectors of another model are deleted in batches, after searches use the new ones, and all of them', async () => {
  const source = await createSource();
  await app.push(source, 'Herons wade.');
  const { name: embedder } = await createModel(first.url, { batch_texts: 3 });
  const id = parseId('source', source) ?? '';
  await server.db`update knowledge_indexes set next_ordinal = 5000 where source_id = ${id}`;
  await server.db`insert into knowledge_vectors (app_id, source_id, ordinal, model, content)
    select app_id, id, n, 'left', '' from knowledge_sources, generate_series(0, 4999) n where id = ${id}`;
  const left = async () =>
    (await server.db`select from knowledge_vectors where source_id = ${id} and model = 'left'`).count;
  await server.db.begin(async (tx) => {
    await tx`select from knowledge_vectors where source_id = ${id} and ordinal = 4500 and model = 'left' for update`;
    await name(source, embedder);
    await until(async () => (await left()) < 5_000);
    const during = await embeddingOf(source);
    assert.deepEqual([during.serving, during.status], [embedder, 'running']);
  });
  await untilServing(source, embedder);
  assert.equal(await left(), 0);
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
  const calls = await api<{ data: ModelCall[] }>('GET', `/api/v1/model_calls?model=${cohere.name}`, { key });
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
