import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeHeaderBytes } from '../../src/content/learn/codes.ts';
import {
  findInBundle,
  mergeBundles,
  type PostingColumns,
  PostingsBuilder,
  packBundle,
  placeBundle,
  readPositions,
  unpackPostings,
} from '../../src/content/postings.ts';
import {
  allocateLengths,
  blocksIn,
  type ChunkLengths,
  joinColumns,
  openColumns,
  packColumns,
  packParts,
  visitOrdinals,
} from '../../src/knowledge/computing/columns.ts';
import { nearestPlaces } from '../../src/knowledge/computing/near.ts';
import { addRun, compareRows, emptyCodes, withRoomUpTo } from '../../src/knowledge/computing/similarity.ts';
import { openCaches } from '../../src/knowledge/index/cache.ts';
import { addSlab, openVectorsOf, slabSize, type VectorsOfSource } from '../../src/knowledge/index/cached-vectors.ts';
import { addLearned, candidatesPerLeg, fuseRankings } from '../../src/knowledge/search/fuse.ts';
import { bestRows, containsPhrase } from '../../src/knowledge/search/rank.ts';
import { scoreTerms } from '../../src/knowledge/search/score.ts';
import fc from '../support/fast-check.ts';

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
        const merged = mergeBundles(bundles);
        assert.deepEqual(new Set(merged.terms), new Set(chunks.flatMap(({ terms }) => [...terms.keys()])));
        for (const [i, term] of merged.terms.entries()) {
          const part = ({ all, starts, sizes }: typeof merged.postings) => {
            const start = (starts[i] ?? 0) - 1;
            return all.subarray(start, start + (sizes[i] ?? 0));
          };
          const entry = { term, postings: part(merged.postings), positions: part(merged.positions) };
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

const numbers = (max: number) => fc.oneof(fc.nat(max), fc.nat(300), fc.constant(max));
const posting = fc.record({
  gap: fc.oneof(fc.nat(3), fc.nat(70_000)),
  tally: numbers(65_535),
  length: numbers(65_535),
});

test('packed columns hold what went in, however far apart and however large, and joined ones hold both', () => {
  fc.assert(
    fc.property(fc.array(posting), fc.array(posting), (one, other) => {
      const [first, second] = [one, other].map((list) => {
        let ordinal = -1;
        const ordinals = list.map(({ gap }) => (ordinal += 1 + gap));
        return {
          ordinals: Int32Array.from(ordinals),
          tallies: Uint16Array.from(list, ({ tally }) => tally),
          lengths: Uint16Array.from(list, ({ length }) => length),
        };
      }) as [PostingColumns, PostingColumns];
      assert.deepEqual(listPacked(packColumns(first)), listColumns(first));
      const joined = listPacked(joinColumns([...packColumns(first), ...packColumns(second)]));
      const tallies = new Map<number, number>();
      for (const [ordinal, tally] of [...listColumns(first), ...listColumns(second)]) {
        const known = tallies.get(ordinal) ?? 0;
        const titled = (known | tally) & 1;
        const sum = Math.min(((known >>> 1) + (tally >>> 1)) << 1, 65_534);
        tallies.set(ordinal, tallies.has(ordinal) ? sum | titled : tally);
      }
      assert.deepEqual(
        joined.map(([ordinal, tally]) => [ordinal, tally]),
        [...tallies].sort(([a], [b]) => a - b),
      );
    }),
  );
});

test('terms of a large source share the lengths of its chunks, and hold what went in', () => {
  const [firstOrdinal, nextOrdinal] = [100_000, 350_000];
  const blocks = blocksIn(firstOrdinal, nextOrdinal);
  const known = { first: blocks[0] ?? 0, blocks: blocks.map(allocateLengths) };
  const termIn = (step: number, tallyMax: number) => {
    const count = Math.ceil((nextOrdinal - firstOrdinal) / step);
    const ordinals = Int32Array.from({ length: count }, (_ordinal, i) => firstOrdinal + i * step);
    return {
      ordinals,
      tallies: Uint16Array.from(ordinals, (ordinal) => 2 + (ordinal % tallyMax)),
      lengths: Uint16Array.from(ordinals, (ordinal) => ordinal % 700),
    };
  };
  // From each chunk of a block to a few of them, and with tallies of one and of two bytes.
  const all = [termIn(1, 40), termIn(1, 400), termIn(3, 30), termIn(50, 300), termIn(1_000, 20), termIn(300, 40)];
  const packed = all.map((columns) => packColumns(columns, known));
  for (const [i, columns] of all.entries()) assert.deepEqual(listPacked(packed[i] ?? []), listColumns(columns));
  const bytesOf = (list: (typeof packed)[number] = []) => list.reduce((sum, { buffer }) => sum + buffer.byteLength, 0);
  // A byte for each tally, and a bit for each chunk or a byte for each posting.
  const count = nextOrdinal - firstOrdinal;
  assert.ok(bytesOf(packed[0]) < count * 1.25, `${bytesOf(packed[0])} bytes`);
  assert.ok(bytesOf(packed[3]) < (count / 50) * 3.5, `${bytesOf(packed[3])} bytes`);
  const joined = listPacked(joinColumns([...(packed[2] ?? []), ...(packed[4] ?? [])]));
  assert.deepEqual(
    joined,
    listPacked(joinColumns([all[2], all[4]].flatMap((one) => packColumns(one as PostingColumns)))),
  );
});

test('the postings that segments have of a term are the same in one buffer', () => {
  fc.assert(
    fc.property(fc.array(fc.array(fc.nat(300), { minLength: 1, maxLength: 200 }), { maxLength: 8 }), (lengths) => {
      const segments = lengths.map((ofChunks, segment) => {
        const builder = new PostingsBuilder();
        for (const [i, length] of ofChunks.entries())
          builder.add({ ordinal: segment * 1_000 + i, length, terms: new Map([['word', [1, 2]]]) });
        return builder.finish()[0]?.postings ?? new Uint8Array();
      });
      const packed = packParts(segments);
      assert.deepEqual(
        packed.map(listPacked),
        segments.map((bytes) => listColumns(unpackPostings(bytes))),
      );
      assert.ok(new Set(packed.flat().map(({ buffer }) => buffer)).size <= 1);
    }),
  );
});

function listColumns({ ordinals, tallies, lengths }: PostingColumns): [number, number, number][] {
  return Array.from(ordinals, (ordinal, i) => [ordinal, tallies[i] ?? -1, lengths[i] ?? -1]);
}

function listPacked(packed: ReturnType<typeof packColumns>): [number, number, number][] {
  const all: [number, number, number][] = [];
  for (const columns of packed.map(openColumns)) {
    const { first, tallies, lengths, lengthsByOrdinal } = columns;
    visitOrdinals(columns, (ordinal, i) => {
      all.push([ordinal, tallies[i] ?? -1, lengths[lengthsByOrdinal ? ordinal - first : i] ?? -1]);
      return false;
    });
  }
  return all;
}

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

test('the best rows of many are those that sorting would give, however their scores are spread', () => {
  const spreads: ((row: number) => number)[] = [
    (row) => ((row * 7_919) % 100_003) / 100_003,
    (row) => (row % 16 === 0 ? 0 : row % 97),
    (row) => (row % 16 === 0 ? 5 + (row % 32) : 1),
    () => 1,
    (row) => row,
    (row) => (row === 99_999 ? 3 : 0),
  ];
  for (const spread of spreads) {
    const scores = Float32Array.from({ length: 100_000 }, (_score, row) => spread(row));
    const sorted = Array.from(scores, (score, row) => ({ row, score }))
      .filter(({ score }) => score > 0)
      .sort((a, b) => b.score - a.score || a.row - b.row);
    assert.deepEqual(bestRows(scores, 1_000), sorted.slice(0, 1_000));
  }
});

test('the nearest places have the smallest distances', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 64 }), { maxLength: 80 }),
      fc.integer({ min: 1, max: 20 }),
      (list, count) => {
        const histogram = Uint32Array.from(
          { length: 66 },
          (_count, distance) => list.filter((one) => one === distance).length,
        );
        const nearest = nearestPlaces(Uint16Array.from([...list, 65_535]), histogram, count);
        const expected = [...list].sort((a, b) => a - b).slice(0, count);
        assert.deepEqual(
          nearest.map((place) => list[place] ?? -1).sort((a, b) => a - b),
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
  const fused = fuseRankings([1, 2, 3], [{ rows: [3, 4], weight: 0.2 }]);
  assert.deepEqual(
    fused.map(({ row }) => row),
    [3, 1, 2, 4],
  );
  assert.deepEqual([fused[0]?.textRank, fused[0]?.vectorRank], [3, 1]);
});

