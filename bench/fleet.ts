/**
 * Throughput and latency of N http processes, and of M workers, over one external PostgreSQL.
 *   node bench/fleet.ts [--seconds 8] [--counts 1,2,4] [--connections 32] [--runs 1000]
 * Processes start as in production; clients and PostgreSQL are on the same machine, which is the bound where it has few
 * cores. Requests: PUT and GET of entries in turns, over connections that are spread over all http processes. Jobs: runs
 * of three nodes that wait when the workers start, and then some that come one after the other. About two minutes.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import autocannon from 'autocannon';
import { openDatabase } from '../src/db/database.ts';
import { startEmbeddedPostgres } from '../src/db/embedded.ts';
import { createLogger } from '../src/lib/log.ts';
import { stopPostgresWithThisProcess } from '../test/support/left-behind.ts';
import { type ServedProcess, startServe } from '../test/support/serve.ts';
import { sendRequest } from '../test/support/server.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '8' },
    counts: { type: 'string', default: '1,2,4' },
    connections: { type: 'string', default: '32' },
    runs: { type: 'string', default: '1000' },
  },
});
const counts = values.counts.split(',').map(Number);
const runsMax = Number(values.runs);
const paced = 60;
const pacedEveryMs = 50;
const graph = {
  ...{ kind: 'WorkflowGraph', version: 1, start_node: 'start' },
  nodes: [
    { id: 'start', kind: 'trigger', on_success: 'note' },
    { id: 'note', kind: 'kv_set', user: '{{$.user}}', key: 'n/{{$.n}}', value: 'seen', on_success: 'done' },
    { id: 'done', kind: 'complete', result: {} },
  ],
};

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-bench-'));
stopPostgresWithThisProcess(dataDir);
const postgres = await startEmbeddedPostgres({ dataDir, log: createLogger('error') });
const { host, port, database, username } = postgres.address;
const env = {
  DATABASE_URL: `postgres://${username}@/${database}?host=${encodeURIComponent(host)}&port=${port}`,
  QUARRY_DATA_DIR: dataDir,
  QUARRY_SECRET: '0f7c1a94d7c35e28b0f4a1c96d82e735',
  QUARRY_LOG_LEVEL: 'error',
  QUARRY_PUBLIC_URL: 'http://127.0.0.1:1',
};
const db = openDatabase(postgres.address, { poolSize: 2, applicationName: 'bench' });
let processes: ServedProcess[] = [];
try {
  console.log(`${availableParallelism()} cores for everything`);
  await start('http', 1);
  const { secret_key: key } = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as {
    secret_key: string;
  };
  const call = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const {
      status,
      text,
      body: got,
    } = await sendRequest<T>(processes[0]?.baseUrl ?? '', method, `/api/v1${path}`, {
      ...{ key, ...(body === undefined ? {} : { body }) },
    });
    if (status >= 300) throw new Error(`${method} ${path}: ${text}`);
    return got;
  };
  const user = (await call<{ id: string }>('POST', '/users', { email: 'bench@example.test', name: 'Bench' })).id;
  const made = { name: 'bench', type: 'invoked', workflow: graph };
  const automation = (await call<{ id: string }>('POST', '/automations', made)).id;
  await call('POST', `/automations/${automation}/activate`);
  await stopAll();

  for (const count of counts) {
    await start('http', count);
    await measureRequests(count, key, user);
    await stopAll();
  }
  for (const count of counts) {
    await start('http', 1);
    const invoke = (n: number) => call('POST', `/automations/${automation}/invoke`, { payload: { n, user } });
    await db`delete from automation_runs`;
    for (let n = 0; n < runsMax; n += 16)
      await Promise.all(Array.from({ length: Math.min(16, runsMax - n) }, (_, i) => invoke(n + i)));
    await start('worker', count);
    await untilCompleted(runsMax);
    const [rate] = await db<{ perSecond: number }[]>`
      select count(*) / extract(epoch from max(completed_at) - min(started_at))::float8 as per_second
      from automation_runs`;
    await db`delete from automation_runs`;
    for (let n = 0; n < paced; n++) await Promise.all([invoke(n), wait(pacedEveryMs)]);
    await untilCompleted(paced);
    const [took] = await db<{ p50: number; p99: number }[]>`
      select (1000 * percentile_cont(0.5) within group (order by extract(epoch from completed_at - created_at)))::float8 as p50,
        (1000 * percentile_cont(0.99) within group (order by extract(epoch from completed_at - created_at)))::float8 as p99
      from automation_runs`;
    console.log(
      `${count} workers: ${rate?.perSecond.toFixed(0)} runs a second; alone p50 ${took?.p50.toFixed(0)} ms, p99 ${took?.p99.toFixed(0)} ms`,
    );
    await stopAll();
  }
} finally {
  await stopAll();
  await db.end();
  await postgres.stop();
  rmSync(dataDir, { recursive: true, force: true });
}

async function start(role: 'http' | 'worker', count: number): Promise<void> {
  for (let n = 0; n < count; n++) processes.push(await startServe(env, ['--only', role]));
}

async function stopAll(): Promise<void> {
  await Promise.all(processes.map((each) => each.stop()));
  processes = [];
}

async function measureRequests(count: number, key: string, user: string): Promise<void> {
  const headers = { 'x-api-key': key, 'content-type': 'application/json' };
  const each = Math.max(1, Math.round(Number(values.connections) / count));
  const load = (url: string, n: number, seconds: number) =>
    autocannon({
      ...{ url, connections: each, duration: seconds, headers },
      requests: [
        { method: 'PUT', path: `/api/v1/kv/bench-${n}`, body: JSON.stringify({ user, value: 'x'.repeat(200) }) },
        { method: 'GET', path: `/api/v1/kv/bench-${n}?user=${user}` },
      ],
    });
  const run = (seconds: number) => Promise.all(processes.map(({ baseUrl }, n) => load(baseUrl, n, seconds)));
  await run(2);
  const results = await run(Number(values.seconds));
  const failed = results.reduce((sum, { non2xx, errors }) => sum + non2xx + errors, 0);
  if (failed > 0)
    throw new Error(
      `${failed} requests failed: ${JSON.stringify(results.map((r) => [r.statusCodeStats, r.errors, r.timeouts]))}`,
    );
  const rate = results.reduce((sum, { requests }) => sum + requests.average, 0);
  const worst = (read: (result: autocannon.Result) => number) => Math.max(...results.map(read));
  console.log(
    `${count} http: ${rate.toFixed(0)} requests a second, p50 ${worst((r) => r.latency.p50)} ms, p99 ${worst((r) => r.latency.p99)} ms`,
  );
}

async function untilCompleted(count: number): Promise<void> {
  for (;;) {
    const [row] = await db<{ ended: number }[]>`
      select count(*) filter (where status = 'completed')::integer as ended from automation_runs`;
    if ((row?.ended ?? 0) >= count) return;
    await wait(50);
  }
}
