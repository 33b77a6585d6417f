import type { FastifyReply } from 'fastify';
import { bodyBudgets } from '../http/body/budgets.ts';
import { everyCaller } from '../http/route/access.ts';
import { type Api, ref } from '../http/route/route.ts';
import type { Knowledge } from '../knowledge/domain.ts';
import { AppError, notFound } from '../lib/errors.ts';
import { formatId, nativeId } from '../lib/ids.ts';
import { Type } from '../lib/type.ts';
import { common as shared } from './common.ts';
import { nameMissing } from './errors.ts';
import { presentBatch, presentStoreFile, presentStoreFiles } from './present.ts';
import { readCursors, requireAutoChunking } from './request.ts';
import * as schema from './schema.ts';
import type { OpenAiService } from './service.ts';

const common = { ...shared, area: 'knowledge' } as const;
const files = '/v1/vector_stores/:source/files';
const file = `${files}/:file`;
const batches = '/v1/vector_stores/:source/file_batches';
const batch = `${batches}/:ingestion`;
const sourceParams = Type.Object({ source: Type.String() });
const fileParams = Type.Object({ source: Type.String(), file: Type.String() });
const batchParams = Type.Object({ source: Type.String(), ingestion: Type.String() });

/** How soon a client should poll again. The client's own default is 5 s. */
const pollAfterMs = 500;

type Deps = { service: OpenAiService; knowledge: Knowledge };

export function registerStoreFileRoutes(api: Api, deps: Deps): void {
  registerAttachmentRoutes(api, deps);
  registerAttachedFileRoutes(api, deps);
  registerBatchRoutes(api, deps);
}

function registerAttachmentRoutes(api: Api, { service, knowledge: { attachments } }: Deps): void {
  api.app(everyCaller, {
    ...common,
    method: 'POST',
    path: files,
    operationId: 'openaiCreateVectorStoreFile',
    rateGroup: 'extractions',
    summary: 'Attach a file to a vector store',
    description:
      'Creates a document from it in the background. A file that is already attached only gets the new `attributes`; one that failed is retried.',
    params: sourceParams,
    body: schema.storeFileCreateSchema,
    responses: { 200: ref(schema.storeFileSchema) },
    handler: async ({ caller, params, body, reply }) => {
      requireAutoChunking(body.chunking_strategy);
      const source = await service.getStoreForChange(caller, params.source);
      const given = { file: nativeId(body.file_id), attributes: body.attributes ?? undefined };
      const attached = await nameMissing('file_id', attachments.attach(caller, source, given));
      return suggestPoll(reply, presentStoreFile(source, attached));
    },
  });

  api.app(everyCaller, {
    ...common,
    method: 'GET',
    path: files,
    operationId: 'openaiListVectorStoreFiles',
    summary: 'List the files of a vector store',
    description: 'Paged by cursor, in the order in which the files were uploaded. `filter` selects one status.',
    params: sourceParams,
    query: schema.storeFileListQuery,
    responses: { 200: schema.listOf(ref(schema.storeFileSchema)) },
    handler: async ({ caller, params, query }) => {
      const source = await service.getStore(caller, params.source);
      const page = await attachments.list(caller, source, readCursors(query, 'file', 'document'), query.filter);
      return presentStoreFiles(source, page);
    },
  });

  api.app(everyCaller, {
    ...common,
    method: 'GET',
    path: file,
    operationId: 'openaiGetVectorStoreFile',
    summary: 'Get a file of a vector store',
    description: 'Poll until `status` is no longer `in_progress`; `last_error` says why it failed.',
    params: fileParams,
    responses: { 200: ref(schema.storeFileSchema) },
    handler: async ({ caller, params, reply }) => {
      const source = await service.getStore(caller, params.source);
      return suggestPoll(reply, presentStoreFile(source, await attachments.get(caller, source, nativeId(params.file))));
    },
  });
}

