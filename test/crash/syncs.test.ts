import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { externalDatabase } from '../support/cells-of-process.ts';
import { sendRequest } from '../support/request.ts';
import { reportProgress } from '../support/rounds.ts';
import { startServe } from '../support/serve.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-crash-syncs-'));
chmodSync(dataDir, 0o755);
after(() => rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 }));

const rounds = Number(process.env.CRASH_ROUNDS ?? 2);
const batches = 6;
const documentsPerBatch = 10;
const { settings } = await externalDatabase();
const env = { ...settings, QUARRY_DATA_DIR: dataDir, QUARRY_PARSE_WORKERS: '1' };

type Sync = {
  id: string;
  status: string;
  fence: number;
  next_batch: number;
  cursor: string | null;
  documents: number;
  stats: { written: number; unchanged: number; deleted: number; failed: number };
};

test('the server and the connector die in the middle of a sync: nothing is lost, nothing is done twice', async () => {
  let server = await startServe(env);
  const { secret_key: key } = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as {
    secret_key: string;
  };
  const call = <T>(method: string, path: string, body?: unknown) =>
    sendRequest<T>(server.baseUrl, method, `/api/v1${path}`, { key, ...(body === undefined ? {} : { body }) });
  const org = (await call<{ id: string }>('POST', '/orgs', { name: 'Crash' })).body.id;
  const source = (await call<{ id: string }>('POST', '/knowledge_sources', { type: 'knowledge/documents', org })).body
    .id;
  const upserts = (round: number, batch: number) =>
    Array.from({ length: documentsPerBatch }, (_, i) => ({
      external_id: `${round}-${batch}-${i}`,
      title: `round${round}batch${batch}item${i}`,
      content: { data: `# ${round}/${batch}/${i}\n\n${'Words of a document that is killed. '.repeat(80)}` },
    }));

  for (let round = 0; round < rounds; round++) {
    let sync = (await call<Sync>('POST', `/knowledge_sources/${source}/syncs`, { mode: 'full' })).body;
    for (let number = 1; number <= batches; number++) {
      const body = { fence: sync.fence, upserts: upserts(round, number), cursor: String(number) };
      const path = `/knowledge_syncs/${sync.id}/batches/${number}`;
      const sending = call<Sync>('PUT', path, body).catch(() => undefined);
      const dies = number === 2 + (round % 3);
      // The response of this batch never arrives, whether or not the batch was stored.
      if (dies) await server.kill();
      const sent = await sending;
      if (!dies) assert.equal(sent?.status, 200, sent?.text);
      if (!dies) continue;
      server = await startServe(env);
      assert.equal((await call('PUT', path, body)).status, 200);
      assert.equal((await call('PUT', path, body)).status, 200);
      // The connector dies too. Its successor asks where it was.
      sync = (await call<Sync>('POST', `/knowledge_sources/${source}/syncs`, { mode: 'full', take_over: true })).body;
      assert.deepEqual([sync.next_batch, sync.cursor], [number + 1, String(number)]);
    }
    const counts = { fence: sync.fence, batches, documents: batches * documentsPerBatch, confirm_deletions: true };
    assert.equal((await call('POST', `/knowledge_syncs/${sync.id}/complete`, counts)).status, 200);
    // Once more while the last documents are written, and those of the round before are deleted.
    await server.kill();
    server = await startServe(env);
    const { stats } = await waitForSync(sync.id);
    assert.deepEqual(
      [stats.written, stats.unchanged, stats.failed, stats.deleted],
      [batches * documentsPerBatch, 0, 0, round === 0 ? 0 : batches * documentsPerBatch],
    );
    const { body } = await call<{ total_entries: number }>('GET', `/knowledge_documents?source=${source}&page_size=1`);
    assert.equal(body.total_entries, batches * documentsPerBatch);
    assert.equal(
      (await call<{ documents: { used: number } }>('GET', '/usage')).body.documents.used,
      body.total_entries,
    );
    reportProgress(round + 1, rounds, 'rounds');
  }
  await server.stop();

  async function waitForSync(id: string): Promise<Sync> {
    for (;;) {
      const { body } = await call<Sync>('GET', `/knowledge_syncs/${id}`);
      if (body.status === 'succeeded') return body;
      assert.equal(body.status, 'completing');
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
});
