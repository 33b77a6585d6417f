import { EmbeddingError } from '../../content/embed/embedder.ts';
import type { SharedEmbedder } from '../../content/embed/in-lanes.ts';
import type { Reranker } from '../../content/models/reranker.ts';
import type { Database, Transaction } from '../../db/database.ts';
import { AppError } from '../../lib/errors.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { type OpenEmbedder, originOf } from '../embedding/embedders.ts';
import type { OpenCache } from '../index/cache.ts';
import { rankByVector, type VectorCache } from '../index/vectors.ts';
import { askBestPassages, type Feedback } from './feedback.ts';
import { rankText, readQuery, restrictToPhrases, type TextRanking } from './fulltext.ts';
import { addLearned, candidatesPerLeg, fuseRankings, type WeightedRanking } from './fuse.ts';
import { type ModelCache, openModels } from './learned.ts';
import type { Ranked } from './rank.ts';
import { type IndexCache, openReader } from './reader.ts';
import { rerankHits } from './rerank.ts';
import { openRestrictions, type RestrictedCache } from './restricted.ts';
import { type Combined, type Facets, type ResultShape, readResults, type SearchHit } from './results.ts';
import { layOutScope, type SearchedChunks } from './scope.ts';
import { titleWeight } from './score.ts';
import { type Fragment, listAllowed, listScope } from './store.ts';
import type { WantedTerm } from './wanted.ts';

type SearchMode = 'hybrid' | 'vector' | 'fulltext';

type SearchRequest = {
  caller: Caller;
  /** Which sources: a condition on `s`, a row of knowledge_sources, that includes visibility. */
  sources: Fragment;
  /** Which documents: a condition on `d`, a row of knowledge_documents; undefined for all. */
  documents: Fragment | undefined;
  query: string;
  mode: SearchMode;
  /** Undefined: the embedder's own minimum. */
  minSimilarity: number | undefined;
  /** The embedders of the sources, if they are known: their names, or null for the installation's. */
  embedders?: readonly (string | null)[];
  shape: ResultShape;
  /** Whether the reranker, if there is one, orders the hits. */
  rerank: boolean;
  /** The reranker that the search names. */
  reranker?: Reranker;
};

export type SearchResult = {
  hits: SearchHit[];
  facets?: Facets;
  /** How the ranking was computed, for `explain`. */
  terms: TextRanking['terms'];
  chunks: number;
  averageLength: number;
  /** The models that were used, and the weight of their similarities; the text has the remaining weight. */
  models?: { weight: number; sources: { sourceId: string; version: number; dimensions: number; chunks: number }[] };
  feedback?: Pick<Feedback, 'added' | 'passages'>;
  /** Why there is no vector ranking although the mode requires one. */
  vectorsUnavailable?: string;
  /** Why the hits are not reranked although the search requested it. */
  rerankUnavailable?: string;
};

/** Each ranking passes this many hits to the next step. */
const rankedPerLeg = 200;
/** The weight of learned similarity in a hybrid score, before and after feedback. Chosen on CISI. */
const learnedWeight = 0.3;
const learnedWeightAfterFeedback = 0.4;
/** The smallest cosine at which a chunk without a word of the query is a result. */
const learnedCosineMin = 0.2;

export type SearchIndex = { search(request: SearchRequest): Promise<SearchResult> };

/** A query as one embedder understands it, or why it could not be embedded. */
type EmbeddedQuery = {
  embedder: Pick<SharedEmbedder, 'model' | 'dimensions' | 'fusionWeight' | 'similarityFloor'>;
  vector: Float32Array | Error;
};
/** By the name of the embedder; null for the installation's. */
type Queries = Map<string | null, EmbeddedQuery>;
/** The chunks that are the most similar by one embedder. */
type Nearest = { ranked: Ranked[]; weight: number };
/** Another embedder may begin to serve between the look at a source and the search. */
const scopeTriesMax = 3;

/** The context of one search, which every step needs. */
type Search = {
  tx: Transaction;
  request: SearchRequest;
  scope: SearchedChunks;
  count: number;
  queries: Queries;
};

