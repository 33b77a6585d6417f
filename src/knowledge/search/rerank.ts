import type { Reranker } from '../../content/models/reranker.ts';
import { withContext } from '../../content/prepare.ts';
import type { Scope } from '../../tenancy/caller.ts';
import type { EmbeddingOrigin } from '../embedding/embedders.ts';
import type { SearchHit } from './results.ts';

/** Opens a named model. Throws 422 on `rerank_model`. */
export type OpenReranker = (scope: Scope, name: string, origin: EmbeddingOrigin) => Promise<Reranker>;

/** Orders the hits by the reranker and keeps the best. If it fails, keeps their order and returns the reason. */
export async function rerankHits(
  reranker: Reranker,
  appId: string,
  query: string,
  hits: SearchHit[],
  maxResults: number,
): Promise<{ hits: SearchHit[]; rerankUnavailable?: string }> {
  const texts = hits.map(({ row }) => withContext(row.content.toString(), row.title ?? undefined, row.headingPath));
  const scores = await reranker.rerank(appId, query, texts);
  if (!Array.isArray(scores)) return { hits: hits.slice(0, maxResults), rerankUnavailable: scores.unavailable };
  const scored = hits.map((hit, i): SearchHit => ({ ...hit, score: scores[i] ?? 0, rankBefore: i + 1 }));
  // A stable sort: hits with equal scores keep their order.
  return { hits: scored.sort((a, c) => c.score - a.score).slice(0, maxResults) };
}
