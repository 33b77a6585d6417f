import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { parseId } from '../../../src/lib/ids.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import { startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

// The recurring job would purge as well.
const server = await startTestServer({ env: { QUARRY_JOB_WORKERS: '0' } });
after(() => server.close());
const { db } = server;

test('what a deleted source leaves is deleted in transactions of their own, and its last trace at the end', async () => {
  const app = await server.provision.app();
  const knowledge = knowledgeOf(server, { key: app.secretKey });
  const org = (await server.provision.org(app)).id;
  const source = await knowledge.createSource({ org });
  await knowledge.push(source, 'Goods may be returned within thirty days.');
  const kept = await knowledge.createSource({ org });
  await knowledge.push(kept, 'Goods may be kept.');
  const [id, other] = [parseId('source', source) ?? '', parseId('source', kept) ?? ''];
  const chunks = async (of: string) =>
    (await db`select from knowledge_chunks where app_id = ${app.app.uuid} and source_id = ${of}`).count;
  await knowledge.send('DELETE', `/knowledge_sources/${source}`);
  assert.equal(await chunks(id), 1);
  const purged = await db.begin(async (tx) => {
    await tx`select from removed_knowledge_sources where app_id = ${app.app.uuid} and source_id = ${id} for update`;
    const purge = server.server.work.tasks.purge_sources?.({}, {} as never);
    await until(async () => {
      // A transaction would see the same activity again and again.
      const waiting = await db`
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
          and strpos(query, 'removed_knowledge_sources') > 0`;
      return waiting.count > 0;
    });
    assert.equal(await chunks(id), 0, 'already committed');
    return { purge };
  });
  await purged.purge;
  const rows = async (table: string) => (await db`select from ${db(table)} where app_id = ${app.app.uuid}`).count;
  assert.deepEqual([await rows('removed_knowledge_sources'), await chunks(other)], [0, 1]);
  assert.ok((await rows('knowledge_segments')) <= 1);
  assert.equal((await knowledge.search(kept, 'goods')).length, 1);
});