test('the most similar rows are those that the similarity of every row would give', () => {
  const dimensions = 16;
  const chunks = 30_000;
  for (const strengthOf of [(random: number) => random, () => 1, (random: number) => (random < 0.999 ? 0.01 : 3)]) {
    let state = 1;
    const random = () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return state / 2 ** 32;
    };
    const size = codeHeaderBytes + dimensions;
    const content = Buffer.alloc(chunks * size);
    for (let i = 0; i < chunks; i++) {
      content.writeFloatLE(strengthOf(random()), i * size);
      // Few values, so that many rows have equal scores.
      for (let j = 0; j < dimensions; j++)
        content.writeInt8(Math.floor(random() * 3) * 60 - 60, i * size + codeHeaderBytes + j);
    }
    const codes = withRoomUpTo(emptyCodes(0, dimensions), chunks);
    for (const first of [0, 20_000, 10_000])
      addRun(codes, { firstOrdinal: first, chunkCount: 10_000, content: content.subarray(first * size) });
    const rows = Uint8Array.from({ length: chunks }, () => (random() < 0.1 ? 1 : 3));
    const direction = Float32Array.from({ length: dimensions }, () => random() - 0.5);
    const source = { base: 0, firstOrdinal: 0, nextOrdinal: chunks, modelVersion: 1, compared: { direction, codes } };
    const similarities = compareRows([source], rows);
    const all = Array.from(rows, (bits, row) => ({ row, score: bits === 3 ? similarities.scoreOf(row) : 0 }))
      .filter(({ score }) => score > 0)
      .sort((a, b) => b.score - a.score || a.row - b.row);
    for (const count of [1, 200, 1_000]) assert.deepEqual(similarities.best(count), all.slice(0, count));
  }
});

