/**
 * What cells cost, and whether the trouble of one reaches another.
 *   node bench/cells.ts [--only cost|away] [--rounds 9] [--requests 1500] [--pairs 5] [--seconds 60] [--rate 60] [--idle 10]
 * cost: processor time of server and database for a request, of an app in a cell that is not the directory beside one of
 *   an installation without cells, and of two apps in two cells beside two without cells, in turns. Rounds of few
 *   requests, and many of them, say more on a machine whose speed changes. Once more without what the processes spend at
 *   rest, which is measured for --idle seconds before.
 * away: p99 of an app in one cell at a fixed rate, while the other cell is there, and while it is gone: in turns ended
 *   and silent. Two times --seconds for each pair.
 * Ratios are comparable between machines; times are not.
 */
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type DatabaseAddress, socketPath } from '../src/db/address.ts';
import { openDatabase } from '../src/db/database.ts';
import { startEmbeddedPostgres } from '../src/db/embedded.ts';
import { createLogger } from '../src/lib/log.ts';
import { stopPostgresWithThisProcess } from '../test/support/left-behind.ts';
import { type ServedProcess, startServe } from '../test/support/serve.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    rounds: { type: 'string', default: '9' },
    requests: { type: 'string', default: '1500' },
    pairs: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '60' },
    rate: { type: 'string', default: '60' },
    idle: { type: 'string', default: '10' },
  },
});
const atOnce = 8;
const agent = new Agent({ keepAlive: true });

const directory = await mkdtemp(join(tmpdir(), 'quarry-bench-cells-'));
stopPostgresWithThisProcess(join(directory, 'postgres'));
const postgres = await startEmbeddedPostgres({ dataDir: join(directory, 'postgres'), log: createLogger('error') });
const closing: (() => unknown)[] = [];
let postmaster = 0;
try {
  const admin = openDatabase(postgres.address, { poolSize: 1, applicationName: 'bench' });
  for (const name of ['plain', 'home', 'one', 'two']) await admin`create database ${admin(name)}`;
  const [session] = await admin<[{ pid: number }]>`select pg_backend_pid() as pid`;
  postmaster = Number(/^PPid:\s*(\d+)/m.exec(await readFile(`/proc/${session.pid}/status`, 'utf8'))?.[1]);
  await admin.end();
  const gates = {
    ...{ plain: await openGate('plain'), home: await openGate('home') },
    ...{ one: await openGate('one'), two: await openGate('two') },
  };
  const cells = ['one', 'two'].map((name) => ({ name, database_url: gates[name as 'one'].url }));
  const plain = await start('plain', { DATABASE_URL: gates.plain.url });
  const celled = await start('home', { DATABASE_URL: gates.home.url, QUARRY_CELLS: JSON.stringify({ cells }) });
  const apps = { plain: await createTwoApps(plain), celled: await createTenants(celled) };
  if (values.only !== 'away') await measureCost(plain, celled, apps);
  if (values.only !== 'cost') await measureAway(celled, apps.celled, gates.two);
} finally {
  for (const close of closing.reverse()) await close();
  await postgres.stop();
  await rm(directory, { recursive: true, force: true });
}

type Tenant = { server: Server; key: string; user: string };
/** Two apps of one installation; with cells, each in the cell of its name. */
type Tenants = { one: Tenant; two: Tenant };
type Server = ServedProcess & { dataDir: string; databases: readonly string[] };
type Gate = { url: string; state: 'open' | 'silent' | 'ended'; set(state: Gate['state']): void };

