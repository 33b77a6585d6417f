import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { externalDatabase } from '../support/cells-of-process.ts';
import { startEmbeddingService } from '../support/embedding-service.ts';
import type { TestIngestion } from '../support/knowledge.ts';
import { sendRequest } from '../support/request.ts';
import { reportProgress } from '../support/rounds.ts';
import { startServe } from '../support/serve.ts';
import { until } from '../support/until.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-crash-knowledge-'));
chmodSync(dataDir, 0o755);
const service = await startEmbeddingService();
after(async () => {
  await service.close();
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
});

/** The number of kills in one run. `npm run crash` makes 20. */
const rounds = Number(process.env.CRASH_ROUNDS ?? 1);
const inBatch = 30;
/** Documents that are pushed one by one and wait behind the batch. */
const pushed = 10;
const documentsPerRound = inBatch + pushed;
const { settings } = await externalDatabase();
const env = { ...settings, QUARRY_DATA_DIR: dataDir, QUARRY_PARSE_WORKERS: '1', QUARRY_FETCH_ALLOW: '127.0.0.1' };

type Call = <T>(method: string, path: string, body?: unknown) => Promise<{ status: number; body: T; text: string }>;
/** Work that a kill interrupts. It is started before the kill; the function waits until it has ended, and checks it. */
type Interrupted = (round: number) => Promise<() => Promise<void>>;

