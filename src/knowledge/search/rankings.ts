import type { Transaction } from '../../db/database.ts';
import type { ComputingThreads } from '../computing/threads.ts';
import { rankByVector, type VectorCache } from '../index/vectors.ts';
import { askBestPassages } from './feedback.ts';
import { prepareText, readQuery, restrictToPhrases } from './fulltext.ts';
import { candidatesPerLeg, fuseRankings, type WeightedRanking } from './fuse.ts';
import { type ModelCache, openModels } from './learned.ts';
import type { IndexCache } from './postings.ts';
import type { EmbeddedQuery, Queries } from './queries.ts';
import { type Ranked, type RankedColumns, unpackRanked } from './rank.ts';
import { openReader } from './reader.ts';
import type { ExplainedTerm, SearchMode, SearchRequest, SearchResult } from './request.ts';
import type { Combined } from './results.ts';
import type { PlacedSource, SearchedChunks } from './scope.ts';
import { type TermWeight, titleWeight } from './score.ts';
import type { WantedTerm } from './wanted.ts';

/** The weight of learned similarity in a hybrid score, before and after feedback. Chosen on CISI. */
const learnedWeight = 0.3;
const learnedWeightAfterFeedback = 0.4;
/** The smallest cosine at which a chunk without a word of the query is a result. */
const learnedCosineMin = 0.2;

export type RankingCaches = { index: IndexCache; vectors: VectorCache; models: ModelCache };

/** The context of one search, which every step needs. */
type Search = {
  tx: Transaction;
  request: SearchRequest;
  scope: SearchedChunks;
  count: number;
  queries: Queries;
  caches: RankingCaches;
  threads: ComputingThreads;
};

type Ranking = { ranked: Combined[] } & Pick<SearchResult, 'terms' | 'models' | 'feedback'>;

/** The chunks that are the most similar by one embedder. */
type Nearest = { ranked: RankedColumns; weight: number };

export const rankings: Record<SearchMode, (search: Search) => Promise<Ranking>> = {
  fulltext: rankFulltext,
  vector: rankVectors,
  hybrid: rankHybrid,
};

/** Ranks by BM25 only. */
async function rankFulltext({ tx, request, scope, count, caches, threads }: Search): Promise<Ranking> {
  const { appId } = request.caller;
  const reader = await openReader(tx, appId, scope, caches.index, threads);
  const wanted = await readQuery(reader, request.query);
  const rows = await restrictToPhrases(reader, request.query);
  const text = await prepareText(reader, rows, wanted, 0, count);
  const { weights, ranked } = await threads.run(appId, rows.length, 'rankText', text);
  return {
    ranked: unpackRanked(ranked).map(({ row, score }, i) => ({ row, score, textRank: i + 1, textScore: score })),
    terms: explainTerms(wanted, weights),
  };
}

/** Ranks by the embedder's vectors only. */
async function rankVectors(search: Search): Promise<Ranking> {
  const nearest = await findNearest(search, () => true);
  const [first, ...others] = nearest;
  // Similarities by different embedders cannot be compared, but ranks can.
  const best =
    first === undefined || others.length > 0
      ? fuseRankings([], nearest.map(weightedRows)).slice(0, search.count)
      : unpackRanked(first.ranked);
  const places = placesOf(best, rankingsOf(nearest));
  const ranked = best.map(({ row, score }, i) => {
    return { row, score, vectorRank: i + 1, similarity: places.get(row)?.score ?? score };
  });
  return { ranked, terms: [] };
}

/**
 * Ranks by BM25F. If that ranking is reliable, its best passages add words to the query. Then adds the similarity
 * that the sources' models have learned, and finally fuses the embedder's results by rank.
 */
