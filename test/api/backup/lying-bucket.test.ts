import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { after, test } from 'node:test';
import { openBucketArchive } from '../../../src/backup/bucket.ts';
import { Progress } from '../../../src/backup/progress.ts';
import { restoreBackup } from '../../../src/backup/restore.ts';
import { takeBackupToBucket } from '../../../src/backup/take.ts';
import { verifyBackup } from '../../../src/backup/verify.ts';
import { BlobMissing } from '../../../src/blob/blob-store.ts';
import type { S3Objects } from '../../../src/blob/s3.ts';
import { createEmptyDatabase } from '../../support/database.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { startTestServer } from '../../support/server.ts';

/* A bucket that returns other bytes than it was given, and one that keeps less than it acknowledges. */

const server = await startTestServer({ env: { QUARRY_JOB_WORKERS: '0' } });
after(() => server.close());
const progress = new Progress(() => {});
const key = '9d0c2a4f6b8e1d3f5a7c9e0b2d4f6a8c';

/** The objects of a bucket in memory. `lie` changes what a read returns, `lose` what a write keeps. */
function memoryBucket(objects = new Map<string, Buffer>()) {
  const bucket = {
    objects,
    lie: (_name: string, bytes: Buffer | undefined): Buffer | undefined => bytes,
    lose: (_name: string): boolean => false,
  };
  const s3: S3Objects = {
    async put(name, body) {
      const chunks: Uint8Array[] = [];
      for await (const chunk of body instanceof Uint8Array ? [body] : body) chunks.push(chunk);
      const bytes = Buffer.concat(chunks);
      if (!bucket.lose(name)) objects.set(name, bytes);
      return { key: name, size: bytes.length, checksum: createHash('sha256').update(bytes).digest('hex') };
    },
    async read(name) {
      const bytes = bucket.lie(name, objects.get(name));
      if (bytes === undefined) throw new BlobMissing(name);
      return Readable.from([bytes]);
    },
    async stat(name) {
      const bytes = objects.get(name);
      return bytes && { size: bytes.length };
    },
    async remove(name) {
      objects.delete(name);
    },
    async *list(prefix = '') {
      for (const [name, bytes] of objects)
        if (name.startsWith(prefix)) yield { key: name, size: bytes.length, modifiedAt: new Date(0) };
    },
    close: async () => {},
  };
  return { bucket, archive: { objects: s3, key, name: 's3://memory' } };
}

const { directTarget: target, blobs, secrets } = server.services;
let taken = 0;
async function take(to: ReturnType<typeof memoryBucket>) {
  taken += 1;
  const clock = new ManualClock(new Date(Date.UTC(2030, 0, taken)));
  const deps = { target, blobs, secrets, clock, version: '0.0.0', progress };
  const { name } = await takeBackupToBucket(deps, to.archive, { keep: undefined, secret: undefined });
  return name.split('/').at(-1) ?? '';
}

const { secretKey } = await server.provision.app();
for (let at = 0; at < 3; at++) {
  const body = { filename: 'a', content_type: 'text/plain', data: Buffer.from(`contents ${at}`).toString('base64') };
  assert.equal((await server.api('POST', '/api/v1/files', { key: secretKey, body })).status, 201);
}

test('whatever a bucket returns in place of an object, verifying fails and restoring writes nothing', async () => {
  const honest = memoryBucket();
  const older = await take(honest);
  const stamp = await take(honest);
  await verifyBackup(openBucketArchive(honest.archive, stamp), progress);
  const names = [...honest.bucket.objects.keys()];
  const ofBackup = names.filter((name) => name.startsWith(`backups/${stamp}/`));
  const [blob = '', otherBlob = ''] = names.filter((name) => name.startsWith('blobs/'));
  const rows = ofBackup.filter((name) => name.includes('/rows/files'));
  const targets = [blob, ...rows, ...ofBackup.filter((name) => /manifest|blob-list|\/jobs\//.test(name))];
  assert.ok(targets.length >= 5, targets.join());
  const stored = (name: string) => honest.bucket.objects.get(name) ?? Buffer.alloc(0);
  const lies: Record<string, (name: string, bytes: Buffer) => Buffer | undefined> = {
    'nothing at all': () => undefined,
    'an empty object': () => Buffer.alloc(0),
    'the first half': (_name, bytes) => bytes.subarray(0, bytes.length / 2),
    'all but the last byte': (_name, bytes) => bytes.subarray(0, -1),
    'more bytes': (_name, bytes) => Buffer.concat([bytes, bytes]),
    'another bit': (_name, bytes) => Buffer.from(bytes.with(bytes.length >> 1, (bytes[bytes.length >> 1] ?? 0) ^ 1)),
    'another object': (name) => stored(name === blob ? otherBlob : blob),
    'the object of an older backup': (name) => (name === blob ? undefined : stored(name.replace(stamp, older))),
    'an error page': () => Buffer.from('<html>Bad gateway</html>'),
  };
  const { db, target: emptyTarget, drop } = await createEmptyDatabase();
  const written: string[] = [];
  const store = {
    ...blobs,
    list: async function* () {},
    put: async (name: string) => Promise.reject(written.push(name)),
  };
  try {
    for (const [what, lie] of Object.entries(lies))
      for (const name of targets) {
        honest.bucket.lie = (asked, bytes) => (asked === name && bytes ? lie(asked, bytes) : bytes);
        const archive = openBucketArchive(honest.archive, stamp);
        await assert.rejects(verifyBackup(archive, progress), `${what} for ${name}`);
        const deps = { db, target: emptyTarget, blobs: store, progress };
        await assert.rejects(
          restoreBackup(deps, archive, { openSecrets: () => secrets, reuseBlobs: false }),
          `${what} for ${name}`,
        );
      }
    assert.deepEqual(written, []);
    assert.equal((await db`select 1 from pg_class where relnamespace = 'public'::regnamespace`).length, 0);
  } finally {
    await drop();
  }
});

test('what a bucket acknowledged and did not keep is found when the backup is taken or verified', async () => {
  for (const lost of [/^blobs\//, /\/rows\/files/, /blob-list/, /manifest\.json/]) {
    const forgetful = memoryBucket();
    forgetful.bucket.lose = (name) => lost.test(name);
    const backUp = async () => {
      const stamp = await take(forgetful);
      await verifyBackup(openBucketArchive(forgetful.archive, stamp), progress);
    };
    await assert.rejects(backUp(), /missing|incomplete|not a backup|no manifest/i, `${lost}`);
  }
});
