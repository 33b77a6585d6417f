/**
 * Many open event streams in one server process, each of a run of its own: memory, and how long an update takes to
 * reach one of them and all of them; beside it a bare node:http server that holds as many idle streams.
 *   node bench/streams.ts [--streams 10000] [--updates 300]
 * Needs as many open files as streams, in the server and here (ulimit -n).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { openDatabase, production } from '../src/db/database.ts';
import { findEmbeddedPostgres } from '../src/db/embedded.ts';
import { announceChange } from '../src/http/sse.ts';
import { formatId, newUuid, parseId } from '../src/ids.ts';
import { startServe } from '../test/support/serve.ts';

const { values } = parseArgs({
  options: { streams: { type: 'string', default: '10000' }, updates: { type: 'string', default: '300' } },
});
const streamCount = Number(values.streams);
const openAtOnce = 50;

const bareServer = `
  const http = require('node:http');
  http.createServer((q, s) => { s.writeHead(200, { 'content-type': 'text/event-stream' }); s.write('data: 1\\n\\n'); })
    .listen(0, '127.0.0.1', function () { console.log(this.address().port); });`;

const bareChild = spawn(process.execPath, ['-e', bareServer], { stdio: ['ignore', 'pipe', 'inherit'] });
const port = await new Promise<number>((resolve) => bareChild.stdout.once('data', (data) => resolve(Number(data))));
const bareStreams = await openAll(port, () => '/', {});
const bareMb = residentMb(bareChild);
for (const stream of bareStreams) stream.socket.destroy();
bareChild.kill();

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-bench-'));
const server = await startServe({ QUARRY_DATA_DIR: dataDir, QUARRY_LOG_LEVEL: 'error' });
try {
  const credentials = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as Record<string, string>;
  const address = findEmbeddedPostgres(dataDir);
  if (!address) throw new Error('The embedded database does not run.');
  const db = openDatabase(address, { poolSize: 2, applicationName: 'bench' });
  const appId = parseId('app', credentials.app ?? '') ?? '';
  const automationId = newUuid();
  const runs = Array.from({ length: streamCount }, newUuid);
  await db`insert into automations (app_id, id, sandbox_id, name, type) values (${appId}, ${automationId}, ${production}, 'b', 'invoked')`;
  await db`insert into automation_runs (app_id, id, sandbox_id, automation_id, type, status, payload)
    select ${appId}, id, ${production}, ${automationId}, 'invoked', 'running', '{}' from unnest(${runs}::uuid[]) id`;

  const idleMb = residentMb(server);
  const openedAt = performance.now();
  const path = (n: number) => `/api/v1/automation_runs/${formatId('automationRun', runs[n] ?? '')}/stream`;
  const streams = await openAll(Number(new URL(server.baseUrl).port), path, {
    'x-api-key': credentials.secret_key ?? '',
  });
  const openMs = performance.now() - openedAt;
  const fullMb = residentMb(server);
  print(`${streamCount} streams opened`, `${openMs.toFixed(0)} ms`);
  print(
    'memory of the server',
    `${fullMb} MB in all, ${fullMb - idleMb} MB for the streams; bare node:http ${bareMb} MB`,
  );

  const delays: number[] = [];
  for (let update = 0; update < Number(values.updates); update++) {
    const n = (update * 7_919) % streamCount;
    const stream = streams[n];
    const run = runs[n];
    if (!stream || run === undefined) continue;
    const arrived = stream.next();
    const start = performance.now();
    await db.begin(async (tx) => {
      await tx`update automation_runs
        set version = version + 1,
        changes = note_change(changes, version + 1, status, now(), null)
        where app_id = ${appId} and id = ${run}`;
      await announceChange(tx, 'run', appId, run);
    });
    await arrived;
    delays.push(performance.now() - start);
  }
  delays.sort((a, b) => a - b);
  const at = (share: number) => (delays[Math.floor(delays.length * share)] ?? Number.NaN).toFixed(1);
  print('an update to one stream, commit included', `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`);

  const all = Promise.all(streams.map((stream) => stream.next()));
  const start = performance.now();
  await db.begin(async (tx) => {
    await tx`update automation_runs
      set version = version + 1,
      changes = note_change(changes, version + 1, status, now(), null)
      where app_id = ${appId} and automation_id = ${automationId}`;
    await tx`select pg_notify('quarry_changes', 'run/' || app_id || '/' || id) from automation_runs
      where app_id = ${appId} and automation_id = ${automationId}`;
  });
  const committed = performance.now();
  await all;
  print(
    'an update to all streams',
    `${(performance.now() - committed).toFixed(0)} ms after its commit (${(committed - start).toFixed(0)} ms)`,
  );
  for (const stream of streams) stream.socket.destroy();
  await db.end();
} finally {
  await server.stop();
  rmSync(dataDir, { recursive: true, force: true });
}

type OpenStream = { socket: Socket; next(): Promise<void> };

async function openAll(
  onPort: number,
  path: (n: number) => string,
  headers: Record<string, string>,
): Promise<OpenStream[]> {
  const streams: OpenStream[] = new Array(streamCount);
  let next = 0;
  const work = async () => {
    while (next < streamCount) {
      const n = next++;
      streams[n] = await openStream(onPort, path(n), headers);
    }
  };
  await Promise.all(Array.from({ length: openAtOnce }, work));
  return streams;
}

/** A stream read from the bare socket: what is counted here is the server's cost, not a client's. */
async function openStream(onPort: number, path: string, headers: Record<string, string>): Promise<OpenStream> {
  const socket = connect(onPort, '127.0.0.1');
  let wake: (() => void) | undefined;
  const next = () =>
    new Promise<void>((resolve) => {
      wake = resolve;
    });
  socket.on('data', (chunk) => {
    if (chunk.includes('data: ')) wake?.();
  });
  socket.on('error', (error) => {
    throw error;
  });
  const first = next();
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`GET ${path} HTTP/1.1\r\nhost: bench\r\n${lines.join('')}\r\n`);
  await first;
  return { socket, next };
}

function residentMb(process: ChildProcess | { pid: number }): number {
  const status = readFileSync(`/proc/${process.pid}/status`, 'utf8');
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
}

function print(name: string, value: string): void {
  globalThis.process.stdout.write(`${name.padEnd(44)} ${value}\n`);
}
