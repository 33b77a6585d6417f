/**
 * Uploads and downloads a large file, against a bare node:http server that hashes and fsyncs, on the same disk in
 * turns; and how much more memory the server holds while it does so.
 *   node bench/files.ts [--megabytes 500] [--rounds 3]
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
import { keepRatio } from './ratios.ts';

const { values } = parseArgs({
  options: { megabytes: { type: 'string', default: '500' }, rounds: { type: 'string', default: '3' } },
});
const size = Number(values.megabytes) * 1_000_000;
const rounds = Number(values.rounds);
const chunk = randomBytes(1_000_000);

/** The checksum of the data that every upload sends. */
const expected = (() => {
  const hash = createHash('sha256');
  for (let sent = 0; sent < size; sent += chunk.length) hash.update(chunk);
  return hash.digest('hex');
})();

type Measured = { seconds: number; riseMb: number | undefined };
type Server = { pid: number; up(): Promise<void>; down(): Promise<void>; remove(): Promise<unknown> };

const directory = mkdtempSync(join(tmpdir(), 'quarry-bench-files-'));
const bareProcess = spawn(process.execPath, [
  fileURLToPath(new URL('./files/bare-server.ts', import.meta.url)),
  directory,
]);
const quarry = await startServe({ QUARRY_DATA_DIR: join(directory, 'data'), QUARRY_LOG_LEVEL: 'error' });
try {
  const servers = { bare: await bareServer(bareProcess), quarry: quarryServer() };
  const results = new Map<string, Measured[]>();
  for (let round = 0; round <= rounds; round++)
    for (const [name, server] of Object.entries(servers)) {
      for (const way of ['up', 'down'] as const) {
        const measured = await measure(server, () => server[way]());
        // The first round only warms up.
        if (round > 0) results.set(`${name} ${way}`, [...(results.get(`${name} ${way}`) ?? []), measured]);
      }
      await server.remove();
    }
  for (const way of ['up', 'down']) {
    const [bare, own] = ['bare', 'quarry'].map((name) => results.get(`${name} ${way}`) ?? []) as [
      Measured[],
      Measured[],
    ];
    const [bareSeconds, ownSeconds] = [median(bare), median(own)];
    keepRatio(`files ${way}`, bareSeconds / ownSeconds);
    const rise = Math.max(...own.map(({ riseMb }) => riseMb ?? Number.NaN));
    console.log(
      `${way.padEnd(4)} ${(size / 1e6 / ownSeconds).toFixed(0)} MB/s, bare ${(size / 1e6 / bareSeconds).toFixed(0)} MB/s, ` +
        `ratio ${(bareSeconds / ownSeconds).toFixed(2)} (at least 0.60); resident memory +${rise.toFixed(0)} MB (below 64)`,
    );
  }
} finally {
  bareProcess.kill();
  await quarry.stop();
  rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
}

function quarryServer(): Server {
  const { secret_key: key } = JSON.parse(readFileSync(join(directory, 'data', 'credentials.json'), 'utf8')) as {
    secret_key: string;
  };
  let url = '';
  let id = '';
  return {
    pid: quarry.pid,
    async up() {
      const headers = { 'x-api-key': key, 'content-type': 'application/octet-stream', 'x-filename': 'large' };
      const answer = JSON.parse(await send(`${quarry.baseUrl}/api/v1/files/uploads`, headers)) as {
        id: string;
        url: string;
        checksum: string;
      };
      if (answer.checksum !== expected) throw new Error('The server hashed other bytes.');
      url = answer.url;
      id = answer.id;
    },
    down: () => receive(url),
    remove: () => fetch(`${quarry.baseUrl}/api/v1/files/${id}`, { method: 'DELETE', headers: { 'x-api-key': key } }),
  };
}

async function bareServer(child: ChildProcess): Promise<Server> {
  const port = await new Promise<string>((resolve) =>
    child.stdout?.once('data', (data) => resolve(String(data).trim())),
  );
  const url = `http://127.0.0.1:${port}/`;
  return {
    pid: child.pid ?? 0,
    up: async () => {
      if ((await send(url, {})) !== expected) throw new Error('The bare server hashed other bytes.');
    },
    down: () => receive(url),
    remove: () => fetch(url, { method: 'DELETE' }),
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

async function measure({ pid }: Server, work: () => Promise<void>): Promise<Measured> {
  const before = memoryMb(pid, 'VmRSS');
  // From here on, VmHWM is the highest value since now (Linux only).
  if (before !== undefined) writeFileSync(`/proc/${pid}/clear_refs`, '5');
  const start = performance.now();
  await work();
  const seconds = (performance.now() - start) / 1_000;
  const highest = memoryMb(pid, 'VmHWM');
  return { seconds, riseMb: before === undefined || highest === undefined ? undefined : highest - before };
}

function memoryMb(pid: number, field: 'VmRSS' | 'VmHWM'): number | undefined {
  if (process.platform !== 'linux') return undefined;
  const line = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return line?.[1] === undefined ? undefined : Number(line[1]) / 1_024;
}

function median(measured: Measured[]): number {
  const sorted = measured.map(({ seconds }) => seconds).sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
