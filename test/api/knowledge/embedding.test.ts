import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { parseId } from '../../../src/lib/ids.ts';
import { startEmbeddingService } from '../../support/embedding-service.ts';
import { type Json, knowledgeOf, type TestIngestion } from '../../support/knowledge.ts';
import { startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

const service = await startEmbeddingService();
const server = await startTestServer({
  env: {
    QUARRY_EMBEDDER: 'openai',
    QUARRY_EMBED_URL: service.url,
    QUARRY_EMBED_MODEL: 'test',
    QUARRY_EMBED_DIMENSIONS: '64',
    QUARRY_EMBED_QUERY_MS: '4000',
  },
});
after(async () => {
  await server.close();
  await service.close();
});
const world = await server.provision.world();
const app = knowledgeOf(server, { key: world.app.secretKey });
const org = { org: world.org.id };
const catchUp = () =>
  server.server.work.tasks.embed_documents?.({ appId: world.app.app.uuid }, {
    jobId: '0',
    signal: new AbortController().signal,
  } as never);

test('a service with /v1/embeddings computes the vectors, and only changed chunks are embedded again', async () => {
  const source = await app.createSource(org);
  const section = (name: string) => `# ${name}\n\n${`A sentence about ${name}. `.repeat(150)}\n\n`;
  const document = await app.push(source, section('Iron') + section('Copper'));
  assert.match((await app.search(source, { query: 'about copper', mode: 'vector' }))[0]?.content ?? '', /Copper/);
  service.texts.length = 0;
  const answer = await app.send<{ id: string }>('PATCH', `/knowledge_documents/${document}`, {
    content: { data: section('Iron') + section('Silver') },
  });
  await app.waitForIngestion(answer.body.id);
  assert.ok(service.texts.length > 0);
  assert.ok(service.texts.every((text) => !text.includes('Iron')));
  assert.match((await app.search(source, { query: 'about silver', mode: 'vector' }))[0]?.content ?? '', /Silver/);
});

test('while the embedder is down a push succeeds, says that vectors are pending, and is found by full text', async () => {
  const source = await app.createSource(org);
  service.broken = 400;
  const pushed = await app.ingest(source, { content: { data: 'Herons stand in shallow water.' } });
  assert.deepEqual([pushed.status, pushed.metadata.embedding], ['succeeded', 'pending']);
  for (const mode of ['fulltext', 'hybrid'])
    assert.equal((await app.search(source, { query: 'heron', mode })).length, 1, mode);
  assert.deepEqual(await app.search(source, { query: 'heron', mode: 'vector' }), []);
  service.broken = undefined;
  await catchUp();
  assert.equal((await app.search(source, { query: 'heron', mode: 'vector' })).length, 1);
  const after = await app.send<{ metadata: Json }>('GET', `/knowledge_ingestions/${pushed.id}`);
  assert.equal(after.body.metadata.embedding, undefined);
});

test('an ingestion stops saying that vectors are pending when its document is deleted before it gets them', async () => {
  const source = await app.createSource(org);
  const isPending = async ({ id }: TestIngestion) =>
    (await app.send<{ metadata: Json }>('GET', `/knowledge_ingestions/${id}`)).body.metadata.embedding === 'pending';
  service.broken = 400;
  const deleted = await app.ingest(source, { content: { data: 'Avocets sweep the mud.' } });
  const replaced = await app.ingest(source, { content: { data: 'Godwits probe the mud.' } });
  assert.ok((await isPending(deleted)) && (await isPending(replaced)));
  service.broken = undefined;
  assert.equal((await app.send('DELETE', `/knowledge_documents/${deleted.metadata.document}`)).status, 204);
  const path = `/knowledge_documents/${replaced.metadata.document}`;
  const again = await app.send<{ id: string }>('PATCH', path, { content: { data: 'Godwits fly far.' } });
  await app.waitForIngestion(again.body.id);
  await server.db`delete from jobs where key like 'embed_documents/%'`;
  // What runs every half minute finds the app, although none of its documents lacks a vector.
  await server.server.work.tasks.embed_documents?.({}, {} as never);
  while ((await isPending(deleted)) || (await isPending(replaced)))
    await new Promise((resolve) => setTimeout(resolve, 20));
});

test('an ingestion queued by a transaction starts, even if the active one ends before the commit', async () => {
  const source = await app.createSource(org);
  const ingest = (data: string, idempotencyKey?: string) =>
    server.api<TestIngestion>('POST', `/api/v1/knowledge_sources/${source}/ingest`, {
      key: world.app.secretKey,
      body: { content: { data }, on_active: 'queue' },
      ...(idempotencyKey && { headers: { 'idempotency-key': idempotencyKey } }),
    });
  service.silentOn = 'Plovers';
  const active = await ingest(`Plovers ${'run along the shore. '.repeat(20_000)}`);
  await service.waitForOpenRequests(1);
  await server.db`create function wait_here() returns trigger language plpgsql as
    'begin perform pg_advisory_xact_lock(4711); return new; end'`;
  await server.db`create trigger wait_here before update of status on idempotency_records
    for each row execute function wait_here()`;
  const lock = await server.db.reserve();
  await lock`select pg_advisory_lock(4711)`;
  const queued = ingest('Sanderlings follow the waves.', 'queued');
  const waiting = (event: string) => server.db`
    select 1 from pg_stat_activity where datname = current_database() and wait_event = ${event}`;
  await until(async () => (await waiting('advisory')).length > 0);

  service.silentOn = undefined;
  for (const response of service.hanging.splice(0)) response.destroy();
  const hasEnded = async () =>
    (await app.send<TestIngestion>('GET', `/knowledge_ingestions/${active.body.id}`)).body.status === 'succeeded';
  // Another transaction waits for the one that waits here: the end of the active ingestion, or nothing.
  await until(async () => (await hasEnded()) || (await waiting('transactionid')).length > 0);
  await lock`select pg_advisory_unlock(4711)`;
  lock.release();
  await server.db`drop trigger wait_here on idempotency_records`;
  assert.equal((await queued).status, 201);
  assert.equal((await app.waitForIngestion((await queued).body.id)).status, 'succeeded');
});

test('a document that the service always refuses keeps no other waiting, and is abandoned with the reason', async () => {
  const source = await app.createSource(org);
  service.broken = 400;
  const refused = await app.ingest(source, { content: { data: 'Ospreys dive for fish.' } });
  const other = await app.ingest(source, { content: { data: 'Kestrels hover over fields.' } });
  const embeddingOf = async ({ id }: { id: string }) =>
    (await app.send<{ metadata: Json }>('GET', `/knowledge_ingestions/${id}`)).body.metadata;
  service.refusedOn = 'Ospreys';
  service.broken = undefined;
  try {
    await catchUp();
    assert.equal((await app.search(source, { query: 'kestrel', mode: 'vector' })).length, 1);
    assert.equal((await embeddingOf(other)).embedding, undefined);
    assert.equal((await embeddingOf(refused)).embedding, 'pending');
    // It is not due again: the next catch-up leaves it.
    const sent = service.refused;
    await catchUp();
    assert.equal(service.refused, sent);
    for (let n = 0; n < 10 && (await embeddingOf(refused)).embedding === 'pending'; n++) {
      await server.db`update knowledge_embedding_refusals set retry_at = now() where retry_at is not null`;
      await catchUp();
    }
    const { embedding, embedding_error: reason } = await embeddingOf(refused);
    assert.equal(embedding, 'failed');
    assert.match(String(reason), /400/);
    assert.equal((await app.search(source, { query: 'osprey' })).length, 1);

    const document = `/knowledge_documents/${refused.metadata.document}`;
    const replaced = await app.send<{ id: string }>('PATCH', document, { content: { data: 'Buzzards circle.' } });
    assert.equal((await app.waitForIngestion(replaced.body.id)).metadata.embedding, undefined);
    assert.equal((await server.db`select from knowledge_embedding_refusals`).length, 0);
  } finally {
    service.refusedOn = undefined;
  }
});

test('documents of another model are embedded again, and their old vectors are deleted', async () => {
  const source = await app.createSource(org);
  await app.push(source, 'Storks nest on roofs.');
  await server.db`update knowledge_vectors set model = 'older' where app_id = ${world.app.app.uuid}`;
  await server.db`update knowledge_codes set model = 'older' where app_id = ${world.app.app.uuid}`;
  await server.db`update knowledge_documents set embedding_model = 'older' where app_id = ${world.app.app.uuid}`;
  assert.equal((await app.search(source, { query: 'stork' })).length, 1);
  await catchUp();
  const models = await server.db<{ model: string }[]>`select distinct model from knowledge_vectors`;
  assert.deepEqual(
    models.map(({ model }) => model),
    ['openai:test:64'],
  );
  assert.equal((await app.search(source, { query: 'stork', mode: 'vector' })).length, 1);
});

test('a search whose query gets no vector in time returns the results of full text, and says so', async () => {
  const source = await app.createSource(org);
  await app.push(source, 'Bitterns boom at dusk.');
  service.silentOn = 'bittern';
  try {
    const search = (mode: string) =>
      app.send<Json>('POST', `/knowledge_sources/${source}/search`, { query: 'bittern', mode });
    for (const mode of ['hybrid', 'vector']) {
      const { status, body } = await search(mode);
      assert.equal(status, 200);
      assert.equal((body.data as unknown[]).length, mode === 'hybrid' ? 1 : 0);
      assert.match(String(body.vectors_unavailable), /not embedded within 4000 ms/);
    }
    assert.equal((await search('fulltext')).body.vectors_unavailable, undefined);
  } finally {
    service.silentOn = undefined;
    for (const response of service.hanging.splice(0)) response.destroy();
  }
  const { body } = await app.send<Json>('POST', `/knowledge_sources/${source}/search`, { query: 'bittern' });
  assert.equal(body.vectors_unavailable, undefined);
});

test('a document that cannot take its vectors does not keep the others of its app waiting forever', async () => {
  const source = await app.createSource(org);
  service.broken = 400;
  const document = await app.push(source, 'Grebes dance on the lake.');
  service.broken = undefined;
  const uuids = [parseId('source', source) ?? '', parseId('document', document) ?? ''];
  await server.db`delete from knowledge_indexes where source_id = ${uuids[0]}`;
  await catchUp();
  const [row] = await server.db`select embedding_model from knowledge_documents where id = ${uuids[1]}`;
  assert.deepEqual(row, { embeddingModel: null });
  await server.db`delete from knowledge_documents where id = ${uuids[1]}`;
});
