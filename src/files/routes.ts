import { create as contentDisposition } from 'content-disposition';
import { Type } from 'typebox';
import { AppError } from '../errors.ts';
import { type Api, ref } from '../http/route.ts';
import { presentFile } from './present.ts';
import { fileCreateSchema, fileSchema } from './schema.ts';
import type { FileDeps, FileService } from './service.ts';

const tag = 'Files';

export function registerFileRoutes(api: Api, deps: FileDeps & { files: FileService }): void {
  const { files, blobs, clock } = deps;

  api.app(['user', 'server', 'developer'], {
    method: 'POST',
    path: '/api/v1/files',
    operationId: 'createFile',
    tag,
    summary: 'Upload a file',
    body: fileCreateSchema,
    responses: { 201: ref(fileSchema) },
    handler: async ({ caller, body }) => presentFile(deps, await files.upload(caller, body), clock.now()),
  });

  api.public({
    method: 'GET',
    path: '/api/v1/files/:file/content',
    operationId: 'downloadFile',
    tag,
    summary: 'Download by a signed URL',
    params: Type.Object({ file: Type.String() }),
    query: Type.Object({ expires: Type.Optional(Type.Integer()), signature: Type.Optional(Type.String()) }),
    responses: { 200: Type.Any({ description: 'The contents.' }) },
    handler: async ({ params, query, reply }) => {
      const { expires, signature } = query;
      if (expires === undefined || signature === undefined)
        throw new AppError(
          'forbidden',
          'This download link is not valid or has expired. Fetch the file for a new one.',
        );
      const file = await files.openSigned(params.file, expires, signature);
      return reply
        .headers({
          'content-type': file.contentType,
          'content-length': file.size,
          'content-disposition': contentDisposition(file.filename, { type: 'attachment' }),
        })
        .send(await blobs.read(file.blobKey));
    },
  });
}
