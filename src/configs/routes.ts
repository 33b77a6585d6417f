import { Type } from 'typebox';
import { page, pageOf, pageQuery, pageRequest } from '../http/route/pages.ts';
import { type Api, everyCaller, ref } from '../http/route/route.ts';
import { integerRange } from '../http/route/validation.ts';
import { presentConfig } from './present.ts';
import { configSchema } from './schema.ts';
import type { ConfigService } from './service.ts';

const tag = 'Config';
const owner = {
  agent: Type.Optional(Type.String({ description: 'Paths of this agent instead of the caller’s.' })),
  org: Type.Optional(Type.String({ description: 'Paths of this organisation instead of the caller’s.' })),
};

export function registerConfigRoutes(api: Api, { configs }: { configs: ConfigService }): void {
  api.app(everyCaller, {
    method: 'GET',
    path: '/api/v1/config',
    operationId: 'listConfigs',
    tag,
    summary: 'List config entries',
    description:
      'The current version of each path, newest first, without contents. Extractions with `destination_kind: "config"` write them.',
    query: Type.Object({ ...pageQuery, ...owner, prefix: Type.Optional(Type.String()) }),
    responses: { 200: pageOf(ref(configSchema)) },
    handler: async ({ caller, query }) => {
      const request = pageRequest(query);
      const [rows, total] = await configs.list(caller, query, request);
      return page(
        request,
        rows.map((row) => presentConfig(row)),
        total,
      );
    },
  });
  api.app(everyCaller, {
    method: 'GET',
    path: '/api/v1/config/*',
    operationId: 'getConfig',
    tag,
    summary: 'Read a config entry',
    description: 'The content of the path’s current version, or of `version`. The path is everything after `/config/`.',
    params: Type.Object({ '*': Type.String() }),
    query: Type.Object({ ...owner, version: Type.Optional(Type.Integer(integerRange)) }),
    responses: { 200: ref(configSchema) },
    handler: async ({ caller, params, query }) => {
      const { row, content } = await configs.get(caller, params['*'], query);
      return presentConfig(row, content);
    },
  });
}
