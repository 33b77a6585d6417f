import assert from 'node:assert/strict';
import { test } from 'node:test';
import { packBatch, readBatch } from '../../src/content/learn/batch.ts';
import { codeHeaderBytes, packChunk, packWord, unpackWord } from '../../src/content/learn/codes.ts';
import { dotProduct, dotProducts, roundDirection } from '../../src/content/learn/dots.ts';
import { Entries } from '../../src/content/learn/sparse.ts';
import { rightSingularVectors } from '../../src/content/learn/svd.ts';
import { Trainer } from '../../src/content/learn/trainer.ts';
import { PostingsBuilder } from '../../src/content/postings.ts';
import { withRoomFor } from '../../src/knowledge/computing/shared.ts';

/** A matrix with the singular values 9, 4 and 1 in known directions. */
function matrixOfRankThree() {
  const entries = new Entries();
  const directions = [
    [1, 1, 1, 1, 0, 0],
    [1, -1, 1, -1, 0, 0],
    [0, 0, 0, 0, 1, 1],
  ].map((direction) => direction.map((value) => value / Math.hypot(...direction)));
  const [one = [], two = [], three = []] = directions;
  const rows = [
    ...[one.map((value) => 9 * value), two.map((value) => 4 * value), three],
    ...Array.from({ length: 20 }, () => one.map(() => 0)),
  ];
  for (const [row, values] of rows.entries())
    for (const [column, value] of values.entries()) if (value !== 0) entries.add(row, column, value);
  const columns = Int32Array.from({ length: 6 }, (_column, i) => i);
  return { matrix: entries.toMatrix(rows.length, 6, columns, new Float32Array(6).fill(1)), directions };
}

test('the decomposition finds the strongest directions of a matrix, strongest first', () => {
  const { matrix, directions } = matrixOfRankThree();
  const { width, vectors } = rightSingularVectors(matrix, 3);
  assert.equal(width, 3);
  for (const [i, direction] of directions.entries()) {
    const found = direction.reduce((sum, value, row) => sum + value * (vectors[row * width + i] ?? 0), 0);
    assert.ok(Math.abs(Math.abs(found) - 1) < 1e-4, `direction ${i}: ${found}`);
  }
});

test('a matrix keeps the columns that are asked for, in their order, scaled each by its own number', () => {
  const entries = new Entries();
  for (let row = 0; row < 2000; row++) for (let column = 0; column < 3; column++) entries.add(row, column, row + 1);
  const matrix = entries.toMatrix(2000, 2, Int32Array.of(1, -1, 0), Float32Array.of(10, 20, 30));
  assert.deepEqual([...matrix.columnOf.slice(0, 4)], [0, 1, 0, 1]);
  assert.deepEqual([...matrix.values.slice(0, 4)], [30, 10, 60, 20]);
  assert.equal(matrix.starts[2000], 4000);
});

test('packed vectors keep their direction, a word its length and a chunk its strength', () => {
  const vector = Float32Array.of(0.5, -2, 0.01, 1.5);
  const packed = Buffer.alloc(codeHeaderBytes + 4);
  packWord(vector, 0, 4, packed);
  for (const [i, value] of unpackWord(packed).entries()) assert.ok(Math.abs(value - (vector[i] ?? 0)) < 2 / 127);
  packChunk(vector, 0, 4, packed);
  assert.ok(Math.abs(packed.readFloatLE(0) - Math.hypot(...vector) ** 0.25) < 1e-6);
  packChunk(new Float32Array(4), 0, 4, packed);
  assert.deepEqual([...packed], [0, 0, 0, 0, 0, 0, 0, 0]);
});

test('a batch gives back the postings that went in', () => {
  const terms = [
    { term: 'bé', postings: Buffer.of(1, 2, 3) },
    { term: 'x', postings: Buffer.alloc(0) },
  ];
  assert.deepEqual([...readBatch(packBatch(terms))], terms);
});

