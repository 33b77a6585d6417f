import { bodyBudgets } from '../http/body/budgets.ts';
import { everyCaller } from '../http/route/access.ts';
import { pageOf, pageQuery, readPage } from '../http/route/pages.ts';
import { type Api, ref } from '../http/route/route.ts';
import { Type } from '../lib/type.ts';
import type { Knowledge } from './domain.ts';
import { presentSync } from './syncs/present.ts';
import * as schema from './syncs/schema.ts';
import type { SyncView } from './syncs/store.ts';

const tag = 'Knowledge';
const syncs = '/api/v1/knowledge_sources/:source/syncs';
const sync = '/api/v1/knowledge_syncs/:sync';
const sourceParams = Type.Object({ source: Type.String() });
type Present = (row: SyncView) => ReturnType<typeof presentSync>;

const syncParams = Type.Object({ sync: Type.String() });

/** What connectors call: programs that fill a source of documents from another system. */
export function registerSyncRoutes(api: Api, { syncs: service }: Knowledge): void {
  const present: Present = (row) => presentSync(row, service.now());

  api.app(everyCaller, {
    method: 'POST',
    path: syncs,
    operationId: 'startKnowledgeSync',
    tag,
    summary: 'Start a sync of a source, or resume the one that expired',
    description:
      'A connector sends what it finds in numbered batches. 409 while another sync of the source is active. An expired sync of the same mode is resumed under a new `fence`: continue at `cursor` with `next_batch`; one of the other mode is aborted.',
    params: sourceParams,
    body: schema.syncCreateSchema,
    responses: { 201: ref(schema.syncSchema) },
    handler: async ({ caller, params, body }) => present(await service.start(caller, params.source, body)),
  });

  api.app(everyCaller, {
    method: 'GET',
    path: syncs,
    operationId: 'listKnowledgeSyncs',
    tag,
    summary: 'List the syncs of a source',
    description: 'Newest first. The last 100 are kept.',
    params: sourceParams,
    query: Type.Object(pageQuery),
    responses: { 200: pageOf(ref(schema.syncSchema)) },
    handler: ({ caller, params, query }) =>
      readPage(query, (request) => service.list(caller, params.source, request), present),
  });

  api.app(everyCaller, {
    method: 'GET',
    path: sync,
    operationId: 'getKnowledgeSync',
    tag,
    summary: 'Get a sync',
    description: 'Its state, and what became of its documents.',
    params: syncParams,
    responses: { 200: ref(schema.syncSchema) },
    handler: async ({ caller, params }) => present(await service.get(caller, params.sync)),
  });

  registerSyncProgress(api, service, present);
}

/** What a connector sends, and how its sync ends. */
function registerSyncProgress(api: Api, service: Knowledge['syncs'], present: Present): void {
  api.app(everyCaller, {
    method: 'PUT',
    path: `${sync}/batches/:number`,
    operationId: 'putKnowledgeSyncBatch',
    rateGroup: 'extractions',
    tag,
    summary: 'Send a batch of a sync',
    description:
      'Stores up to 100 upserts and 1,000 deletes together with the cursor; they are indexed in the background, in order. Batches are numbered from 1. A repeated batch is 200 and changes nothing; one with other contents, a gap or an old fence is 409. 429 while too much waits to be indexed.',
    params: Type.Object({
      sync: Type.String(),
      number: Type.String({ pattern: '^[1-9][0-9]{0,8}$', description: 'From 1.' }),
    }),
    body: schema.syncBatchSchema,
    budget: bodyBudgets.document,
    responses: { 200: ref(schema.syncSchema) },
    handler: async ({ caller, params, body }) =>
      present(await service.putBatch(caller, params.sync, Number(params.number), body)),
  });

  api.app(everyCaller, {
    method: 'POST',
    path: `${sync}/complete`,
    operationId: 'completeKnowledgeSync',
    tag,
    summary: 'Complete a sync',
    description:
      'Names how much was sent; 409 if the server has another number. When everything is indexed, a full sync deletes the documents of connectors that it did not send. If these are more than half of what the source had, 409 unless `confirm_deletions` is set.',
    params: syncParams,
    body: schema.syncCompleteSchema,
    responses: { 200: ref(schema.syncSchema) },
    handler: async ({ caller, params, body }) => present(await service.complete(caller, params.sync, body)),
  });

  api.app(everyCaller, {
    method: 'POST',
    path: `${sync}/abort`,
    operationId: 'abortKnowledgeSync',
    tag,
    summary: 'Abort a sync',
    description: 'Deletes nothing. The batches that were stored are still indexed.',
    params: syncParams,
    body: schema.syncAbortSchema,
    responses: { 200: ref(schema.syncSchema) },
    handler: async ({ caller, params, body }) => present(await service.abort(caller, params.sync, body)),
  });
}
