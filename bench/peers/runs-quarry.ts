import { setTimeout } from 'node:timers/promises';
import { openDatabase } from '../../src/db/database.ts';
import { parseId } from '../../src/lib/ids.ts';
import type { OwnServer } from './own-server.ts';
import { callEach, ownVersion, type RunsPeer } from './row.ts';

const write = (step: number) => ({
  id: `step${step}`,
  kind: 'kv_set',
  user: '{{$.user}}',
  key: `{{$.n}}/${step}`,
  value: 'seen',
  on_success: step < 3 ? `step${step + 1}` : 'done',
});
const workflow = {
  kind: 'WorkflowGraph',
  version: 1,
  start_node: 'start',
  nodes: [
    { id: 'start', kind: 'trigger', on_success: 'step1' },
    ...[1, 2, 3].map(write),
    { id: 'done', kind: 'complete', result: { n: '{{$.n}}' } },
  ],
};

export async function startQuarryRuns(server: OwnServer): Promise<RunsPeer> {
  const db = openDatabase(server.address, { poolSize: 1, applicationName: 'bench' });
  const { id: user } = await server.post<{ id: string }>('/users', { email: 'bench@example.test', name: 'Bench' });
  const graph = { name: 'bench', type: 'invoked', workflow };
  const { id: automation } = await server.post<{ id: string }>('/automations', graph);
  await server.post(`/automations/${automation}/activate`);
  const automationId = parseId('automation', automation) ?? '';
  let started = 0;
  const invoke = () =>
    server.post<{ id: string }>(`/automations/${automation}/invoke`, { payload: { n: started++, user } });
  const completed = async () => {
    const [row] = await db<[{ count: number }]>`
      select count(*) from automation_runs where automation_id = ${automationId} and status = 'completed'`;
    return row.count;
  };
  return {
    program: 'Quarry, a graph of a trigger, three writes and an end',
    version: ownVersion,
    guarantees:
      'each step and its row in one fsynced commit, with its neighbours; a journal of each run; apps separated; started over HTTP',
    async runMany(count) {
      await callEach(16, count, invoke);
      while ((await completed()) < started) await setTimeout(20);
    },
    async runOne() {
      const { id } = await invoke();
      const path = `${server.origin}/api/v1/automation_runs/${id}/stream`;
      // The stream ends with the run.
      const events = await (await fetch(path, { headers: server.headers })).text();
      if (!events.includes('"status":"completed"')) throw new Error(`The run did not complete: ${events}`);
    },
    async check() {
      const [row] = await db<[{ count: number }]>`select count(*) from kv_entries where value = 'seen'`;
      if (row.count !== 3 * started || (await completed()) !== started)
        throw new Error(`There are ${row.count} rows of ${started} runs.`);
    },
    close: () => db.end(),
  };
}
