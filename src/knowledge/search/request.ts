import type { Reranker } from '../../content/models/reranker.ts';
import type { Caller } from '../../tenancy/caller.ts';
import type { Feedback } from './feedback.ts';
import type { Facets, ResultShape, SearchHit } from './results.ts';
import type { TermWeight } from './score.ts';
import type { Fragment } from './store.ts';

export type SearchMode = 'hybrid' | 'vector' | 'fulltext';

export type SearchRequest = {
  caller: Caller;
  /** Which sources: a condition on `s`, a row of knowledge_sources, that includes visibility. */
  sources: Fragment;
  /** Which documents: a condition on `d`, a row of knowledge_documents; undefined for all. */
  documents: Fragment | undefined;
  query: string;
  mode: SearchMode;
  /** Undefined: the embedder's own minimum. */
  minSimilarity: number | undefined;
  /** The embedders of the sources, as far as they are known: their names, or null for the installation's. */
  embedders: readonly (string | null)[];
  shape: ResultShape;
  /** Orders the hits. */
  reranker: Reranker | undefined;
};

/** For `explain`: a term with its weight. */
export type ExplainedTerm = { term: string } & TermWeight;

export type SearchResult = {
  hits: SearchHit[];
  facets?: Facets;
  /** How the ranking was computed, for `explain`. */
  terms: ExplainedTerm[];
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
