import type { Db } from '../db/database.ts';
import { bodyBudgets } from '../http/body/budgets.ts';
import { everyCaller } from '../http/route/access.ts';
import { pageOf, pageQuery, readPage } from '../http/route/pages.ts';
import { type Api, ref } from '../http/route/route.ts';
import type { StreamHub } from '../http/streams/sse.ts';
import { Type } from '../lib/type.ts';
import type { Knowledge } from './domain.ts';
import { registerEmbeddingRoutes } from './embedding-routes.ts';
import { registerInboundRoutes } from './inbound-routes.ts';
import { ingestionTopic } from './ingestion/stream.ts';
import { aclChangeSchema } from './permissions/schema.ts';
import {
  presentChunk,
  presentContent,
  presentDocument,
  presentIngestion,
  presentListedSource,
  presentSearch,
  presentSource,
  presentWrittenSource,
} from './present.ts';
import * as schema from './schema.ts';
import { registerSyncRoutes } from './sync-routes.ts';
import { registerVersionRoutes } from './version-routes.ts';

const tag = 'Knowledge';
const sources = '/api/v1/knowledge_sources';
const source = `${sources}/:source`;
const documents = '/api/v1/knowledge_documents';
const document = `${documents}/:document`;
const sourceParams = Type.Object({ source: Type.String() });
const documentParams = Type.Object({ document: Type.String() });

type Deps = { db: Db; knowledge: Knowledge; streams: StreamHub };

export function registerKnowledgeRoutes(api: Api, deps: Deps): void {
  const { knowledge } = deps;
  registerSourceReads(api, deps);
  registerSourceChanges(api, deps);
  registerInboundRoutes(api, knowledge);
  registerIngestionStarts(api, deps);
  registerIngestionReads(api, deps);
  registerDocumentRoutes(api, knowledge);
  registerSearchRoutes(api, knowledge);
  registerSyncRoutes(api, knowledge);
  registerEmbeddingRoutes(api, deps);
  registerVersionRoutes(api, knowledge);
}

function registerSourceReads(api: Api, { db, knowledge }: Deps): void {
  api.app(everyCaller, {
    method: 'GET',
    path: `${sources}/kinds`,
    operationId: 'listKnowledgeSourceKinds',
    tag,
    summary: 'List the types of sources that can be created',
    description: 'Fixed for this version of the server. Types that only the server creates are not listed.',
    responses: { 200: schema.sourceKindListSchema },
    handler: () => knowledge.sources.kinds(),
  });

  api.app(everyCaller, {
    method: 'GET',
    path: sources,
    operationId: 'listKnowledgeSources',
    tag,
    summary: 'List sources',
    description: 'Sources visible to the caller, newest first.',
    query: schema.sourceListQuery,
    responses: { 200: pageOf(ref(schema.sourceSchema)) },
    handler: ({ caller, query }) =>
      readPage(query, (request) => knowledge.sources.list(caller, query, request), presentListedSource),
  });

  api.app(everyCaller, {
    method: 'GET',
    path: source,
    operationId: 'getKnowledgeSource',
    tag,
    summary: 'Get a source',
    description: 'Its configuration and state. 404 unless the caller has access to its organisation or owns it.',
    params: sourceParams,
    responses: { 200: ref(schema.sourceSchema) },
    handler: async ({ caller, params }) => presentSource(await knowledge.sources.get(db, caller, params.source)),
  });
}

function registerSourceChanges(api: Api, { db, knowledge }: Deps): void {
  api.app(everyCaller, {
    method: 'POST',
    path: sources,
    operationId: 'createKnowledgeSource',
    tag,
    summary: 'Create a source',
    description: 'Exactly one of `team`, `user`, `agent` and `org` owns it.',
    body: schema.sourceCreateSchema,
    budget: bodyBudgets.map,
    responses: { 201: ref(schema.sourceSchema) },
    handler: async ({ caller, body }) =>
      presentWrittenSource(await knowledge.sources.create(db, caller, body), body.payload),
  });

  api.app(everyCaller, {
    method: 'PATCH',
    path: source,
    operationId: 'updateKnowledgeSource',
    tag,
    summary: 'Update a source',
    description:
      'Omitted members keep their values; `payload` and `metadata` are replaced as a whole. `state: "paused"` stops automatic ingestion. 403 for callers that can only read it.',
    params: sourceParams,
    body: schema.sourceUpdateSchema,
    budget: bodyBudgets.map,
    responses: { 200: ref(schema.sourceSchema) },
    handler: async ({ caller, params, body }) =>
      presentWrittenSource(await knowledge.sources.update(caller, params.source, body), body.payload),
  });

  api.app(everyCaller, {
    method: 'DELETE',
    path: source,
    operationId: 'deleteKnowledgeSource',
    tag,
    summary: 'Delete a source with everything in it',
    description:
      'Permanent: documents, embeddings and ingestions are deleted with it, and active ingestions end. Index entries are removed in the background. 403 for callers that can only read it.',
    params: sourceParams,
    responses: { 204: null },
    handler: ({ caller, params }) => knowledge.sources.remove(caller, params.source),
  });
}

