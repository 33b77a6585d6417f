import type { BlobStore } from '../blob/blob-store.ts';
import { sendFile } from '../files/bytes.ts';
import { receiveForm } from '../files/form.ts';
import { dispositionOf, mediaTypePattern } from '../files/media-types.ts';
import { translateDisconnect } from '../files/receive.ts';
import type { FileService } from '../files/service.ts';
import { everyCaller } from '../http/route/access.ts';
import { type Api, ref, strict } from '../http/route/route.ts';
import { checkBody } from '../http/route/validation.ts';
import type { Knowledge } from '../knowledge/domain.ts';
import { nativeId } from '../lib/ids.ts';
import { limits } from '../lib/limits.ts';
import { Type } from '../lib/type.ts';
import { hasScope } from '../tenancy/key-scopes.ts';
import { organization, readOrganization, common as shared } from './common.ts';
import { fileId, presentFile, presentList } from './present.ts';
import { readCursors } from './request.ts';
import { fileDeletedSchema, fileListQuery, fileObjectSchema, listOf, purposes } from './schema.ts';

const common = { ...shared, area: 'files' } as const;
const params = Type.Object({ file: Type.String() });

/** The fields of an upload form. */
const formFileSchema = strict({
  filename: Type.String({ minLength: 1, maxLength: limits.nameCharactersMax }),
  content_type: Type.String({ maxLength: 255, ...mediaTypePattern }),
});
const formFieldsSchema = strict({ purpose: Type.Enum([...purposes]) });
/** The whole form, for the reference. */
const formSchema = Type.Object(
  {
    file: Type.String({ format: 'binary', description: 'The bytes, with a filename and a media type.' }),
    purpose: Type.Enum([...purposes], { description: 'What the file is for.' }),
  },
  { $id: 'OpenAIFileForm', description: 'A file with its purpose.' },
);

type FileRouteDeps = { blobs: BlobStore; files: FileService; knowledge: Knowledge };

export function registerFileRoutes(api: Api, deps: FileRouteDeps): void {
  const { files } = deps;
  api.app(everyCaller, {
    ...common,
    method: 'POST',
    path: '/v1/files',
    operationId: 'openaiCreateFile',
    rateGroup: 'uploads',
    summary: 'Upload a file as a form',
    description:
      'A form with the fields `file` and `purpose`: assistants, user_data or vision. The purpose is stored in `provider_metadata`. Other purposes and an expiry return 400.',
    headers: Type.Object(organization),
    rawBody: 'multipart/form-data',
    rawBodySchema: ref(formSchema),
    responses: { 200: ref(fileObjectSchema) },
    handler: async ({ caller, request }) => {
      const org = readOrganization(request);
      const { file } = await translateDisconnect(request, () =>
        receiveForm(request, async ({ filename, contentType, bytes }, fields) => {
          const { filename: name, content_type } = checkBody(formFileSchema, { filename, content_type: contentType });
          const input = { filename: name, contentType: content_type, digest: { checked: asItIs }, ...(org && { org }) };
          return files.uploadStream(caller, input, undefined, bytes, () =>
            checkBody(formFieldsSchema, Object.fromEntries(fields)),
          );
        }),
      );
      return presentFile(file);
    },
  });

  api.app(everyCaller, {
    ...common,
    method: 'GET',
    path: '/v1/files',
    operationId: 'openaiListFiles',
    summary: 'List files',
    description: 'The files visible to the caller, by cursor. `purpose` selects those uploaded with it.',
    query: fileListQuery,
    responses: { 200: listOf(ref(fileObjectSchema)) },
    handler: async ({ caller, query }) => {
      const { purpose } = query;
      const keyset = readCursors(query, 'file');
      const { rows, hasMore } = await files.listByKeyset(caller, keyset, purpose && { purpose });
      return presentList(rows.map(presentFile), hasMore);
    },
  });

  registerOneFile(api, deps);
}

function registerOneFile(api: Api, { blobs, files, knowledge }: FileRouteDeps): void {
  api.app(everyCaller, {
    ...common,
    method: 'GET',
    path: '/v1/files/:file',
    operationId: 'openaiGetFile',
    summary: 'Get a file',
    description: 'Returns its name, size and purpose.',
    params,
    responses: { 200: ref(fileObjectSchema) },
    handler: async ({ caller, params: { file: id } }) => presentFile((await files.get(caller, nativeId(id))).file),
  });

  api.app(everyCaller, {
    ...common,
    method: 'DELETE',
    path: '/v1/files/:file',
    operationId: 'openaiDeleteFile',
    summary: 'Delete a file, and remove it from vector stores',
    description:
      'Removes its documents from every vector store that the caller may change. 403 without the rights of an owner.',
    params,
    responses: { 200: fileDeletedSchema },
    handler: async ({ caller, params: { file: given } }) => {
      const id = nativeId(given);
      const file = await files.getForDelete(caller, id);
      // Scopes that cover only files must not change vector stores.
      if (hasScope(caller.scopes, 'knowledge', false)) await knowledge.attachments.detachEverywhere(caller, id);
      await files.delete(caller, id);
      return { id: fileId(file.id), object: 'file' as const, deleted: true as const };
    },
  });

  api.app(everyCaller, {
    ...common,
    method: 'GET',
    path: '/v1/files/:file/content',
    operationId: 'openaiGetFileContent',
    summary: 'Download a file',
    description: 'Returns the bytes, always as an attachment.',
    params,
    protocol: 'bytes',
    responses: { 200: Type.Any({ description: 'The contents.' }) },
    handler: async ({ caller, params: { file: id }, request, reply }) => {
      const { file } = await files.get(caller, nativeId(id));
      return sendFile({ blobs, request, reply }, file, {
        'cache-control': 'private, no-cache',
        'content-disposition': dispositionOf(file.filename, 'attachment'),
        'content-security-policy': "sandbox; default-src 'none'; frame-ancestors 'none'",
      });
    },
  });
}

const asItIs = (body: AsyncIterable<Uint8Array>) => body;
