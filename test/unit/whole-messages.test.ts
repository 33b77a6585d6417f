import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gatherMessages } from '../../src/db/whole-messages.ts';
import fc from '../support/fast-check.ts';

/** A message of the database with this many bytes after its header, numbered so that each differs. */
function messageOf(size: number, number: number): Buffer {
  const message = Buffer.alloc(5 + size, number);
  message.write('D');
  message.writeUInt32BE(4 + size, 1);
  return message;
}

/** Chunks as a socket has them: each in memory of its own. */
function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0, next = 0; at < bytes.length; next++) {
    const size = Math.max(1, sizes[next % sizes.length] ?? bytes.length);
    const part = bytes.subarray(at, at + size);
    chunks.push(Buffer.from(part.buffer.slice(part.byteOffset, part.byteOffset + part.length)));
    at += size;
  }
  return chunks;
}

test('however the bytes arrive, only whole messages are passed on, all of them, in order', () => {
  const sizes = fc.array(fc.nat({ max: 300 }), { minLength: 1, maxLength: 20 });
  const chunkSizes = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(sizes, chunkSizes, (messages, chunks) => {
      const sent = Buffer.concat(messages.map(messageOf));
      const passed: Buffer[] = [];
      const push = gatherMessages((bytes) => {
        let at = 0;
        while (at < bytes.length) at += 1 + bytes.readUInt32BE(at + 1);
        assert.equal(at, bytes.length, 'the last one is whole');
        passed.push(Buffer.from(bytes));
      });
      for (const chunk of cut(sent, chunks)) push(chunk);
      assert.ok(Buffer.concat(passed).equals(sent));
    }),
  );
});

test('values of many chunks take one buffer each, and neither they nor their chunks are left to the garbage collector', () => {
  const sent = Buffer.concat([messageOf(1_000_000, 1), messageOf(100_000, 2), messageOf(10, 3)]);
  const passed: Buffer[] = [];
  const push = gatherMessages((bytes) => passed.push(bytes));
  // The last chunk of each value also has what follows.
  const chunks = cut(sent, [64 * 1024]);
  for (const chunk of chunks) push(chunk);
  assert.equal(passed.length, 3);
  for (const { buffer } of [...passed, ...chunks]) assert.ok((buffer as ArrayBuffer).detached);
});