type SearchOptions = {
  openCache: OpenCache;
  openEmbedder: OpenEmbedder;
  /** How long a search waits for its query's vector. */
  queryEmbeddingMs: number;
  reranker?: Reranker | undefined;
  /** The number of best passages that the reranker reads. */
  rerankPassages?: number;
};

/** Searches the database; caches the index, which is immutable once written. */
export function openSearchIndex(db: Database, embedder: SharedEmbedder, options: SearchOptions): SearchIndex {
  const { openCache, queryEmbeddingMs } = options;
  const rerankPassages = options.rerankPassages ?? 50;
  const postings: IndexCache = openCache('postings');
  const vectors: VectorCache = { codes: openCache('vector-codes'), vectors: openCache('vectors') };
  const restricted: RestrictedCache = openCache('restricted');
  const models: ModelCache = { codes: openCache('model-codes'), words: openCache('words') };

  /** Ranks by BM25 only. */
  async function rankFulltext({ tx, request, scope, count }: Search) {
    const reader = await openReader(tx, request.caller.appId, scope, postings);
    const wanted = await readQuery(reader, request.query);
    const rows = await restrictToPhrases(reader, request.query);
    const { ranked, terms } = await rankText(reader, rows, wanted, 0, count);
    return { ranked: ranked.map(({ row, score }, i) => ({ row, score, textRank: i + 1, textScore: score })), terms };
  }

  /** Ranks by the embedder's vectors only. */
  async function rankVectors(search: Search): Promise<Combined[]> {
    const nearest = await findNearest(search, () => true);
    const [first, ...others] = nearest;
    // Similarities by different embedders cannot be compared, but ranks can.
    const rows =
      others.length === 0 ? first?.ranked : fuseRankings([], nearest.map(weightedRows)).slice(0, search.count);
    const places = placesOf(nearest);
    return (rows ?? []).map(({ row, score }, i) => {
      return { row, score, vectorRank: i + 1, similarity: places.get(row)?.score ?? score };
    });
  }

  /**
   * Ranks by BM25F. If that ranking is reliable, its best passages add words to the query. Then adds the similarity
   * that the sources' models have learned, and finally fuses the embedder's results by rank.
   */
  async function rankHybrid(search: Search) {
    const { tx, request, scope, count } = search;
    const { appId } = request.caller;
    const reader = await openReader(tx, appId, scope, postings);
    const wanted = await readQuery(reader, request.query);
    const rows = await restrictToPhrases(reader, request.query);
    const first = await rankText(reader, rows, wanted, titleWeight, candidatesPerLeg);
    const learned = await openModels(tx, appId, scope, models);

    const known = knownTerms(wanted, first);
    const feedback = await askBestPassages(tx, appId, scope, learned, known, first.ranked);
    const text = feedback ? await rankText(reader, rows, feedback.wanted, titleWeight, candidatesPerLeg) : first;

    const directions = await learned.directQuery(wanted);
    const moved = feedback ? await learned.moveTowards(directions, feedback.chunks) : directions;
    const weight = feedback ? learnedWeightAfterFeedback : learnedWeight;
    const { ranked: byBoth, byModel } =
      moved.size === 0
        ? { ranked: text.ranked, byModel: [] }
        : addLearned(text, await learned.compare(moved, rows), scope, {
            weight,
            cosineMin: request.minSimilarity ?? learnedCosineMin,
            count: candidatesPerLeg,
          });

    const nearest = await findNearest(search, (sources) => needsVectors(sources, first));
    const fused = nearest.length > 0 ? fuseRankings(rowsOf(byBoth.slice(0, count)), nearest.map(weightedRows)) : byBoth;
    const textPlaces = placesOf([{ ranked: text.ranked }]);
    const modelPlaces = placesOf([{ ranked: byModel }]);
    const vectorPlaces = placesOf(nearest);
    const ranked = fused.slice(0, count).map(({ row, score }): Combined => {
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
      terms: first.terms,
      ...(feedback && { feedback: { added: feedback.added, passages: feedback.passages } }),
      ...(used.length > 0 && { models: { weight, sources: used.map(describeModel) } }),
    };
  }

  /** The built-in embedder compares spellings, which adds nothing if every source has a model that knows most words. */
  function needsVectors(sources: SearchedChunks['sources'], { terms }: TextRanking): boolean {
    if (embedder.builtIn === undefined || sources.some((source) => source.modelVersion === 0)) return true;
    const unknown = terms.filter((term) => term.documentFrequency === 0);
    return unknown.length * 2 >= terms.length;
  }

  /** The nearest chunks by each embedder of the scope. `baseApplies` is whether the installation's adds anything. */
  async function findNearest(
    { tx, request, scope, count, queries }: Search,
    baseApplies: (sources: SearchedChunks['sources']) => boolean,
  ): Promise<Nearest[]> {
    const nearest: Nearest[] = [];
    for (const [name, { embedder: by, vector }] of queries) {
      if (vector instanceof Error) continue;
      const isServed = (space: string | null) => name === null || space === by.model;
      const sources = scope.sources.filter((each) => each.servingName === name && isServed(each.servingSpace));
      if (name === null && !baseApplies(sources)) continue;
      const minSimilarity = request.minSimilarity ?? by.similarityFloor;
      const among = sources.length === scope.sources.length ? scope : { ...scope, sources };
      const { appId } = request.caller;
      const ranked = await rankByVector(tx, appId, among, by, vector, count, minSimilarity, vectors);
      nearest.push({ ranked, weight: by.fusionWeight });
    }
    return nearest;
  }

  /** Embeds the query with the embedders of these names. */
  async function embedQueries(request: SearchRequest, names: readonly (string | null)[], queries: Queries) {
    const { caller, query } = request;
    const { openEmbedder } = options;
    const embedOne = async (name: string | null): Promise<EmbeddedQuery> => {
      const by = name === null ? embedder : await openByName(openEmbedder, caller, name);
      if (by instanceof Error) return { embedder, vector: by };
      const vectors = await embedQuery(by, caller.appId, query, queryEmbeddingMs);
      if (vectors instanceof Error) return { embedder: by, vector: vectors };
      return { embedder: by, vector: vectors[0] ?? new Float32Array(by.dimensions) };
    };
    const embedded = await Promise.all(names.map(embedOne));
    for (const [i, name] of names.entries()) queries.set(name, embedded[i] as EmbeddedQuery);
  }

  async function rank(request: SearchRequest): Promise<SearchResult> {
    const queries: Queries = new Map();
    let names = request.mode === 'fulltext' ? [] : (request.embedders ?? [null]);
    for (let tries = 1; ; tries++) {
      // Before the transaction, because embedders may be remote services.
      await embedQueries(request, names, queries);
      const result = await rankWith(request, queries, tries < scopeTriesMax);
      if (!Array.isArray(result)) return result;
      names = result;
    }
  }

  /** Ranks, or returns the embedders that have not embedded the query, if that `mayWait`. */
  async function rankWith(
    request: SearchRequest,
    queries: Queries,
    mayWait: boolean,
  ): Promise<SearchResult | (string | null)[]> {
    const { mode, query } = request;
    const { appId } = request.caller;
    // One snapshot: every step sees the same version of a document.
    return db.begin('isolation level repeatable read read only', async (tx) => {
      const scope = await openScope(tx, request, restricted);
      const used = new Set(scope.sources.map(({ servingName }) => servingName));
      const missing = mode === 'fulltext' ? [] : [...used].filter((name) => !queries.has(name));
      if (mayWait && missing.length > 0) return missing;
      const search: Search = { tx, request, scope, count: countRanked(request.shape), queries };
      const { ranked, ...explanation }: Ranking =
        mode === 'fulltext'
          ? await rankFulltext(search)
          : mode === 'vector'
            ? { ranked: await rankVectors(search), terms: [] }
            : await rankHybrid(search);
      const { chunks, averageLength } = scope.statistics;
      const vectorsUnavailable = mode === 'fulltext' ? undefined : findUnavailable(scope, queries);
      return {
        ...(await readResults({ tx, appId, scope, query }, ranked, request.shape)),
        chunks,
        averageLength,
        ...explanation,
        ...(vectorsUnavailable === undefined ? {} : { vectorsUnavailable }),
      };
    });
  }

  return {
    async search(request) {
      const reranker = request.reranker ?? options.reranker;
      if (!request.rerank || reranker === undefined) return rank(request);
      const { maxResults } = request.shape;
      const shape = { ...request.shape, maxResults: Math.max(rerankPassages, maxResults) };
      const result = await rank({ ...request, shape });
      // After the transaction, because the service may take seconds.
      return {
        ...result,
        ...(await rerankHits(reranker, request.caller.appId, request.query, result.hits, maxResults)),
      };
    },
  };
}

/** How many passages to rank: grouping and facets need as many as a ranking weighs. */
function countRanked({ maxResults, onePerDocument, facets }: ResultShape): number {
  return onePerDocument || facets.length > 0 ? candidatesPerLeg : Math.max(rankedPerLeg, maxResults);
}

type Ranking = { ranked: Combined[] } & Pick<SearchResult, 'terms' | 'models' | 'feedback'>;

async function openScope(
  tx: Transaction,
  { caller, sources, documents }: SearchRequest,
  cache: RestrictedCache,
): Promise<SearchedChunks> {
  const found = await listScope(tx, caller.appId, sources);
  const ids = found.map((source) => source.sourceId);
  const allowed = documents === undefined ? undefined : await listAllowed(tx, caller.appId, ids, documents);
  return layOutScope(found, allowed, await openRestrictions(tx, caller, found, cache));
}

/** Returns the query's vector, or the reason why there is none; full-text search continues without it. */
async function embedQuery(
  embedder: SharedEmbedder,
  appId: string,
  query: string,
  waitMs: number,
): Promise<Float32Array[] | Error> {
  if (embedder.local) return embedder.embed(appId, [query], 'query');
  const deadline = AbortSignal.timeout(waitMs);
  // An embedder may ignore the signal.
  const late = new Promise<never>((_resolve, reject) => {
    deadline.addEventListener('abort', () => reject(deadline.reason), { once: true });
  });
  try {
    return await Promise.race([embedder.embed(appId, [query], 'query', deadline), late]);
  } catch (error) {
    if (deadline.aborted) return new EmbeddingError(`The query was not embedded within ${waitMs} ms.`);
    return error instanceof EmbeddingError ? error : new EmbeddingError('The query could not be embedded.');
  }
}

/** The terms that occur in the scope. */
function knownTerms(wanted: readonly WantedTerm[], { terms }: TextRanking): WantedTerm[] {
  return wanted.filter((_term, i) => (terms[i]?.documentFrequency ?? 0) > 0);
}

function rowsOf(ranked: readonly Ranked[]): number[] {
  return ranked.map(({ row }) => row);
}

function placesOf(rankings: readonly { ranked: Ranked[] }[]): Map<number, { rank: number; score: number }> {
  return new Map(
    rankings.flatMap(({ ranked }) => ranked.map(({ row, score }, i) => [row, { rank: i + 1, score }] as const)),
  );
}

function weightedRows({ ranked, weight }: Nearest): WeightedRanking {
  return { rows: rowsOf(ranked), weight };
}

/** Why searches of some sources do without vectors; undefined if none does. */
function findUnavailable({ sources }: SearchedChunks, queries: Queries): string | undefined {
  for (const { vector } of queries.values()) if (vector instanceof Error) return vector.message;
  for (const { servingName: name, servingSpace: space } of sources) {
    const query = queries.get(name);
    if (query === undefined) return 'The embedder of a source was changed during the search.';
    if (name !== null && query.embedder.model !== space)
      return `${name} has become another embedder, whose vectors are being computed.`;
  }
  return undefined;
}

/** The embedder that a source has named, or why it cannot be used. */
async function openByName(
  openEmbedder: OpenEmbedder,
  caller: Caller,
  name: string,
): Promise<SharedEmbedder | EmbeddingError> {
  try {
    return await openEmbedder(caller, name, { origin: originOf(caller) });
  } catch (error) {
    if (error instanceof AppError) return new EmbeddingError(`${name} cannot be used: ${error.message}`);
    throw error;
  }
}

function describeModel(source: SearchedChunks['sources'][number]) {
  const { sourceId, modelVersion, modelDimensions, chunkCount } = source;
  return { sourceId, version: modelVersion, dimensions: modelDimensions, chunks: chunkCount };
}
