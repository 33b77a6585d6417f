import type { Static } from 'typebox';
import type { Reranker } from '../../content/models/reranker.ts';
import type { Database } from '../../db/database.ts';
import { invalidField } from '../../lib/errors.ts';
import type { ObservedSearch } from '../../monitoring/traffic.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { getPathAgent } from '../../tenancy/references.ts';
import { trace } from '../../tracing/trace.ts';
import { originOf } from '../embedding/embedders.ts';
import type { agentSearchSchema, searchSchema, visibleSearchSchema } from '../schema.ts';
import type { SourceService } from '../sources/service.ts';
import { sourceVisible } from '../sources/store.ts';
import { compileFilter } from './filter.ts';
import type { SearchRequest, SearchResult } from './request.ts';
import type { OpenReranker } from './rerank.ts';
import type { SearchIndex } from './search.ts';
import type { Fragment } from './store.ts';

const resultsDefault = 20;

type SearchDeps = {
  db: Database;
  sources: SourceService;
  index: SearchIndex;
  reranker: Reranker | undefined;
  openReranker: OpenReranker;
  observe(search: ObservedSearch): void;
};

export function createSearchService(deps: SearchDeps) {
  const { db, sources } = deps;

  function ofTypes({ source_types: types = [] }: Static<typeof agentSearchSchema>): Fragment {
    return types.length > 0 ? db`s.type = any(${types}::text[])` : db`true`;
  }

  return {
    async searchSource(caller: Caller, id: string, input: Static<typeof searchSchema>): Promise<SearchResult> {
      const source = await sources.get(db, caller, id);
      return run(deps, caller, db`s.id = ${source.id}`, input, [source.embedder?.servingName ?? null]);
    },

    /** Searches everything that an agent owns. Takes the id or lookup key of the agent. */
    async searchAgent(
      caller: Caller,
      agentText: string,
      input: Static<typeof agentSearchSchema>,
    ): Promise<SearchResult> {
      const agent = await getPathAgent(db, caller, agentText);
      return run(deps, caller, db`s.agent_id = ${agent.id} and ${ofTypes(input)}`, input);
    },

    /** Searches every source that is visible to the caller, or those that the input names. */
    async searchVisible(caller: Caller, input: Static<typeof visibleSearchSchema>): Promise<SearchResult> {
      const ids = input.sources && (await sources.resolve(caller, 'sources', input.sources));
      return run(
        deps,
        caller,
        ids === undefined ? ofTypes(input) : db`s.id = any(${ids}::uuid[]) and ${ofTypes(input)}`,
        input,
      );
    },
  };
}

async function run(
  deps: SearchDeps,
  caller: Caller,
  where: Fragment,
  input: Static<typeof searchSchema>,
  embedders: SearchRequest['embedders'] = [null],
): Promise<SearchResult> {
  const { db, index, observe } = deps;
  const { rerank_model: rerankModel } = input;
  if (input.rerank === false && rerankModel !== undefined)
    throw invalidField('rerank_model', 'must not be set if rerank is false');
  const mode = input.mode ?? 'hybrid';
  const reranker =
    rerankModel === undefined ? deps.reranker : await deps.openReranker(caller, rerankModel, originOf(caller));
  if (input.rerank === true && reranker === undefined)
    throw invalidField('rerank', 'must not be true: this server has no reranker');
  const reranks = input.rerank ?? (rerankModel !== undefined || mode === 'hybrid');
  const attributes = { 'gen_ai.operation.name': 'retrieval', 'quarry.search.mode': mode, 'quarry.app': caller.appId };
  const search = {
    caller,
    sources: db`${sourceVisible(db, caller, 's')} and ${where}`,
    documents: documentConditions(db, input),
    query: input.query,
    mode,
    reranker: reranks ? reranker : undefined,
    minSimilarity: input.min_similarity,
    embedders,
    shape: {
      maxResults: input.max_results ?? resultsDefault,
      onePerDocument: input.group_by === 'document',
      facets: [...new Set(input.facets)],
      contextChunks: input.context ?? 0,
      highlights: input.highlights === true,
    },
  };
  const startedAt = performance.now();
  const result = await trace('retrieval', { attributes }, () => index.search(search));
  observe({
    mode,
    seconds: (performance.now() - startedAt) / 1_000,
    withoutVectors: result.vectorsUnavailable !== undefined,
    withoutReranker: result.rerankUnavailable !== undefined,
  });
  return result;
}

function documentConditions(db: Database, input: Static<typeof searchSchema>): Fragment | undefined {
  const conditions: Fragment[] = [];
  if (input.filter) conditions.push(compileFilter(db, input.filter));
  if (input.recency_days !== undefined)
    conditions.push(db`d.indexed_at >= now() - make_interval(secs => ${input.recency_days * 86_400})`);
  if (conditions.length === 0) return undefined;
  return conditions.reduce((all, one) => db`${all} and ${one}`);
}
