/**
 * Servers of two checkouts in turns, to find what a change costs: runs of many nodes, whose journals are appended to
 * once for each node, and audited writes by sixteen clients. Each has its own embedded PostgreSQL.
 *   node bench/versions.ts BEFORE [AFTER] [--rounds 6] [--runs 60] [--nodes 50] [--bytes 200] [--writes 2000] BEFORE
 *   and AFTER are directories with installed dependencies; AFTER is this one unless it is named. Processor time is
 *   that of Node and of all processes of PostgreSQL, sealing in the ledger included (Linux only).
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Agent, request } from 'undici';
import { type Database, openDatabase } from '../src/db/database.ts';
import { findEmbeddedPostgres } from '../src/db/embedded.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '6' },
    runs: { type: 'string', default: '60' },
    nodes: { type: 'string', default: '50' },
    bytes: { type: 'string', default: '200' },
    writes: { type: 'string', default: '2000' },
  },
});
const [before, after = fileURLToPath(new URL('..', import.meta.url))] = positionals;
if (before === undefined) throw new Error('Name the directory of the checkout to compare with.');
const [rounds, runs, nodes, writes] = [values.rounds, values.runs, values.nodes, values.writes].map(Number) as [
  number,
  number,
  number,
  number,
];
const clients = 16;
/** The length of a clock tick in /proc on every common Linux. */
const tickMs = 10;

type Figures = { rate: number; node: number; postgres: number };
type Installed = Awaited<ReturnType<typeof start>>;

const installed: Installed[] = [];
try {
  for (const directory of [before, after]) installed.push(await start(resolve(directory)));
  const works: [name: string, unit: string, work: (server: Installed) => Promise<number>][] = [
    [`runs of ${nodes} nodes, ${values.bytes} bytes each`, 'node', runAutomations],
    [`POST /orgs, ${clients} clients`, 'write', createOrgs],
  ];
  for (const [name, unit, work] of works) {
    const found: [Figures, Figures][] = [];
    for (let round = 0; round <= rounds; round++) {
      const order = round % 2 === 0 ? [0, 1] : [1, 0];
      const both: Figures[] = [];
      for (const at of order) both[at] = await measure(installed[at] as Installed, work);
      // The first round compiles code and fills caches.
      if (round > 0) found.push(both as [Figures, Figures]);
    }
    console.log(`\n${name}; load ${loadavg()[0]?.toFixed(1)}`);
    const total = ({ node, postgres }: Figures) => node + postgres;
    print(`${unit}s/s`, ({ rate }) => rate, found);
    print(`Node, µs a ${unit}`, ({ node }) => node, found);
    print(`PostgreSQL, µs a ${unit}`, ({ postgres }) => postgres, found);
    print(`both, µs a ${unit}`, total, found);
  }
} finally {
  for (const { stop } of installed) await stop();
}

function print(name: string, read: (figures: Figures) => number, found: readonly [Figures, Figures][]): void {
  const [old, now] = [0, 1].map((at) => middle(found.map((both) => read(both[at] as Figures)))) as [number, number];
  const ratios = found.map(([one, other]) => read(other) / read(one)).sort((a, b) => a - b);
  const spread = `${ratios[0]?.toFixed(2)} to ${ratios.at(-1)?.toFixed(2)}`;
  console.log(
    `${name.padEnd(26)} ${old.toFixed(0).padStart(7)} before, ${now.toFixed(0).padStart(7)} after: ${middle(ratios).toFixed(2)} (${spread})`,
  );
}

function middle(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  const half = sorted.length / 2;
  return ((sorted[Math.ceil(half) - 1] ?? Number.NaN) + (sorted[Math.floor(half)] ?? Number.NaN)) / 2;
}

