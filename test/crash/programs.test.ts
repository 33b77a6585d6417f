import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { findCluster } from '../../src/db/embedded.ts';
import { findPostmaster } from '../../src/db/postmaster.ts';
import { AutomationsClient } from '../support/automations.ts';
import { openBreakingProxy } from '../support/breaking-proxy.ts';
import { externalDatabase } from '../support/cells-of-process.ts';
import { basicEnvironment } from '../support/command.ts';
import { findFreePort } from '../support/free-port.ts';
import { endWithThisProcess } from '../support/left-behind.ts';
import { programOf } from '../support/programs.ts';
import { type ApiOptions, type ApiResponse, sendRequest } from '../support/request.ts';
import { reportProgress } from '../support/rounds.ts';
import { startServe } from '../support/serve.ts';
import { startWatch } from '../support/speed.ts';

/*
 * Workers of workflows in code, the server and its PostgreSQL are killed in turn at random moments. `npm run crash` makes
 * 50 kills and 500 runs; npm test makes a short round. CRASH_KILLS and CRASH_RUNS make it as long as wanted. Functions
 * that a webhook wakes are killed in the same way, except in npm test: their claims last for 30 seconds.
 */
const kills = Number(process.env.CRASH_KILLS ?? 1);
const runCount = Number(process.env.CRASH_RUNS ?? 8);
const workerFile = fileURLToPath(new URL('../support/workflow-worker.ts', import.meta.url));
const workerCount = 2;
const lanes = 8;
/** The runs of so many kills are in progress at a time. */
const killsBehind = 8;
const patienceMs = 300_000;
const timeoutMs = 1_800_000 + 20_000 * kills;
const external = await externalDatabase();
const victims = (['worker', 'postgres', 'server'] as const).filter(
  (victim) => victim !== 'postgres' || external.target === undefined,
);

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-crash-programs-'));
chmodSync(dataDir, 0o755);
const serve = () =>
  startServe({
    ...{ QUARRY_DATA_DIR: dataDir, QUARRY_LOG_LEVEL: 'silent', QUARRY_FETCH_ALLOW: '127.0.0.1' },
    ...external.settings,
  });
let server = await serve();
/** Workers keep its address when the server gets another one. */
const proxy = await openBreakingProxy(server.baseUrl);
const { secret_key: secretKey } = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as {
  secret_key: string;
};
const workers = new Set<ChildProcess>();
after(async () => {
  await proxy.close();
  await server.stop();
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
});

/** Repeats a request until the server has answered it. */
async function api<T>(method: string, path: string, options?: ApiOptions): Promise<ApiResponse<T>> {
  for (const watch = startWatch(); ; await wait(50)) {
    const answer = await sendRequest<T>(server.baseUrl, method, path, options).catch(() => undefined);
    if (answer !== undefined && answer.status < 500) return answer;
    if (watch.passedMs() > patienceMs) throw new Error(`${method} ${path}: ${answer?.text ?? 'no response'}`);
  }
}

/** What executes the runs: the arguments of its process. */
type Executor = readonly [string, string, string];

async function startWorker(executor: Executor): Promise<void> {
  const one = endWithThisProcess(
    spawn(process.execPath, [workerFile, ...executor], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: basicEnvironment(),
    }),
  );
  await once(one.stdout, 'data');
  workers.add(one);
}

function endWorkers(): void {
  for (const one of workers) one.kill('SIGKILL');
  workers.clear();
}

async function kill(victim: (typeof victims)[number], executor: Executor): Promise<void> {
  if (victim === 'worker') {
    const [one] = workers;
    assert.ok(one);
    workers.delete(one);
    one.kill('SIGKILL');
    await once(one, 'exit');
    return startWorker(executor);
  }
  if (victim === 'server') await server.kill();
  else process.kill(findPostmaster(findCluster(realpathSync(dataDir)))?.pid ?? 0, 'SIGKILL');
  await server.ended;
  server = await serve();
  proxy.target = server.baseUrl;
}

test('whatever is killed, no step is lost, and the result of each is recorded once', {
  timeout: timeoutMs,
}, async () => {
  const client = new AutomationsClient({ api }, { secretKey });
  const { id } = await client.createAutomation({ lookup_key: 'flow', workflow: programOf('flow') });
  const executor = [proxy.url, secretKey, 'flow'] as const;
  await Promise.all(Array.from({ length: workerCount }, () => startWorker(executor)));
  await crash(client, id, executor).finally(endWorkers);
});

test('the same for functions', {
  timeout: timeoutMs,
  skip: kills > 1 ? false : 'npm run crash kills functions',
}, async () => {
  const client = new AutomationsClient({ api }, { secretKey });
  const { id } = await client.createAutomation({ lookup_key: 'hosted', workflow: programOf('hosted') });
  const port = await findFreePort();
  const url = `http://127.0.0.1:${port}/`;
  const { body } = await client.call<{ secret: string }>('POST', '/webhooks', { url, automations: ['hosted'] });
  const executor = [String(port), body.secret, 'hosted'] as const;
  await startWorker(executor);
  await crash(client, id, executor).finally(endWorkers);
});

async function crash(client: AutomationsClient, id: string, executor: Executor): Promise<void> {
  const ids: string[] = [];
  const invoke = async (n: number) => {
    const { id: run } = await client.invoke(id, { idempotency_key: `${executor[2]}-${n}` });
    ids[n] = run;
    await client.call('POST', `/automation_runs/${run}/signal`, { name: 'go', payload: n });
  };
  const killSoon = async (n: number) => {
    await wait(randomInt(200, 1_500));
    await kill(victims[n % victims.length] ?? 'worker', executor);
  };
  // Each kill hits its share of the runs, and those of a few kills before: a slow machine falls no further behind.
  const shareOf = (n: number) => Math.max(0, Math.floor((n * runCount) / kills));
  const check = (from: number, to: number) => inLanes(from, to, (n) => checkRun(client, ids[n] ?? '', n));
  for (let n = 1; n <= kills; n++) {
    const checked = check(shareOf(n - killsBehind - 1), shareOf(n - killsBehind));
    await Promise.all([inLanes(shareOf(n - 1), shareOf(n), invoke), checked, killSoon(n)]);
    reportProgress(n, kills, 'kills');
  }
  await check(shareOf(kills - killsBehind), runCount);
}

/** Several at a time: one after the other, most of the time would go by between requests. */
async function inLanes(from: number, to: number, work: (n: number) => Promise<void>): Promise<void> {
  let next = from;
  const lane = async () => {
    while (next < to) await work(next++);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

async function checkRun(client: AutomationsClient, run: string, n: number): Promise<void> {
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