/** A way to a database that can fall silent or end. */
async function openGate(database: string): Promise<Gate> {
  const target: DatabaseAddress = { ...(postgres.address as DatabaseAddress), database };
  const sockets = new Set<Socket>();
  const gate: Gate = {
    url: '',
    state: 'open',
    set(state) {
      gate.state = state;
      for (const socket of sockets)
        if (state === 'ended') socket.destroy();
        else if (state === 'silent') socket.pause();
        else socket.resume();
    },
  };
  const server = createServer((client) => {
    if (gate.state === 'ended') return client.destroy();
    const upstream = connect(socketPath(target));
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.on('data', (bytes) => other.write(bytes));
      socket.on('error', () => other.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
      if (gate.state === 'silent') socket.pause();
    }
    return undefined;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => server.close());
  gate.url = `postgres://${target.username}@127.0.0.1:${(server.address() as AddressInfo).port}/${database}`;
  return gate;
}

async function start(name: string, env: Record<string, string>): Promise<Server> {
  const dataDir = join(directory, name);
  const rates = { QUARRY_RATE_READS: '0', QUARRY_RATE_WRITES: '0' };
  const server = await startServe({
    ...{ QUARRY_DATA_DIR: dataDir, QUARRY_SECRET: randomBytes(32).toString('hex'), QUARRY_LOG_LEVEL: 'silent' },
    ...{ QUARRY_PROCESSES: '1', ...rates, ...env },
  });
  closing.push(() => server.stop());
  return { ...server, dataDir, databases: name === 'plain' ? ['plain'] : ['home', 'one', 'two'] };
}

async function readCredentials({ dataDir }: Server): Promise<{ secret_key: string; developer_token: string }> {
  return JSON.parse(await readFile(join(dataDir, 'credentials.json'), 'utf8'));
}

async function createTenant(server: Server, key?: string): Promise<Tenant> {
  const secret = key ?? (await readCredentials(server)).secret_key;
  const body = { email: `${randomBytes(6).toString('hex')}@example.com` };
  const user = await call<{ id: string }>(server, 'POST', '/api/v1/users', { 'x-api-key': secret }, body);
  const tenant = { server, key: secret, user: user.id };
  for (let n = 0; n < 50; n++) await put(tenant, n);
  return tenant;
}

async function createTwoApps(server: Server): Promise<Tenants> {
  const { developer_token: token } = await readCredentials(server);
  const headers = { authorization: `Bearer ${token}` };
  const apps = '/protected/api/v1/developer/apps';
  const created = await call<{ id: string }>(server, 'POST', apps, headers, { name: 'Second' });
  const { full_key: key } = await call<{ full_key: string }>(server, 'POST', `${apps}/${created.id}/keys`, headers, {
    type: 'secret',
  });
  return { one: await createTenant(server), two: await createTenant(server, key) };
}

/** An app in each cell. The first app is in one of them, and the next one goes to the other. */
async function createTenants(server: Server): Promise<Tenants> {
  const { one: first, two: second } = await createTwoApps(server);
  const cells = openDatabase(
    { ...(postgres.address as DatabaseAddress), database: 'home' },
    { poolSize: 1, applicationName: 'bench' },
  );
  const rows = await cells<{ cell: string; name: string }[]>`select cell, name from cell_apps`;
  await cells.end();
  const cellOf = (name: string) => rows.find((row) => row.name === name)?.cell;
  if (cellOf('My app') === cellOf('Second')) throw new Error('Both apps are in one cell.');
  return cellOf('My app') === 'one' ? { one: first, two: second } : { one: second, two: first };
}

/** The processor time of a server and of the database server, in milliseconds. */
type Spent = { server: number; database: number };

async function measureCost(plain: Server, celled: Server, apps: { plain: Tenants; celled: Tenants }): Promise<void> {
  const loads: Record<string, (tenant: Tenant, n: number) => Promise<unknown>> = { get, put };
  const turns = {
    'one app, no cells': { server: plain, tenants: [apps.plain.one] },
    'one cell': { server: celled, tenants: [apps.celled.one] },
    // Requests of two apps share no statement, with cells or without.
    'two apps, no cells': { server: plain, tenants: [apps.plain.one, apps.plain.two] },
    'two cells': { server: celled, tenants: [apps.celled.one, apps.celled.two] },
  };
  type Name = keyof typeof turns;
  const names = Object.keys(turns) as Name[];
  const idle = { plain: await measureIdle(plain), celled: await measureIdle(celled) };
  const count = Number(values.requests);
  for (const [what, load] of Object.entries(loads)) {
    const empty = <T>() => Object.fromEntries(names.map((name) => [name, [] as T[]])) as Record<Name, T[]>;
    const [spent, without] = [empty<Spent>(), empty<number>()];
    for (let round = -1; round < Number(values.rounds); round++)
      for (const name of round % 2 === 0 ? names : [...names].reverse()) {
        const { server, tenants } = turns[name];
        const [took, ms] = await measure(server, () => runLoad((n) => load(tenants[n % tenants.length] as Tenant, n)));
        // The first round warms everything up.
        if (round < 0) continue;
        spent[name].push({ server: took.server / count, database: took.database / count });
        const atRest = idle[server === plain ? 'plain' : 'celled'];
        without[name].push((took.server + took.database - ms * (atRest.server + atRest.database)) / count);
      }
    for (const name of names) {
      const ofPart = (part: keyof Spent) =>
        describe(
          spent[name].map((each) => 1_000 * each[part]),
          0,
        );
      console.log(`${what}, ${name}: ${ofPart('server')} µs in the server, ${ofPart('database')} in the database`);
    }
    const total = (name: Name) => spent[name].map(({ server, database }) => server + database);
    for (const [name, base] of [
      ['one cell', 'one app, no cells'],
      ['two cells', 'two apps, no cells'],
    ] as const) {
      console.log(`${what}, ${name} : ${base} = ${describe(ratios(total(name), total(base)), 3)}`);
      console.log(`  without work at rest = ${describe(ratios(without[name], without[base]), 3)}`);
    }
  }
}

function ratios(these: readonly number[], those: readonly number[]): number[] {
  return these.map((ms, n) => ms / (those[n] ?? 1));
}

async function measure(server: Server, work: () => Promise<unknown>): Promise<[took: Spent, ms: number]> {
  const read = () => ({ server: processorMs(server.pid), database: processorMsBelow(postmaster, server.databases) });
  const [before, startMs] = [read(), performance.now()];
  await work();
  const [after, ms] = [read(), performance.now() - startMs];
  return [{ server: after.server - before.server, database: after.database - before.database }, ms];
}

/** What a server spends without requests, in milliseconds of each. */
async function measureIdle(server: Server): Promise<Spent> {
  const [took, ms] = await measure(server, () => wait(1_000 * Number(values.idle)));
  const idle = { server: took.server / ms, database: took.database / ms };
  const shown = (part: keyof Spent) => (1_000 * idle[part]).toFixed(1);
  const name = server.dataDir.endsWith('plain') ? 'no cells' : 'with cells';
  console.log(`at rest, ${name}: ${shown('server')} ms a second in the server, ${shown('database')} in the database`);
  return idle;
}

async function measureAway(server: Server, { one, two }: Tenants, gate: Gate): Promise<void> {
  const seen: number[] = [];
  for (let pair = 0; pair < Number(values.pairs); pair++) {
    const states = ['open', pair % 2 === 0 ? 'silent' : 'ended'] as const;
    const p99: Record<string, number> = {};
    for (const state of pair % 2 === 0 ? states : [...states].reverse()) {
      gate.set(state);
      p99[state === 'open' ? 'there' : 'away'] = await p99At(one, two);
      gate.set('open');
      await untilReached(two);
    }
    const ratio = (p99.away ?? 0) / (p99.there ?? 1);
    seen.push(ratio);
    console.log(
      `pair ${pair + 1}, ${states[1]}: p99 ${p99.there?.toFixed(1)} ms, without the other cell ${p99.away?.toFixed(1)} ms: ${ratio.toFixed(2)}`,
    );
  }
  console.log(`p99 while the other cell is away: ${describe(seen, 2)} times; ${server.pid}`);
}

/** p99 of one app at a fixed rate, while the other app sends as many requests, which may fail. */
async function p99At(one: Tenant, two: Tenant): Promise<number> {
  const times: number[] = [];
  const all: Promise<unknown>[] = [];
  const began = performance.now();
  const everyMs = 1_000 / Number(values.rate);
  for (let n = 0; performance.now() - began < Number(values.seconds) * 1_000; n++) {
    await wait(Math.max(0, began + n * everyMs - performance.now()));
    const startMs = performance.now();
    all.push((n % 5 === 0 ? put(one, n) : get(one, n)).then(() => times.push(performance.now() - startMs)));
    all.push((n % 5 === 0 ? put(two, n) : get(two, n)).catch(() => {}));
  }
  await Promise.all(all);
  times.sort((a, b) => a - b);
  return times[Math.floor(0.99 * times.length)] ?? Number.NaN;
}

async function untilReached(tenant: Tenant): Promise<void> {
  for (;;) {
    try {
      return void (await get(tenant, 0));
    } catch {
      await wait(500);
    }
  }
}

function get({ server, key, user }: Tenant, n: number): Promise<unknown> {
  return call(server, 'GET', `/api/v1/kv/entry-${n % 50}?user=${user}`, { 'x-api-key': key });
}

function put({ server, key, user }: Tenant, n: number): Promise<unknown> {
  return call(server, 'PUT', `/api/v1/kv/entry-${n % 50}`, { 'x-api-key': key }, { user, value: String(n) });
}

function call<T>(
  { baseUrl }: Server,
  method: string,
  path: string,
  headers: Record<string, string>,
  body?: object,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const json = body === undefined ? undefined : JSON.stringify(body);
    const sent = request(
      `${baseUrl}${path}`,
      { method, agent, headers: { ...headers, ...(json && { 'content-type': 'application/json' }) } },
      (response) => {
        let text = '';
        response.on('data', (chunk) => {
          text += chunk;
        });
        response.on('end', () => {
          if ((response.statusCode ?? 0) < 300) resolve((text === '' ? undefined : JSON.parse(text)) as T);
          else reject(new Error(`${method} ${path}: ${response.statusCode} ${text}`));
        });
      },
    );
    sent.on('error', reject);
    sent.end(json);
  });
}

