/**
 * Key-value storage against bare routes on the same PostgreSQL, and lists over a million entries against a thousand.
 *   node bench/kv.ts [--seconds 5] [--rounds 3] [--entries 1000000] [--only requests|lists]
 * Requests: GET and PUT at 64 connections as one end user and as a secret key, each beside a bare Fastify + postgres.js
 * route that does the same point select or durable upsert. Servers run as processes of their own, in turns.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import autocannon from 'autocannon';
import { openDatabase } from '../src/db/database.ts';
import { startEmbeddedPostgres } from '../src/db/embedded.ts';
import { migrate } from '../src/db/migrate.ts';
import { createLogger } from '../src/log.ts';
import { benchSecret, createFixture, type Fixture } from './kv/fixture.ts';
import { measureLists } from './kv/lists.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '3' },
    entries: { type: 'string', default: '1000000' },
    only: { type: 'string' },
  },
});
const connections = 64;

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-bench-'));
const embedded = await startEmbeddedPostgres({ dataDir, log: createLogger('error') });
const servers: ChildProcess[] = [];
process.once('exit', () => {
  for (const server of servers) server.kill();
});
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, async () => {
    await embedded.stop();
    rmSync(dataDir, { recursive: true, force: true });
    process.exit(1);
  });
try {
  const db = openDatabase(embedded.address, { poolSize: 4, applicationName: 'bench' });
  await migrate(db);
  if (values.only !== 'lists') await measureRequests(await createFixture(db));
  if (values.only !== 'requests') await measureLists(db, Number(values.entries));
  await db.end();
} finally {
  await embedded.stop();
  rmSync(dataDir, { recursive: true, force: true });
}

/** `cpu`: microseconds of the server process per request, which is more reliable than the rate on a shared machine. */
type Result = { rate: number; p99: number; cpu: number; errors: number };
type Load = { name: string; server: 'bare' | 'quarry'; against?: string; request: autocannon.Request; varied: boolean };

async function measureRequests(fixture: Fixture): Promise<void> {
  const running = { bare: await startServer('bare'), quarry: await startServer('quarry') };
  try {
    for (const method of ['GET', 'PUT'] as const) {
      const results = new Map<string, Result[]>();
      const loads = loadsOf(method, fixture);
      for (let round = 0; round <= Number(values.rounds); round++)
        for (const load of loads) {
          const result = await run(running[load.server], load, fixture, round === 0 ? 2 : Number(values.seconds));
          // The first round only warms up.
          if (round > 0) results.set(load.name, [...(results.get(load.name) ?? []), result]);
        }
      for (const load of loads) {
        const own = median(results.get(load.name) ?? []);
        const base = load.against === undefined ? undefined : median(results.get(load.against) ?? []);
        console.log(
          `${method} ${load.name.padEnd(26)} ${own.rate.toFixed(0).padStart(7)}/s  p99 ${own.p99.toFixed(1).padStart(6)} ms  cpu ${own.cpu.toFixed(0).padStart(4)} µs` +
            `${own.errors > 0 ? `  ${own.errors} ERRORS` : ''}` +
            (base
              ? `  ratio ${(own.rate / base.rate).toFixed(2)}, p99 ${(own.p99 / base.p99).toFixed(2)}, cpu ${(own.cpu / base.cpu).toFixed(2)}`
              : ''),
        );
      }
    }
  } finally {
    for (const { child } of Object.values(running)) child.kill();
  }
}

function loadsOf(method: 'GET' | 'PUT', { user, secretKey }: Fixture): Load[] {
  const json = { 'content-type': 'application/json' };
  const path = method === 'GET' ? '/kv/{key}' : '/kv/{key}';
  const asUser = { ...json, authorization: `Bearer ${user.token}` };
  const asServer = { ...json, 'x-api-key': secretKey };
  const query = method === 'GET' ? `?user=${user.id}` : '';
  const loads: Load[] = [
    { name: 'bare', server: 'bare', request: { method, path, headers: json }, varied: false },
    {
      name: 'as a user',
      server: 'quarry',
      against: 'bare',
      request: { method, path: `/api/v1${path}`, headers: asUser },
      varied: false,
    },
    {
      name: 'as a server',
      server: 'quarry',
      against: 'bare',
      request: { method, path: `/api/v1${path}${query}`, headers: asServer },
      varied: false,
    },
  ];
  if (method === 'GET') return loads;
  return [
    ...loads,
    ...loads.map((load) => ({
      ...load,
      name: `${load.name}, other sizes`,
      varied: true,
      ...(load.against ? { against: 'bare, other sizes' } : {}),
    })),
  ];
}

async function run(server: BenchServer, load: Load, fixture: Fixture, seconds: number): Promise<Result> {
  const { method, path = '', headers = {} } = load.request;
  const asServer = 'x-api-key' in headers;
  const requests = Array.from({ length: 2_000 }, (_, i) => ({
    method,
    path: path.replace('{key}', fixture.keys[(i * 7919) % fixture.keys.length] ?? ''),
    headers,
    ...(method === 'PUT'
      ? {
          body: JSON.stringify({
            value: 'v'.repeat(load.varied ? 80 + ((i * 31) % 41) : 100),
            ...(asServer ? { user: fixture.user.id } : {}),
          }),
        }
      : {}),
  }));
  const cpuBefore = cpuSeconds(server);
  const result = await autocannon({
    url: server.url,
    connections,
    duration: seconds,
    requests: requests as autocannon.Request[],
  });
  const cpu = ((cpuSeconds(server) - cpuBefore) / result.requests.total) * 1_000_000;
  return { rate: result['2xx'] / result.duration, p99: result.latency.p99, cpu, errors: result.non2xx + result.errors };
}

function median(results: Result[]): Result {
  const middle = (pick: (result: Result) => number) =>
    results.map(pick).sort((a, b) => a - b)[Math.floor(results.length / 2)] ?? Number.NaN;
  return {
    rate: middle((r) => r.rate),
    p99: middle((r) => r.p99),
    cpu: middle((r) => r.cpu),
    errors: results.reduce((sum, r) => sum + r.errors, 0),
  };
}

type BenchServer = { child: ChildProcess; url: string };

/** Processor time of the server so far, from the kernel; Linux only. */
function cpuSeconds({ child }: BenchServer): number {
  if (process.platform !== 'linux') return Number.NaN;
  const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

function startServer(kind: 'bare' | 'quarry'): Promise<BenchServer> {
  const child = spawn(process.execPath, [fileURLToPath(new URL('./kv/server.ts', import.meta.url)), kind], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { PATH: process.env.PATH, BENCH_DATABASE: JSON.stringify(embedded.address), BENCH_SECRET: benchSecret },
  });
  servers.push(child);
  return new Promise((resolve, reject) => {
    child.stdout.once('data', (chunk) => resolve({ child, url: String(chunk).trim() }));
    child.once('exit', (code) => reject(new Error(`the ${kind} server ended with ${code}`)));
  });
}
