import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { TestIngestion } from '../support/knowledge.ts';
import { sendRequest } from '../support/request.ts';
import { reportProgress } from '../support/rounds.ts';
import { startServe } from '../support/serve.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-crash-knowledge-'));
chmodSync(dataDir, 0o755);
after(() => rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 }));

/** The number of kills in one run. `npm run crash` makes 20. */
const rounds = Number(process.env.CRASH_ROUNDS ?? 1);
const inBatch = 30;
/** Documents that are pushed one by one and wait behind the batch. */
const pushed = 10;
const documentsPerRound = inBatch + pushed;
const env = { QUARRY_DATA_DIR: dataDir, QUARRY_PARSE_WORKERS: '1' };

test('an ingestion resumes after its server is killed: every document exists once, none is partial', async () => {
  let server = await startServe(env);
  const { secret_key: key } = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as {
    secret_key: string;
  };
  const call = <T>(method: string, path: string, body?: unknown) =>
    sendRequest<T>(server.baseUrl, method, `/api/v1${path}`, { key, ...(body === undefined ? {} : { body }) });
  const org = (await call<{ id: string }>('POST', '/orgs', { name: 'Crash' })).body.id;
  const source = (await call<{ id: string }>('POST', '/knowledge_sources', { type: 'knowledge/documents', org })).body
    .id;
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
    await server.kill();
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
    assert.equal(await count(), before);
    assert.equal((await call<{ documents: { used: number } }>('GET', '/usage')).body.documents.used, before);
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