/** A collection in which some words are in nearly every chunk and others in few, as columns of postings. */
function collection(chunks: number, seed: number, known?: ChunkLengths) {
  let state = seed;
  const random = () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return state / 2 ** 32;
  };
  const lengths = Array.from({ length: chunks }, () => 20 + Math.floor(random() * 200));
  const shares = [0.95, 0.9, 0.4, 0.05, 0.002];
  const terms = shares.map((share) => {
    const ordinals = lengths.flatMap((_length, i) => (random() < share ? [i] : []));
    const columns = {
      ordinals: Int32Array.from(ordinals),
      tallies: Uint16Array.from(ordinals, () => 2 + Math.floor(random() * 12)),
      lengths: Uint16Array.from(ordinals, (ordinal) => lengths[ordinal] ?? 0),
    };
    return {
      count: 1 + Math.floor(random() * 2),
      lists: packColumns(columns, known).map((packed) => ({ base: 0, columns: packed })),
    };
  });
  return { terms, rows: Uint8Array.from(lengths, () => (random() < 0.02 ? 1 : 3)) };
}

test('the ranking that leaves out what cannot count is the ranking of all postings', () => {
  for (const seed of [1, 2, 3]) {
    const chunks = 90_000;
    const { terms, rows } = collection(chunks, seed);
    const statistics = { chunks, averageLength: 120, hasDead: false };
    const all = scoreTerms(terms, statistics, rows, 0.25, chunks).ranked;
    const best = scoreTerms(terms, statistics, rows, 0.25, 200);
    assert.deepEqual(
      best.ranked.map(({ score }) => score.toFixed(3)),
      all.slice(0, 200).map(({ score }) => score.toFixed(3)),
    );
    for (const { row, score } of [...all.slice(0, 50), ...all.slice(-50)])
      assert.ok(Math.abs(best.scoreOf(row) - score) < 1e-3);
    assert.ok(best.ranked.every(({ row }) => rows[row] === 3));
  }
});

test('a ranking is the same however the postings are packed', () => {
  const chunks = 90_000;
  const blocks = blocksIn(0, chunks);
  const alone = collection(chunks, 1);
  const together = collection(chunks, 1, { first: 0, blocks: blocks.map(allocateLengths) });
  for (const hasDead of [false, true])
    for (const count of [200, chunks]) {
      const rank = ({ terms, rows }: typeof alone) =>
        scoreTerms(terms, { chunks, averageLength: 120, hasDead }, rows, 0.25, count);
      const [one, other] = [rank(alone), rank(together)];
      assert.deepEqual(other.weights, one.weights);
      assert.deepEqual(other.ranked, one.ranked);
      for (const { row } of one.ranked.slice(0, 2_000)) assert.equal(other.scoreOf(row), one.scoreOf(row));
      assert.equal(other.scoreOf(chunks - 1), one.scoreOf(chunks - 1));
    }
});

