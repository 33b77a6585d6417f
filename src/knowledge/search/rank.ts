import type { PostingColumns } from '../../content/postings.ts';

/** Chunks of the scope are rows of one table: the ordinals of each source, source after source. */
export const liveBit = 1;
export const allowedBit = 2;

/** Merges several lists of the same source, in ascending order: a prefix's words count together, as one word. */
export function joinColumns(parts: PostingColumns[]): PostingColumns {
  if (parts.length === 1 && parts[0]) return parts[0];
  const byOrdinal = new Map<number, { tally: number; length: number }>();
  for (const part of parts)
    for (let i = 0; i < part.ordinals.length; i++) {
      const ordinal = part.ordinals[i] ?? 0;
      const known = byOrdinal.get(ordinal);
      const tally = part.tallies[i] ?? 0;
      if (known) known.tally = (((known.tally >>> 1) + (tally >>> 1)) << 1) | ((known.tally | tally) & 1);
      else byOrdinal.set(ordinal, { tally, length: part.lengths[i] ?? 0 });
    }
  const entries = [...byOrdinal].sort(([one], [other]) => one - other);
  return {
    ordinals: Int32Array.from(entries, ([ordinal]) => ordinal),
    tallies: Uint16Array.from(entries, ([, entry]) => Math.min(entry.tally, 65_534 + (entry.tally & 1))),
    lengths: Uint16Array.from(entries, ([, entry]) => entry.length),
  };
}

/** Whether the words of a phrase follow one another somewhere, given each word's positions in the chunk. */
export function containsPhrase(positionsOfWords: number[][]): boolean {
  const [first = [], ...others] = positionsOfWords;
  const sets = others.map((positions) => new Set(positions));
  return first.some((start) => sets.every((set, i) => set.has(start + i + 1)));
}

export type Ranked = { row: number; score: number };

/** The `count` best rows with a positive score, best first; equal scores in order of the rows. */
export function bestRows(scores: Float32Array, count: number): Ranked[] {
  let floor = scoreOfRank(scores, count);
  let best: Ranked[] = [];
  const keepBest = () => {
    best = best.sort((a, c) => c.score - a.score || a.row - c.row).slice(0, count);
  };
  for (let row = 0; row < scores.length; row++) {
    const score = scores[row] as number;
    if (score <= 0 || score < floor) continue;
    best.push({ row, score });
    if (best.length < count * 4) continue;
    // Many rows are about as good: a later one has to be better than the last that is kept.
    keepBest();
    floor = nextFloat(best.at(-1)?.score ?? 0);
  }
  keepBest();
  return best;
}

const oneFloat = new Float32Array(1);
const itsBits = new Uint32Array(oneFloat.buffer);

/** The next greater 32-bit float of a positive one. */
function nextFloat(value: number): number {
  oneFloat[0] = value;
  itsBits[0] = (itsBits[0] as number) + 1;
  return oneFloat[0] as number;
}

const buckets = 4_096;

/** A score that at least `count` rows reach, near the greatest such score; 0 when fewer rows have one. */
export function scoreOfRank(scores: Float32Array, count: number): number {
  let largest = 0;
  for (let row = 0; row < scores.length; row++) if ((scores[row] as number) > largest) largest = scores[row] as number;
  if (largest === 0) return 0;
  const histogram = new Uint32Array(buckets + 1);
  const scale = buckets / largest;
  for (let row = 0; row < scores.length; row++) {
    const bucket = ((scores[row] as number) * scale) | 0;
    histogram[bucket] = (histogram[bucket] as number) + 1;
  }
  let found = 0;
  for (let bucket = buckets; bucket > 0; bucket--) {
    found += histogram[bucket] as number;
    if (found >= count) return (bucket / scale) * (1 - 1e-6);
  }
  return 0;
}

/** The rows with the smallest distances among those allowed, by counting sort over the distances. */
export function nearestRows(distances: Uint16Array, rows: Int32Array, bits: number, count: number): number[] {
  const histogram = new Uint32Array(bits + 2);
  for (let i = 0; i < distances.length; i++) {
    const distance = distances[i] as number;
    histogram[distance] = (histogram[distance] as number) + 1;
  }
  let threshold = 0;
  for (let sum = 0; threshold <= bits; threshold++) {
    sum += histogram[threshold] ?? 0;
    if (sum >= count) break;
  }
  const nearest: number[] = [];
  const atThreshold: number[] = [];
  for (let i = 0; i < distances.length; i++) {
    const distance = distances[i] as number;
    if (distance < threshold) nearest.push(rows[i] as number);
    else if (distance === threshold && atThreshold.length < count) atThreshold.push(rows[i] as number);
  }
  return nearest.concat(atThreshold.slice(0, Math.max(0, count - nearest.length)));
}
