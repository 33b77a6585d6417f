import type { FastifyRequest } from 'fastify';
import { bodyBudgets } from '../http/body/budgets.ts';
import { oneHeader } from '../http/headers.ts';
import { everyCaller } from '../http/route/access.ts';
import type { AuditActor } from '../http/route/audit.ts';
import { pageOf, readPage } from '../http/route/pages.ts';
import { iso } from '../http/route/present.ts';
import { type Api, ref } from '../http/route/route.ts';
import { defined } from '../lib/defined.ts';
import { found, invalidField } from '../lib/errors.ts';
import { formatId } from '../lib/ids.ts';
import { limits } from '../lib/limits.ts';
import { Type } from '../lib/type.ts';
import type { CapabilityRole } from '../tenancy/capability.ts';
import { sendFile } from './bytes.ts';
import { readDigestHeader, readFilenameHeader } from './input.ts';
import { isMediaType } from './media-types.ts';
import { type PictureRequest, picturePurpose, readPictureQuery, readSignedPicture } from './picture-request.ts';
import { sendPicture } from './pictures.ts';
import { downloadHeaders, type FileLinks, presentFile } from './present.ts';
import { bodyOf, lengthOf, translateDisconnect } from './receive.ts';
import {
  fileCreateSchema,
  fileListQuery,
  filePictureQuery,
  fileSchema,
  fileUpdateSchema,
  rawUploadQuery,
  signedPictureQuery,
  uploadLinkCreateSchema,
  uploadLinkSchema,
} from './schema.ts';
import type { FileDeps, FileService, VisibleFile } from './service.ts';

const tag = 'Files';
const params = Type.Object({ file: Type.String() });
const digest = Type.Optional(
  Type.String({ description: 'RFC 9530, sha-256 or sha-512. The upload fails unless the bytes match.' }),
);
const bytesSchema = Type.Any({ description: 'The contents.' });

type FileRouteDeps = Pick<FileDeps, 'blobs' | 'clock'> & FileLinks & { files: FileService };
type Present = (seen: VisibleFile, picture?: PictureRequest) => Promise<unknown>;

export function registerFileRoutes(api: Api, deps: FileRouteDeps): void {
  const { files, clock } = deps;
  const present: Present = ({ file, grants }, picture) => presentFile(deps, file, clock.now(), grants, picture);

  api.app(everyCaller, {
    method: 'POST',
    path: '/api/v1/files',
    operationId: 'createFile',
    rateGroup: 'uploads',
    tag,
    summary: 'Upload a file',
    description:
      'The contents are in the body as base64; for large files use `POST /api/v1/files/uploads` or an upload URL. The file and its access list are stored together or not at all.',
    body: fileCreateSchema,
    budget: bodyBudgets.document,
    responses: { 201: ref(fileSchema) },
    handler: async ({ caller, body }) => present(await files.upload(caller, body)),
  });

  api.app(everyCaller, {
    method: 'GET',
    path: '/api/v1/files',
    operationId: 'listFiles',
    tag,
    summary: 'List files',
    description: 'Files that the caller owns, or may read by a grant, newest first, each with a new signed URL.',
    query: fileListQuery,
    responses: { 200: pageOf(ref(fileSchema)) },
    handler: async ({ caller, query }) => {
      const { width, format } = query;
      const picture = readPictureQuery(defined({ width, format }));
      return readPage(
        query,
        (request) => files.list(caller, request, query),
        (row) => present(row, picture),
      );
    },
  });

  registerOneFile(api, files, present);
  registerUploadRoutes(api, deps, present);
  registerUploadLinks(api, deps, present);
  registerByteRoutes(api, deps);
  registerCapabilities(api, deps);
}

