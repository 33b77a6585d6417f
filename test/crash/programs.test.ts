import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { after, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { AutomationsClient } from '../support/automations.ts';
import { basicEnvironment } from '../support/command.ts';
import { programOf } from '../support/programs.ts';
import { reportProgress } from '../support/rounds.ts';
import { startTestServer } from '../support/server.ts';

/*
 * Workers of workflows in code are killed at random moments. `npm run crash` makes 50 kills and 500 runs; npm test makes a
 * short round.
 */
const kills = Number(process.env.CRASH_KILLS ?? 3);
const runCount = Number(process.env.CRASH_RUNS ?? 15);
const workerFile = fileURLToPath(new URL('../support/workflow-worker.ts', import.meta.url));
const workerCount = 2;

const server = await startTestServer();
const app = await server.provision.app();
const workers = new Set<ChildProcess>();
after(async () => {
  for (const one of workers) one.kill('SIGKILL');
  await server.close();
});

async function startWorker(): Promise<void> {
  const one = spawn(process.execPath, [workerFile, server.baseUrl, app.secretKey, 'flow'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: basicEnvironment(),
  });
  await once(one.stdout, 'data');
  workers.add(one);
}

test('killed workers lose no step, and the result of each is recorded once', { timeout: 1_800_000 }, async () => {
  const client = new AutomationsClient(server, app);
  const { id } = await client.createAutomation({ lookup_key: 'flow', workflow: programOf('flow') });
  await Promise.all(Array.from({ length: workerCount }, startWorker));
  const ids: string[] = [];
  const invoking = (async () => {
    for (let n = 0; n < runCount; n++) {
      const { id: run } = await client.invoke(id);
      ids.push(run);
      await client.call('POST', `/automation_runs/${run}/signal`, { name: 'go', payload: n });
    }
  })();
  for (let kill = 1; kill <= kills; kill++) {
    await wait(randomInt(200, 1_500));
    const [victim] = workers;
    assert.ok(victim);
    workers.delete(victim);
    victim.kill('SIGKILL');
    await startWorker();
    reportProgress(kill, kills, 'kills');
  }
  await invoking;
  for (const [n, run] of ids.entries()) {
    const ended = await client.waitForEnd(run);
    assert.equal(ended.status, 'completed', JSON.stringify(ended));
    const entries = await client.journal(run);
    assert.deepEqual(
      entries.map(({ sequence }) => sequence),
      entries.map((_, index) => index + 1),
    );
    const ends = entries.filter(({ type }) => type === 'node_completed');
    const outputs = new Map(ends.map(({ node_id: node, record }) => [node, record.payload]));
    assert.equal(outputs.size, ends.length, 'no step has two results');
    assert.deepEqual(ended.result, {
      ...{ first: outputs.get('first'), left: 'left', right: n, items: [1, 4, 9], id: outputs.get('$id') },
    });
    const commands = entries.filter(({ type, node_id: node }) => type === 'node_started' && node === 'first');
    assert.deepEqual([commands.length, commands[0]?.command_id], [1, outputs.get('first')]);
  }
});
