/** Chunks of the scope are rows of one table: the ordinals of each source, source after source. */
export const liveBit = 1;
export const allowedBit = 2;

/** Whether the words of a phrase occur in sequence, given each word's positions in the chunk. */
export function containsPhrase(positionsOfWords: number[][]): boolean {
  const [first = [], ...others] = positionsOfWords;
  const sets = others.map((positions) => new Set(positions));
  return first.some((start) => sets.every((set, i) => set.has(start + i + 1)));
}

export type Ranked = { row: number; score: number };

/** A ranking in a form that other threads receive quickly. */
export type RankedColumns = { rows: Int32Array; scores: Float64Array };

export function packRanked(ranked: readonly Ranked[]): RankedColumns {
  const rows = new Int32Array(ranked.length);
  const scores = new Float64Array(ranked.length);
  // `Int32Array.from` takes twenty times as long, and this runs for thousands of rows.
  for (let i = 0; i < ranked.length; i++) {
    const { row, score } = ranked[i] as Ranked;
    rows[i] = row;
    scores[i] = score;
  }
  return { rows, scores };
}

/** The best `count` of them. */
export function unpackRanked({ rows, scores }: RankedColumns, count = rows.length): Ranked[] {
  const ranked: Ranked[] = [];
  for (let i = 0; i < Math.min(count, rows.length); i++)
    ranked.push({ row: rows[i] as number, score: scores[i] as number });
  return ranked;
}

/** The `count` best rows with a positive score, best first; equal scores in order of the rows. */
export function bestRows(scores: Float32Array, count: number): Ranked[] {
  const guessed = guessScoreOfRank(scores, count);
  const best = guessed > 0 ? rowsFrom(guessed, scores, count) : [];
  return best.length >= count ? best : rowsFrom(scoreOfRank(scores, count), scores, count);
}

/** Like `bestRows`, among the rows that reach a score. */
function rowsFrom(least: number, scores: Float32Array, count: number): Ranked[] {
  const best = new BestRows(count, least);
  for (let row = 0; row < scores.length; row++) {
    const score = scores[row] as number;
    if (score > 0 && score >= best.floor) best.add(row, score);
  }
  return best.finish();
}

/** Collects the best of many rows, which come in ascending order, with scores that are positive 32-bit floats. */
export class BestRows {
  /** A lower score is not among the best. */
  floor: number;
  readonly #count: number;
  readonly #rows: Int32Array;
  readonly #scores: Float32Array;
  #size = 0;

  constructor(count: number, floor = 0) {
    this.#count = count;
    this.floor = floor;
    this.#rows = new Int32Array(count * 4);
    this.#scores = new Float32Array(count * 4);
  }

  /** Takes a row whose score is positive and at least `floor`. */
  add(row: number, score: number): void {
    this.#rows[this.#size] = row;
    this.#scores[this.#size] = score;
    this.#size += 1;
    if (this.#size === this.#rows.length) this.#keepBest();
  }

  /** The best rows so far, best first; equal scores in order of the rows. */
  finish(): Ranked[] {
    if (this.#size > this.#count) this.#keepBest();
    const ranked: Ranked[] = [];
    for (let i = 0; i < this.#size; i++)
      ranked.push({ row: this.#rows[i] as number, score: this.#scores[i] as number });
    return ranked.sort((a, c) => c.score - a.score || a.row - c.row);
  }

  /** Leaves out what is not among the best, in the order in which it came. */
  #keepBest(): void {
    const last = findNth(this.#scores.slice(0, this.#size), this.#size - this.#count);
    let better = 0;
    for (let i = 0; i < this.#size; i++) if ((this.#scores[i] as number) > last) better += 1;
    let equal = this.#count - better;
    let kept = 0;
    for (let i = 0; i < this.#size; i++) {
      const score = this.#scores[i] as number;
      if (score < last || (score === last && equal-- <= 0)) continue;
      this.#rows[kept] = this.#rows[i] as number;
      this.#scores[kept] = score;
      kept += 1;
    }
    this.#size = kept;
    // Many rows have similar scores: a later one must be better than the last that is kept.
    this.floor = nextFloat(last);
  }
}

/** The value that sorting would put at a place (Hoare 1961). Moves the values, and takes a tenth of sorting them. */
function findNth(values: Float32Array, place: number): number {
  let [low, high] = [0, values.length - 1];
  while (low < high) {
    const pivot = values[(low + high) >>> 1] as number;
    let [i, j] = [low, high];
    while (i <= j) {
      while ((values[i] as number) < pivot) i += 1;
      while ((values[j] as number) > pivot) j -= 1;
      if (i > j) break;
      const value = values[i] as number;
      values[i] = values[j] as number;
      values[j] = value;
      i += 1;
      j -= 1;
    }
    if (place <= j) high = j;
    else if (place >= i) low = i;
    else break;
  }
  return values[place] as number;
}

const oneFloat = new Float32Array(1);
const itsBits = new Uint32Array(oneFloat.buffer);

/** The next greater 32-bit float of a positive one. */
function nextFloat(value: number): number {
  oneFloat[0] = value;
  itsBits[0] = (itsBits[0] as number) + 1;
  return oneFloat[0] as number;
}

const sampleStep = 16;
const sampledRowsMin = 65_536;

/**
 * Estimates `scoreOfRank` from a sixteenth of the rows, usually slightly too low. Fewer than `count` rows may reach it.
 * Returns 0 if there are too few rows for an estimate.
 */
export function guessScoreOfRank(scores: Float32Array, count: number): number {
  if (scores.length < sampledRowsMin) return 0;
  const sample = new Float32Array(Math.ceil(scores.length / sampleStep));
  for (let i = 0; i < sample.length; i++) sample[i] = scores[i * sampleStep] as number;
  const expected = count / sampleStep;
  return scoreOfRank(sample, Math.ceil(expected + 3 * Math.sqrt(expected)));
}

const buckets = 4_096;

/** A score that at least `count` rows reach, near the greatest such score; 0 if fewer rows have one. */
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

/** The source of a row, among sources in the order of their rows. */
export function sourceOfRow<Source extends { base: number; firstOrdinal: number }>(
  sources: readonly Source[],
  row: number,
): Source {
  let low = 0;
  let high = sources.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    const source = sources[middle];
    if (source && source.base + source.firstOrdinal <= row) low = middle;
    else high = middle - 1;
  }
  const source = sources[low];
  if (!source) throw new Error('The row belongs to no source.');
  return source;
}
