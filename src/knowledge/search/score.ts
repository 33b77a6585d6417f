import { ordinalsPerBlock } from '../../content/postings.ts';
import {
  type Columns,
  endOfGroup,
  findInBits,
  openColumns,
  ordinalsOf,
  ordinalsPerGroup,
  type PackedColumns,
  readGroup,
} from '../computing/columns.ts';
import { allowedBit, bestRows, guessScoreOfRank, liveBit, type Ranked, scoreOfRank } from './rank.ts';

/**
 * BM25 (Robertson and Zaragoza 2009) with k1 = 1.2 and b = 0.75, and idf = ln(1 + (N − df + ½) / (df + ½)). N, df and
 * the average length are those of the live chunks of all searched sources.
 */
const k1 = 1.2;
const b = 0.75;
/**
 * BM25F: what an occurrence in the title or a heading adds to a word's frequency. Above 0.5, results on CISI are worse.
 */
export const titleWeight = 0.25;

export type ScopeStatistics = {
  chunks: number;
  averageLength: number;
  /** Whether some rows are deleted chunks. */
  hasDead: boolean;
};

/** Postings of one source: `base` is the row of ordinal 0 (it may be negative). */
type SourcePostings = { base: number; columns: PackedColumns };

export type RankTerm = {
  /** The weight of the term: how often it occurs in the query. */
  count: number;
  lists: SourcePostings[];
};

/** The same with its columns opened: `start` is the row of their first ordinal. */
type OpenList = { start: number; columns: Columns };
type OpenTerm = { count: number; lists: OpenList[] };

/** Statistics of a term: its document frequency in the scope and its idf. */
export type TermWeight = { documentFrequency: number; idf: number };

export type Scored = {
  weights: TermWeight[];
  /** The best allowed rows, best first. */
  ranked: Ranked[];
  /** The score of any allowed row, whether ranked or not. */
  scoreOf(row: number): number;
};

/**
 * Ranks the allowed rows by their terms; at most `count`. Rows that are not live do not count at all; live rows that
 * are not allowed count in the statistics but get no score. `titled` is the weight of titles and headings.
 *
 * The terms with the greatest weights come first. Once the remaining terms together cannot lift another row into the
 * ranking (MaxScore, Turtle and Flood 1995), they are only looked up for the rows that can still be in it. The words
 * that nearly every chunk contains, whose postings are the longest, are thus hardly read. The ranking is the same.
 */
export function scoreTerms(
  given: readonly RankTerm[],
  statistics: ScopeStatistics,
  rows: Uint8Array,
  titled: number,
  count: number,
): Scored {
  const terms = given.map(openTerm);
  const weights = terms.map((term) => weigh(term, statistics, rows));
  const { norm, factors } = weighAll(terms, weights, statistics, titled);
  const order = [...terms.keys()].sort((x, y) => (factors[y] as number) - (factors[x] as number));
  const scores = zeroScores(rows.length);
  let rest = factors.reduce((sum, factor) => sum + factor, 0);
  let candidates: Ranked[] | undefined;
  for (const i of order) {
    const term = terms[i] as OpenTerm;
    const factor = factors[i] as number;
    candidates ??= pruneRows(scores, rest, weights[i]?.documentFrequency ?? 0, count);
    // Rounded like the array, so that a score is the same whether or not rows are pruned.
    if (candidates)
      for (const one of candidates) one.score = Math.fround(one.score + lookUp(term, factor, one.row, norm));
    else addPostings(term, factor, rows, scores, norm);
    rest -= factor;
  }
  const ranked = candidates
    ? candidates.sort((x, y) => y.score - x.score || x.row - y.row).slice(0, count)
    : bestRows(scores, count);
  return { weights, ranked, scoreOf: scoreWith(terms, factors, rows, norm) };
}

/** The score of any allowed row, for terms whose weights are known. */
export function scoreOfRows(
  given: readonly RankTerm[],
  weights: readonly TermWeight[],
  statistics: ScopeStatistics,
  rows: Uint8Array,
  titled: number,
): (row: number) => number {
  const { norm, factors } = weighAll(given, weights, statistics, titled);
  return scoreWith(given.map(openTerm), factors, rows, norm);
}

function weighAll(
  terms: readonly { count: number }[],
  weights: readonly TermWeight[],
  { averageLength }: ScopeStatistics,
  titled: number,
): { norm: Norm; factors: number[] } {
  const norm = { least: k1 * (1 - b), perWord: (k1 * b) / Math.max(1, averageLength), titled };
  return { norm, factors: terms.map((term, i) => term.count * (weights[i]?.idf ?? 0) * (k1 + 1)) };
}

function scoreWith(terms: readonly OpenTerm[], factors: readonly number[], rows: Uint8Array, norm: Norm) {
  return (row: number): number =>
    ((rows[row] ?? 0) & allowedBit) === 0
      ? 0
      : terms.reduce((sum, term, i) => sum + lookUp(term, factors[i] as number, row, norm), 0);
}

function openTerm({ count, lists }: RankTerm): OpenTerm {
  return {
    count,
    lists: lists.map(({ base, columns }) => ({ start: base + columns.first, columns: openColumns(columns) })),
  };
}

let scratch = new Float32Array(0);

/**
 * Zeros for the scores of this many rows, in reused memory, which is safe because a ranking never waits. Several
 * megabytes for each search would keep the garbage collector busy.
 */
function zeroScores(rows: number): Float32Array {
  if (scratch.length < rows) scratch = new Float32Array(rows);
  return scratch.subarray(0, rows).fill(0);
}