test('words of one subject come together, even when no chunk contains both', () => {
  const texts = Array.from({ length: 80 }, (_text, i) =>
    i % 2 === 0
      ? ['wheel', 'motor', i % 4 === 0 ? 'car' : 'vehicle']
      : ['petal', 'stem', i % 4 === 1 ? 'rose' : 'tulip'],
  );
  const builder = new PostingsBuilder();
  for (const [ordinal, words] of texts.entries())
    builder.add({ ordinal, length: 3, terms: new Map(words.map((word, i) => [word, [i]])) });
  const sample = {
    languages: ['english' as const],
    dimensions: 16,
    firstOrdinal: 0,
    taken: new Uint8Array(80).fill(1),
  };
  const trainer = new Trainer(sample);
  for (const { term, postings } of builder.finish()) trainer.addPostings(term, postings);
  assert.equal(trainer.train(), 8);
  const { terms, frequencies, vectors } = trainer.readWords(0, 100);
  assert.equal(frequencies[terms.indexOf('car')], 0.25);
  const vectorOf = (term: string) =>
    unpackWord(vectors.subarray(terms.indexOf(term) * 20, terms.indexOf(term) * 20 + 20));
  const cosine = (one: string, other: string) => {
    const [a, b] = [vectorOf(one), vectorOf(other)];
    return a.reduce((sum, value, i) => sum + value * (b[i] ?? 0), 0) / Math.hypot(...a) / Math.hypot(...b);
  };
  assert.ok(
    cosine('car', 'motor') > cosine('car', 'petal') + 0.3,
    `${cosine('car', 'motor')} ${cosine('car', 'petal')}`,
  );
});

test('the same chunks give the same model to the last byte, in whatever order their postings arrive', () => {
  const words = Array.from({ length: 60 }, (_word, i) => `w${i}`);
  const builder = new PostingsBuilder();
  for (let ordinal = 0; ordinal < 300; ordinal++) {
    const terms = new Map<string, number[]>();
    for (let i = 0; i < 12; i++) {
      const word = words[(ordinal * 7 + i * i * 13 + (ordinal >> 3)) % 60] as string;
      terms.set(word, [...(terms.get(word) ?? []), i]);
    }
    builder.add({ ordinal, length: 12, terms });
  }
  const postings = builder.finish();
  const train = (order: typeof postings) => {
    const taken = new Uint8Array(300).fill(1);
    const trainer = new Trainer({ languages: ['english'], dimensions: 16, firstOrdinal: 0, taken });
    for (const one of order) trainer.addPostings(one.term, one.postings);
    trainer.train();
    const folding = trainer.startFolding(0, 300);
    for (const one of order) folding.addPostings(one.term, one.postings);
    const { terms, vectors } = trainer.readWords(0, 100);
    const byTerm = terms.map((term, i) => `${term} ${vectors.subarray(i * 20, i * 20 + 20).toString('hex')}`);
    return { words: byTerm.sort(), codes: folding.finish().toString('hex') };
  };
  const shuffled = postings.toSorted((a, b) => (a.term.at(-1) ?? '').localeCompare(b.term.at(-1) ?? ''));
  assert.deepEqual(train(shuffled), train(postings));
});

/** The same bytes where scans read them in place, as those of a large source. */
function inSharedMemory(bytes: Uint8Array) {
  const shared = withRoomFor({ bytes: new Uint8Array(0) }, 4 * 1024 * 1024);
  shared.bytes.set(bytes);
  assert.ok(shared.memory);
  return shared;
}

test('the products of a direction with codes are those of plain arithmetic, for every number of dimensions', () => {
  for (const dimensions of [16, 32, 48, 64]) {
    const count = 5_000;
    const codes = Int8Array.from({ length: (count + 3) * dimensions }, (_value, i) => ((i * 7919) % 255) - 127);
    const direction = Float32Array.from({ length: dimensions }, (_value, i) => Math.sin(i + 1));
    const products = new Float32Array(count);
    const bytes = new Uint8Array(codes.buffer);
    const rounded = roundDirection(direction);
    const { scale } = rounded;
    const take = (block: Int32Array, first: number) =>
      products.set(
        Array.from(block, (product) => product * scale),
        first,
      );
    for (const scanned of [{ bytes }, inSharedMemory(bytes)]) {
      products.fill(0);
      dotProducts(rounded, scanned, 3, count, take);
      for (const [row, product] of products.entries()) {
        const exact = direction.reduce((sum, value, i) => sum + value * (codes[(row + 3) * dimensions + i] ?? 0), 0);
        assert.ok(Math.abs(product - exact) < 0.2, `${dimensions}: ${product} for ${exact}`);
        assert.equal(Math.fround(dotProduct(rounded, codes, row + 3) * scale), product);
      }
    }
    const none = roundDirection(new Float32Array(dimensions));
    dotProducts(none, { bytes }, 0, count, (block) => assert.ok(block.every((product) => product === 0)));
  }
});
