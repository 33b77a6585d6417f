/** Measures of one ranking, each from 0 to 1. */
export type Measures = { ndcg: number; recall: number; mrr: number };

export const ndcgDepth = 10;
export const recallDepth = 100;

/** Grades a ranking, best first. Each result has several keys (id, title, address); `relevant` may name any of them. */
export function gradeRanking(relevant: ReadonlyMap<string, number>, ranking: readonly string[][]): Measures {
  const left = new Map(relevant);
  const gains = ranking.slice(0, recallDepth).map((keys) => {
    const key = keys.find((one) => left.has(one));
    const gain = key === undefined ? 0 : (left.get(key) ?? 0);
    // A document counts once.
    if (key !== undefined) left.delete(key);
    return gain;
  });
  const ideal = [...relevant.values()].sort((a, c) => c - a);
  const wanted = ideal.filter((gain) => gain > 0).length;
  const first = gains.findIndex((gain) => gain > 0);
  return {
    ndcg: discount(gains.slice(0, ndcgDepth)) / discount(ideal.slice(0, ndcgDepth)),
    recall: gains.filter((gain) => gain > 0).length / wanted,
    mrr: first < 0 ? 0 : 1 / (first + 1),
  };
}

function discount(gains: readonly number[]): number {
  return gains.reduce((sum, gain, i) => sum + gain / Math.log2(i + 2), 0);
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}

/** The smallest value that at least this share of the values does not exceed. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, c) => a - c);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0;
}

const rounds = 10_000;

/**
 * The probability of a difference of means as large as this one when each query's two scores are swapped at random (a
 * paired randomisation test). The same scores always give the same probability.
 */
export function testPaired(one: readonly number[], other: readonly number[]): number {
  const differences = one.map((value, i) => value - (other[i] ?? 0));
  const observed = Math.abs(differences.reduce((sum, value) => sum + value, 0));
  let state = 0x9e3779b9;
  let asLarge = 0;
  for (let round = 0; round < rounds; round++) {
    let sum = 0;
    for (const difference of differences) {
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      sum += state < 0 ? -difference : difference;
    }
    // Sums of the same numbers in another order differ in their last bits.
    if (Math.abs(sum) >= observed - 1e-9) asLarge += 1;
  }
  return (asLarge + 1) / (rounds + 1);
}
