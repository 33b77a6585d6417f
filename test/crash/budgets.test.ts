import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { after, test } from 'node:test';
import { parseId } from '../../src/lib/ids.ts';
import { startAutomationWorker } from '../support/automation-workers.ts';
import { AutomationsClient, graphOf } from '../support/automations.ts';
import { startLanguageModel } from '../support/language-model.ts';
import { reportProgress } from '../support/rounds.ts';
import { startTestServer } from '../support/server.ts';

/*
 * Several processes call a model within one budget, and are killed meanwhile. The budget is never exceeded, and every
 * token that a call used or may have used counts.
 */
const kills = Number(process.env.CRASH_KILLS ?? 2);
const runCount = Number(process.env.CRASH_RUNS ?? 40);
/** Fewer than the 50 of each run together. */
const tokens = 40 * runCount;

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
  const worker = await startAutomationWorker(server, settings);
  workers.push(worker);
  return worker;
}

test('killed processes never exceed a budget together, and what they reserved counts', {
  timeout: 600_000,
}, async () => {
  const app = await server.provision.app();
  const client = new AutomationsClient(server, app);
  const budget = await client.call<{ id: string }>('POST', '/model_budgets', {
    subject: 'app',
    period: 'total',
    tokens,
  });
  assert.equal(budget.status, 201, budget.text);
  const { id } = await client.createAutomation({
    workflow: graphOf({
      ...{ id: 'ask', kind: 'generate', messages: [{ role: 'user', content: 'Hi.' }], tokens: 100 },
    }),
  });
  model.script = () => ({
    respond(response) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const chunk = { choices: [{ index: 0, delta: { content: 'Hello.' }, finish_reason: 'stop' }] };
      const usage = { prompt_tokens: 30, completion_tokens: 20 };
      setTimeout(
        () => response.end(`data: ${JSON.stringify({ ...chunk, usage })}\n\ndata: [DONE]\n\n`),
        randomInt(20, 250),
      );
    },
  });
  const appId = parseId('app', app.app.id) ?? '';
  const used = async () => {
    const [row] = await server.db<[{ tokens: number }?]>`
      select tokens::int from model_budget_uses where app_id = ${appId}`;
    return row?.tokens ?? 0;
  };

  const living = new Set([await startWorker(), await startWorker()]);
  const ids = await Promise.all(Array.from({ length: runCount }, async () => (await client.invoke(id)).id));
  for (let kill = 0; kill < kills; kill++) {
    await new Promise((resolve) => setTimeout(resolve, randomInt(50, 500)));
    assert.ok((await used()) <= tokens);
    const [victim] = living;
    assert.ok(victim);
    living.delete(victim);
    victim.kill('SIGKILL');
    living.add(await startWorker());
    reportProgress(kill + 1, kills, `kills, ${ids.length} runs`);
  }
  const ends = await Promise.all(ids.map((run) => client.waitForEnd(run)));
  const codes = new Set(ends.map(({ status, error }) => error?.code ?? status));
  assert.deepEqual([...codes].toSorted(), ['completed', 'token_budget_exceeded']);

  const calls = await server.db<{ status: string; spent: number; reserved: number }[]>`
    select status, (prompt_tokens + completion_tokens)::int as spent, reserved_tokens::int as reserved
    from model_calls where app_id = ${appId}`;
  const ended = calls.filter(({ status }) => status === 'succeeded' || status === 'failed');
  const killed = calls.filter(({ status }) => !ended.some((each) => each.status === status));
  const least =
    ended.reduce((sum, { spent }) => sum + spent, 0) + killed.reduce((sum, { reserved }) => sum + reserved, 0);
  const total = await used();
  assert.ok(total <= tokens, `${total} of ${tokens} tokens`);
  // A process may be killed before it has written the record of what it reserved, or before it has settled it.
  assert.ok(total >= least, `${total} tokens count, and ${least} were used or reserved`);
  const completed = ends.filter(({ status }) => status === 'completed').length;
  assert.ok(total >= completed * 50, `${total} tokens count for ${completed} runs`);
  assert.ok(ended.filter(({ status }) => status === 'succeeded').length >= completed);
});