function registerOneFile(api: Api, files: FileService, present: Present): void {
  api.app(everyCaller, {
    method: 'GET',
    path: '/api/v1/files/:file',
    operationId: 'getFile',
    tag,
    summary: 'Get a file with a fresh download URL',
    description:
      '`url` is a signed download URL that needs no credential and expires; each request creates a new one. `share_url` is present if the file is shared, `picture_url` if `width` is given.',
    params,
    query: Type.Object(filePictureQuery),
    responses: { 200: ref(fileSchema) },
    handler: async ({ caller, params: { file }, query }) => {
      const picture = readPictureQuery(query);
      return present(await files.get(caller, file), picture);
    },
  });

  api.app(everyCaller, {
    method: 'PATCH',
    path: '/api/v1/files/:file',
    operationId: 'updateFile',
    audit: 'durable',
    tag,
    summary: 'Update a file’s name, metadata, sharing or access list',
    description:
      'Omitted members keep their values; contents and media type cannot change. A grant of `write` allows a new name and metadata; sharing and the access list require an owner’s rights (403).',
    params,
    body: fileUpdateSchema,
    budget: bodyBudgets.graph,
    responses: { 200: ref(fileSchema) },
    handler: async ({ caller, params: { file }, body }) => present(await files.update(caller, file, body)),
  });

  api.app(everyCaller, {
    method: 'DELETE',
    path: '/api/v1/files/:file',
    operationId: 'deleteFile',
    tag,
    summary: 'Delete a file and its contents',
    description: 'Requires an owner’s rights. Its download, share and capability URLs stop working immediately.',
    params,
    responses: { 204: null },
    handler: ({ caller, params: { file } }) => files.delete(caller, file),
  });
}

function registerUploadRoutes(api: Api, { files }: FileRouteDeps, present: Present): void {
  api.app(everyCaller, {
    method: 'POST',
    path: '/api/v1/files/uploads',
    operationId: 'uploadFile',
    rateGroup: 'uploads',
    tag,
    summary: 'Upload a file of any size as the raw body',
    description: 'The body is the file, and `Content-Type` its type.',
    headers: Type.Object({
      'x-filename': Type.String({
        description: 'UTF-8, plain or percent-encoded; write a literal percent sign as `%25`.',
      }),
      'content-digest': digest,
    }),
    query: rawUploadQuery,
    rawBody: '*/*',
    responses: { 201: ref(fileSchema) },
    handler: async ({ caller, query, request }) => {
      const input = {
        ...query,
        filename: readFilenameHeader(oneHeader(request, 'x-filename'), limits.nameCharactersMax),
        contentType: readContentType(request),
        digest: readDigestHeader(oneHeader(request, 'content-digest')),
      };
      return present(
        await translateDisconnect(request, () => files.uploadStream(caller, input, lengthOf(request), bodyOf(request))),
      );
    },
  });
}

function registerUploadLinks(api: Api, { files, baseUrl }: FileRouteDeps, present: Present): void {
  api.app(everyCaller, {
    method: 'POST',
    path: '/api/v1/files/upload_urls',
    operationId: 'createFileUploadUrl',
    idempotency: 'credential',
    audit: 'durable',
    rateGroup: 'uploads',
    tag,
    summary: 'Create a URL for uploading one file without a credential',
    description:
      'The URL accepts one `PUT` of the bytes, with the size, digest, name and owner fixed here. It works until it expires, and the file exists once the upload ends.',
    body: uploadLinkCreateSchema,
    responses: { 201: ref(uploadLinkSchema) },
    handler: async ({ caller, body, request }) => {
      const { token, claims } = await files.createUploadLink(caller, body, request.credential);
      return {
        file: formatId('file', claims.id),
        method: 'PUT',
        url: `${baseUrl()}/api/v1/files/uploads?token=${token}`,
        expires_at: iso(new Date(claims.expires * 1_000)),
      };
    },
  });

  api.public({
    method: 'PUT',
    path: '/api/v1/files/uploads',
    operationId: 'uploadFileByUrl',
    tag,
    summary: 'Upload a file to a signed upload URL',
    description:
      'The body is the file. 403 for a token that is wrong or has expired, or whose creator may no longer create the file.',
    audit: 'batched',
    headers: Type.Object({ 'content-digest': digest }),
    query: Type.Object({ token: Type.String() }),
    uncheckedQuery: true,
    rawBody: '*/*',
    responses: { 201: ref(fileSchema) },
    handler: async ({ query, request }) => {
      const check = readDigestHeader(oneHeader(request, 'content-digest'));
      const { token } = query as { token?: unknown };
      const note = (actor: AuditActor) => {
        request.auditNote = { actor };
      };
      return present(
        await translateDisconnect(request, () =>
          files.uploadByLink(token, check, lengthOf(request), bodyOf(request), note),
        ),
      );
    },
  });
}

