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
