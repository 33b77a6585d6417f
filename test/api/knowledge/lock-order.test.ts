import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Statement } from '../../../src/db/database.ts';
import { parseId } from '../../../src/lib/ids.ts';
import { type Json, knowledgeOf } from '../../support/knowledge.ts';
import { addStatement, deadlocks, type Locks } from '../../support/lock-order.ts';
import { startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

const server = await startTestServer();
after(() => server.close());
const { app, org } = await server.provision.world();
const knowledge = knowledgeOf(server, { key: app.secretKey });
const { db } = server;

async function untilWaiting(count: number): Promise<void> {
  await until(async () => {
    const waiting = await db`
      select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    return waiting.count >= count;
  });
}

/** Holds the rows that a statement locks until the returned function is called. */
async function hold(rows: Statement): Promise<() => Promise<void>> {
  const held = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const holding = db.begin(async (tx) => {
    await tx`${rows}`;
    held.resolve();
    await release.promise;
  });
  await held.promise;
  return async () => {
    release.resolve();
    await holding;
  };
}

test('a change of the readers of a document waits for its replacement, and they never deadlock', async () => {
  const source = await knowledge.createSource({ org: org.id });
  const document = await knowledge.push(source, 'Lapwings call at dusk.');
  const letGo = await hold(db`select from knowledge_ingestions where status = 'succeeded' order by id for update`);
  const path = `/knowledge_documents/${document}`;
  const change = knowledge.send('PATCH', `${path}/acl`, { grants: [{ principal_type: 'everyone' }] });
  await untilWaiting(1);
  const replacement = knowledge.send<{ id: string }>('PATCH', path, { content: { data: 'Lapwings call at dawn.' } });
  await untilWaiting(2);
  await letGo();
  assert.equal((await change).status, 200);
  assert.equal((await knowledge.waitForIngestion((await replacement).body.id)).status, 'succeeded');
  assert.deepEqual(deadlocks, []);
});

test('the deletion of a file and the replacement of its document by a connector never deadlock', async () => {
  const source = await knowledge.createSource({ org: org.id });
  const uploaded = await knowledge.send<{ id: string }>('POST', '/files', {
    filename: 'curlews.txt',
    content_type: 'text/plain',
    data: Buffer.from('Curlews nest on the moor.').toString('base64'),
  });
  assert.equal(uploaded.status, 201, uploaded.text);
  const file = uploaded.body.id;
  type Sync = { id: string; fence: number; pending: number; stats: { written: number } };
  const started = await knowledge.send<Sync>('POST', `/knowledge_sources/${source}/syncs`, { mode: 'changes' });
  const { id: sync, fence } = started.body;
  const send = async (number: number, upserts: Json[]) => {
    const sent = await knowledge.send('PUT', `/knowledge_syncs/${sync}/batches/${number}`, { fence, upserts });
    assert.equal(sent.status, 200, sent.text);
  };
  const untilWritten = (count: number) =>
    until(async () => {
      const { body } = await knowledge.send<Sync>('GET', `/knowledge_syncs/${sync}`);
      return body.pending === 0 && body.stats.written >= count;
    });
  const content = { data: 'Curlews call at dusk.' };
  await send(1, [
    { external_id: 'nest', file },
    { external_id: 'call', content },
  ]);
  await untilWritten(2);

  // The deletion is the first to wait for the file, and the writer of its document comes behind it.
  const letGo = await hold(db`select from files where id = ${parseId('file', file) ?? ''} for update`);
  const deletion = knowledge.send('DELETE', `/files/${file}`);
  await untilWaiting(1);
  await send(2, [
    { external_id: 'nest', content },
    { external_id: 'call', file },
  ]);
  await untilWaiting(2);
  await letGo();
  assert.equal((await deletion).status, 204);
  await untilWritten(3);
  assert.deepEqual(deadlocks, []);
});

test('the statements of a transaction are refused if they lock the index of a source last, or not at all', () => {
  const ingestion = 'update knowledge_ingestions\n    set stats = $1';
  const document = 'delete from knowledge_documents where app_id = $1';
  const index = 'select languages\n from knowledge_indexes where app_id = $1 for update';
  const check = (...statements: string[]) => {
    const locks: Locks = { hasIndex: false, behind: [] };
    return statements.map((text) => addStatement(locks, text)).find((wrong) => wrong !== undefined);
  };
  assert.match(check(ingestion, index) ?? '', /^This statement locks the index of a source:/);
  assert.match(check(ingestion, document) ?? '', /which is not locked/);
  assert.equal(check(index, ingestion, document), undefined);
  assert.equal(check(ingestion), undefined);
});
