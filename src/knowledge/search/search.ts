import { EmbeddingError } from '../../content/embed/embedder.ts';
import type { SharedEmbedder } from '../../content/embed/in-lanes.ts';
import type { Database } from '../../db/database.ts';
import { ByteCache } from '../index/cache.ts';
import { type CodeCache, rankByVector } from '../index/vectors.ts';
import { type IndexCache, rankByText, type TextRanking } from './fulltext.ts';
import { type Fused, fuseRankings, type Ranked } from './rank.ts';
import { layOutScope, placeOfRow, type Scope } from './scope.ts';
import { type Fragment, type HitRow, listAllowed, listHits, listScope } from './store.ts';

export type SearchMode = 'hybrid' | 'vector' | 'fulltext';

type SearchRequest = {
  appId: string;
  /** Which sources: a condition on `s`, a row of knowledge_sources, that includes visibility. */
  sources: Fragment;
  /** Which documents: a condition on `d`, a row of knowledge_documents; undefined for all. */
  documents: Fragment | undefined;
  query: string;
  mode: SearchMode;
  maxResults: number;
  /** Undefined: the embedder's own minimum. */
  minSimilarity: number | undefined;
};

export type SearchHit = {
  row: HitRow;
  score: number;
  textRank?: number;
  textScore?: number;
  vectorRank?: number;
  similarity?: number;
};

export type SearchResult = {
  hits: SearchHit[];
  /** How the ranking was computed, for `explain`. */
  terms: TextRanking['terms'];
  chunks: number;
  averageLength: number;
  /** Why there is no vector ranking although the mode asks for one. */
  vectorsUnavailable?: string;
};

/** Each ranking passes this many hits to the fusion. */
const rankedPerLeg = 200;

export type SearchIndex = { search(request: SearchRequest): Promise<SearchResult> };

type SearchOptions = {
  cacheBytesMax: number;
  /** A search waits this long for its query's vector. */
  queryEmbeddingMs: number;
};

/** Searches the database; caches up to `cacheBytesMax` of the index, which is immutable once written. */
export function openSearchIndex(db: Database, embedder: SharedEmbedder, options: SearchOptions): SearchIndex {
  const { cacheBytesMax, queryEmbeddingMs } = options;
  const postings: IndexCache = new ByteCache(cacheBytesMax / 2);
  const codes: CodeCache = new ByteCache(cacheBytesMax / 2);

  return {
    async search(request) {
      // Before the transaction: an embedder may be a remote service.
      const { appId, query, mode } = request;
      const vector = mode === 'fulltext' ? undefined : await embedQuery(embedder, appId, query, queryEmbeddingMs);
      // One snapshot: every step sees the same version of a document.
      return db.begin('isolation level repeatable read read only', async (tx) => {
        const sources = await listScope(tx, request.appId, request.sources);
        const allowed =
          request.documents === undefined
            ? undefined
            : await listAllowed(
                tx,
                request.appId,
                sources.map((source) => source.sourceId),
                request.documents,
              );
        const scope = layOutScope(sources, allowed);
        const byText =
          request.mode === 'vector'
            ? undefined
            : await rankByText(
                tx,
                request.appId,
                scope,
                request.query,
                Math.max(rankedPerLeg, request.maxResults),
                postings,
              );
        const byVector = Array.isArray(vector)
          ? await rankByVector(
              tx,
              request.appId,
              scope,
              embedder,
              vector[0] ?? new Float32Array(embedder.dimensions),
              Math.max(rankedPerLeg, request.maxResults),
              request.minSimilarity ?? embedder.similarityFloor,
              codes,
            )
          : undefined;
        const ranked = combine(byText?.ranked, byVector, embedder.fusionWeight).slice(0, request.maxResults);
        return {
          hits: await readHits(ranked, scope, (places) => listHits(tx, request.appId, places)),
          terms: byText?.terms ?? [],
          chunks: scope.statistics.chunks,
          averageLength: scope.statistics.averageLength,
          ...(vector instanceof Error ? { vectorsUnavailable: vector.message } : {}),
        };
      });
    },
  };
}

/** The query's vector, or why there is none: full-text search continues without it. */
async function embedQuery(
  embedder: SharedEmbedder,
  appId: string,
  query: string,
  waitMs: number,
): Promise<Float32Array[] | Error> {
  if (embedder.local) return embedder.embed(appId, [query], 'query');
  const deadline = AbortSignal.timeout(waitMs);
  // An embedder may not heed the signal.
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

type Combined = Fused & { textScore?: number; similarity?: number };

function combine(text: Ranked[] | undefined, vector: Ranked[] | undefined, weight: number): Combined[] {
  if (!vector) return (text ?? []).map(({ row, score }, i) => ({ row, score, textScore: score, textRank: i + 1 }));
  if (!text) return vector.map(({ row, score }, i) => ({ row, score, similarity: score, vectorRank: i + 1 }));
  const textScores = new Map(text.map(({ row, score }) => [row, score]));
  const similarities = new Map(vector.map(({ row, score }) => [row, score]));
  const rows = (ranked: Ranked[]) => ranked.map(({ row }) => row);
  return fuseRankings(rows(text), rows(vector), weight).map((fused) => {
    const textScore = textScores.get(fused.row);
    const similarity = similarities.get(fused.row);
    return {
      ...fused,
      ...(textScore === undefined ? {} : { textScore }),
      ...(similarity === undefined ? {} : { similarity }),
    };
  });
}

async function readHits(
  ranked: Combined[],
  scope: Scope,
  read: (places: { sourceId: string; ordinal: number }[]) => Promise<HitRow[]>,
): Promise<SearchHit[]> {
  const places = ranked.map(({ row }) => placeOfRow(scope, row));
  const rows = new Map((await read(places)).map((row) => [`${row.sourceId}/${row.ordinal}`, row]));
  return ranked.flatMap(({ row: _row, ...scores }, i) => {
    const place = places[i];
    const row = place && rows.get(`${place.sourceId}/${place.ordinal}`);
    return row ? [{ row, ...scores }] : [];
  });
}
