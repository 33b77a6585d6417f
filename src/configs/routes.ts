import { textBudget } from '../http/body/budgets.ts';
import { everyCaller, operators } from '../http/route/access.ts';
import { pageOf, pageQuery, readPage } from '../http/route/pages.ts';
import { type Api, ref } from '../http/route/route.ts';
import { integerRange } from '../http/route/validation.ts';
import { limits } from '../lib/limits.ts';
import { Type } from '../lib/type.ts';
import { presentConfig } from './present.ts';
import { configSchema, configWriteSchema } from './schema.ts';
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
    handler: ({ caller, query }) =>
      readPage(
        query,
        (request) => configs.list(caller, query, request),
        (row) => presentConfig(row),
      ),
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
  api.app(operators, {
    method: 'PUT',
    path: '/api/v1/config/*',
    operationId: 'putConfig',
    tag,
    summary: 'Write a config entry',
    description:
      'Writes the next version of the path, which becomes the current one. If the current version has the same text and type, nothing changes. With `if_version`, 412 if another version is current. The path belongs to the app unless `agent` or `org` names its owner. 422 for more than 10,000 entries.',
    params: Type.Object({ '*': Type.String() }),
    body: configWriteSchema,
    budget: textBudget(limits.configTextBytesMax),
    responses: { 200: ref(configSchema) },
    handler: async ({ caller, params, body }) => {
      const { row, content } = await configs.write(caller, params['*'], body);
      return presentConfig(row, content);
    },
  });
  api.app(operators, {
    method: 'DELETE',
    path: '/api/v1/config/*',
    operationId: 'deleteConfig',
    tag,
    summary: 'Delete a config entry',
    description: 'Permanent: all versions of the path and their files are deleted.',
    params: Type.Object({ '*': Type.String() }),
    query: Type.Object(owner),
    responses: { 204: null },
    handler: ({ caller, params, query }) => configs.remove(caller, params['*'], query),
  });
}
