import { addLearned } from '../search/fuse.ts';
import { packRanked, type RankedColumns, unpackRanked } from '../search/rank.ts';
import { type RankTerm, type ScopeStatistics, scoreOfRows, scoreTerms, type TermWeight } from '../search/score.ts';
import { type ChunkLengths, packParts } from './columns.ts';
import { type ComparedCodes, findNear, type RowVectors, rankByCosine } from './near.ts';
import { addRun, type CodeRun, type ComparedSource, compareRows, type ModelCodes } from './similarity.ts';

/** What ranks rows by their text. */
export type TextInput = {
  terms: RankTerm[];
  statistics: ScopeStatistics;
  rows: Uint8Array;
  titled: number;
  count: number;
};

type TextRanks = { weights: TermWeight[]; ranked: RankedColumns };

type BothInput = {
  text: TextInput;
  /** The ranking of the text, if it is known. */
  ranks: TextRanks | undefined;
  /** Undefined if no model knows a word of the query: the text alone decides. */
  sources: ComparedSource[] | undefined;
  weight: number;
  cosineMin: number;
  count: number;
};

type NearInput = { tables: ComparedCodes[]; rows: Uint8Array; query: Float32Array; count: number };

type CosineInput = { vectors: RowVectors; query: Float32Array; minSimilarity: number; count: number };

/** The parts of a search that take long in large sources. Each only computes, so any thread may do it. */
export const tasks = {
  rankText({ terms, statistics, rows, titled, count }: TextInput): TextRanks {
    const { weights, ranked } = scoreTerms(terms, statistics, rows, titled, count);
    return { weights, ranked: packRanked(ranked) };
  },

  rankByBoth({ text, ranks, sources, ...options }: BothInput) {
    const { terms, statistics, rows, titled, count } = text;
    const scored =
      ranks === undefined
        ? scoreTerms(terms, statistics, rows, titled, count)
        : {
            weights: ranks.weights,
            ranked: unpackRanked(ranks.ranked),
            scoreOf: scoreOfRows(terms, ranks.weights, statistics, rows, titled),
          };
    const ranking = packRanked(scored.ranked);
    if (sources === undefined) return { text: ranking, ranked: ranking, byModel: packRanked([]) };
    const { ranked, byModel } = addLearned(scored, compareRows(sources, rows), sources, options);
    return { text: ranking, ranked: packRanked(ranked), byModel: packRanked(byModel) };
  },

  findNear: ({ tables, rows, query, count }: NearInput) => findNear(tables, rows, query, count),

  rankByCosine: ({ vectors, query, minSimilarity, count }: CosineInput) =>
    packRanked(rankByCosine(vectors, query, minSimilarity, count)),

  addCodes({ codes, runs }: { codes: ModelCodes; runs: CodeRun[] }): void {
    for (const run of runs) addRun(codes, run);
  },

  unpackPostings: (terms: { parts: Uint8Array[]; lengths: ChunkLengths | undefined }[]) =>
    terms.map(({ parts, lengths }) => packParts(parts, lengths)),
};

export type Tasks = typeof tasks;
