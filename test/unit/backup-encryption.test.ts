import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { decrypt, encrypt, encryptedSize, plainSize } from '../../src/backup/encryption.ts';
import { BackupError } from '../../src/backup/error.ts';
import fc from '../support/fast-check.ts';

const key = 'b'.repeat(64);
const segment = 64 * 1024;

async function collect(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function* pieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

test('contents of any size come back, however they are cut into chunks, and the size is known beforehand', async () => {
  const size = fc.oneof(
    fc.integer({ min: 0, max: 3 * segment }),
    fc.constantFrom(0, 1, segment - 1, segment, segment + 1, 2 * segment),
  );
  await fc.assert(
    fc.asyncProperty(size, fc.integer({ min: 1000, max: 100_000 }), async (length, chunk) => {
      const plain = randomBytes(length);
      const encrypted = await collect(encrypt(key, 'a', pieces(plain, chunk)));
      assert.equal(encrypted.length, encryptedSize(length));
      assert.equal(plainSize(encrypted.length), length);
      assert.deepEqual(await collect(decrypt(key, 'a', pieces(encrypted, chunk + 7))), plain);
    }),
    { numRuns: 40 },
  );
});

test('what is changed, cut, reordered, renamed or read with another key is refused', async () => {
  const plain = randomBytes(3 * segment);
  const encrypted = await collect(encrypt(key, 'a', [plain]));
  const refused = (bytes: Buffer, name = 'a', otherKey = key) =>
    assert.rejects(collect(decrypt(otherKey, name, pieces(bytes, 50_000))), BackupError);
  for (const at of [0, 4, 10, 21, segment, encrypted.length - 1]) {
    const changed = Buffer.from(encrypted);
    changed[at] = (changed[at] ?? 0) ^ 1;
    await refused(changed);
  }
  const stored = segment + 16;
  const [header, first, second, third] = [
    encrypted.subarray(0, 21),
    ...[0, 1, 2].map((at) => encrypted.subarray(21 + at * stored, 21 + (at + 1) * stored)),
  ];
  await refused(Buffer.concat([header, first, second].map((part) => part ?? Buffer.alloc(0))));
  await refused(Buffer.concat([header, second, first, third].map((part) => part ?? Buffer.alloc(0))));
  await refused(encrypted.subarray(0, 10));
  await refused(encrypted, 'b');
  await refused(encrypted, 'a', 'c'.repeat(64));
});
