/**
 * Uploads and downloads a large file, against a bare node:http server that hashes and fsyncs, on the same disk in
 * turns: alone, and beside slow downloads of the same file. Reports the processor time of both servers, and how much
 * more memory ours holds while it does so.
 *   node bench/files.ts [--megabytes 500] [--rounds 3] [--readers 1000]
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startServe } from '../test/support/serve.ts';
import { openSlowReaders } from './files/slow-readers.ts';
import { keepRatio } from './ratios.ts';

const { values } = parseArgs({
  options: {
    megabytes: { type: 'string', default: '500' },
    rounds: { type: 'string', default: '3' },
    readers: { type: 'string', default: '1000' },
  },
});
const size = Number(values.megabytes) * 1_000_000;
const rounds = Number(values.rounds);
/** Processor time and memory are read from /proc. */
const isLinux = process.platform === 'linux';
const readers = Number(values.readers);
const chunk = randomBytes(1_000_000);

/** The checksum of the data that every upload sends. */
const expected = (() => {
  const hash = createHash('sha256');
  for (let sent = 0; sent < size; sent += chunk.length) hash.update(chunk);
  return hash.digest('hex');
})();

/** `riseMb` is by how much the resident memory rose, `residentMb` the most that it was. */
type Measured = { seconds: number; processorSeconds: number; riseMb: number; residentMb: number };
type Stored = { url: string; checksum: string; remove(): Promise<unknown> };
type Server = { pid: number; up(): Promise<Stored> };
type Results = Record<string, Measured[]>;

const directory = mkdtempSync(join(tmpdir(), 'quarry-bench-files-'));
const bareProcess = spawn(process.execPath, [
  fileURLToPath(new URL('./files/bare-server.ts', import.meta.url)),
  directory,
]);
const quarry = await startServe({ QUARRY_DATA_DIR: join(directory, 'data'), QUARRY_LOG_LEVEL: 'error' });
try {
  const servers = { bare: await bareServer(bareProcess), quarry: quarryServer() };
  print('', await measureRounds(servers, 0));
  if (readers > 0) print(', slow readers', await measureRounds(servers, readers));
} finally {
  bareProcess.kill();
  await quarry.stop();
  rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
}

/** Measures the servers in turns. `readerCount` slow readers download another file meanwhile. */
async function measureRounds(servers: Record<string, Server>, readerCount: number): Promise<Results> {
  const results: Results = {};
  for (let round = 0; round <= rounds; round++)
    for (const [name, server] of Object.entries(servers)) {
      async function measure<T>(what: string, work: () => Promise<T>): Promise<T> {
        const [measured, result] = await measureWork(server.pid, work);
        // The first round only warms up.
        if (round > 0) results[`${name} ${what}`] = [...(results[`${name} ${what}`] ?? []), measured];
        return result;
      }
      const read = readerCount === 0 ? undefined : await server.up();
      const close = read && (await measure('readers', () => openSlowReaders(read.url, readerCount)));
      const stored = await measure('up', () => server.up());
      if (stored.checksum !== expected) throw new Error('The server hashed other bytes.');
      await measure('down', () => receive(stored.url));
      await close?.();
      await stored.remove();
      await read?.remove();
    }
  return results;
}

function print(beside: string, results: Results): void {
  for (const way of ['up', 'down']) {
    const [bare, own] = [results[`bare ${way}`] ?? [], results[`quarry ${way}`] ?? []];
    const [bareSeconds, ownSeconds] = [median(bare, 'seconds'), median(own, 'seconds')];
    keepRatio(`files ${way}${beside}`, bareSeconds / ownSeconds);
    const processor = [median(own, 'processorSeconds'), median(bare, 'processorSeconds')] as const;
    console.log(
      `${way}${beside}: ${(size / 1e6 / ownSeconds).toFixed(0)} MB/s, bare ${(size / 1e6 / bareSeconds).toFixed(0)} MB/s, ` +
        `ratio ${(bareSeconds / ownSeconds).toFixed(2)} (at least 0.85); ` +
        `processor time ${processor[0].toFixed(2)} s, bare ${processor[1].toFixed(2)} s; ` +
        `resident memory +${highest(own, 'riseMb')} MB (below 64)`,
    );
  }
  if (beside === '') return;
  const [own, bare] = ['quarry', 'bare'].map((name) => highest(results[`${name} readers`] ?? [], 'residentMb'));
  console.log(`resident memory with the slow readers: ${own} MB, bare ${bare} MB`);
}

