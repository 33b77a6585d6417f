/**
 * Key-value storage against bare routes on the same PostgreSQL, and lists over a million entries against a thousand.
 *   node bench/kv.ts [--seconds 5] [--rounds 3] [--entries 1000000] [--only requests|lists] [--load increment]
 *   Requests at 64 connections as one end user, GET and PUT also as a secret key: GET, GET of what has not changed
 *   (304), PUT, increments, batches and pages of kv_entries, each beside a bare Fastify + postgres.js route with the
 *   statement that does the same. Pages are also compared with a route that sends the same members, and so the same bytes.
 *   Servers run as separate processes, in turns. bench/streams.ts measures watches.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import autocannon from 'autocannon';
import { openDatabase } from '../src/db/database.ts';
import { startEmbeddedPostgres } from '../src/db/embedded.ts';
import { migrate } from '../src/db/migrate.ts';
import { createLogger } from '../src/lib/log.ts';
import { endWithThisProcess, stopPostgresWithThisProcess } from '../test/support/left-behind.ts';
import { benchSecret, createFixture, type Fixture } from './kv/fixture.ts';
import { measureLists } from './kv/lists.ts';
import { createLoads, type Load, readTags } from './kv/loads.ts';
import { cpuOfTree, postmasters } from './processes.ts';
import { keepRatio } from './ratios.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '3' },
    entries: { type: 'string', default: '1000000' },
    only: { type: 'string' },
    load: { type: 'string' },
  },
});
const connections = 64;

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-bench-'));
stopPostgresWithThisProcess(dataDir);
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

/**
 * `cpu` and `database`: microseconds of processor time of the server process and of PostgreSQL per request, which are more
 * reliable than the rate on a shared machine.
 */
type Result = { rate: number; p99: number; cpu: number; database: number; errors: number };
async function measureRequests(fixture: Fixture): Promise<void> {
  const running = { bare: await startServer('bare'), quarry: await startServer('quarry') };
  try {
    const kinds = Object.keys(createLoads(fixture, new Map())).filter((kind) => kind === (values.load ?? kind));
    for (const kind of kinds) {
      // Earlier loads have changed entries, and so their tags.
      const tags = kind === 'GET, unchanged' ? await readTags(running.quarry.url, fixture) : new Map<string, string>();
      const loads = createLoads(fixture, tags)[kind] ?? [];
      const results = new Map<string, Result[]>();
      for (let round = 0; round <= Number(values.rounds); round++)
        for (const load of loads) {
          const result = await run(running[load.server], load, round === 0 ? 2 : Number(values.seconds));
          // The first round only warms up.
          if (round > 0) results.set(load.name, [...(results.get(load.name) ?? []), result]);
        }
      for (const load of loads) {
        const own = median(results.get(load.name) ?? []);
        const line =
          `${kind} ${load.name.padEnd(26)} ${own.rate.toFixed(0).padStart(7)}/s  p99 ${own.p99.toFixed(1).padStart(6)} ms  cpu ${own.cpu.toFixed(0).padStart(4)} µs, database ${own.database.toFixed(0).padStart(4)} µs` +
          `${own.errors > 0 ? `  ${own.errors} ERRORS` : ''}`;
        const ratios = load.against.map((name) => {
          const base = median(results.get(name) ?? []);
          const places = load.against.length > 1 ? `, to ${name}` : '';
          keepRatio(`kv ${kind} ${load.name}${places}`, own.rate / base.rate);
          return `  ratio${places} ${(own.rate / base.rate).toFixed(2)}, p99 ${(own.p99 / base.p99).toFixed(2)}, cpu ${(own.cpu / base.cpu).toFixed(2)}`;
        });
        console.log(line + ratios.join(''));
      }
    }
  } finally {
    // A server that is profiled writes its profile when it ends.
    await Promise.all(Object.values(running).map(({ child }) => child.kill() && once(child, 'exit')));
  }
}

async function run(server: BenchServer, { requests, status }: Load, seconds: number): Promise<Result> {
  const cpuBefore = cpuSeconds(server);
  const databaseBefore = databaseSeconds();
  const parts = split(requests);
  // A connection builds all of its requests before the next connection is made, so with all of them for each, the first
  // responses would be read after two seconds. Parts also keep the connections from writing the same keys in step.
  const result = await autocannon({
    ...{ url: server.url, connections, duration: seconds, requests: requests.slice(0, 1) },
    setupClient: (client) => client.setRequests(parts.pop() ?? []),
  });
  const perRequest = (seconds: number) => (seconds / result.requests.total) * 1_000_000;
  const cpu = perRequest(cpuSeconds(server) - cpuBefore);
  const database = perRequest(databaseSeconds() - databaseBefore);
  const good = status === 304 ? result['3xx'] : result['2xx'];
  const total = result['1xx'] + result['2xx'] + result['3xx'] + result['4xx'] + result['5xx'];
  return { rate: good / result.duration, p99: result.latency.p99, cpu, database, errors: total - good + result.errors };
}

/** One part for each connection. */
function split(requests: Load['requests']): Load['requests'][] {
  return Array.from({ length: connections }, (_, part) => requests.filter((_request, i) => i % connections === part));
}

function median(results: Result[]): Result {
  const middle = (pick: (result: Result) => number) =>
    results.map(pick).sort((a, b) => a - b)[Math.floor(results.length / 2)] ?? Number.NaN;
  return {
    rate: middle((r) => r.rate),
    p99: middle((r) => r.p99),
    cpu: middle((r) => r.cpu),
    database: middle((r) => r.database),
    errors: results.reduce((sum, r) => sum + r.errors, 0),
  };
}

type BenchServer = { child: ChildProcess; url: string };

/** The processor time of the server so far, from the kernel. Linux only. */
function cpuSeconds({ child }: BenchServer): number {
  return process.platform === 'linux' && child.pid !== undefined ? cpuOfTree([child.pid]) : Number.NaN;
}

/** The processor time of PostgreSQL so far. Linux only. */
function databaseSeconds(): number {
  return process.platform === 'linux' ? cpuOfTree(postmasters(dataDir)) : Number.NaN;
}

function startServer(kind: 'bare' | 'quarry'): Promise<BenchServer> {
  const child = endWithThisProcess(
    spawn(process.execPath, [fileURLToPath(new URL('./kv/server.ts', import.meta.url)), kind], {
      stdio: ['ignore', 'pipe', 'ignore'],
      env: {
        ...{ PATH: process.env.PATH, NODE_OPTIONS: process.env.NODE_OPTIONS ?? '' },
        ...{ BENCH_DATABASE: JSON.stringify(embedded.address), BENCH_SECRET: benchSecret },
      },
    }),
  );
  servers.push(child);
  return new Promise((resolve, reject) => {
    child.stdout.once('data', (chunk) => resolve({ child, url: String(chunk).trim() }));
    child.once('exit', (code) => reject(new Error(`the ${kind} server ended with ${code}`)));
  });
}