async function runLoad(load: (n: number) => Promise<unknown>): Promise<void> {
  let n = 0;
  const send = async () => {
    while (n < Number(values.requests)) await load(n++);
  };
  await Promise.all(Array.from({ length: atOnce }, send));
}

/** The median, and the quartiles beside it. */
function describe(numbers: readonly number[], digits: number): string {
  const sorted = [...numbers].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor(sorted.length * share)]?.toFixed(digits);
  return `${at(0.5)} (${at(0.25)} to ${at(0.75)})`;
}

/** The time that the threads of a process have run. */
function processorMs(pid: number): number {
  let ns = 0;
  try {
    for (const thread of readdirSync(`/proc/${pid}/task`))
      ns += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ', 1)[0]);
  } catch {
    // It has ended.
  }
  return ns / 1_000_000;
}

/**
 * The same of a postmaster and its processes, without those that are connected to other databases. Connections of pools
 * stay open between turns.
 */
function processorMsBelow(pid: number, databases: readonly string[]): number {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean),
  );
  const counted = children.filter((child) => {
    const database = databaseOf(child);
    return database === undefined || databases.includes(database);
  });
  return processorMs(pid) + counted.reduce((sum, child) => sum + processorMs(Number(child)), 0);
}

/** The database of a process of PostgreSQL, by its title; undefined if it works for all of them. */
function databaseOf(pid: string): string | undefined {
  try {
    const title = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    return /^postgres: \S+ (plain|home|one|two) /.exec(title)?.[1];
  } catch {
    return undefined;
  }
}
