import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openDiskBlobStore } from '../../src/blob/disk.ts';
import { openDatabase } from '../../src/db/database.ts';
import { findEmbeddedPostgres } from '../../src/db/embedded.ts';
import { checkFiles, type Finding } from '../../src/files/fsck.ts';
import { sweepBlobs } from '../../src/files/sweep.ts';
import { findDrift } from '../../src/usage/store.ts';
import { externalDatabase } from '../support/cells-of-process.ts';
import { bytesOf, type FileBody } from '../support/files.ts';
import { startServe } from '../support/serve.ts';
import { until } from '../support/until.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-crash-uploads-'));
chmodSync(dataDir, 0o755);
after(() => rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 }));

const rounds = Number(process.env.CRASH_ROUNDS ?? 1);
const uploadersCount = 6;
const acknowledgedPerRound = 25;

type Acknowledged = { id: string; checksum: string };

/** Uploads one file after another, raw ones in chunks and JSON ones, until the server has ended. */
async function uploadUntilGone(baseUrl: string, key: string, seed: number, done: (file: Acknowledged) => void) {
  for (let turn = 0; ; turn++) {
    const bytes = bytesOf(50_000 + ((seed * 7_919 + turn * 104_729) % 900_000));
    const raw = (seed + turn) % 3 > 0;
    const answer = await new Promise<string | undefined>((resolve) => {
      const outgoing = httpRequest(`${baseUrl}/api/v1/files${raw ? '/uploads' : ''}`, {
        method: 'POST',
        headers: { 'x-api-key': key, 'x-filename': 'a', 'content-type': raw ? 'x/y' : 'application/json' },
      });
      outgoing.on('error', () => resolve(undefined));
      outgoing.on('response', (incoming) => {
        let text = '';
        incoming.on('data', (chunk) => {
          text += chunk;
        });
        incoming.on('end', () => resolve(incoming.statusCode === 201 ? text : undefined));
        incoming.on('error', () => resolve(undefined));
      });
      if (raw) for (let at = 0; at < bytes.length; at += 40_000) outgoing.write(bytes.subarray(at, at + 40_000));
      else outgoing.write(JSON.stringify({ filename: 'a', content_type: 'x/y', data: bytes.toString('base64') }));
      outgoing.end();
    });
    if (answer === undefined) return;
    const { id, checksum } = JSON.parse(answer) as FileBody;
    assert.equal(checksum, createHash('sha256').update(bytes).digest('hex'));
    done({ id, checksum });
  }
}

const external = await externalDatabase();
const env = { QUARRY_DATA_DIR: dataDir, QUARRY_LOG_LEVEL: 'silent', ...external.settings };

test('a server killed during uploads keeps every acknowledged file, and a sweep removes everything else', async () => {
  const acknowledged: Acknowledged[] = [];
  for (let round = 0; round < rounds; round++) {
    const serve = await startServe(env);
    const { secret_key: key } = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as {
      secret_key: string;
    };
    const enough = acknowledged.length + acknowledgedPerRound;
    let killing: Promise<void> | undefined;
    const uploaders = Array.from({ length: uploadersCount }, (_, seed) =>
      uploadUntilGone(serve.baseUrl, key, seed + round * 100, (file) => {
        acknowledged.push(file);
        if (acknowledged.length >= enough) killing ??= serve.kill();
      }),
    );
    await Promise.all(uploaders);
    await killing;
  }
  assert.ok(acknowledged.length >= rounds * acknowledgedPerRound);

  const serve = await startServe(env);
  const target = external.target ?? findEmbeddedPostgres(dataDir);
  assert.ok(target !== undefined);
  const db = openDatabase(target, { poolSize: 2, applicationName: 'quarry-test' });
  try {
    const blobs = await openDiskBlobStore(join(dataDir, 'blobs'));
    const later = new Date(Date.now() + 24 * 60 * 60 * 1_000);
    const findings: Finding[] = [];
    const report = await checkFiles({ db, blobs, now: later }, false, (finding) => findings.push(finding));
    assert.deepEqual(findings, []);
    const kept = await db<{ checksum: Buffer }[]>`select checksum from files`;
    assert.equal(report.files, kept.length);
    assert.ok(kept.length >= acknowledged.length);
    const checksums = new Set(kept.map(({ checksum }) => checksum.toString('hex')));
    for (const { checksum } of acknowledged) assert.ok(checksums.has(checksum));
    assert.deepEqual(await db.begin(findDrift), []);
    // Moves the clock forward by a day.
    await db`update doomed_blobs set due_at = now()`;
    await sweepBlobs({ db, blobs });
    await blobs.sweepTemporary(0);
    // The server may be deleting some of them itself.
    await until(async () => (await db`select 1 from doomed_blobs`).length === 0);
    // The only other file is the store's own id.
    const onDisk = readdirSync(join(dataDir, 'blobs'), { recursive: true, withFileTypes: true });
    assert.equal(onDisk.filter((entry) => entry.isFile()).length, kept.length + 1);
  } finally {
    await db.end({ timeout: 5 });
    await serve.stop();
  }
});
