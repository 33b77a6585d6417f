import { cosineEstimator, packedBytes, packedCosine, signCode } from '../../content/embed/codes.ts';
import { hammingDistances } from '../../content/embed/hamming.ts';
import type { ScannedBytes } from '../../content/wide-scan.ts';
import { allowedBit, type Ranked } from '../search/rank.ts';

/** The sign codes of a source, in the order in which they were stored. Row 0 of the source is ordinal `-base`. */
export type ComparedCodes = {
  base: number;
  firstOrdinal: number;
  nextOrdinal: number;
  count: number;
  ordinals: Int32Array;
  codes: ScannedBytes;
};

/**
 * Up to 10,000 chunks, these are the numbers of estimates and of cosines; beyond that, the first grows with the square
 * root of the number of chunks and the second with its fourth root. `bench/search.ts` measures how many of the exact top
 * ten are found.
 */
const estimatedMin = 2_000;
const comparedMin = 200;
const chunksOfMin = 10_000;
/** Marks a code whose chunk the search may not return. No distance is as large. */
const notAllowed = 65_535;

let scratch = new Uint16Array(0);

/**
 * The rows whose exact cosine is worth reading, at least `count`: of those with the smallest Hamming distances, the best
 * by an estimate.
 */
export function findNear(
  tables: readonly ComparedCodes[],
  rows: Uint8Array,
  query: Float32Array,
  count: number,
): Int32Array {
  const code = signCode(query);
  const total = tables.reduce((sum, table) => sum + table.count, 0);
  if (scratch.length < total) scratch = new Uint16Array(total);
  const distances = scratch.subarray(0, total);
  const histogram = new Uint32Array(code.length * 32 + 2);
  let found = 0;
  let start = 0;
  for (const table of tables) {
    const { base, firstOrdinal, nextOrdinal, ordinals } = table;
    hammingDistances(code, table.codes, table.count, distances, start);
    for (let i = 0; i < table.count; i++) {
      const ordinal = ordinals[i] as number;
      // The table may contain chunks that are newer than this snapshot, and deleted ones.
      const isAllowed =
        ordinal >= firstOrdinal && ordinal < nextOrdinal && ((rows[base + ordinal] ?? 0) & allowedBit) !== 0;
      if (isAllowed) {
        const distance = distances[start + i] as number;
        histogram[distance] = (histogram[distance] as number) + 1;
        found += 1;
      } else distances[start + i] = notAllowed;
    }
    start += table.count;
  }
  const growth = Math.sqrt(Math.max(1, found / chunksOfMin));
  const compared = Math.max(count, Math.ceil(comparedMin * Math.sqrt(growth)));
  const near = nearestPlaces(distances, histogram, Math.max(compared, Math.ceil(estimatedMin * growth)));
  return keepBest(tables, near, compared, query);
}

/** The places of the smallest distances, given how often each occurs. Of equal ones, the first. */
export function nearestPlaces(distances: Uint16Array, histogram: Uint32Array, count: number): number[] {
  let threshold = 0;
  for (let sum = 0; threshold < histogram.length - 1; threshold++) {
    sum += histogram[threshold] as number;
    if (sum >= count) break;
  }
  const nearest: number[] = [];
  const atThreshold: number[] = [];
  for (let i = 0; i < distances.length; i++) {
    const distance = distances[i] as number;
    if (distance > threshold) continue;
    if (distance < threshold) nearest.push(i);
    else if (atThreshold.length < count) atThreshold.push(i);
  }
  return nearest.concat(atThreshold.slice(0, Math.max(0, count - nearest.length)));
}

/** The rows of the `count` places that are the most similar by the estimate. Of equal ones, the first. */
function keepBest(tables: readonly ComparedCodes[], near: number[], count: number, query: Float32Array): Int32Array {
  const all = new Int32Array(near.length);
  const estimates = new Float32Array(near.length);
  const estimate = near.length > count ? cosineEstimator(query) : undefined;
  const words = tables.map(
    ({ codes: { bytes } }) => new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4),
  );
  const starts = tables.map((_table, t) => tables.slice(0, t).reduce((sum, table) => sum + table.count, 0));
  for (const [i, place] of near.entries()) {
    let low = 0;
    for (let high = tables.length - 1; low < high; ) {
      const middle = (low + high + 1) >>> 1;
      if ((starts[middle] as number) <= place) low = middle;
      else high = middle - 1;
    }
    const { base, ordinals } = tables[low] as ComparedCodes;
    const at = place - (starts[low] as number);
    all[i] = base + (ordinals[at] as number);
    if (estimate) estimates[i] = estimate(words[low] as Uint32Array, at);
  }
  if (!estimate) return all;
  const least = estimates.toSorted()[near.length - count] as number;
  const better = estimates.reduce((sum, one) => (one > least ? sum + 1 : sum), 0);
  let equal = count - better;
  return all.filter((_row, i) => (estimates[i] as number) > least || (estimates[i] === least && equal-- > 0));
}

/** Packed vectors of rows, one behind the other. */
export type RowVectors = { rows: Int32Array; content: Uint8Array };

/** The rows whose cosine is at least `minSimilarity`; at most `count`, best first. */
export function rankByCosine(
  { rows, content }: RowVectors,
  query: Float32Array,
  minSimilarity: number,
  count: number,
): Ranked[] {
  const size = packedBytes(query.length);
  return Array.from(rows, (row, i) => ({ row, score: packedCosine(query, content.subarray(i * size, (i + 1) * size)) }))
    .filter(({ score }) => score >= minSimilarity)
    .sort((a, b) => b.score - a.score || a.row - b.row)
    .slice(0, count);
}