function registerIngestionStarts(api: Api, { db, knowledge }: Deps): void {
  api.app(everyCaller, {
    method: 'POST',
    path: `${source}/ingest`,
    operationId: 'ingestIntoKnowledgeSource',
    rateGroup: 'extractions',
    tag,
    summary: 'Ingest into a source',
    description:
      'Give exactly one of `content`, `file` and `pull: true`. Ingestions run in the background. While another one of the source is active, that one is returned, with `metadata.already_active`; `on_active` changes this.',
    params: sourceParams,
    body: schema.ingestSchema,
    budget: bodyBudgets.document,
    responses: { 201: ref(schema.ingestionSchema) },
    handler: async ({ caller, params, body }) =>
      presentIngestion(await knowledge.ingestions.ingest(db, caller, params.source, body)),
  });

  api.app(everyCaller, {
    method: 'POST',
    path: `${source}/ingest/batch`,
    operationId: 'ingestBatchIntoKnowledgeSource',
    rateGroup: 'extractions',
    tag,
    summary: 'Ingest up to 100 contents in one request',
    description: "`metadata.items` holds each item's document or error.",
    params: sourceParams,
    body: schema.ingestBatchSchema,
    budget: bodyBudgets.document,
    responses: { 201: ref(schema.ingestionSchema) },
    handler: async ({ caller, params, body }) =>
      presentIngestion(await knowledge.ingestions.ingestBatch(caller, params.source, body)),
  });
}

function registerIngestionReads(api: Api, { knowledge, streams }: Deps): void {
  api.app(everyCaller, {
    method: 'GET',
    path: `${source}/ingestions`,
    operationId: 'listKnowledgeIngestions',
    tag,
    summary: 'List the ingestions of a source',
    description: 'Active and ended ingestions, newest first.',
    params: sourceParams,
    query: Type.Object(pageQuery),
    responses: { 200: pageOf(ref(schema.ingestionSchema)) },
    handler: ({ caller, params, query }) =>
      readPage(query, (request) => knowledge.ingestions.list(caller, params.source, request), presentIngestion),
  });

  api.app(everyCaller, {
    method: 'GET',
    path: '/api/v1/knowledge_ingestions/:ingestion',
    operationId: 'getKnowledgeIngestion',
    tag,
    summary: 'Get an ingestion',
    description:
      'Ingestions run in the background: follow the stream, or poll until `status` is `succeeded` or `failed`.',
    params: Type.Object({ ingestion: Type.String() }),
    responses: { 200: ref(schema.ingestionSchema) },
    handler: async ({ caller, params }) => presentIngestion(await knowledge.ingestions.get(caller, params.ingestion)),
  });

  api.app(everyCaller, {
    method: 'GET',
    path: '/api/v1/knowledge_ingestions/:ingestion/stream',
    operationId: 'streamKnowledgeIngestion',
    protocol: 'events',
    tag,
    summary: 'Follow an ingestion',
    description: 'Server-Sent Events: `ingestion_update` with the ingestion at each change, until it has ended.',
    params: Type.Object({ ingestion: Type.String() }),
    responses: { 200: ref(schema.ingestionSchema) },
    handler: async ({ caller, params, request, reply }) => {
      const { id } = await knowledge.ingestions.get(caller, params.ingestion);
      return streams.open(request, reply, ingestionTopic, caller.appId, id);
    },
  });
}

function registerDocumentRoutes(api: Api, knowledge: Knowledge): void {
  api.app(everyCaller, {
    method: 'GET',
    path: documents,
    operationId: 'listKnowledgeDocuments',
    tag,
    summary: 'List documents',
    description: 'Documents of all sources visible to the caller, newest first, without their text.',
    query: schema.documentListQuery,
    responses: { 200: pageOf(ref(schema.documentSchema)) },
    handler: ({ caller, query }) =>
      readPage(
        query,
        (request) => knowledge.documents.list(caller, query, request),
        ({ document, grants }) => presentDocument(document, grants),
      ),
  });

  api.app(everyCaller, {
    method: 'GET',
    path: document,
    operationId: 'getKnowledgeDocument',
    tag,
    summary: 'Get a document',
    description: 'Its title, metadata, size and state, without its text.',
    params: documentParams,
    responses: { 200: ref(schema.documentSchema) },
    handler: async ({ caller, params }) => {
      const { document: found, grants } = await knowledge.documents.show(caller, params.document);
      return presentDocument(found, grants);
    },
  });

  api.app(everyCaller, {
    method: 'PATCH',
    path: document,
    operationId: 'updateKnowledgeDocument',
    rateGroup: 'extractions',
    tag,
    summary: 'Change a document',
    description:
      'Starts an ingestion that replaces the content under the same id; searches find the old one until it is done. At most one of `content` and `file`; with neither, the document keeps its text, and `title`, `metadata` or both change, but not `acl`. Omitted `title` and `metadata` stay.',
    params: documentParams,
    body: schema.documentUpdateSchema,
    budget: bodyBudgets.document,
    responses: { 201: ref(schema.ingestionSchema) },
    handler: async ({ caller, params, body }) =>
      presentIngestion(await knowledge.documents.update(caller, params.document, body)),
  });

  api.app(everyCaller, {
    method: 'DELETE',
    path: document,
    operationId: 'deleteKnowledgeDocument',
    tag,
    summary: 'Delete a document',
    description:
      'Searches no longer find it. A pull that is in progress does not bring it back. 403 for callers that can only read its source.',
    params: documentParams,
    responses: { 204: null },
    handler: ({ caller, params }) => knowledge.documents.remove(caller, params.document),
  });

  registerAclRoutes(api, knowledge);
  registerTextRoutes(api, knowledge);
}

