import { Type } from 'typebox';
import { page, pageOf, pageQuery, pageRequest } from '../http/route/pages.ts';
import { type Api, operators, ref } from '../http/route/route.ts';
import { presentErasure } from './present.ts';
import * as schema from './schema.ts';
import type { ErasureService } from './service.ts';

const tag = 'Erasures';
const erasure = ref(schema.erasureSchema);
const params = Type.Object({ erasure: Type.String({ description: 'ers_…' }) });

/** Erasing users, documents and sources, with a certificate. */
export function registerErasureRoutes(api: Api, { erasures }: { erasures: ErasureService }): void {
  api.provisioning(operators, {
    ...{ method: 'POST', path: '/erasures', operationId: 'createErasure', tag },
    summary: 'Erase a user, a document or a source',
    description:
      'Starts to delete everything that is stored under it: exactly one of `user`, `document` and `source`. The user can no longer act from now on. 409 while an erasure of it is running.',
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
    handler: async ({ caller, query }) => {
      const request = pageRequest(query);
      const [rows, total] = await erasures.list(caller, request);
      return page(request, rows.map(presentErasure), total);
    },
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
}
