import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { BlockPool, TextMemory } from '../../src/http/body/text-memory.ts';
import fc from '../support/fast-check.ts';

const mebibyte = 1024 * 1024;

test('the bytes between any two places are those that were appended, in whatever chunks', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 300_000 }), { minLength: 1, maxLength: 6 }),
      fc.nat(),
      (sizes, at) => {
        const memory = new TextMemory(new BlockPool());
        const chunks = sizes.map((size, n) => Buffer.alloc(size, `chunk ${n},`));
        for (const chunk of chunks) memory.append(chunk);
        const all = Buffer.concat(chunks);
        const start = at % all.length;
        const pieces = [...memory.read(start, all.length)];
        assert.ok(pieces.every(({ length }) => length <= 64 * 1024));
        assert.ok(Buffer.concat(pieces).equals(all.subarray(start)));
      },
    ),
    { numRuns: 30 },
  );
});

test('memory is free once every user has released it, and is used again; its former body can no longer be read', () => {
  const pool = new BlockPool();
  const first = new TextMemory(pool);
  first.append(Buffer.alloc(mebibyte, 'a'));
  first.retain();
  first.release();
  const text = first.read(0, mebibyte);
  assert.equal(Buffer.from(text.next().value as Uint8Array).toString('latin1', 0, 3), 'aaa', 'one user is left');
  first.release();
  assert.equal(pool.freeBlocks, 4);
  const second = new TextMemory(pool);
  second.append(Buffer.alloc(mebibyte, 'b'));
  assert.equal(pool.freeBlocks, 0, 'nothing is allocated');
  assert.throws(() => text.next(), /closed while the body was in use/);
  assert.throws(() => first.read(0, 1).next(), /closed while the body was in use/);
});

test('blocks that no body needed for a minute or two are left to the collector', () => {
  mock.timers.enable({ apis: ['setInterval'] });
  try {
    const pool = new BlockPool();
    const use = (bytes: number) => {
      const memory = new TextMemory(pool);
      memory.append(Buffer.alloc(bytes));
      memory.release();
    };
    use(4 * mebibyte);
    mock.timers.tick(60_000);
    use(mebibyte);
    mock.timers.tick(60_000);
    assert.equal(pool.freeBlocks, 4, 'those of the last body stay');
    mock.timers.tick(120_000);
    assert.equal(pool.freeBlocks, 0);
  } finally {
    mock.timers.reset();
  }
});