test('the candidates of both rankings hold at least 95 of 100 results that all chunks would give', () => {
  let kept = 0;
  let asked = 0;
  for (const seed of [4, 5, 6, 7, 8]) {
    const chunks = 90_000;
    const { terms, rows } = collection(chunks, seed);
    rows.fill(3);
    const source = { base: 0, firstOrdinal: 0, nextOrdinal: chunks, modelVersion: 1 };
    let state = seed;
    const scores = Float32Array.from({ length: chunks }, () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return (state / 2 ** 32) ** 3;
    });
    const scoreOf = (row: number) => scores[row] ?? 0;
    const learned = { best: (count: number) => bestRows(scores, count), scoreOf, cosineOf: scoreOf };
    const best = (count: number) =>
      addLearned(
        scoreTerms(terms, { chunks, averageLength: 120, hasDead: false }, rows, 0.25, count),
        learned,
        [source],
        {
          ...{ weight: 0.4, cosineMin: 0.2, count },
        },
      )
        .ranked.slice(0, 20)
        .map(({ row }) => row);
    const all = new Set(best(chunks));
    kept += best(candidatesPerLeg).filter((row) => all.has(row)).length;
    asked += 20;
  }
  assert.ok(kept >= 0.95 * asked, `${kept} of ${asked}`);
});

test('a cached vector is the one that was added, however its source has grown, or it is missing', () => {
  const openCache = openCaches(200_000);
  const cache = { slabs: openCache<never>('slabs'), places: openCache<never>('places') };
  const vectorOf = (owner: string, ordinal: number) =>
    Uint8Array.from({ length: 64 }, (_byte, i) => (owner.length * 31 + ordinal * 7 + i) % 251);
  const range = { firstOrdinal: 0, nextOrdinal: 100 };
  let found = 0;
  for (let round = 0; round < 60; round++) {
    const sources = ['a', 'bc', 'def'].map((owner) => openVectorsOf(cache, owner, range));
    const places = Array.from({ length: 1 + (round % slabSize) }, (_place, i) => ({
      source: sources[i % 3] as VectorsOfSource,
      ordinal: range.firstOrdinal + ((round * 13 + i * 5) % (range.nextOrdinal - range.firstOrdinal)),
    }));
    addSlab(cache, places, Buffer.concat(places.map(({ source, ordinal }) => vectorOf(source.owner, ordinal))));
    for (const { source, ordinal } of places)
      assert.deepEqual(Buffer.from(source.find(ordinal) ?? []), Buffer.from(vectorOf(source.owner, ordinal)));
    for (const source of sources)
      for (let { firstOrdinal: ordinal } = range; ordinal < range.nextOrdinal; ordinal++) {
        const vector = source.find(ordinal);
        if (vector === undefined) continue;
        found += 1;
        assert.deepEqual(Buffer.from(vector), Buffer.from(vectorOf(source.owner, ordinal)));
      }
    // Chunks are added at the end, and deleted at the beginning.
    range.firstOrdinal += round % 4;
    range.nextOrdinal += round % 30;
  }
  assert.ok(found > 1_000, String(found));
  // A large value takes the place of all others.
  openCache('other').set('', null, new Uint8Array(199_000));
  const source = openVectorsOf(cache, 'a', range);
  for (let { firstOrdinal: ordinal } = range; ordinal < range.nextOrdinal; ordinal++)
    assert.equal(source.find(ordinal), undefined);
});

test('a vector that is asked for again counts as wanted, unless many others were asked for in between', () => {
  const openCache = openCaches(200_000);
  const cache = { slabs: openCache<never>('slabs'), places: openCache<never>('places') };
  const open = () => openVectorsOf(cache, 'a', { firstOrdinal: 500, nextOrdinal: 2_500 });
  assert.equal(open().wasAskedFor(700), false);
  assert.equal(open().wasAskedFor(700), true);
  assert.equal(open().find(700), undefined);
  for (let ordinal = 1_000; ordinal < 2_000; ordinal++) assert.equal(open().wasAskedFor(ordinal), false);
  assert.equal(open().wasAskedFor(700), false);
  const vector = Uint8Array.of(1, 2, 3, 4);
  addSlab(cache, [{ source: open(), ordinal: 700 }], vector);
  assert.deepEqual(open().find(700), vector);
});

test('the cache of the index counts the whole buffer that a value keeps alive, not only its own bytes', () => {
  const received = 65_536;
  const caches = openCaches(4 * received);
  const [views, columns] = [caches<Buffer>('views'), caches<Int32Array | null>('columns')];
  const keys = Array.from({ length: 1_000 }, (_, n) => `key ${n}`);
  for (const key of keys) {
    const view = Buffer.allocUnsafeSlow(received).subarray(0, 10);
    views.set(key, view, view);
  }
  assert.equal(keys.filter((key) => views.get(key)).length, 3);
  for (const key of keys) {
    const one = new Int32Array(1);
    columns.set(key, one, one);
  }
  const kept = keys.filter((key) => columns.get(key)).length;
  // What a small typed array and its place in the map took when they were measured.
  assert.ok(kept * 400 <= 4 * received && kept * 500 > 4 * received, String(kept));
  columns.set('absent', null);
  assert.equal(columns.get('absent'), null);
});
