/**
 * Runs of a three-node graph (trigger → kv_set → complete) through one server on the embedded default, beside the bare
 * commits that such runs are made of: the same SQL over ten connections, without engine, HTTP or job workers.
 *   node bench/automations.ts [--runs 2000] [--latencies 200]
 * With `--only waiting`: many runs that wait, and how late they are woken when their times come, all in one second or
 * spread. A run is woken when its `timer_fired` is committed and its job is queued.
 *   node bench/automations.ts --only waiting [--waiting 100000] [--spread 60]
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Agent, request } from 'undici';
import * as runStore from '../src/automations/runs/store.ts';
import type { DatabaseTarget } from '../src/db/address.ts';
import { withDatabase } from '../src/db/address.ts';
import { type Database, type Db, openDatabase, production } from '../src/db/database.ts';
import { findEmbeddedPostgres } from '../src/db/embedded.ts';
import { migrate } from '../src/db/migrate.ts';
import { formatId, newUuid, parseId } from '../src/lib/ids.ts';
import { startServe } from '../test/support/serve.ts';
import { keepRatio } from './ratios.ts';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '2000' },
    latencies: { type: 'string', default: '200' },
    only: { type: 'string' },
    waiting: { type: 'string', default: '100000' },
    spread: { type: 'string', default: '0' },
  },
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
  await measureRunRate(api, db, automation, user, 200);
  if (values.only === 'waiting') await measureWaiting(api, db, automation, user);
  else await measureRuns(api, db, address, automation, user);
  await db.end();
} finally {
  await server.stop();
  rmSync(dataDir, { recursive: true, force: true });
}

async function measureRuns(
  api: Api,
  db: Database,
  address: Exclude<DatabaseTarget, string>,
  automation: string,
  user: string,
): Promise<void> {
  const latencies = await measureLatencies(api, automation, user, Number(values.latencies));
  print('invoke → first node started, one at a time', `p50 ${latencies.p50} ms, p95 ${latencies.p95} ms`);
  const bareBefore = await measureBareCommits(address, runCount);
  const engine = await measureRunRate(api, db, automation, user, runCount);
  const bareAfter = await measureBareCommits(address, runCount);
  const baseline = (bareBefore + bareAfter) / 2;
  print(
    'bare commits of such runs',
    `${baseline.toFixed(0)} runs/s (${bareBefore.toFixed(0)} before, ${bareAfter.toFixed(0)} after)`,
  );
  keepRatio('automations, three-node runs', engine / baseline);
  print(
    'three-node runs sustained',
    `${engine.toFixed(0)} runs/s: ${(engine / baseline).toFixed(2)} of the bare commits`,
  );
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

/** Runs per second, from the first invocation to the end of the last run. */
async function measureRunRate(
  api: Api,
  db: Database,
  automation: string,
  user: string,
  count: number,
): Promise<number> {
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

/** @param pauseMs the pause between reads of the journal, which would otherwise use part of the machine */
async function measureLatencies(api: Api, automation: string, user: string, count: number, pauseMs = 0) {
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
      if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }
  times.sort((a, b) => a - b);
  return { p50: times[Math.floor(count / 2)], p95: times[Math.floor(count * 0.95)] };
}

