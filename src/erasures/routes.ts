import { Readable } from 'node:stream';
import { operators } from '../http/route/access.ts';
import { pageOf, pageQuery, readPage } from '../http/route/pages.ts';
import { type Api, ref } from '../http/route/route.ts';
import type { StreamHub } from '../http/streams/sse.ts';
import { Type } from '../lib/type.ts';
import { presentErasure } from './present.ts';
import * as schema from './schema.ts';
import type { ErasureService } from './service.ts';

const tag = 'Erasures';
const erasure = ref(schema.erasureSchema);
const params = Type.Object({ erasure: Type.String({ description: 'ers_…' }) });

/** Erasing users, documents and sources, with a certificate, and exporting what is stored about a user. */
export function registerErasureRoutes(
  api: Api,
  { erasures, streams }: { erasures: ErasureService; streams: StreamHub },
): void {
  api.provisioning(operators, {
    ...{ method: 'POST', path: '/erasures', operationId: 'createErasure', tag },
    summary: 'Erase a user, a document or a source',
    description:
      'Starts to delete everything that is stored under it: exactly one of `user`, `document` and `source`. The user can no longer act from now on. 409 while an erasure of it is running. A key with scopes also needs `people` for a user, `knowledge` for the others, and `files` for `files`.',
    body: schema.erasureCreateSchema,
    responses: { 202: erasure },
    handler: async ({ caller, body }) => presentErasure(await erasures.create(caller, body)),
  });
  api.provisioning(operators, {
    ...{ method: 'GET', path: '/erasures', operationId: 'listErasures', tag },
    summary: 'List erasures',
    description: 'All that were ordered in this app and sandbox, newest first.',
    query: Type.Object(pageQuery),
    responses: { 200: pageOf(erasure) },
    handler: ({ caller, query }) => readPage(query, (request) => erasures.list(caller, request), presentErasure),
  });
  api.provisioning(operators, {
    ...{ method: 'GET', path: '/erasures/:erasure', operationId: 'getErasure', tag },
    summary: 'Get an erasure',
    description: 'With what was deleted so far.',
    params,
    responses: { 200: erasure },
    handler: async ({ caller, params: { erasure: id } }) => presentErasure(await erasures.get(caller, id)),
  });
  api.provisioning(operators, {
    ...{ method: 'GET', path: '/erasures/:erasure/certificate', operationId: 'getErasureCertificate', tag },
    summary: 'Get the certificate of an erasure',
    description: 'A signed statement, which `quarry verify --erasures` checks. 409 until the erasure is done.',
    params,
    responses: { 200: ref(schema.certificateSchema) },
    handler: ({ caller, params: { erasure: id } }) => erasures.certificate(caller, id),
  });
  api.provisioning(operators, {
    ...{ method: 'GET', path: '/users/:user/export', operationId: 'exportUser', tag },
    summary: 'Export everything about a user',
    description:
      'A ZIP archive with a file of JSON lines for each kind of thing, and the contents of files. It is written while it is read: an archive without `export.json`, its last file, is incomplete. A key with scopes must be allowed to read in every area.',
    params: Type.Object({ user: Type.String() }),
    protocol: 'archive',
    audit: 'durable',
    responses: { 200: Type.Any({ description: 'The archive.' }) },
    async handler({ caller, params: { user }, request, reply }) {
      const archive = await erasures.export(caller, user);
      reply.headers({ 'content-type': 'application/zip', 'content-disposition': `attachment; filename="${user}.zip"` });
      if (request.method === 'HEAD') return reply.send(Readable.from([]));
      streams.hold(request, reply, caller.appId);
      return reply.send(archive);
    },
  });
}