function quarryServer(): Server {
  const { secret_key: key } = JSON.parse(readFileSync(join(directory, 'data', 'credentials.json'), 'utf8')) as {
    secret_key: string;
  };
  return {
    pid: quarry.pid,
    async up() {
      const headers = { 'x-api-key': key, 'content-type': 'application/octet-stream', 'x-filename': 'large' };
      const { id, url, checksum } = JSON.parse(await send(`${quarry.baseUrl}/api/v1/files/uploads`, headers)) as {
        id: string;
        url: string;
        checksum: string;
      };
      const file = `${quarry.baseUrl}/api/v1/files/${id}`;
      return { url, checksum, remove: () => fetch(file, { method: 'DELETE', headers: { 'x-api-key': key } }) };
    },
  };
}

async function bareServer(child: ChildProcess): Promise<Server> {
  const port = await new Promise<string>((resolve) =>
    child.stdout?.once('data', (data) => resolve(String(data).trim())),
  );
  return {
    pid: child.pid ?? 0,
    up: async () => {
      const [checksum = '', path = ''] = (await send(`http://127.0.0.1:${port}/`, {})).split(' ');
      const url = `http://127.0.0.1:${port}${path}`;
      return { url, checksum, remove: () => fetch(url, { method: 'DELETE' }) };
    },
  };
}

function send(url: string, headers: Record<string, string>): Promise<string> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method: 'POST', headers: { ...headers, 'content-length': size } }, (incoming) => {
      let text = '';
      incoming.on('data', (data) => {
        text += data;
      });
      incoming.on('end', () =>
        (incoming.statusCode ?? 500) < 300 ? resolve(text) : reject(new Error(`${incoming.statusCode} ${text}`)),
      );
    });
    outgoing.on('error', reject);
    let sent = 0;
    const write = () => {
      while (sent < size) {
        sent += chunk.length;
        if (!outgoing.write(chunk)) {
          outgoing.once('drain', write);
          return;
        }
      }
      outgoing.end();
    };
    write();
  });
}

function receive(url: string): Promise<void> {
  return new Promise((resolve, reject) => {
    request(url, (incoming) => {
      let received = 0;
      incoming.on('data', (data: Buffer) => {
        received += data.length;
      });
      incoming.on('end', () =>
        received === size ? resolve() : reject(new Error(`${received} of ${size} bytes came.`)),
      );
      incoming.on('error', reject);
    })
      .on('error', reject)
      .end();
  });
}

async function measureWork<T>(pid: number, work: () => Promise<T>): Promise<[Measured, T]> {
  const before = memoryMb(pid, 'VmRSS');
  // From here on, VmHWM is the highest value since now.
  if (isLinux) writeFileSync(`/proc/${pid}/clear_refs`, '5');
  const processorBefore = processorSeconds(pid);
  const start = performance.now();
  const result = await work();
  const seconds = (performance.now() - start) / 1_000;
  const highestMb = memoryMb(pid, 'VmHWM');
  const measured = {
    seconds,
    processorSeconds: processorSeconds(pid) - processorBefore,
    riseMb: highestMb - before,
    residentMb: highestMb,
  };
  return [measured, result];
}

/** Of all threads of the process, in user and system mode. */
function processorSeconds(pid: number): number {
  if (!isLinux) return Number.NaN;
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

function memoryMb(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  if (!isLinux) return Number.NaN;
  const line = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(line?.[1]) / 1_024;
}

function highest(measured: Measured[], member: keyof Measured): string {
  return Math.max(...measured.map((one) => one[member])).toFixed(0);
}

function median(measured: Measured[], member: keyof Measured): number {
  const sorted = measured.map((one) => one[member]).sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