type Norm = { least: number; perWord: number; titled: number };

function contribution(factor: number, tally: number, length: number, norm: Norm): number {
  const frequency = (tally >>> 1) + (tally & 1) * norm.titled;
  return (factor * frequency) / (frequency + norm.least + norm.perWord * length);
}

function addPostings(term: OpenTerm, factor: number, rows: Uint8Array, scores: Float32Array, norm: Norm): void {
  const { least, perWord, titled } = norm;
  for (const { start, columns } of term.lists) {
    const { starts, tallies, lengths, lengthsByOrdinal } = columns;
    const ordinals = ordinalsOf(columns);
    for (let group = 0; group < starts.length; group++) {
      const groupStart = group * ordinalsPerGroup;
      const end = endOfGroup(columns, group);
      const shift = readGroup(columns, group);
      for (let i = starts[group] as number; i < end; i++) {
        const ordinal = groupStart + (ordinals[i - shift] as number);
        const row = start + ordinal;
        if (((rows[row] ?? 0) & allowedBit) === 0) continue;
        const tally = tallies[i] as number;
        const length = lengths[lengthsByOrdinal ? ordinal : i] as number;
        const frequency = (tally >>> 1) + (tally & 1) * titled;
        scores[row] = (scores[row] as number) + (factor * frequency) / (frequency + least + perWord * length);
      }
    }
  }
}

/** The score that a term adds to one row. */
function lookUp({ lists }: OpenTerm, factor: number, row: number, norm: Norm): number {
  let sum = 0;
  for (const { start, columns } of lists) {
    const { tallies, lengths, lengthsByOrdinal } = columns;
    const ordinal = row - start;
    if (ordinal < 0 || ordinal >= ordinalsPerBlock) continue;
    const place = findPosting(columns, ordinal);
    if (place < 0) continue;
    const length = lengths[lengthsByOrdinal ? ordinal : place] as number;
    sum += contribution(factor, tallies[place] as number, length, norm);
  }
  return sum;
}

/** The place of an ordinal, which is relative to the first; -1 if it has no posting. */
function findPosting(columns: Columns, ordinal: number): number {
  const { starts, ordinals, bits } = columns;
  const group = starts.length === 1 ? 0 : Math.floor(ordinal / ordinalsPerGroup);
  const inGroup = ordinal - group * ordinalsPerGroup;
  let low = starts[group] as number;
  if (bits) {
    const place = findInBits(bits, group, inGroup);
    return place < 0 ? place : low + place;
  }
  const end = endOfGroup(columns, group);
  for (let high = end - 1; low < high; ) {
    const middle = (low + high) >>> 1;
    if ((ordinals[middle] as number) < inGroup) low = middle + 1;
    else high = middle;
  }
  return low < end && ordinals[low] === inGroup ? low : -1;
}

/** Looking up a row in a list costs about as much as adding this many postings. */
const lookUpCost = 24;
const prunedPostingsMin = 50_000;

/**
 * The rows that can still be among the best `count` if the remaining terms add at most `rest`; undefined while there
 * are too many rows to look up, or if the next list has few postings.
 */
function pruneRows(scores: Float32Array, rest: number, postings: number, count: number): Ranked[] | undefined {
  if (postings < prunedPostingsMin) return undefined;
  const most = postings / lookUpCost;
  const guessed = guessScoreOfRank(scores, count);
  // The guess is valid if enough rows reach it.
  const some = guessed > 0 ? rowsWithin(rest, guessed, scores, most) : undefined;
  if (some && some.above >= count) return some.candidates;
  if (guessed > 0 && some === undefined) return undefined;
  return rowsWithin(rest, scoreOfRank(scores, count), scores, most)?.candidates;
}

/** The rows at most `rest` below a score, and how many reach it; undefined if there are more than `most`. */
function rowsWithin(rest: number, reached: number, scores: Float32Array, most: number) {
  // A little more than `rest`, because sums of floats are rounded.
  const floor = reached - rest * (1 + 1e-5);
  if (floor <= 0) return undefined;
  const candidates: Ranked[] = [];
  let above = 0;
  for (let row = 0; row < scores.length; row++) {
    const score = scores[row] as number;
    if (score < floor) continue;
    if (candidates.length >= most) return undefined;
    candidates.push({ row, score });
    if (score >= reached) above += 1;
  }
  return { candidates, above };
}

function weigh({ lists }: OpenTerm, { chunks, hasDead }: ScopeStatistics, rows: Uint8Array): TermWeight {
  const documentFrequency = hasDead ? countLive(lists, rows) : countAll(lists);
  return { documentFrequency, idf: Math.log(1 + (chunks - documentFrequency + 0.5) / (documentFrequency + 0.5)) };
}

function countAll(lists: OpenList[]): number {
  return lists.reduce((count, { columns }) => count + columns.tallies.length, 0);
}

function countLive(lists: OpenList[], rows: Uint8Array): number {
  let count = 0;
  for (const { start, columns } of lists) {
    const { starts } = columns;
    const ordinals = ordinalsOf(columns);
    for (let group = 0; group < starts.length; group++) {
      const groupStart = start + group * ordinalsPerGroup;
      const end = endOfGroup(columns, group);
      const shift = readGroup(columns, group);
      for (let i = starts[group] as number; i < end; i++)
        count += (rows[groupStart + (ordinals[i - shift] as number)] ?? 0) & liveBit;
    }
  }
  return count;
}
