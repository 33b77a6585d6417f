import { bodyBudgets } from '../http/body/budgets.ts';
import { everyCaller } from '../http/route/access.ts';
import { type Api, ref } from '../http/route/route.ts';
import { Type } from '../lib/type.ts';
import { organization, readOrganization, common as shared } from './common.ts';
import { presentHit, presentList, presentStore, storeId } from './present.ts';
import { readCursors } from './request.ts';
import * as schema from './schema.ts';
import type { OpenAiService } from './service.ts';

const common = { ...shared, area: 'knowledge' } as const;
const path = '/v1/vector_stores';
const one = `${path}/:source`;
const params = Type.Object({ source: Type.String() });

export function registerStoreRoutes(api: Api, { service }: { service: OpenAiService }): void {
  api.app(everyCaller, {
    ...common,
    method: 'POST',
    path,
    operationId: 'openaiCreateVectorStore',
    summary: 'Create a vector store',
    description:
      'A source of type `knowledge/documents`, with the files of `file_ids` attached. If a file is unknown, returns 404 and creates nothing.',
    headers: Type.Object(organization),
    body: schema.vectorStoreCreateSchema,
    budget: bodyBudgets.map,
    responses: { 200: ref(schema.vectorStoreSchema) },
    handler: async ({ caller, body, request }) => {
      const { source, tally } = await service.createStore(caller, body, readOrganization(request));
      return presentStore(source, tally);
    },
  });

  api.app(everyCaller, {
    ...common,
    method: 'GET',
    path,
    operationId: 'openaiListVectorStores',
    summary: 'List vector stores',
    description: 'The sources of type `knowledge/documents` visible to the caller, paged by cursor.',
    query: schema.listQuery,
    responses: { 200: schema.listOf(ref(schema.vectorStoreSchema)) },
    handler: async ({ caller, query }) => {
      const { stores, hasMore } = await service.listStores(caller, readCursors(query, 'source'));
      return presentList(
        stores.map(({ source, tally }) => presentStore(source, tally)),
        hasMore,
      );
    },
  });

  registerOneStore(api, service);
  registerStoreSearch(api, service);
}

function registerOneStore(api: Api, service: OpenAiService): void {
  api.app(everyCaller, {
    ...common,
    method: 'GET',
    path: one,
    operationId: 'openaiGetVectorStore',
    summary: 'Get a vector store',
    description: '`status` is `in_progress` while a file is processed. `file_counts` are current.',
    params,
    responses: { 200: ref(schema.vectorStoreSchema) },
    handler: async ({ caller, params: { source: id } }) => {
      const { source, tally } = await service.describeStore(caller, id);
      return presentStore(source, tally);
    },
  });

  api.app(everyCaller, {
    ...common,
    method: 'POST',
    path: one,
    operationId: 'openaiUpdateVectorStore',
    summary: 'Rename a vector store, or replace its metadata',
    description: 'Omitted members keep their values. 403 for callers that can only read it.',
    params,
    body: schema.vectorStoreUpdateSchema,
    responses: { 200: ref(schema.vectorStoreSchema) },
    handler: async ({ caller, params: { source: id }, body }) => {
      const { source, tally } = await service.updateStore(caller, id, body);
      return presentStore(source, tally);
    },
  });

  api.app(everyCaller, {
    ...common,
    method: 'DELETE',
    path: one,
    operationId: 'openaiDeleteVectorStore',
    summary: 'Delete a vector store',
    description: 'Deletes the source and its documents; the files stay. 403 for callers that can only read it.',
    params,
    responses: { 200: schema.storeDeletedSchema },
    handler: async ({ caller, params: { source: id } }) => {
      const source = await service.getStore(caller, id);
      await service.deleteStore(caller, id);
      return { id: storeId(source.id), object: 'vector_store.deleted' as const, deleted: true as const };
    },
  });
}

function registerStoreSearch(api: Api, service: OpenAiService): void {
  api.app(everyCaller, {
    ...common,
    method: 'POST',
    path: `${one}/search`,
    operationId: 'openaiSearchVectorStore',
    rateGroup: 'search',
    summary: 'Search a vector store',
    description:
      'Returns passages, best first, from the source’s hybrid search. Scores rank the results of one search; with `score_threshold` they are cosine similarities.',
    params,
    body: schema.searchSchema,
    budget: bodyBudgets.map,
    responses: { 200: schema.searchResultSchema },
    handler: async ({ caller, params: { source: id }, body }) => {
      const { queries, hits } = await service.searchStore(caller, id, body);
      return {
        object: 'vector_store.search_results.page' as const,
        search_query: queries,
        data: hits.map(({ hit, file }) => presentHit(hit, file)),
        has_more: false as const,
        next_page: null,
      };
    },
  });
}
