/**
 * Runs of a three-node graph (trigger → kv_set → complete) through one server on the embedded default, beside the bare
 * commits that such runs are made of: the same SQL over ten connections, without engine, HTTP or job workers.
 *   node bench/automations.ts [--runs 2000] [--latencies 200]
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Agent, request } from 'undici';
import * as runStore from '../src/automations/run-store.ts';
import type { DatabaseTarget } from '../src/db/address.ts';
import { withDatabase } from '../src/db/address.ts';
import { type Database, openDatabase, production } from '../src/db/database.ts';
import { findEmbeddedPostgres } from '../src/db/embedded.ts';
import { migrate } from '../src/db/migrate.ts';
import { formatId, newUuid, parseId } from '../src/ids.ts';
import { migrateJobs } from '../src/jobs/migrate.ts';
import { createLogger } from '../src/log.ts';
import { startServe } from '../test/support/serve.ts';

const { values } = parseArgs({
  options: { runs: { type: 'string', default: '2000' }, latencies: { type: 'string', default: '200' } },
});
const runCount = Number(values.runs);
const clients = 16;

const graph = {
  kind: 'WorkflowGraph',
  version: 1,
  start_node: 'start',
  nodes: [
    { id: 'start', kind: 'trigger', on_success: 'note' },
    { id: 'note', kind: 'kv_set', user: '{{$.user}}', key: 'n/{{$.n}}', value: 'seen', on_success: 'done' },
    { id: 'done', kind: 'complete', result: { n: '{{$.n}}' } },
  ],
};

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-bench-'));
const server = await startServe({ QUARRY_DATA_DIR: dataDir, QUARRY_LOG_LEVEL: 'error' });
try {
  const credentials = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as {
    app: string;
    secret_key: string;
  };
  const address = findEmbeddedPostgres(dataDir);
  if (!address) throw new Error('The embedded database does not run.');
  const api = client(server.baseUrl, credentials.secret_key);
  const user = (await api<{ id: string }>('POST', '/users', { email: 'bench@example.test', name: 'Bench' })).id;
  const automation = (
    await api<{ id: string }>('POST', '/automations', { name: 'b', type: 'invoked', workflow: graph })
  ).id;
  await api('POST', `/automations/${automation}/activate`);
  const db = openDatabase(address, { poolSize: 2, applicationName: 'bench' });
  await sustained(api, db, automation, user, 200);

  const latencies = await measureLatencies(api, automation, user, Number(values.latencies));
  print('invoke → first node started, one at a time', `p50 ${latencies.p50} ms, p95 ${latencies.p95} ms`);
  const bareBefore = await bare(address, runCount);
  const engine = await sustained(api, db, automation, user, runCount);
  const bareAfter = await bare(address, runCount);
  const baseline = (bareBefore + bareAfter) / 2;
  print(
    'bare commits of such runs',
    `${baseline.toFixed(0)} runs/s (${bareBefore.toFixed(0)} before, ${bareAfter.toFixed(0)} after)`,
  );
  print(
    'three-node runs sustained',
    `${engine.toFixed(0)} runs/s: ${(engine / baseline).toFixed(2)} of the bare commits`,
  );
  await db.end();
} finally {
  await server.stop();
  rmSync(dataDir, { recursive: true, force: true });
}

type Api = <T = Record<string, unknown>>(method: 'GET' | 'POST', path: string, body?: unknown) => Promise<T>;

function client(baseUrl: string, key: string): Api {
  const dispatcher = new Agent({ connections: clients, pipelining: 1 });
  return async <T>(method: 'GET' | 'POST', path: string, body?: unknown) => {
    const answer = await request(`${baseUrl}/api/v1${path}`, {
      method,
      dispatcher,
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (answer.statusCode >= 300) throw new Error(await answer.body.text());
    return (await answer.body.json()) as T;
  };
}

/** Runs per second from the first invocation to the end of the last run. */
async function sustained(api: Api, db: Database, automation: string, user: string, count: number): Promise<number> {
  const automationId = parseId('automation', automation) ?? '';
  const ended = async () => {
    const [row] = await db<[{ count: number }]>`
      select count(*) from automation_runs where automation_id = ${automationId} and status = 'completed'`;
    return row.count;
  };
  const before = await ended();
  const start = performance.now();
  let next = 0;
  const invoke = async () => {
    while (next < count) await api('POST', `/automations/${automation}/invoke`, { payload: { n: next++, user } });
  };
  await Promise.all(Array.from({ length: clients }, invoke));
  const invokedMs = performance.now() - start;
  while ((await ended()) < before + count) await new Promise((resolve) => setTimeout(resolve, 20));
  if (count > 500) print('  of which the invocations alone took', `${invokedMs.toFixed(0)} ms`);
  return count / ((performance.now() - start) / 1_000);
}