async function start(directory: string) {
  const { startServe } = (await import(
    join(directory, 'test/support/serve.ts')
  )) as typeof import('../test/support/serve.ts');
  const dataDir = mkdtempSync(join(tmpdir(), 'quarry-bench-'));
  const server = await startServe({ QUARRY_DATA_DIR: dataDir, QUARRY_LOG_LEVEL: 'error' });
  const credentials = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as { secret_key: string };
  const address = findEmbeddedPostgres(dataDir);
  if (address === undefined) throw new Error('The embedded database does not run.');
  const db = openDatabase(address, { poolSize: 1, applicationName: 'bench' });
  const dispatcher = new Agent({ connections: clients, pipelining: 1 });
  const call = async <T>(method: 'GET' | 'POST', path: string, body?: unknown): Promise<T> => {
    const response = await request(`${server.baseUrl}/api/v1${path}`, {
      method,
      dispatcher,
      headers: { 'x-api-key': credentials.secret_key, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.body.text();
    if (response.statusCode >= 300 && !(path === '/ledger' && response.statusCode === 404)) throw new Error(text);
    return JSON.parse(text) as T;
  };
  const names = Array.from({ length: nodes }, (_, n) => `n${n}`);
  const workflow = {
    ...{ kind: 'WorkflowGraph', version: 1, start_node: 'start' },
    nodes: [
      { id: 'start', kind: 'trigger', on_success: names[0] ?? 'done' },
      ...names.map((id, n) => ({
        ...{ id, kind: 'transform', value: { n, text: '{{$.text}}' } },
        on_success: names[n + 1] ?? 'done',
      })),
      { id: 'done', kind: 'complete', result: { done: true } },
    ],
  };
  const automation = await call<{ id: string }>('POST', '/automations', { name: 'b', type: 'invoked', workflow });
  await call('POST', `/automations/${automation.id}/activate`);
  return {
    call,
    db,
    automation: automation.id,
    pid: server.pid,
    postmaster: await findPostmaster(db),
    async stop() {
      await db.end();
      await dispatcher.close();
      await server.stop();
      rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Measures the work of all clients until everything that it leaves behind is written and sealed. */
async function measure(server: Installed, work: (server: Installed) => Promise<number>): Promise<Figures> {
  const times = () => [cpuMs(server.pid), cpuOfTreeMs(server.postmaster)] as const;
  const [nodeBefore, postgresBefore] = times();
  const startedAt = performance.now();
  const count = await work(server);
  const seconds = (performance.now() - startedAt) / 1_000;
  await server.call('GET', '/audit');
  await server.call('GET', '/ledger');
  const [node, postgres] = times();
  const each = (ms: number) => (ms * 1_000) / count;
  return { rate: count / seconds, node: each(node - nodeBefore), postgres: each(postgres - postgresBefore) };
}

async function share(count: number, each: () => Promise<unknown>): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (next++ < count) await each();
    }),
  );
}

/** Returns the number of nodes that were executed. */
async function runAutomations({ call, db, automation }: Installed): Promise<number> {
  const ended = async () => {
    const [row] = await db<[{ count: number }]>`
      select count(*) as count from automation_runs where status = 'completed'`;
    return row.count;
  };
  const target = (await ended()) + runs;
  const payload = { text: 'x'.repeat(Number(values.bytes)) };
  await share(runs, () => call('POST', `/automations/${automation}/invoke`, { payload }));
  while ((await ended()) < target) await new Promise((resolve) => setTimeout(resolve, 20));
  return runs * (nodes + 2);
}

async function createOrgs({ call }: Installed): Promise<number> {
  await share(writes, () => call('POST', '/orgs', { name: 'Org' }));
  return writes;
}

type Process = { parent: number; ms: number };

/** The process's own time, and that of its ended children. */
function readProcess(pid: number): Process & { ownMs: number } {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  const at = (n: number) => Number(fields[n]);
  const ownMs = (at(11) + at(12)) * tickMs;
  return { parent: at(1), ownMs, ms: ownMs + (at(13) + at(14)) * tickMs };
}

function cpuMs(pid: number): number {
  return readProcess(pid).ownMs;
}

/** All of PostgreSQL's processes are children of one. */
function cpuOfTreeMs(root: number): number {
  let sum = readProcess(root).ms;
  for (const name of readdirSync('/proc').filter((each) => /^\d+$/.test(each))) {
    try {
      const found = readProcess(Number(name));
      if (found.parent === root) sum += found.ms;
    } catch {
      // It has ended.
    }
  }
  return sum;
}

async function findPostmaster(db: Database): Promise<number> {
  const [row] = await db<[{ pid: number }]>`select pg_backend_pid() as pid`;
  return readProcess(row.pid).parent;
}