async function rankHybrid(search: Search): Promise<Ranking> {
  const { tx, request, scope, count, caches, threads } = search;
  const { appId } = request.caller;
  const reader = await openReader(tx, appId, scope, caches.index, threads);
  const wanted = await readQuery(reader, request.query);
  const rows = await restrictToPhrases(reader, request.query);
  const input = await prepareText(reader, rows, wanted, titleWeight, candidatesPerLeg);
  const first = await threads.run(appId, rows.length, 'rankText', input);
  const terms = explainTerms(wanted, first.weights);
  const learned = await openModels(tx, appId, scope, caches.models, threads);

  const known = wanted.filter((_term, i) => (terms[i]?.documentFrequency ?? 0) > 0);
  const feedback = await askBestPassages(tx, appId, scope, learned, known, first.ranked);

  const directions = await learned.directQuery(wanted);
  const moved = feedback ? await learned.moveTowards(directions, feedback.chunks) : directions;
  const weight = feedback ? learnedWeightAfterFeedback : learnedWeight;
  const text = feedback ? await prepareText(reader, rows, feedback.wanted, titleWeight, candidatesPerLeg) : input;
  const both = await threads.run(appId, rows.length, 'rankByBoth', {
    ...{
      text,
      ranks: feedback ? undefined : first,
      sources: moved.size === 0 ? undefined : await learned.prepare(moved),
    },
    ...{ weight, cosineMin: request.minSimilarity ?? learnedCosineMin, count: candidatesPerLeg },
  });
  const byBoth = unpackRanked(both.ranked, count);

  const nearest = await findNearest(search, (sources, by) => needsVectors(sources, by, terms));
  const best = nearest.length > 0 ? fuseRankings(rowsOf(byBoth), nearest.map(weightedRows)).slice(0, count) : byBoth;
  const textPlaces = placesOf(best, [both.text]);
  const modelPlaces = placesOf(best, [both.byModel]);
  const vectorPlaces = placesOf(best, rankingsOf(nearest));
  const ranked = best.map(({ row, score }): Combined => {
    const text = textPlaces.get(row);
    const model = modelPlaces.get(row);
    const vector = vectorPlaces.get(row);
    return {
      row,
      score,
      ...(text && { textRank: text.rank, textScore: text.score }),
      ...(model && { learnedRank: model.rank, learnedScore: model.score }),
      ...(vector && { vectorRank: vector.rank, similarity: vector.score }),
    };
  });
  const used = learned.sources.filter((source) => moved.has(source.sourceId));
  return {
    ranked,
    terms,
    ...(feedback && { feedback: { added: feedback.added, passages: feedback.passages } }),
    ...(used.length > 0 && { models: { weight, sources: used.map(describeModel) } }),
  };
}

/** The built-in embedder compares spellings, which adds nothing if every source has a model that knows most words. */
function needsVectors(
  sources: readonly PlacedSource[],
  { builtIn }: EmbeddedQuery['embedder'],
  terms: readonly ExplainedTerm[],
): boolean {
  if (builtIn === undefined || sources.some((source) => source.modelVersion === 0)) return true;
  const unknown = terms.filter((term) => term.documentFrequency === 0);
  return unknown.length * 2 >= terms.length;
}

/** The nearest chunks by each embedder of the scope. `baseApplies` is whether the installation's adds anything. */
async function findNearest(
  { tx, request, scope, count, caches, queries, threads }: Search,
  baseApplies: (sources: readonly PlacedSource[], base: EmbeddedQuery['embedder']) => boolean,
): Promise<Nearest[]> {
  const nearest: Nearest[] = [];
  for (const [name, { embedder: by, vector }] of queries) {
    if (vector instanceof Error) continue;
    const isServed = (space: string | null) => name === null || space === by.model;
    const sources = scope.sources.filter((each) => each.servingName === name && isServed(each.servingSpace));
    if (name === null && !baseApplies(sources, by)) continue;
    const minSimilarity = request.minSimilarity ?? by.similarityFloor;
    const among = sources.length === scope.sources.length ? scope : { ...scope, sources };
    const { appId } = request.caller;
    const ranked = await rankByVector(tx, appId, among, by, vector, count, minSimilarity, {
      cache: caches.vectors,
      threads,
    });
    nearest.push({ ranked, weight: by.fusionWeight });
  }
  return nearest;
}

function explainTerms(wanted: readonly WantedTerm[], weights: readonly TermWeight[]): ExplainedTerm[] {
  return wanted.map(({ label }, i) => ({ term: label, ...(weights[i] ?? { documentFrequency: 0, idf: 0 }) }));
}

function rowsOf(ranked: readonly Ranked[]): number[] {
  return ranked.map(({ row }) => row);
}

function rankingsOf(nearest: readonly Nearest[]): RankedColumns[] {
  return nearest.map(({ ranked }) => ranked);
}

/** The ranks and scores in these rankings of a few of their rows. */
function placesOf(
  wanted: readonly { row: number }[],
  rankings: readonly RankedColumns[],
): Map<number, { rank: number; score: number }> {
  const among = new Set<number>();
  for (const { row } of wanted) among.add(row);
  const places = new Map<number, { rank: number; score: number }>();
  for (const { rows, scores } of rankings)
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i] as number;
      if (among.has(row)) places.set(row, { rank: i + 1, score: scores[i] as number });
    }
  return places;
}

function weightedRows({ ranked, weight }: Nearest): WeightedRanking {
  return { rows: [...ranked.rows], weight };
}

function describeModel(source: PlacedSource) {
  const { sourceId, modelVersion, modelDimensions, chunkCount } = source;
  return { sourceId, version: modelVersion, dimensions: modelDimensions, chunks: chunkCount };
}
