/**
 * Whether parsing keeps other requests waiting, in one run:
 *   node bench/parse-latency.ts [FILE…] [--seconds 8] [--rounds 3]
 * The p99 of a key-value GET at a steady 200 requests/s, while the machine is otherwise idle and while both parser processes of
 * a whole server are kept busy with documents. Without files, two small PDFs of this project's.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setInterval } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Pool } from 'undici';
import { samplePdf } from '../src/content/parse/sample-pdf.ts';
import { startServe } from '../test/support/serve.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: 'string', default: '8' }, rounds: { type: 'string', default: '3' } },
});
const parsersAtOnce = 2;
const fixture = fileURLToPath(new URL('../test/fixtures/documents/right-to-left.pdf', import.meta.url));
const documents =
  positionals.length > 0 ? positionals.map((path) => readFileSync(path)) : [samplePdf(), readFileSync(fixture)];
const names = positionals.length > 0 ? positionals.map((path) => basename(path)) : ['page.pdf', 'right-to-left.pdf'];

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-bench-'));
const server = await startServe({
  QUARRY_DATA_DIR: dataDir,
  QUARRY_LOG_LEVEL: 'error',
  QUARRY_PARSE_WORKERS: String(parsersAtOnce),
});
try {
  const { secret_key: key = '' } = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as {
    secret_key?: string;
  };
  const headers = { 'x-api-key': key, 'content-type': 'application/json' };

  const send = async <T>(method: string, path: string, body: unknown): Promise<T> => {
    const response = await fetch(`${server.baseUrl}/api/v1${path}`, { method, headers, body: JSON.stringify(body) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} answers ${response.status}: ${text}`);
    return JSON.parse(text) as T;
  };
  const client = new Pool(server.baseUrl, { connections: 8 });
  const user = await send<{ id: string }>('POST', '/users', { email: 'bench@example.com', name: 'Bench' });
  await send('PUT', '/kv/key', { user: user.id, value: 'value' });
  const files: string[] = [];
  for (const [i, bytes] of documents.entries()) {
    const upload = {
      filename: names[i],
      content_type: 'application/octet-stream',
      data: Buffer.from(bytes).toString('base64'),
    };
    files.push((await send<{ id: string }>('POST', '/files', upload)).id);
  }

  /** Sends one GET every 5 ms for this long, whether or not earlier ones have finished. Returns milliseconds. */
  const measure = async (): Promise<{ p50: number; p99: number }> => {
    const took: number[] = [];
    const under: Promise<void>[] = [];
    const get = async (): Promise<void> => {
      const startedAt = performance.now();
      const { statusCode, body } = await client.request({
        method: 'GET',
        path: `/api/v1/kv/key?user=${user.id}`,
        headers,
      });
      await body.dump();
      if (statusCode !== 200) throw new Error(`GET answers ${statusCode}`);
      took.push(performance.now() - startedAt);
    };
    const count = Number(values.seconds) * 200;
    for await (const _ of setInterval(5)) {
      under.push(get());
      if (under.length >= count) break;
    }
    await Promise.all(under);
    took.sort((x, y) => x - y);
    const at = (share: number) => took[Math.floor(took.length * share)] ?? Number.NaN;
    return { p50: at(0.5), p99: at(0.99) };
  };

  let parsing = false;
  let parsed = 0;
  const keepParsing = async (lane: number): Promise<void> => {
    for (let i = lane; parsing; i++) {
      const file = files[i % files.length];
      await send('POST', '/extractions', { file, destination_kind: 'storage', destination_path: `bench-${lane}` });
      parsed += 1;
    }
  };

  await measure();
  const idle: { p50: number; p99: number }[] = [];
  const busy: { p50: number; p99: number }[] = [];
  let parsingSeconds = 0;
  for (let round = 0; round < Number(values.rounds); round++) {
    idle.push(await measure());
    parsing = true;
    const lanes = Array.from({ length: parsersAtOnce }, (_, lane) => keepParsing(lane));
    const startedAt = performance.now();
    busy.push(await measure());
    parsing = false;
    await Promise.all(lanes);
    parsingSeconds += (performance.now() - startedAt) / 1000;
  }
  const middle = (of: { p50: number; p99: number }[], name: 'p50' | 'p99') =>
    of.map((one) => one[name]).sort((a, b) => a - b)[Math.floor(of.length / 2)] ?? Number.NaN;
  await client.close();
  console.log(`idle           p50 ${middle(idle, 'p50').toFixed(1)} ms, p99 ${middle(idle, 'p99').toFixed(1)} ms`);
  console.log(
    `while parsing  p50 ${middle(busy, 'p50').toFixed(1)} ms, p99 ${middle(busy, 'p99').toFixed(1)} ms, ${(parsed / parsingSeconds).toFixed(1)} documents/s beside it`,
  );
  console.log(`p99 while parsing = ${(middle(busy, 'p99') / middle(idle, 'p99')).toFixed(2)} x idle`);
} finally {
  await server.stop();
  rmSync(dataDir, { recursive: true, force: true });
}
