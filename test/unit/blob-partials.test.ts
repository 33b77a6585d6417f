import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { appendFile, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { BlobMissing, type BlobStore, type PartialState } from '../../src/blob/blob-store.ts';
import { openDiskBlobStore } from '../../src/blob/disk.ts';
import { openS3BlobStore } from '../../src/blob/s3.ts';
import { startS3Server } from '../support/s3-server.ts';

const contentType = 'application/octet-stream';
const newKey = () => `${randomUUID()}/${randomUUID()}`;
const start: PartialState = { size: 0 };

async function* inChunks(bytes: Uint8Array, chunkBytes = 100_000): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
}

async function* brokenOff(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield* inChunks(bytes);
  throw new Error('The connection broke.');
}

const directory = await mkdtemp(join(tmpdir(), 'quarry-partials-'));
after(() => rm(directory, { recursive: true, force: true }));

for (const kind of ['disk', 's3'] as const)
  describe(`a partial blob on ${kind}`, () => {
    let store: BlobStore;
    let stop: () => Promise<void>;

    before(async () => {
      const server = kind === 's3' ? await startS3Server() : undefined;
      store = server ? openS3BlobStore(server.options) : await openDiskBlobStore(join(directory, 'blobs'));
      stop = async () => {
        await store.close();
        await server?.stop();
      };
    });
    after(() => stop());

    /** Appends, and returns the last saved state. */
    async function append(
      key: string,
      from: PartialState,
      body: AsyncIterable<Uint8Array>,
      sizeMax: number,
      whole = false,
    ): Promise<{ state: PartialState; error: unknown }> {
      let state = from;
      const save = async (next: PartialState) => {
        assert.ok(next.size >= state.size);
        state = JSON.parse(JSON.stringify(next)) as PartialState;
      };
      try {
        await store.partials.append(key, from, body, { contentType, sizeMax, save, whole });
        return { state, error: undefined };
      } catch (error) {
        return { state, error };
      }
    }

    test('keeps what arrived of bodies that break off, and becomes a blob with every byte', async () => {
      const bytes = randomBytes(21 * 1024 * 1024 + 7);
      const key = newKey();
      let state = start;
      for (const at of [1, 4_000_000, 4_000_001, 17_500_000]) {
        const result = await append(key, state, brokenOff(bytes.subarray(state.size, at)), bytes.length);
        assert.match(String(result.error), /connection broke/);
        state = result.state;
        assert.equal(state.size, at);
      }
      assert.equal(await store.stat(key), undefined);
      const { state: last } = await append(key, state, inChunks(bytes.subarray(state.size)), bytes.length);
      assert.equal(last.size, bytes.length);
      for (let time = 0; time < 2; time++) await store.partials.complete(key, last, contentType);
      assert.ok((await buffer(await store.read(key))).equals(bytes));
      await store.partials.remove(key, last);
      assert.deepEqual(await store.stat(key), { size: bytes.length });
    });

    test('overwrites bytes that were stored and never saved', async () => {
      const key = newKey();
      const [first, wrong, right] = [randomBytes(300_000), randomBytes(9_000_000), randomBytes(9_500_000)];
      const { state } = await append(key, start, inChunks(first), 9_800_000);
      const lost = store.partials.append(key, state, inChunks(wrong), {
        contentType,
        sizeMax: 9_800_000,
        save: async () => {
          throw new Error('The process died.');
        },
      });
      await assert.rejects(lost, /process died/);
      const { state: last } = await append(key, state, inChunks(right), 9_800_000);
      await store.partials.complete(key, last, contentType);
      assert.ok((await buffer(await store.read(key))).equals(Buffer.concat([first, right])));
    });

    test('a body that is wanted whole saves nothing when it fails', async () => {
      const key = newKey();
      const { state } = await append(key, start, inChunks(randomBytes(1_000)), 30_000_000);
      const failed = await append(key, state, brokenOff(randomBytes(20_000_000)), 30_000_000, true);
      assert.match(String(failed.error), /connection broke/);
      assert.deepEqual(failed.state, state);
    });

    test('is not a blob for a list, and leaves nothing when it is removed', async () => {
      const key = newKey();
      const { state } = await append(key, start, inChunks(randomBytes(9_000_000)), 30_000_000);
      for await (const entry of store.list())
        assert.ok(!entry.key.includes(key.slice(0, 36)) && !entry.key.includes('partial'));
      for (let time = 0; time < 2; time++) await store.partials.remove(key, state);
      const again = await append(key, state, inChunks(randomBytes(5)), 30_000_000);
      assert.ok(again.error instanceof BlobMissing);
    });

    test('may be empty', async () => {
      const key = newKey();
      const { state } = await append(key, start, inChunks(Buffer.alloc(0)), 0);
      await store.partials.complete(key, state, contentType);
      assert.deepEqual(await store.stat(key), { size: 0 });
    });
  });

test('on disk, bytes beyond the saved ones are cut off, and remains without an owner are swept', async () => {
  const root = join(directory, 'more');
  const store = await openDiskBlobStore(root);
  const key = newKey();
  const options = { contentType, sizeMax: 10, save: async () => {} };
  await store.partials.append(key, start, inChunks(Buffer.from('abc')), options);
  const [name = ''] = await readdir(join(root, 'partial'));
  await appendFile(join(root, 'partial', name), 'left by a dead process');
  const state = await store.partials.append(key, { size: 3 }, inChunks(Buffer.from('def')), options);
  assert.equal(await store.sweepTemporary(0, async (kept) => kept === key), 0);
  await store.partials.complete(key, state, contentType);
  assert.equal((await buffer(await store.read(key))).toString(), 'abcdef');
  await store.partials.append(newKey(), start, inChunks(Buffer.from('abc')), options);
  assert.equal(await store.sweepTemporary(0, async () => false), 1);
});