async function measureLatencies(api: Api, automation: string, user: string, count: number) {
  const times: number[] = [];
  for (let n = 0; n < count; n++) {
    const sentAt = Date.now();
    const run = await api<{ id: string }>('POST', `/automations/${automation}/invoke`, { payload: { n, user } });
    for (;;) {
      type Page = { data: { type: string; record: { timestamp: string } }[] };
      const page = await api<Page>('GET', `/automation_runs/${run.id}/journal`);
      const started = page.data.find((entry) => entry.type === 'node_started');
      if (started) {
        times.push(Date.parse(started.record.timestamp) - sentAt);
        break;
      }
    }
  }
  times.sort((a, b) => a - b);
  return { p50: times[Math.floor(count / 2)], p95: times[Math.floor(count * 0.95)] };
}

/** The same commits with nothing between them, in a database of their own in the same cluster. */
async function bare(address: Exclude<DatabaseTarget, string>, count: number): Promise<number> {
  const admin = openDatabase(address, { poolSize: 1, applicationName: 'bench' });
  const name = `bench_${Date.now()}`;
  await admin`create database ${admin(name)}`;
  const target = withDatabase(address, name);
  const db = openDatabase(target, { poolSize: 10, applicationName: 'bench' });
  try {
    await migrate(db);
    await migrateJobs(db, target, createLogger('error'));
    const tenant = await makeTenant(db);
    const start = performance.now();
    let next = 0;
    const work = async () => {
      while (next < count) await bareRun(db, tenant, next++);
    };
    await Promise.all(Array.from({ length: 10 }, work));
    return count / ((performance.now() - start) / 1_000);
  } finally {
    await db.end({ timeout: 5 });
    await admin`drop database ${admin(name)} with (force)`;
    await admin.end();
  }
}

type Tenant = { appId: string; userId: string; automationId: string };

async function makeTenant(db: Database): Promise<Tenant> {
  const tenant = { appId: newUuid(), userId: newUuid(), automationId: newUuid() };
  const developer = newUuid();
  await db`insert into developers (id, name) values (${developer}, 'bench')`;
  await db`insert into apps (id, developer_id, name, capability_key) values (${tenant.appId}, ${developer}, 'b', '')`;
  await db`insert into sandboxes (app_id, id, name) values (${tenant.appId}, ${production}, 'production')`;
  await db`insert into users (app_id, id, sandbox_id) values (${tenant.appId}, ${tenant.userId}, ${production})`;
  await db`insert into automations (app_id, id, sandbox_id, name, type, graph_version)
    values (${tenant.appId}, ${tenant.automationId}, ${production}, 'b', 'invoked', 1)`;
  return tenant;
}

/** Run and job; job taken; three nodes, the second with its effect; job done. */
async function bareRun(db: Database, { appId, userId, automationId }: Tenant, n: number): Promise<void> {
  const run = await runStore.insertRun(db, {
    ...{ appId, automationId, sandboxId: production, id: newUuid(), graphVersion: 1, type: 'invoked' },
    payload: { n, user: formatId('user', userId) },
    createdAt: new Date(),
  });
  const [job] = await db<{ id: number }[]>`
    update graphile_worker._private_jobs set locked_at = now(), locked_by = 'bench', attempts = attempts + 1
    where id = (select id from graphile_worker._private_jobs where locked_at is null
      order by priority, run_at limit 1 for update skip locked) returning id`;
  await appendNode(db, run, 0, 'start', 'running', 1);
  await db.begin(async (tx) => {
    await tx`insert into kv_entries (app_id, sandbox_id, user_id, key, id, value)
      select u.app_id, u.sandbox_id, u.id, ${`n/${n}`}, ${newUuid()}, 'seen'
      from users u, set_config('quarry.kv_user_bytes_max', '1000000000', true)
      where u.app_id = ${appId} and u.id = ${userId}`;
    await appendNode(tx, run, 3, 'note', 'running', 0);
  });
  await appendNode(db, run, 5, 'done', 'completed', 1);
  if (job) await db`delete from graphile_worker._private_jobs where id = ${job.id}`;
}

async function appendNode(
  db: Parameters<typeof runStore.appendEntries>[0],
  run: runStore.RunRow,
  expected: number,
  nodeId: string,
  status: 'running' | 'completed',
  more: number,
): Promise<void> {
  const record = {
    payload: { user: 'usr_0000000000000000000000', key: 'n', value: 'seen' },
    context: { input: {} },
    environment: { worker: 'host/12345/abcdef', version: '0.1.0' },
    metadata: { attempt: 1, duration_ms: 1 },
    timestamp: new Date().toISOString(),
  };
  const commandId = formatId('command', newUuid());
  const entry = { type: 'node_completed', nodeId, commandId, record } as const;
  const written = await runStore.appendEntries(db, {
    ...{ run, automation: 'aut_x', expected, status, waiting: false, wakeAt: null, now: new Date() },
    entries: [entry, entry, ...Array.from({ length: more }, () => entry)],
    ...(status === 'completed' ? { result: { n: 1 } } : {}),
  });
  if (!written) throw new Error('The journal did not take the entries.');
}

function print(name: string, value: string): void {
  process.stdout.write(`${name.padEnd(48)} ${value}\n`);
}
