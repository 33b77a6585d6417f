import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { after, test } from 'node:test';
import { startAutomationWorker } from '../support/automation-workers.ts';
import { AutomationsClient, graphOf } from '../support/automations.ts';
import { startLanguageModel, toolCallEvents } from '../support/language-model.ts';
import { reportProgress } from '../support/rounds.ts';
import { startTestServer } from '../support/server.ts';

/*
 * Workers are killed while models call tools. Each run calls an operation and an automation three times each, in three
 * turns; every call has its effect exactly once, and a call that was completed is in no journal twice.
 */
const kills = Number(process.env.CRASH_KILLS ?? 2);
const runCount = Number(process.env.CRASH_RUNS ?? 8);
const turns = 3;

const model = await startLanguageModel();
const settings = { QUARRY_LLM_URL: model.url, QUARRY_LLM_MODEL: 'small' };
const server = await startTestServer({ env: { ...settings, QUARRY_JOB_WORKERS: '0' } });
const workers: ChildProcess[] = [];
after(async () => {
  for (const worker of workers) worker.kill('SIGKILL');
  await server.close();
  await model.close();
});

async function startWorker(): Promise<ChildProcess> {
  const worker = await startAutomationWorker(server, {
    ...settings,
    // A worker serves no API: its tools reach one of their own.
    ...{ QUARRY_ROLE: 'worker', QUARRY_WORKER_PORT: '0' },
    ...{ DATABASE_URL: 'postgres://127.0.0.1/replaced', QUARRY_PUBLIC_URL: 'http://127.0.0.1:1' },
  });
  workers.push(worker);
  return worker;
}

test('killed workers lose no call of a tool, and make none twice', { timeout: 600_000 }, async () => {
  const app = await server.provision.app();
  const user = await server.provision.user(app);
  const client = new AutomationsClient(server, app);
  await client.createAutomation({
    lookup_key: 'note',
    workflow: graphOf(
      { id: 'nap', kind: 'wait', seconds: 0.05, on_success: 'note' },
      { id: 'note', kind: 'kv_set', user: user.id, key: 'note/{{$run.id}}', value: '{{$.of}}' },
    ),
  });
  const workflow = graphOf({
    ...{ id: 'ask', kind: 'generate', messages: [{ role: 'user', content: '{{$run.id}}' }] },
    tools: [{ operation: 'kv_increment', arguments: { user: user.id } }, { automation: 'note' }],
  });
  const { id } = await client.createAutomation({ workflow });
  model.script = ({ messages }) => {
    const turn = messages.filter(({ role }) => role === 'assistant').length;
    const run = messages[0]?.content ?? '';
    if (turn === turns) return `Done with ${run}.`;
    const calls = [['kv_increment', { key: `count/${run}` }] as const, ['note', { of: run, turn }] as const];
    return {
      raw: toolCallEvents(
        calls.map(([name, given]) => [name, { ...given, ...(name === 'note' ? {} : { by: turn + 1 }) }]),
      ),
    };
  };

  const living = new Set([await startWorker(), await startWorker()]);
  const ids = await Promise.all(Array.from({ length: runCount }, async () => (await client.invoke(id)).id));
  for (let kill = 0; kill < kills; kill++) {
    await new Promise((resolve) => setTimeout(resolve, randomInt(50, 700)));
    const [victim] = living;
    assert.ok(victim);
    living.delete(victim);
    victim.kill('SIGKILL');
    living.add(await startWorker());
    reportProgress(kill + 1, kills, `kills, ${ids.length} runs`);
  }
  const notes = new Map<string, number>();
  for (const run of ids) assert.equal((await client.waitForEnd(run)).status, 'completed');
  for (let page = 1; ; page++) {
    const listed = await client.call<{ data: { key: string; value: string }[]; total_pages: number }>(
      'GET',
      `/kv?user=${user.id}&prefix=note/&page=${page}`,
    );
    for (const { value } of listed.body.data) notes.set(value, (notes.get(value) ?? 0) + 1);
    if (page >= listed.body.total_pages) break;
  }
  for (const run of ids) {
    const count = await client.call<{ value: string }>('GET', `/kv/count%2F${run}?user=${user.id}`);
    assert.equal(count.body.value, '6', `increments of ${run}: 1 + 2 + 3`);
    assert.equal(notes.get(run), turns, `runs of the automation for ${run}`);
    const journal = await client.journal(run);
    const completed = journal.filter(({ type, node_id }) => type === 'node_completed' && node_id?.includes('/'));
    const received = journal.filter(({ type }) => type === 'tool_calls_received');
    assert.deepEqual([completed.length, received.length], [2 * turns, turns], run);
    assert.equal(new Set(completed.map(({ command_id }) => command_id)).size, completed.length);
  }
});
