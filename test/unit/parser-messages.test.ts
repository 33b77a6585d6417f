import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeFrame, FrameReader } from '../../src/content/parse/pool/frame.ts';

test('a message is read whole however it arrives, and its pieces are freed', () => {
  const blobs = [Buffer.alloc(100_000, 'ab'), Buffer.alloc(0), Buffer.from('last')];
  const bytes = Buffer.concat([...encodeFrame({ value: 1 }, blobs), ...encodeFrame({ value: 2 }, [])]);
  for (const size of [5, 7_000, 100_050, bytes.length]) {
    const reader = new FrameReader(1_000_000);
    const pieces: Buffer[] = [];
    for (let from = 0; from < bytes.length; from += size)
      pieces.push(Buffer.from(new Uint8Array(bytes.subarray(from, from + size)).buffer));
    const frames = pieces.flatMap((piece) => reader.push(piece));
    assert.deepEqual(
      frames.map(({ header }) => header.value),
      [1, 2],
    );
    assert.deepEqual(
      frames[0]?.blobs.map((blob) => Buffer.from(blob)),
      blobs,
    );
    // The piece that ends a message may be a part of it.
    if (pieces.length > 2) assert.equal(pieces[1]?.byteLength, 0);
  }
});