function registerByteRoutes(api: Api, { files, blobs }: FileRouteDeps): void {
  api.public({
    method: 'GET',
    path: '/api/v1/files/:file/content',
    operationId: 'downloadFile',
    tag,
    summary: 'Download a file by a signed URL',
    description:
      'The link is the `url` of a file. 403 for a signature that is wrong or has expired. Types that a browser would execute are sent as an attachment.',
    params,
    query: Type.Object({ expires: Type.Integer(), signature: Type.String() }),
    uncheckedQuery: true,
    servesContent: true,
    protocol: 'bytes',
    responses: { 200: bytesSchema },
    handler: async ({ params: { file }, query, request, reply }) => {
      const { expires, signature } = query as { expires?: unknown; signature?: unknown };
      const found = await files.openSigned(file, expires, signature);
      return sendFile({ blobs, request, reply }, found, {
        'cache-control': 'private, no-cache',
        'content-disposition': downloadHeaders(found).contentDisposition,
        'content-security-policy': "sandbox; default-src 'none'; frame-ancestors 'none'",
      });
    },
  });

  api.public({
    method: 'GET',
    path: '/api/v1/files/:file/picture',
    operationId: 'downloadFilePicture',
    tag,
    summary: 'Download a small picture of a file by a signed URL',
    description:
      'The link is the `picture_url` of a file: a PNG, JPEG, WebP or GIF, or a page of a PDF. It is upright, without metadata and never enlarged; of an animation, it is the first frame. 403 for a signature that is wrong or has expired, 422 for a file that is damaged or has more than 24 million pixels, and for a page that it does not have.',
    params,
    query: signedPictureQuery,
    uncheckedQuery: true,
    servesContent: true,
    protocol: 'bytes',
    responses: { 200: bytesSchema },
    handler: async ({ params: { file }, query, request, reply }) => {
      const { expires, signature, ...given } = query as Record<string, unknown>;
      const wanted = readSignedPicture(given);
      const found = await files.openSigned(file, expires, signature, picturePurpose(wanted));
      return sendPicture({ pictures: files.pictures, request, reply }, found, wanted);
    },
  });
}

/** Permanent URLs, each for one use of a file. */
function registerCapabilities(api: Api, { files, blobs }: FileRouteDeps): void {
  const roles: [CapabilityRole, string, string][] = [
    ['avatar', 'fetchFileAvatar', 'Fetch an agent’s profile picture by its permanent URL'],
    ['org_logo', 'fetchFileOrgLogo', 'Fetch an organisation’s logo by its permanent URL'],
    ['share', 'fetchSharedFile', 'Fetch a shared image by its permanent URL'],
  ];
  for (const [role, operationId, summary] of roles)
    api.public({
      method: 'GET',
      path: `/api/v1/files/:file/${role}`,
      operationId,
      tag,
      summary,
      description: 'Every failure returns the same 404.',
      params,
      query: Type.Object({ token: Type.String() }),
      uncheckedQuery: true,
      servesContent: true,
      protocol: 'bytes',
      responses: { 200: bytesSchema },
      handler: async ({ params: { file }, query, request, reply }) => {
        const row = found(await files.openCapability(file, (query as { token?: unknown }).token, role));
        return sendFile({ blobs, request, reply }, row, {
          'cache-control': 'public, max-age=3600',
          'content-security-policy': "sandbox; default-src 'none'",
        });
      },
    });
}

function readContentType(request: FastifyRequest): string {
  const contentType = request.headers['content-type'];
  if (contentType === undefined) throw invalidField('content-type', 'is required');
  if (!isMediaType(contentType)) throw invalidField('content-type', 'is not a media type');
  return contentType;
}
