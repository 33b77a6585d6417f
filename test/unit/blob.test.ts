import assert from 'node:assert/strict';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { BlobChecksumMismatch, BlobMissing, type BlobStore, BlobTooLarge } from '../../src/blob/blob-store.ts';
import { openDiskBlobStore } from '../../src/blob/disk.ts';
import { openBlobStore } from '../../src/blob/open.ts';
import { openS3BlobStore } from '../../src/blob/s3.ts';
import { readConfig } from '../../src/config/config.ts';
import { startS3Server } from '../support/s3-server.ts';

type Opened = { store: BlobStore; close(): Promise<void> };

async function openDisk(): Promise<Opened> {
  const directory = await mkdtemp(join(tmpdir(), 'quarry-blobs-'));
  const store = await openDiskBlobStore(join(directory, 'blobs'));
  return { store, close: () => rm(directory, { recursive: true, force: true }) };
}

async function openS3(): Promise<Opened> {
  const server = await startS3Server();
  const store = openS3BlobStore(server.options);
  return {
    store,
    async close() {
      await store.close();
      await server.stop();
    },
  };
}

const contentType = 'application/octet-stream';
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const newKey = () => `${randomUUID()}/${randomUUID()}`;

async function* inChunks(bytes: Uint8Array, chunkBytes: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
}

async function keysOf(store: BlobStore, prefix?: string): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of store.list(prefix)) keys.push(key);
  return keys.sort();
}

for (const [name, open] of [
  ['disk', openDisk],
  ['s3', openS3],
] as const) {
  describe(`a blob store on ${name}`, () => {
    let opened: Opened;
    let store: BlobStore;

    before(async () => {
      opened = await open();
      store = opened.store;
    });
    after(() => opened.close());

    test('returns the stored bytes, with their size and checksum', async () => {
      for (const size of [0, 1, 70_000]) {
        const bytes = randomBytes(size);
        const key = newKey();
        assert.deepEqual(await store.put(key, bytes, { contentType }), { key, size, checksum: sha256(bytes) });
        assert.deepEqual(await store.stat(key), { size });
        assert.deepEqual(await buffer(await store.read(key)), bytes);
        assert.deepEqual(Buffer.from(await store.readAll(key, size)), bytes);
      }
    });

    test('stores a stream of any length, in several parts', async () => {
      for (const size of [0, 5, 20 * 1024 * 1024 + 3]) {
        const bytes = randomBytes(size);
        const key = newKey();
        const stored = await store.put(key, inChunks(bytes, 300_000), { contentType, checksum: sha256(bytes) });
        assert.deepEqual(stored, { key, size, checksum: sha256(bytes) });
        assert.equal(sha256(await buffer(await store.read(key))), sha256(bytes));
      }
    });

    test('reads a range, its end excluded', async () => {
      const bytes = randomBytes(1_000);
      const key = newKey();
      await store.put(key, bytes, { contentType });
      for (const [start, end] of [
        [0, 1],
        [10, 500],
        [999, 1_000],
        [0, 1_000],
        [7, 7],
      ] as const)
        assert.deepEqual(await buffer(await store.read(key, { start, end })), bytes.subarray(start, end));
    });

    test('a reader may go before the end', async () => {
      const key = newKey();
      await store.put(key, randomBytes(3_000_000), { contentType });
      for await (const chunk of await store.read(key)) {
        assert.ok(chunk.byteLength > 0);
        break;
      }
      assert.deepEqual(await store.stat(key), { size: 3_000_000 });
    });

    test('one byte more than the maximum leaves nothing', async () => {
      const bytes = randomBytes(10_000);
      const fits = newKey();
      await store.put(fits, inChunks(bytes, 999), { contentType, sizeMax: 10_000 });
      const prefix = randomUUID();
      for (const body of [bytes, inChunks(bytes, 999)])
        await assert.rejects(
          store.put(`${prefix}/${randomUUID()}`, body, { contentType, sizeMax: 9_999 }),
          BlobTooLarge,
        );
      assert.deepEqual(await keysOf(store, `${prefix}/`), []);
    });

    test('another checksum than the one promised leaves nothing, however large the body', async () => {
      const prefix = randomUUID();
      const large = randomBytes(17 * 1024 * 1024);
      for (const body of [randomBytes(10), inChunks(randomBytes(10), 3), inChunks(large, 1_000_000)])
        await assert.rejects(
          store.put(`${prefix}/${randomUUID()}`, body, { contentType, checksum: sha256(randomBytes(4)) }),
          BlobChecksumMismatch,
        );
      assert.deepEqual(await keysOf(store, `${prefix}/`), []);
    });

    test('a body that breaks off leaves nothing, and its error comes out', async () => {
      const prefix = randomUUID();
      for (const size of [1_000, 18 * 1024 * 1024]) {
        const broken = new Error('the client went away');
        async function* body(): AsyncGenerator<Uint8Array> {
          yield* inChunks(randomBytes(size), 1_000_000);
          throw broken;
        }
        await assert.rejects(store.put(`${prefix}/${randomUUID()}`, body(), { contentType }), broken);
      }
      assert.deepEqual(await keysOf(store, `${prefix}/`), []);
    });

    test('a blob that is absent is missing for a reader, undefined for stat and nothing to remove', async () => {
      const key = newKey();
      await assert.rejects(store.read(key), BlobMissing);
      await assert.rejects(store.read(key, { start: 0, end: 0 }), BlobMissing);
      await assert.rejects(store.readAll(key, 10), BlobMissing);
      assert.equal(await store.stat(key), undefined);
      await store.remove(key);
    });

    test('a removed blob cannot be read', async () => {
      const key = newKey();
      await store.put(key, randomBytes(9), { contentType });
      await store.remove(key);
      assert.equal(await store.stat(key), undefined);
      await assert.rejects(store.read(key), BlobMissing);
    });

    test('reading all of a blob stops at the maximum', async () => {
      const key = newKey();
      await store.put(key, randomBytes(1_001), { contentType });
      await assert.rejects(store.readAll(key, 1_000), BlobTooLarge);
    });

    test('lists the blobs under a prefix, each once', async () => {
      const [mine, other] = [randomUUID(), randomUUID()];
      const keys = Array.from({ length: 5 }, () => `${mine}/${randomUUID()}`);
      for (const key of [...keys, `${other}/${randomUUID()}`]) await store.put(key, randomBytes(3), { contentType });
      assert.deepEqual(await keysOf(store, `${mine}/`), keys.toSorted());
      const all = await keysOf(store);
      assert.ok(keys.every((key) => all.includes(key)));
      for await (const entry of store.list(`${mine}/`)) {
        assert.equal(entry.size, 3);
        assert.ok(Math.abs(entry.modifiedAt.getTime() - Date.now()) < 3_600_000);
      }
    });

    test('refuses a key that it cannot have created', async () => {
      for (const key of ['', 'a', 'a/../b', '../a', 'a/b/c', 'a/b\0', '/a/b', 'a//b'])
        await assert.rejects(async () => store.stat(key), /Not a blob key/);
    });

    test('sweeping finds nothing after writes that ended', async () => {
      assert.equal(await store.sweepTemporary(0), 0);
    });
  });
}