/** Who sees a document. */
function registerAclRoutes(api: Api, knowledge: Knowledge): void {
  api.app(everyCaller, {
    method: 'PATCH',
    path: `${document}/acl`,
    operationId: 'updateKnowledgeDocumentAcl',
    tag,
    summary: 'Change who sees a document',
    description:
      'Narrows the readers of its source, from the next request on. Requires the right to change the source. 422 for unknown principals, for a list that leaves out the calling user, and if the document comes from a file with more readers.',
    params: documentParams,
    body: aclChangeSchema,
    budget: bodyBudgets.map,
    responses: { 200: ref(schema.documentSchema) },
    handler: async ({ caller, params, body }) => {
      const { document: found, grants } = await knowledge.documents.setReaders(caller, params.document, body);
      return presentDocument(found, grants);
    },
  });

  api.app(everyCaller, {
    method: 'DELETE',
    path: `${document}/acl`,
    operationId: 'deleteKnowledgeDocumentAcl',
    tag,
    summary: 'Let every reader of its source see a document',
    description: 'Requires the right to change the source.',
    params: documentParams,
    responses: { 204: null },
    handler: async ({ caller, params }) => {
      await knowledge.documents.setReaders(caller, params.document, undefined);
    },
  });
}

/** What a document says. */
function registerTextRoutes(api: Api, knowledge: Knowledge): void {
  api.app(everyCaller, {
    method: 'GET',
    path: `${document}/content`,
    operationId: 'getKnowledgeDocumentContent',
    tag,
    summary: "Read a document's text, or a slice of it",
    description: 'Without `offset` and `limit` the whole text, otherwise a slice by lines (from 1) or bytes (from 0).',
    params: documentParams,
    query: schema.documentContentQuery,
    responses: { 200: ref(schema.documentContentSchema) },
    handler: async ({ caller, params, query }) =>
      presentContent(await knowledge.documents.content(caller, params.document, query)),
  });

  api.app(everyCaller, {
    method: 'GET',
    path: `${document}/chunks`,
    operationId: 'listKnowledgeDocumentChunks',
    tag,
    summary: 'List the chunks of a document, in the order of the text',
    description: 'The passages that searches find, each with its position in the text.',
    params: documentParams,
    query: Type.Object(pageQuery),
    responses: { 200: pageOf(ref(schema.documentChunkSchema)) },
    handler: ({ caller, params, query }) =>
      readPage(query, (request) => knowledge.documents.listChunks(caller, params.document, request), presentChunk),
  });
}

function registerSearchRoutes(api: Api, knowledge: Knowledge): void {
  api.app(everyCaller, {
    method: 'POST',
    path: `${source}/search`,
    operationId: 'searchKnowledgeSource',
    rateGroup: 'search',
    tag,
    summary: 'Search a source',
    description:
      'Finds passages by words, by meaning, or by both (`hybrid`). If the embedding model does not respond, the search falls back to words and sets `vectors_unavailable`.',
    params: sourceParams,
    body: schema.searchSchema,
    budget: bodyBudgets.map,
    responses: { 200: schema.searchResultSchema },
    handler: async ({ caller, params, body }) =>
      presentSearch(await knowledge.search.searchSource(caller, params.source, body), body.explain === true),
  });

  api.app(everyCaller, {
    method: 'POST',
    path: '/api/v1/knowledge_search',
    operationId: 'searchKnowledge',
    rateGroup: 'search',
    tag,
    summary: 'Search everything visible',
    description:
      'Like the search of one source, over all sources visible to the caller. `sources` and `source_types` limit them.',
    body: schema.visibleSearchSchema,
    budget: bodyBudgets.map,
    responses: { 200: schema.searchResultSchema },
    handler: async ({ caller, body }) =>
      presentSearch(await knowledge.search.searchVisible(caller, body), body.explain === true),
  });

  api.app(everyCaller, {
    method: 'POST',
    path: '/api/v1/agents/:agent/search',
    operationId: 'searchAgentKnowledge',
    rateGroup: 'search',
    tag,
    summary: 'Search everything that an agent owns',
    description:
      'Like the search of one source, over all sources of the agent that are visible to the caller. `source_types` limits them.',
    params: Type.Object({ agent: Type.String() }),
    body: schema.agentSearchSchema,
    budget: bodyBudgets.map,
    responses: { 200: schema.searchResultSchema },
    handler: async ({ caller, params, body }) =>
      presentSearch(await knowledge.search.searchAgent(caller, params.agent, body), body.explain === true),
  });
}
