import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { chmodSync, createReadStream, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openDatabase } from '../../src/db/database.ts';
import { findEmbeddedPostgres } from '../../src/db/embedded.ts';
import { findDrift } from '../../src/usage/store.ts';
import { openBreakingProxy } from '../support/breaking-proxy.ts';
import { externalDatabase } from '../support/cells-of-process.ts';
import type { FileBody } from '../support/files.ts';
import { sendRequest } from '../support/request.ts';
import { type ServedProcess, startServe } from '../support/serve.ts';
import { startWatch } from '../support/speed.ts';
import { uploadWithClient } from '../support/uploads.ts';

const bytesMb = Number(process.env.CRASH_UPLOAD_MB ?? 24);
const size = bytesMb * 1024 * 1024;
const breaks = 10;
/** The interruptions at which the server is killed as well. */
const kills = bytesMb > 100 ? [3, 8] : [5];
const retryMs = 100;

const directory = mkdtempSync(join(tmpdir(), 'quarry-crash-resumable-'));
chmodSync(directory, 0o755);
after(() => rmSync(directory, { recursive: true, force: true, maxRetries: 5 }));

/** A sparse file with random bytes at each interruption and in between, so that a byte in the wrong place shows. */
function writeSource(path: string): void {
  const file = openSync(path, 'w');
  const mark = randomBytes(4_096);
  for (let at = 0; at < size; at += size / (4 * breaks)) {
    mark.writeDoubleLE(at);
    writeSync(file, mark, 0, mark.length, Math.min(Math.floor(at), size - mark.length));
  }
  writeSync(file, Buffer.of(1), 0, 1, size - 1);
}

async function checksumOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 })) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

/** The largest resident set of a process so far, in MiB. */
function peakMemoryMb(pid: number): number {
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;
}

test(`an upload of ${bytesMb} MB that is interrupted ten times, once by killing the server, becomes one file`, async (t) => {
  const source = join(directory, 'source');
  writeSource(source);
  const external = await externalDatabase();
  const env = {
    ...external.settings,
    ...{ QUARRY_DATA_DIR: join(directory, 'data'), QUARRY_LOG_LEVEL: 'silent' },
  };
  let serve: ServedProcess = await startServe(env);
  const { secret_key: key } = JSON.parse(readFileSync(join(directory, 'data', 'credentials.json'), 'utf8')) as {
    secret_key: string;
  };
  const proxy = await openBreakingProxy(serve.baseUrl);
  let broken = 0;
  let restarting: Promise<void> | undefined;
  let peakMb = 0;
  proxy.breakAfter = Array.from({ length: breaks }, () => Math.floor(size / (breaks + 2)));
  proxy.onBreak = () => {
    broken += 1;
    if (!kills.includes(broken)) return;
    peakMb = Math.max(peakMb, peakMemoryMb(serve.pid));
    restarting = serve.kill().then(async () => {
      serve = await startServe(env);
      proxy.target = serve.baseUrl;
    });
  };
  const offsets: number[] = [];
  const watch = startWatch();
  const id = await uploadWithClient(createReadStream(source), {
    endpoint: `${proxy.url}/api/v1/uploads`,
    headers: { 'x-api-key': key },
    metadata: { filename: 'large.bin', filetype: 'application/octet-stream' },
    retryDelays: Array.from({ length: 600 }, () => retryMs),
    onAfterResponse(request, response) {
      if (request.getMethod() === 'HEAD' && response.getStatus() === 200)
        offsets.push(Number(response.getHeader('upload-offset')));
    },
  });
  const seconds = watch.passedMs() / 1_000;
  await restarting;
  peakMb = Math.max(peakMb, peakMemoryMb(serve.pid));
  try {
    assert.deepEqual([broken, proxy.breakAfter], [breaks, []]);
    assert.ok(offsets.length >= breaks);
    for (const [i, offset] of offsets.entries()) assert.ok(offset >= (offsets[i - 1] ?? 0));
    const { body: file } = await sendRequest<FileBody>(serve.baseUrl, 'GET', `/api/v1/files/${id}`, { key });
    assert.deepEqual([file.size, file.checksum], [size, await checksumOf(source)]);
    const target = external.target ?? findEmbeddedPostgres(env.QUARRY_DATA_DIR);
    assert.ok(target !== undefined);
    const db = openDatabase(target, { poolSize: 1, applicationName: 'quarry-test' });
    const rows = await db<{ blobKey: string }[]>`select blob_key from files`;
    assert.deepEqual(await db.begin(findDrift), []);
    await db.end({ timeout: 5 });
    const [app = '', name = ''] = (rows[0]?.blobKey ?? '').split('/');
    assert.equal(rows.length, 1);
    assert.equal(statSync(join(env.QUARRY_DATA_DIR, 'blobs', app, name.slice(-2), name)).size, size);
    t.diagnostic(`${bytesMb} MB in ${seconds.toFixed(1)} s, at most ${Math.round(peakMb)} MB of memory`);
  } finally {
    await proxy.close();
    await serve.stop();
  }
});