test('ingestions, a restore and new vectors resume after their server is killed: all is done, nothing twice', async () => {
  let server = await startServe(env);
  const { secret_key: key } = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as {
    secret_key: string;
  };
  const call: Call = <T>(method: string, path: string, body?: unknown) =>
    sendRequest<T>(server.baseUrl, method, `/api/v1${path}`, { key, ...(body === undefined ? {} : { body }) });
  const org = (await call<{ id: string }>('POST', '/orgs', { name: 'Crash' })).body.id;
  const source = (await call<{ id: string }>('POST', '/knowledge_sources', { type: 'knowledge/documents', org })).body
    .id;
  const works = [await prepareEmbedding(call, org), await prepareRestore(call, org)];
  let before = 0;
  for (let round = 0; round < rounds; round++) {
    const documents = Array.from({ length: documentsPerRound }, (_item, i) => ({
      // The content passes the parsers and has several chunks, so that a kill can hit every step.
      content: {
        data: Buffer.from(
          `# Round ${round} item ${i}\n\n${'Words of a document that is killed. '.repeat(120)}`,
        ).toString('base64'),
        data_encoding: 'base64',
        filename: `${round}-${i}.md`,
      },
      title: `round${round}item${i}`,
    }));
    const path = `/knowledge_sources/${source}/ingest`;
    const started = [await call<TestIngestion>('POST', `${path}/batch`, { items: documents.slice(0, inBatch) })];
    for (const document of documents.slice(inBatch))
      started.push(await call<TestIngestion>('POST', path, { ...document, on_active: 'queue' }));
    for (const { status, text } of started) assert.equal(status, 201, text);
    // A different moment in each round: between no document done and nearly all done.
    const share = ((round + 2) % 5) / 5;
    const count = async () =>
      (await call<{ total_entries: number }>('GET', `/knowledge_documents?source=${source}&page_size=1`)).body
        .total_entries;
    while ((await count()) < before + documentsPerRound * share) await new Promise((resolve) => setTimeout(resolve, 5));
    const checks: (() => Promise<void>)[] = [];
    for (const work of works) checks.push(await work(round));
    await server.kill();
    service.silentOn = undefined;
    server = await startServe(env);
    const written = new Set<unknown>();
    for (const { body } of started) {
      const { status, metadata } = await waitForIngestion(body.id);
      assert.equal(status, 'succeeded', JSON.stringify(metadata));
      for (const { document } of metadata.items ?? [metadata]) written.add(document);
    }
    assert.equal(written.size, documentsPerRound);
    before += documentsPerRound;
    reportProgress(round + 1, rounds, 'kills');
    for (const check of checks) await check();
    assert.equal(await count(), before);
    const { used } = (await call<{ documents: { used: number } }>('GET', '/usage')).body.documents;
    assert.equal(used, before + works.length * fewDocuments);
    const found = await call<{ data: { title: string }[] }>('POST', `/knowledge_sources/${source}/search`, {
      query: `round${round}item7`,
      mode: 'hybrid',
    });
    assert.equal(found.body.data[0]?.title, `round${round}item7`);
  }
  await server.stop();

  async function waitForIngestion(id: string): Promise<TestIngestion> {
    for (;;) {
      const { body } = await call<TestIngestion>('GET', `/knowledge_ingestions/${id}`);
      if (body.status === 'succeeded' || body.status === 'failed') return body;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
});

const fewDocuments = 12;
const batchTexts = 4;

async function fill(call: Call, source: string, text: (at: number) => string): Promise<string[]> {
  const documents: string[] = [];
  for (let at = 0; at < fewDocuments; at++)
    documents.push(await ingest(call, 'POST', `/knowledge_sources/${source}/ingest`, text(at)));
  return documents;
}

/** Returns the document. */
async function ingest(call: Call, method: string, path: string, data: string): Promise<string> {
  const started = await call<TestIngestion>(method, path, { content: { data } });
  assert.ok(started.status < 300, started.text);
  let ingestion = started.body;
  await until(async () => {
    ingestion = (await call<TestIngestion>('GET', `/knowledge_ingestions/${ingestion.id}`)).body;
    return ingestion.status === 'succeeded';
  });
  return ingestion.metadata.document ?? '';
}

/** Another embedder: only the batch in flight is sent twice, and what it has used stays true. */
async function prepareEmbedding(call: Call, org: string): Promise<Interrupted> {
  type Embedding = { serving: string | null; embedded: number; tokens: number; cost: number };
  const price = 2_000_000;
  const source = (await call<{ id: string }>('POST', '/knowledge_sources', { type: 'knowledge/documents', org })).body
    .id;
  await fill(call, source, (at) => `Bird number ${at} sings.`);
  const read = async () => (await call<Embedding>('GET', `/knowledge_sources/${source}/embedding`)).body;

  return async (round) => {
    const name = `embedder-${round}`;
    const made = await call('POST', '/models', {
      ...{ name, kind: 'embedding', provider: 'openai', model: name, url: service.url, dimensions: 64 },
      ...{ batch_texts: batchTexts, prices: { input: price, output: 0 }, timeout_seconds: 3_600 },
    });
    assert.equal(made.status, 201, made.text);
    Object.assign(service, { texts: [], hanging: [] });
    // The batches before the one that hangs were written, because each follows the one before.
    const whole = 1 + (round % (fewDocuments / batchTexts - 1));
    service.alter = () => {
      if (service.texts.length === whole * batchTexts) service.silentOn = 'Bird';
    };
    await call('PATCH', `/knowledge_sources/${source}`, { embedder: name });
    await service.waitForOpenRequests(1);
    service.alter = undefined;

    return async () => {
      await until(async () => (await read()).serving === name);
      const { embedded, tokens, cost } = await read();
      assert.equal(embedded, fewDocuments);
      assert.equal(service.texts.length, fewDocuments);
      assert.equal(new Set(service.texts).size, fewDocuments);
      const calls = await call<{ data: { prompt_tokens: number }[] }>(
        'GET',
        `/model_calls?model=${name}&status=succeeded`,
      );
      assert.equal(calls.body.data.length, fewDocuments / batchTexts);
      assert.equal(
        tokens,
        calls.body.data.reduce((sum, each) => sum + each.prompt_tokens, 0),
      );
      assert.equal(cost, (tokens * price) / 1_000_000);
      const query = { query: 'Bird number 7 sings.', mode: 'vector', max_results: fewDocuments };
      const found = await call<{ data: { content: string }[] }>('POST', `/knowledge_sources/${source}/search`, query);
      assert.equal(found.body.data[0]?.content, query.query, found.text);
    };
  };
}

/** A source is restored to a time: each document has its text, and none is written twice. */
async function prepareRestore(call: Call, org: string): Promise<Interrupted> {
  const body = { type: 'knowledge/documents', org, version_retention_days: 30 };
  const source = (await call<{ id: string }>('POST', '/knowledge_sources', body)).body.id;
  const documents = await fill(call, source, (at) => `What ${at} was.`);
  const third = fewDocuments / 3;
  const newest = async () => {
    const path = `/knowledge_sources/${source}/ingestions?page_size=1`;
    return (await call<{ data: TestIngestion[] }>('GET', path)).body.data[0];
  };

  return async (round) => {
    const at = new Date().toISOString();
    for (const document of documents.slice(0, third))
      await ingest(call, 'PATCH', `/knowledge_documents/${document}`, `Changed in ${round}.`);
    for (const document of documents.slice(third, 2 * third)) await call('DELETE', `/knowledge_documents/${document}`);
    for (let extra = 0; extra < third; extra++)
      await ingest(call, 'POST', `/knowledge_sources/${source}/ingest`, `Extra ${round}/${extra}.`);
    // The response may never arrive.
    void call('POST', `/knowledge_sources/${source}/restore`, { at }).catch(() => undefined);
    const steps = 1 + (round % (fewDocuments - 1));
    await until(async () => {
      const { status, metadata, stats } = (await newest()) ?? {};
      if (metadata?.restored_to === undefined) return false;
      return status === 'succeeded' || Number(stats?.documents) + Number(stats?.removed) >= steps;
    });

    return async () => {
      await until(async () => (await newest())?.status === 'succeeded');
      const { stats } = (await newest()) ?? {};
      assert.deepEqual([stats?.documents, stats?.removed], [2 * third, third], JSON.stringify(stats));
      for (const [number, document] of documents.entries()) {
        const { content } = (await call<{ content: string }>('GET', `/knowledge_documents/${document}/content`)).body;
        assert.equal(content, `What ${number} was.`);
        const { version } = (await call<{ version: number }>('GET', `/knowledge_documents/${document}`)).body;
        if (number < third) assert.equal(version, 3 + 2 * round);
      }
      const all = await call<{ total_entries: number }>('GET', `/knowledge_documents?source=${source}`);
      assert.equal(all.body.total_entries, fewDocuments);
    };
  };
}
