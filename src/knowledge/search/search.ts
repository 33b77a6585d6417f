import type { Database, Transaction } from '../../db/database.ts';
import type { BorrowedMemory } from '../computing/shared.ts';
import type { ComputingThreads } from '../computing/threads.ts';
import type { Embedders } from '../embedding/embedders.ts';
import type { OpenCache } from '../index/cache.ts';
import { candidatesPerLeg } from './fuse.ts';
import { embedQueries, findUnavailable, type Queries } from './queries.ts';
import { type RankingCaches, rankings } from './rankings.ts';
import type { SearchRequest, SearchResult } from './request.ts';
import { rerankHits } from './rerank.ts';
import { openRestrictions, type RestrictedCache } from './restricted.ts';
import { type ResultShape, readResults } from './results.ts';
import { layOutScope, type SearchedChunks } from './scope.ts';
import { listAllowed, listScope } from './store.ts';

/** Each ranking passes this many hits to the next step. */
const rankedPerLeg = 200;
/** Another embedder may begin to serve between the look at a source and the search. */
const scopeTriesMax = 3;

export type SearchIndex = { search(request: SearchRequest): Promise<SearchResult> };

type SearchOptions = {
  embedders: Embedders;
  openCache: OpenCache;
  threads: ComputingThreads;
  /** How long a search waits for its query's vector. */
  queryEmbeddingMs: number;
  /** The number of best passages that a reranker reads. */
  rerankPassages: number;
};

/** Searches the database; caches the index, which is immutable once written. */
export function openSearchIndex(db: Database, options: SearchOptions): SearchIndex {
  const { embedders, openCache, threads, queryEmbeddingMs, rerankPassages } = options;
  const restricted: RestrictedCache = openCache('restricted');
  const caches: RankingCaches = {
    index: { postings: openCache('postings'), bundles: openCache('bundles'), lengths: openCache('chunk-lengths') },
    vectors: { codes: openCache('vector-codes'), slabs: openCache('vectors'), places: openCache('vector-places') },
    models: { codes: openCache('model-codes'), words: openCache('words'), frequencies: openCache('frequencies') },
  };

  async function rank(request: SearchRequest): Promise<SearchResult> {
    const queries: Queries = new Map();
    let names = request.mode === 'fulltext' ? [] : request.embedders;
    for (let tries = 1; ; tries++) {
      // Before the transaction, because embedders may be remote services.
      const embedded = await embedQueries(embedders, request, names, queryEmbeddingMs);
      for (const [name, query] of embedded) queries.set(name, query);
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
      const memory = threads.borrow();
      try {
        const scope = await openScope(tx, request, restricted, memory);
        threads.prepare(scope.rows.length);
        const used = new Set(scope.sources.map(({ servingName }) => servingName));
        const missing = mode === 'fulltext' ? [] : [...used].filter((name) => !queries.has(name));
        if (mayWait && missing.length > 0) return missing;
        const search = { tx, request, scope, count: countRanked(request.shape), queries, caches, threads };
        const { ranked, ...explanation } = await rankings[mode](search);
        const { chunks, averageLength } = scope.statistics;
        const vectorsUnavailable = mode === 'fulltext' ? undefined : findUnavailable(scope, queries);
        return {
          ...(await readResults({ tx, appId, scope, query }, ranked, request.shape)),
          chunks,
          averageLength,
          ...explanation,
          ...(vectorsUnavailable === undefined ? {} : { vectorsUnavailable }),
        };
      } finally {
        memory.giveBack();
      }
    });
  }

  return {
    async search(request) {
      const { reranker, shape } = request;
      if (reranker === undefined) return rank(request);
      const { maxResults } = shape;
      const read = { ...shape, maxResults: Math.max(rerankPassages, maxResults) };
      const result = await rank({ ...request, shape: read });
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

async function openScope(
  tx: Transaction,
  { caller, sources, documents }: SearchRequest,
  cache: RestrictedCache,
  memory: BorrowedMemory,
): Promise<SearchedChunks> {
  const found = await listScope(tx, caller.appId, sources);
  const ids = found.map((source) => source.sourceId);
  const allowed = documents === undefined ? undefined : await listAllowed(tx, caller.appId, ids, documents);
  return layOutScope(found, allowed, await openRestrictions(tx, caller, found, cache), memory);
}
