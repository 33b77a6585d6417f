import assert from 'node:assert/strict';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, test } from 'node:test';
import Fastify from 'fastify';
import type { BlobStore } from '../../src/blob/blob-store.ts';
import { openDiskBlobStore } from '../../src/blob/disk.ts';
import { sendFile } from '../../src/files/bytes.ts';
import { bodyOf } from '../../src/files/receive.ts';

const directory = mkdtempSync(join(tmpdir(), 'quarry-transfers-'));
const store = await openDiskBlobStore(directory);
const bytes = randomBytes(3_000_000);
const app = randomUUID();
const digest = createHash('sha256').update(bytes).digest();
/** The chunks that the server received and sent. */
const chunks: Uint8Array[] = [];

const fastify = Fastify();
after(async () => {
  await fastify.close();
  rmSync(directory, { recursive: true, force: true });
});
fastify.removeAllContentTypeParsers();
fastify.addContentTypeParser('*', (_request, _payload, done) => done(null));

fastify.post('/put/:key', async (request) => {
  const { key } = request.params as { key: string };
  return store.put(`${app}/${key}`, noted(bodyOf(request)), { contentType: 'text/plain' });
});
fastify.post('/append/:key', async (request) => {
  const { key } = request.params as { key: string };
  const options = { contentType: 'text/plain', sizeMax: bytes.length, save: async () => {} };
  return store.partials.append(`${app}/${key}`, { size: 0 }, noted(bodyOf(request)), options);
});
fastify.get('/:key', (request, reply) => {
  const { key } = request.params as { key: string };
  const blobs: BlobStore = {
    ...store,
    read: async (...place) => {
      const stream = await store.read(...place);
      stream.on('data', (chunk: Uint8Array) => chunks.push(chunk)).pause();
      return stream;
    },
  };
  const blob = {
    blobKey: `${app}/${key}`,
    size: bytes.length,
    contentType: 'text/plain',
    checksum: digest,
    createdAt: new Date(),
  };
  return sendFile({ blobs, request, reply }, blob, {});
});
const url = await fastify.listen({ host: '127.0.0.1', port: 0 });

async function* noted(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) {
    chunks.push(chunk);
    yield chunk;
  }
}

function assertFreed(): void {
  const all = chunks.splice(0);
  assert.ok(all.length > 1);
  assert.deepEqual([...new Set(all.map((chunk) => chunk.byteLength))], [0]);
}

test('an upload frees each chunk of its body, and stores every byte', async () => {
  const key = randomUUID();
  const stored = await fetch(`${url}/put/${key}`, { method: 'POST', body: bytes });
  assert.deepEqual(await stored.json(), { key: `${app}/${key}`, size: bytes.length, checksum: digest.toString('hex') });
  assertFreed();

  const sent = await fetch(`${url}/${key}`);
  assert.ok(Buffer.from(await sent.arrayBuffer()).equals(bytes));
});

test('a part of an upload frees each chunk of its body, and stores every byte', async () => {
  const key = randomUUID();
  const stored = await fetch(`${url}/append/${key}`, { method: 'POST', body: bytes });
  assert.deepEqual(await stored.json(), { size: bytes.length });
  assertFreed();
  await store.partials.complete(`${app}/${key}`, { size: bytes.length }, 'text/plain');
  assert.ok(Buffer.from(await store.readAll(`${app}/${key}`, bytes.length)).equals(bytes));
});

test('a download frees each chunk that it has sent', async () => {
  const key = randomUUID();
  await store.put(`${app}/${key}`, bytes, { contentType: 'text/plain' });
  const sent = await fetch(`${url}/${key}`);
  assert.ok(Buffer.from(await sent.arrayBuffer()).equals(bytes));
  assertFreed();
});

test('bytes that belong to others are stored and stay as they are', async () => {
  const own = Buffer.from(bytes);
  await store.put(`${app}/${randomUUID()}`, Readable.from([own, own]), { contentType: 'text/plain' });
  await store.put(`${app}/${randomUUID()}`, own, { contentType: 'text/plain' });
  assert.ok(own.equals(bytes));
});

test('an in-process receiver keeps the bytes of a download', async () => {
  const key = randomUUID();
  await store.put(`${app}/${key}`, bytes, { contentType: 'text/plain' });
  const { rawPayload } = await fastify.inject(`/${key}`);
  assert.ok(rawPayload.equals(bytes));
  chunks.splice(0);
});
