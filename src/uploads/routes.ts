import type { FastifyRequest } from 'fastify';
import { bodyOf, lengthOf, translateDisconnect } from '../files/receive.ts';
import { oneHeader } from '../http/headers.ts';
import { everyCaller } from '../http/route/access.ts';
import { pageOf, readPage } from '../http/route/pages.ts';
import { type Api, ref } from '../http/route/route.ts';
import { formatId } from '../lib/ids.ts';
import { Type } from '../lib/type.ts';
import type { Caller } from '../tenancy/caller.ts';
import { presentUpload, uploadHeaders } from './present.ts';
import {
  bodyType,
  describeProtocol,
  hasBody,
  readByteCount,
  readChecksum,
  readMetadata,
  requireBodyType,
  requireVersion,
  tusVersion,
} from './protocol.ts';
import { uploadListQuery, uploadSchema } from './schema.ts';
import type { UploadService } from './service.ts';

const tag = 'Files';
const path = '/api/v1/uploads';
const params = Type.Object({ upload: Type.String() });
const version = Type.String({ description: `\`${tusVersion}\`` });
const checksum = Type.Optional(
  Type.String({ description: 'sha1, sha256 or sha512, a space, and the digest of this body in base64.' }),
);

type UploadRouteDeps = { uploads: UploadService; resumableBytesMax: number };

/** Registers resumable uploads by tus 1.0. HEAD is GET without the body. */
export function registerUploadRoutes(api: Api, { uploads, resumableBytesMax }: UploadRouteDeps): void {
  api.announce(path, describeProtocol(resumableBytesMax));

  api.app(everyCaller, {
    method: 'POST',
    path,
    operationId: 'createUpload',
    rateGroup: 'uploads',
    tag,
    summary: 'Start a resumable upload',
    description:
      'Implements tus 1.0, so any tus client can be used. `Upload-Metadata` carries the members of `POST /api/v1/files` without `data`, and `provider_metadata`; `filetype` is an alias of `content_type`; `share`, `acl` and `provider_metadata` are JSON. The path of the upload is in `Location`. A body, if any, contains the first bytes.',
    headers: Type.Object({
      'tus-resumable': version,
      'upload-length': Type.String({ description: 'The size of the whole file in bytes.' }),
      'upload-metadata': Type.String({ description: 'Comma-separated pairs of a name and a base64 value.' }),
      'upload-checksum': checksum,
    }),
    rawBody: bodyType,
    rawBodyIsOptional: true,
    responses: { 201: ref(uploadSchema) },
    handler: async ({ caller, request, reply }) => {
      const upload = await translateDisconnect(request, async () => {
        requireVersion(request, true);
        requireBodyType(request, false);
        const metadata = oneHeader(request, 'upload-metadata') ?? '';
        readMetadata(metadata, { isNew: true });
        const length = readByteCount(request, 'upload-length');
        const body = hasBody(request) ? bodyIn(request) : undefined;
        return uploads.create(senderOf(caller, request), metadata, length, body);
      });
      reply.headers({ ...uploadHeaders(upload), location: `${path}/${formatId('upload', upload.id)}` });
      return presentUpload(upload);
    },
  });

  api.app(everyCaller, {
    method: 'GET',
    path,
    operationId: 'listUploads',
    tag,
    summary: 'List unfinished uploads',
    description: 'Newest first. End users see their own uploads, other callers those of the app.',
    query: uploadListQuery,
    responses: { 200: pageOf(ref(uploadSchema)) },
    handler: ({ caller, query }) => readPage(query, (request) => uploads.list(caller, request), presentUpload),
  });

  registerOneUpload(api, uploads);
}

function registerOneUpload(api: Api, uploads: UploadService): void {
  api.app(everyCaller, {
    method: 'GET',
    path: `${path}/:upload`,
    operationId: 'getUpload',
    tag,
    summary: 'Read how much of an upload is stored',
    description:
      'The same values are in the headers `Upload-Offset`, `Upload-Length`, `Upload-Metadata` and `Upload-Expires`, which HEAD returns. Once the upload is finished, `x-file` is the id of the file. If all bytes are stored but finishing was interrupted, a request from a caller who may append finishes it.',
    params,
    responses: { 200: ref(uploadSchema) },
    handler: async ({ caller, params: { upload: id }, request, reply }) => {
      requireVersion(request, false);
      const upload = await uploads.get(senderOf(caller, request), id);
      reply.headers(uploadHeaders(upload));
      return presentUpload(upload);
    },
  });

  api.app(everyCaller, {
    method: 'PATCH',
    path: `${path}/:upload`,
    operationId: 'appendToUpload',
    rateGroup: 'uploads',
    tag,
    summary: 'Append bytes to an upload',
    description:
      '`Upload-Offset` of the response is the number of durable bytes. 409 at any other offset, 423 while another request appends, 460 if the body does not match its `Upload-Checksum`. With the last byte, the caller’s rights are checked again and the upload becomes a file; `x-file` is its id.',
    params,
    headers: Type.Object({
      'tus-resumable': version,
      'upload-offset': Type.String({ description: 'The number of bytes stored before this body.' }),
      'upload-checksum': checksum,
    }),
    rawBody: bodyType,
    responses: { 204: null },
    handler: async ({ caller, params: { upload: id }, request, reply }) => {
      const upload = await translateDisconnect(request, async () => {
        requireVersion(request, true);
        requireBodyType(request, true);
        const offset = readByteCount(request, 'upload-offset');
        return uploads.append(senderOf(caller, request), id, offset, bodyIn(request));
      });
      reply.headers(uploadHeaders(upload));
    },
  });

  api.app(everyCaller, {
    method: 'DELETE',
    path: `${path}/:upload`,
    operationId: 'deleteUpload',
    tag,
    summary: 'Delete an upload and its bytes',
    description: 'The file of a finished upload stays.',
    params,
    responses: { 204: null },
    handler: async ({ caller, params: { upload: id }, request, reply }) => {
      requireVersion(request, false);
      await uploads.delete(caller, id);
      reply.header('tus-resumable', tusVersion);
    },
  });
}

function senderOf(caller: Caller, { credential }: FastifyRequest) {
  return { caller, credential };
}

function bodyIn(request: FastifyRequest) {
  return { bytes: bodyOf(request), length: lengthOf(request), check: readChecksum(request) };
}