/** The same commits with nothing between them, in a separate database of the same cluster. */
async function measureBareCommits(address: Exclude<DatabaseTarget, string>, count: number): Promise<number> {
  const admin = openDatabase(address, { poolSize: 1, applicationName: 'bench' });
  const name = `bench_${Date.now()}`;
  await admin`create database ${admin(name)}`;
  const target = withDatabase(address, name);
  const db = openDatabase(target, { poolSize: 10, applicationName: 'bench' });
  try {
    await migrate(db);
    const tenant = await createTenant(db);
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

async function createTenant(db: Database): Promise<Tenant> {
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

/** The commits of one run: run and job; job taken; the three nodes with the effect of the second; job done. */
async function bareRun(db: Database, { appId, userId, automationId }: Tenant, n: number): Promise<void> {
  const run = await runStore.insertRun(db, {
    ...{ appId, automationId, sandboxId: production, id: newUuid(), graphVersion: 1, program: false, type: 'invoked' },
    payload: { n, user: formatId('user', userId) },
    createdAt: new Date(),
  });
  const [job] = await db<{ id: number }[]>`
    update jobs set locked_at = now(), locked_by = 'bench', attempts = attempts + 1
    where id = (select id from jobs where locked_at is null
      order by priority, run_at limit 1 for update skip locked) returning id`;
  await db.begin(async (tx) => {
    await tx`insert into kv_entries (app_id, sandbox_id, user_id, key, id, value)
      select u.app_id, u.sandbox_id, u.id, ${`n/${n}`}, ${newUuid()}, 'seen'
      from users u, set_config('quarry.kv_user_bytes_max', '1000000000', true)
      where u.app_id = ${appId} and u.id = ${userId}`;
    await appendNodes(tx, run);
  });
  if (job) await db`delete from jobs where id = ${job.id}`;
}

/** Writes the entries of the whole run: two for each node, and its start and end. */
async function appendNodes(db: Db, run: { appId: string; id: string }): Promise<void> {
  const record = {
    payload: { user: 'usr_0000000000000000000000', key: 'n', value: 'seen' },
    context: { input: {} },
    environment: { worker: 'host/12345/abcdef', version: '0.1.0' },
    metadata: { attempt: 1, duration_ms: 1 },
    timestamp: new Date().toISOString(),
  };
  const entry = { type: 'node_completed', nodeId: 'note', commandId: formatId('command', newUuid()), record } as const;
  const append = (expected: number, count: number, status: 'running' | 'completed') =>
    runStore.appendEntries(db, {
      ...{ run, automation: 'aut_x', expected, status, waiting: false, wakeAt: null, wakeTimer: null, now: new Date() },
      entries: Array.from({ length: count }, () => entry),
      ...(status === 'completed' ? { result: { n: 1 } } : {}),
    });
  // The engine writes the state "running" by itself.
  if (!(await append(0, 5, 'running')) || !(await append(5, 3, 'completed')))
    throw new Error('The journal did not take the entries.');
}

/** Runs that wait are created by SQL, as the engine leaves them, and watched until each is woken. */
async function measureWaiting(api: Api, db: Database, automation: string, user: string): Promise<void> {
  const count = Number(values.waiting);
  const spreadSeconds = Number(values.spread);
  const wait = { id: 'w', kind: 'wait', seconds: 3_600, on_success: 'done' };
  const workflow = { ...graph, start_node: 'w', nodes: [wait, { id: 'done', kind: 'complete' }] };
  const sleeper = await api<{ id: string }>('POST', '/automations', { name: 'w', type: 'invoked', workflow });
  await api('POST', `/automations/${sleeper.id}/activate`);
  const automationId = parseId('automation', sleeper.id) ?? '';
  const idleMb = residentMb(server.pid);
  const loadMs = 5_000 + count / 8;
  const firstDue = new Date(Date.now() + loadMs);
  await insertWaiting(db, automationId, count, firstDue, spreadSeconds);
  await db`analyze automation_runs, automation_run_wakes`;
  const loadedMb = residentMb(server.pid);
  print(
    `${count} waiting runs made`,
    `${Math.max(0, firstDue.getTime() - Date.now()).toFixed(0)} ms before the first is due`,
  );
  while (Date.now() < firstDue.getTime()) await new Promise((resolve) => setTimeout(resolve, 20));
  let latestMs = 0;
  let peakMb = loadedMb;
  const invocations: number[] = [];
  let woken = false;
  const invoking = (async () => {
    while (!woken) {
      const { p50 } = await measureLatencies(api, automation, user, 1, 10);
      if (p50 !== undefined) invocations.push(p50);
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
  })();
  for (;;) {
    const [{ oldest }] = await db<[{ oldest: Date | null }]>`
      select min(wake_at) as oldest from automation_run_wakes`;
    if (!oldest) break;
    latestMs = Math.max(latestMs, Date.now() - oldest.getTime());
    peakMb = Math.max(peakMb, residentMb(server.pid));
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const doneMs = Date.now() - firstDue.getTime();
  woken = true;
  await invoking;
  invocations.sort((a, b) => a - b);
  const [{ fired }] = await db<[{ fired: number }]>`
    select count(*) as fired from automation_run_entries e join automation_runs r on r.app_id = e.app_id and r.id = e.run_id
    where r.automation_id = ${automationId} and e.type = 'timer_fired'`;
  const [{ ended }] = await db<[{ ended: number }]>`
    select count(*) as ended from automation_runs where automation_id = ${automationId} and status = 'completed'`;
  print(
    `${fired} runs due within ${spreadSeconds || 1} s: the last woken`,
    `${(doneMs / 1_000).toFixed(1)} s after the first was due`,
  );
  print('  longest that any was late', `${(latestMs / 1_000).toFixed(2)} s`);
  print('  ended by then', String(ended));
  print(
    '  invoke → first node started meanwhile',
    `p50 ${invocations[Math.floor(invocations.length / 2)]} ms, worst ${invocations.at(-1)} ms`,
  );
  print(
    '  memory of the server',
    `${idleMb} MB before, ${loadedMb} MB with them waiting, ${peakMb} MB at most while waking`,
  );
}

async function insertWaiting(
  db: Database,
  automationId: string,
  count: number,
  firstDue: Date,
  spreadSeconds: number,
): Promise<void> {
  const record = {
    context: { input: { seconds: 3_600 } },
    environment: { worker: 'host/12345/abcdef', version: '0.1.0' },
  };
  await db.begin(async (tx) => {
    // The rows refer to existing rows. Checking that for each would take longer than writing them.
    await tx`set local session_replication_role = replica`;
    await tx`
      insert into automation_runs (app_id, id, sandbox_id, automation_id, graph_version, type, status, payload, sequence,
        waiting, wake_at, wake_timer, version, started_at)
      select a.app_id, new_uuid(), a.sandbox_id, a.id, a.graph_version, 'invoked', 'running', '{}', 3, true,
        ${firstDue}::timestamptz + make_interval(secs => ${spreadSeconds}::float8 * n / ${count}::float8),
        json_build_object('node_id', 'w', 'command_id', 'cmd_' || n, 'timer_id', 'tmr_' || n, 'attempt', 1), 2, now()
      from automations a, generate_series(1, ${count}::integer) n where a.id = ${automationId}`;
    await tx`
      insert into automation_run_wakes (app_id, run_id, wake_at)
      select app_id, id, wake_at from automation_runs where automation_id = ${automationId}`;
    for (const [index, type] of ['run_started', 'node_started', 'timer_started'].entries())
      await tx`
        insert into automation_run_entries (app_id, run_id, sequence, id, type, node_id, command_id, timer_id, record)
        select app_id, id, ${index + 1}, gen_random_uuid(), ${type}, ${index === 0 ? null : 'w'}::text,
          case when ${index > 0} then wake_timer ->> 'command_id' end,
          case when ${index > 1} then wake_timer ->> 'timer_id' end,
          json_build_object('payload', case when ${index > 1} then json_build_object('fires_at', wake_at) else '{}' end,
            'context', ${JSON.stringify(record.context)}::text::json, 'environment', ${JSON.stringify(record.environment)}::text::json,
            'metadata', json_build_object('attempt', 1), 'timestamp', now())
        from automation_runs where automation_id = ${automationId}`;
  });
}

function residentMb(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
}

function print(name: string, value: string): void {
  process.stdout.write(`${name.padEnd(48)} ${value}\n`);
}
