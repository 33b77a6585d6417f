import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  findInBundle,
  mergeBundles,
  PostingsBuilder,
  packBundle,
  placeBundle,
  readPositions,
  unpackPostings,
} from '../../src/content/postings.ts';
import { fuseRankings } from '../../src/knowledge/search/fuse.ts';
import { bestRows, containsPhrase, nearestRows } from '../../src/knowledge/search/rank.ts';

const chunk = fc.record({
  length: fc.integer({ min: 1, max: 900 }),
  words: fc.array(fc.constantFrom('a', 'bé', 'c++', '漢字', 'dog'), { minLength: 1, maxLength: 40 }),
});

function indexed(chunks: { length: number; words: string[] }[], first: number) {
  return chunks.map(({ length, words }, i) => {
    const terms = new Map<string, number[]>();
    for (const [position, word] of words.entries()) terms.set(word, [...(terms.get(word) ?? []), position]);
    return { ordinal: first + i, length, terms };
  });
}

function bundleOf(chunks: ReturnType<typeof indexed>): Buffer {
  const builder = new PostingsBuilder();
  for (const chunk of chunks) builder.add(chunk);
  return packBundle(builder.finish());
}

test('postings and positions come out of bundles and merged segments as they went in', () => {
  fc.assert(
    fc.property(
      fc.array(chunk, { minLength: 1 }),
      fc.array(chunk, { minLength: 1 }),
      fc.integer({ min: 0, max: 1e8 }),
      (one, two, first) => {
        const chunks = [...indexed(one, first), ...indexed(two, first + one.length)];
        const bundles = [placeBundle(bundleOf(indexed(one, 0)), first), bundleOf(chunks.slice(one.length))];
        for (const entry of mergeBundles(bundles)) {
          const holders = chunks.filter(({ terms }) => terms.has(entry.term));
          const columns = unpackPostings(entry.postings);
          assert.deepEqual(
            [...columns.ordinals],
            holders.map(({ ordinal }) => ordinal),
          );
          assert.deepEqual(
            [...columns.lengths],
            holders.map(({ length }) => length),
          );
          assert.deepEqual(
            [...columns.tallies].map((tally) => tally >>> 1),
            holders.map(({ terms }) => terms.get(entry.term)?.length),
          );
          const positions: number[][] = [];
          readPositions(entry.postings, entry.positions, (_ordinal, list) => positions.push(list));
          assert.deepEqual(
            positions,
            holders.map(({ terms }) => terms.get(entry.term)),
          );
        }
        const [bundle] = bundles;
        assert.ok(bundle);
        assert.equal(findInBundle(bundle, 'absent'), undefined);
      },
    ),
  );
});

test('the best rows are those that sorting would give', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 80 }),
      fc.integer({ min: 1, max: 20 }),
      (list, count) => {
        const sorted = list
          .map((score, row) => ({ row, score }))
          .filter(({ score }) => score > 0)
          .sort((a, b) => b.score - a.score || a.row - b.row);
        assert.deepEqual(bestRows(Float32Array.from(list), count), sorted.slice(0, count));
      },
    ),
  );
});

test('the nearest rows have the smallest distances', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 64 }), { maxLength: 80 }),
      fc.integer({ min: 1, max: 20 }),
      (list, count) => {
        const rows = Int32Array.from(list, (_distance, i) => i);
        const nearest = nearestRows(Uint16Array.from(list), rows, 64, count);
        const expected = [...list].sort((a, b) => a - b).slice(0, count);
        assert.deepEqual(
          nearest.map((row) => list[row] ?? -1).sort((a, b) => a - b),
          expected,
        );
      },
    ),
  );
});

test('a phrase matches where its words follow one another', () => {
  assert.ok(containsPhrase([[1, 5], [6], [7]]));
  assert.ok(!containsPhrase([[1, 5], [7], [6]]));
  assert.ok(!containsPhrase([[1], []]));
});

test('fusion prefers what both rankings have, and weighs the vectors', () => {
  const fused = fuseRankings([1, 2, 3], [3, 4], 0.2);
  assert.deepEqual(
    fused.map(({ row }) => row),
    [3, 1, 2, 4],
  );
  assert.deepEqual([fused[0]?.textRank, fused[0]?.vectorRank], [3, 1]);
});
