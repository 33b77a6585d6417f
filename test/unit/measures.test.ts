import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gradeRanking, quantile, testPaired } from '../../src/cli/client/measures.ts';

test('nDCG, recall and MRR are those of the textbook', () => {
  const relevant = new Map([
    ['a', 2],
    ['b', 1],
    ['c', 0],
  ]);
  assert.deepEqual(gradeRanking(relevant, [['a'], ['b']]), { ndcg: 1, recall: 1, mrr: 1 });
  assert.deepEqual(gradeRanking(relevant, []), { ndcg: 0, recall: 0, mrr: 0 });
  const { ndcg, recall, mrr } = gradeRanking(relevant, [['c'], ['x', 'b'], ['b'], ['a']]);
  assert.ok(Math.abs(ndcg - (1 / Math.log2(3) + 2 / Math.log2(5)) / (2 + 1 / Math.log2(3))) < 1e-12);
  assert.deepEqual([recall, mrr], [1, 0.5]);
  const late = [...Array.from({ length: 10 }, () => ['x']), ['a']];
  assert.deepEqual(gradeRanking(relevant, late), { ndcg: 0, recall: 0.5, mrr: 1 / 11 });
});

test('the paired test distinguishes a difference in every query from noise', () => {
  const one = Array.from({ length: 30 }, (_v, i) => (i % 7) / 7);
  assert.equal(testPaired(one, one), 1);
  const better = one.map((value) => value + 0.1);
  assert.ok(testPaired(better, one) < 0.001);
  assert.equal(testPaired(better, one), testPaired(one, better));
  const noisy = one.map((value, i) => value + (i % 2 ? 0.1 : -0.1));
  assert.ok(testPaired(noisy, one) > 0.5);
  // Of the eight ways to sign three equal differences two are as extreme.
  const three = testPaired([1, 1, 1], [0, 0, 0]);
  assert.ok(Math.abs(three - 0.25) < 0.02, `${three}`);
});

test('a quantile is a value of the list', () => {
  assert.deepEqual([quantile([3, 1, 2, 4], 0.5), quantile([3, 1, 2, 4], 0.95), quantile([], 0.5)], [2, 4, 0]);
});