test('on disk an interrupted write leaves a temporary file at most, which a sweep removes once it is old', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'quarry-blobs-'));
  t.after(() => rm(directory, { recursive: true }));
  const store = await openDiskBlobStore(directory);
  await writeFile(join(directory, 'tmp', 'old'), 'half');
  await utimes(join(directory, 'tmp', 'old'), 1_000, 1_000);
  await writeFile(join(directory, 'tmp', 'young'), 'half');
  assert.deepEqual(await keysOf(store), []);
  assert.equal(await store.sweepTemporary(60_000), 1);
  assert.deepEqual(await readdir(join(directory, 'tmp')), ['young']);
});

test('a presigned S3 URL returns the bytes, with the requested type and name', async (t) => {
  const { store, close } = await openS3();
  t.after(close);
  const key = newKey();
  await store.put(key, Buffer.from('hello'), { contentType: 'text/plain' });
  const signed = await store.presignedUrl?.(key, {
    expiresSeconds: 60,
    contentType: 'application/octet-stream',
    contentDisposition: 'attachment; filename=a.txt',
  });
  assert.ok(signed !== undefined);
  const url = new URL(signed);
  assert.equal(url.searchParams.get('X-Amz-Expires'), '60');
  assert.ok(url.searchParams.has('X-Amz-Signature'));
  assert.equal(url.searchParams.get('response-content-type'), 'application/octet-stream');
  assert.equal(url.searchParams.get('response-content-disposition'), 'attachment; filename=a.txt');
  const answer = await fetch(url);
  assert.equal(answer.status, 200);
  assert.equal(await answer.text(), 'hello');
});

test('the settings choose the store', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'quarry-blobs-'));
  t.after(() => rm(directory, { recursive: true }));
  const disk = await openBlobStore(readConfig({ QUARRY_DATA_DIR: directory }));
  assert.equal(disk.kind, 'disk');
  assert.equal(disk.presignedUrl, undefined);
  const s3 = await openBlobStore(readConfig({ QUARRY_BLOB_STORE: 's3', QUARRY_S3_BUCKET: 'b' }));
  assert.equal(s3.kind, 's3');
  assert.notEqual(s3.presignedUrl, undefined);
  await s3.close();
  const hidden = await openBlobStore(
    readConfig({ QUARRY_BLOB_STORE: 's3', QUARRY_S3_BUCKET: 'b', QUARRY_S3_PRESIGN: 'false' }),
  );
  assert.equal(hidden.presignedUrl, undefined, 'clients are not sent to a bucket that they cannot reach');
  await hidden.close();
});
