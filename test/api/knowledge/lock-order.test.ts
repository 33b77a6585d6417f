import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { knowledgeOf } from '../../support/knowledge.ts';
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

/** Holds the ended ingestions of a source until the returned function is called. */
async function holdEnded(): Promise<() => Promise<void>> {
  const held = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const holding = db.begin(async (tx) => {
    await tx`select from knowledge_ingestions where status = 'succeeded' order by id for update`;
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
  const letGo = await holdEnded();
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
