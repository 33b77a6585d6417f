import type { PostingColumns } from '../../content/postings.ts';

/**
 * BM25 (Robertson and Zaragoza 2009) with k1 = 1.2 and b = 0.75, and idf = ln(1 + (N − df + ½) / (df + ½)). N, df and
 * the average length are those of the live chunks of all searched sources.
 */
const k1 = 1.2;
const b = 0.75;
/**
 * BM25F: what a word's occurrence in the title or a heading adds to its frequency. More than a half finds less on CISI.
 */
export const titleWeight = 0.25;

export type ScopeStatistics = {
  chunks: number;
  averageLength: number;
  /** Some rows are chunks that are gone. */
  hasDead: boolean;
};

/** Chunks of the scope are rows of one table: the ordinals of each source, source after source. */
export const liveBit = 1;
export const allowedBit = 2;

/** Postings of one source: `base` is the row of ordinal 0 (it may be negative). */
type SourcePostings = { base: number; columns: PostingColumns };

export type RankTerm = {
  /** How much the term counts: how often it occurs in the query. */
  count: number;
  lists: SourcePostings[];
};

/** Statistics of a term: its document frequency in the scope and its idf. */
type TermWeight = { documentFrequency: number; idf: number };

/**
 * Adds the terms' scores to `scores`, one entry per row. Rows that are not live do not count at all; live rows that are
 * not allowed count in the statistics and get no score. `titled` is the weight of titles and headings.
 */
export function scoreTerms(
  terms: RankTerm[],
  statistics: ScopeStatistics,
  rows: Uint8Array,
  scores: Float32Array,
  titled = 0,
): TermWeight[] {
  return terms.map((term) => {
    const documentFrequency = statistics.hasDead ? countLive(term.lists, rows) : countAll(term.lists);
    const idf = Math.log(1 + (statistics.chunks - documentFrequency + 0.5) / (documentFrequency + 0.5));
    const weight = term.count * idf * (k1 + 1);
    const lengthScale = (k1 * b) / Math.max(1, statistics.averageLength);
    for (const { base, columns } of term.lists) {
      const { ordinals, tallies, lengths } = columns;
      for (let i = 0; i < ordinals.length; i++) {
        const row = base + (ordinals[i] as number);
        if (((rows[row] ?? 0) & allowedBit) === 0) continue;
        const tally = tallies[i] as number;
        const frequency = (tally >>> 1) + (tally & 1) * titled;
        const norm = k1 * (1 - b) + lengthScale * (lengths[i] as number);
        scores[row] = (scores[row] as number) + (weight * frequency) / (frequency + norm);
      }
    }
    return { documentFrequency, idf };
  });
}

function countAll(lists: SourcePostings[]): number {
  return lists.reduce((count, { columns }) => count + columns.ordinals.length, 0);
}

function countLive(lists: SourcePostings[], rows: Uint8Array): number {
  let count = 0;
  for (const { base, columns } of lists) {
    const { ordinals } = columns;
    for (let i = 0; i < ordinals.length; i++) count += (rows[base + (ordinals[i] as number)] ?? 0) & liveBit;
  }
  return count;
}

/** Merges several lists of the same source: a prefix's words count together, as one word. */
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
  const entries = [...byOrdinal];
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
  const heap: Ranked[] = [];
  let floor = 0;
  for (let row = 0; row < scores.length; row++) {
    const score = scores[row] as number;
    if (score <= floor && (score <= 0 || heap.length >= count)) continue;
    if (heap.length < count) {
      heap.push({ row, score });
      siftUp(heap);
    } else {
      heap[0] = { row, score };
      siftDown(heap);
    }
    if (heap.length >= count) floor = heap[0]?.score ?? 0;
  }
  return heap.sort((a, c) => c.score - a.score || a.row - c.row);
}

function worse(a: Ranked | undefined, c: Ranked | undefined): boolean {
  if (!a || !c) return false;
  return a.score < c.score || (a.score === c.score && a.row > c.row);
}

function siftUp(heap: Ranked[]): void {
  for (let i = heap.length - 1; i > 0; ) {
    const parent = (i - 1) >> 1;
    if (!worse(heap[i], heap[parent])) return;
    swap(heap, i, parent);
    i = parent;
  }
}

function siftDown(heap: Ranked[]): void {
  for (let i = 0; ; ) {
    let least = i;
    for (const child of [2 * i + 1, 2 * i + 2])
      if (child < heap.length && worse(heap[child], heap[least])) least = child;
    if (least === i) return;
    swap(heap, i, least);
    i = least;
  }
}

function swap(heap: Ranked[], i: number, j: number): void {
  const a = heap[i];
  const c = heap[j];
  if (!a || !c) return;
  heap[i] = c;
  heap[j] = a;
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