/** Changes of one attached file, and its text. */
function registerAttachedFileRoutes(api: Api, { service, knowledge: { attachments, documents } }: Deps): void {
  api.app(everyCaller, {
    ...common,
    method: 'POST',
    path: file,
    operationId: 'openaiUpdateVectorStoreFile',
    summary: 'Replace the attributes of a file',
    description:
      'The attributes are metadata of the document, and searches can filter by them. 409 while the file is being processed.',
    params: fileParams,
    body: schema.storeFileUpdateSchema,
    responses: { 200: ref(schema.storeFileSchema) },
    handler: async ({ caller, params, body }) => {
      const source = await service.getStoreForChange(caller, params.source);
      const changed = await attachments.setAttributes(caller, source, nativeId(params.file), body.attributes ?? {});
      return presentStoreFile(source, changed);
    },
  });

  api.app(everyCaller, {
    ...common,
    method: 'DELETE',
    path: file,
    operationId: 'openaiDeleteVectorStoreFile',
    summary: 'Remove a file from a vector store',
    description: 'Searches no longer find the file, but the file itself stays. 409 while it is being processed.',
    params: fileParams,
    responses: { 200: schema.storeFileDeletedSchema },
    handler: async ({ caller, params }) => {
      const source = await service.getStoreForChange(caller, params.source);
      const attached = await attachments.get(caller, source, nativeId(params.file));
      await attachments.detach(caller, source, nativeId(params.file));
      const { id } = presentStoreFile(source, attached);
      return { id, object: 'vector_store.file.deleted' as const, deleted: true as const };
    },
  });

  api.app(everyCaller, {
    ...common,
    method: 'GET',
    path: `${file}/content`,
    operationId: 'openaiGetVectorStoreFileContent',
    summary: 'Read the text of a file of a vector store',
    description: 'The whole text of its document. 409 while the file is being processed, 404 if processing failed.',
    params: fileParams,
    responses: { 200: schema.storeFileContentSchema },
    handler: async ({ caller, params }) => {
      const source = await service.getStore(caller, params.source);
      const attached = await attachments.get(caller, source, nativeId(params.file));
      if (attached.status === 'in_progress')
        throw new AppError('conflict', 'The file is being processed. Try again later.');
      if (attached.documentId === null) throw notFound();
      const { content } = await documents.content(caller, formatId('document', attached.documentId), {});
      return {
        object: 'vector_store.file_content.page' as const,
        data: [{ type: 'text' as const, text: content }],
        has_more: false as const,
        next_page: null,
      };
    },
  });
}

function registerBatchRoutes(api: Api, { service, knowledge: { attachments } }: Deps): void {
  api.app(everyCaller, {
    ...common,
    method: 'POST',
    path: batches,
    operationId: 'openaiCreateFileBatch',
    rateGroup: 'extractions',
    summary: 'Attach several files to a vector store',
    description:
      'Send either `file_ids`, with `attributes` for all of them, or `files`, each with its own. Files that are already attached are processed again.',
    params: sourceParams,
    body: schema.batchCreateSchema,
    budget: bodyBudgets.map,
    responses: { 200: ref(schema.batchSchema) },
    handler: async ({ caller, params, body, reply }) => {
      const source = await service.getStoreForChange(caller, params.source);
      return suggestPoll(reply, presentBatch(source, await service.attachFiles(caller, source, body)));
    },
  });

  api.app(everyCaller, {
    ...common,
    method: 'GET',
    path: batch,
    operationId: 'openaiGetFileBatch',
    summary: 'Get a batch of files',
    description:
      'Poll until `status` is no longer `in_progress`. A batch is `failed` if none of its files could be processed.',
    params: batchParams,
    responses: { 200: ref(schema.batchSchema) },
    handler: async ({ caller, params, reply }) => {
      const source = await service.getStore(caller, params.source);
      const found = await attachments.getBatch(caller, source, nativeId(params.ingestion));
      return suggestPoll(reply, presentBatch(source, found));
    },
  });

  api.app(everyCaller, {
    ...common,
    method: 'POST',
    path: `${batch}/cancel`,
    operationId: 'openaiCancelFileBatch',
    summary: 'Cancel a batch of files',
    description: 'Files that are already processed stay attached. Cancelling a batch that has ended changes nothing.',
    params: batchParams,
    responses: { 200: ref(schema.batchSchema) },
    handler: async ({ caller, params }) => {
      const source = await service.getStoreForChange(caller, params.source);
      return presentBatch(source, await attachments.cancelBatch(caller, source, nativeId(params.ingestion)));
    },
  });

  api.app(everyCaller, {
    ...common,
    method: 'GET',
    path: `${batch}/files`,
    operationId: 'openaiListFileBatchFiles',
    summary: 'List the files of a batch',
    description: 'The files of the batch that are still in the vector store, paged by cursor.',
    params: batchParams,
    query: schema.storeFileListQuery,
    responses: { 200: schema.listOf(ref(schema.storeFileSchema)) },
    handler: async ({ caller, params, query }) => {
      const source = await service.getStore(caller, params.source);
      const keyset = readCursors(query, 'file', 'document');
      const page = await attachments.listOfBatch(caller, source, nativeId(params.ingestion), keyset, query.filter);
      return presentStoreFiles(source, page);
    },
  });
}

/** Tells the polling helpers of OpenAI's client when to poll again. */
function suggestPoll<T extends { status: string }>(reply: FastifyReply, presented: T): T {
  if (presented.status === 'in_progress') reply.header('openai-poll-after-ms', String(pollAfterMs));
  return presented;
}
