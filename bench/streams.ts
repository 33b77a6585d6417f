/**
 * Many open event streams in one server process, each of a different run, then each of a different user's entries:
 * memory, and how long a change takes to reach one of them and all of them; beside them a bare node:http server that
 * holds as many idle streams.
 *   node bench/streams.ts [--streams 10000] [--updates 300] [--only runs|watches] Needs as many open files as
 *   streams, in the server and here (ulimit -n).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { openDatabase } from '../src/db/database.ts';
import { findEmbeddedPostgres } from '../src/db/embedded.ts';
import { newUuid, parseId } from '../src/lib/ids.ts';
import { startServe } from '../test/support/serve.ts';
import { type Kind, runs, watches } from './streams/kinds.ts';

const { values } = parseArgs({
  options: {
    streams: { type: 'string', default: '10000' },
    updates: { type: 'string', default: '300' },
    only: { type: 'string' },
  },
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

for (const kind of [runs, watches]) if (values.only === undefined || values.only === kind.name) await measure(kind);

/** Opens the streams of a kind on a separate server, and changes what they show. */
async function measure(kind: Kind): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'quarry-bench-'));
  const server = await startServe({ QUARRY_DATA_DIR: dataDir, QUARRY_LOG_LEVEL: 'error' });
  try {
    const credentials = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as Record<string, string>;
    const address = findEmbeddedPostgres(dataDir);
    if (!address) throw new Error('The embedded database does not run.');
    const db = openDatabase(address, { poolSize: 2, applicationName: 'bench' });
    const appId = parseId('app', credentials.app ?? '') ?? '';
    const ids = Array.from({ length: streamCount }, newUuid);
    await kind.prepare(db, appId, ids);

    const idleMb = residentMb(server);
    const openedAt = performance.now();
    const streams = await openAll(Number(new URL(server.baseUrl).port), (n) => kind.path(ids[n] ?? ''), {
      'x-api-key': credentials.secret_key ?? '',
    });
    const openMs = performance.now() - openedAt;
    const fullMb = residentMb(server);
    print(`${streamCount} ${kind.name} opened`, `${openMs.toFixed(0)} ms`);
    const perStream = (((fullMb - idleMb) * 1_024) / streamCount).toFixed(1);
    print(
      'memory of the server',
      `${fullMb} MB in all, ${fullMb - idleMb} MB for the streams (${perStream} KiB each); bare node:http ${bareMb} MB`,
    );

    const delays: number[] = [];
    for (let update = 0; update < Number(values.updates); update++) {
      const n = (update * 7_919) % streamCount;
      const [stream, id] = [streams[n], ids[n]];
      if (!stream || id === undefined) continue;
      const arrived = stream.next();
      const start = performance.now();
      await kind.changeOne(db, appId, id);
      await arrived;
      delays.push(performance.now() - start);
    }
    delays.sort((a, b) => a - b);
    const at = (share: number) => (delays[Math.floor(delays.length * share)] ?? Number.NaN).toFixed(1);
    print('a change for one stream, commit included', `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`);

    const all = Promise.all(streams.map((stream) => stream.next()));
    const start = performance.now();
    await kind.changeAll(db, appId);
    const committed = performance.now();
    await all;
    print(
      'a change for all streams',
      `${(performance.now() - committed).toFixed(0)} ms after its commit (${(committed - start).toFixed(0)} ms)`,
    );
    for (const stream of streams) stream.socket.destroy();
    await db.end();
  } finally {
    await server.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
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

/** Reads a stream from the bare socket, so that the server's cost is measured and not a client's. */
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
