import swagger from '@fastify/swagger';
import {
  type FastifyContextConfig,
  type FastifyInstance,
  type FastifySchema,
  fastify,
  type RouteOptions,
} from 'fastify';
import type { TObject } from 'typebox';
import { defined } from '../../lib/defined.ts';
import { Type } from '../../lib/type.ts';
import type { Access } from '../route/access.ts';
import type { Api } from '../route/route.ts';
import { completeDocument, twinsTag, type WebhookMessage } from './details.ts';

/** The parts of the API in the order in which the reference shows them. */
const tags: Record<string, string> = {
  Apps: 'Apps, their sandboxes and keys.',
  Audit: 'Who changed what, and who used which credential.',
  Jobs: 'Background jobs that failed too often and are no longer retried.',
  'Sign-in': 'Signing in and out, and staying signed in.',
  Organisations: 'Organisations and their logos.',
  Users: 'Users and their tokens.',
  Teams: 'Teams and their members.',
  Erasures: 'Erasing users, documents and sources, with signed certificates.',
  Groups: 'Groups of users to whom documents are restricted.',
  Agents: 'Agents and their pictures.',
  Threads: 'Conversations whose messages sources can ingest.',
  Installations: 'Connections that fill sources of agents.',
  Files: 'Upload, update, sharing and download.',
  Extractions: 'Text from documents, pages and sites.',
  Config: 'Versioned entries that extractions write.',
  Knowledge: 'Sources, ingestion, documents and search.',
  Answers: 'Texts from sources whose quotes are checked, and signed statements about quotes.',
  Automations: 'Definitions, runs, journals and streams.',
  Webhooks: 'Events sent to URLs, with a log of deliveries.',
  Models: 'Language models, aliases, records of calls, and budgets.',
  'Key-value storage': 'Strings by key, for each user.',
  'OpenAI-compatible': 'The file and vector store API of OpenAI, over the files and sources of Quarry.',
  Console: 'Sessions of the web console.',
  Server: 'Health, metrics and this document.',
  [twinsTag]: 'Operations of `/api/v1` again, under a path that names the app, for developers.',
};

/** Writes the document with a server that handles nothing. */
export async function writeDocument(
  served: FastifyInstance,
  collected: readonly RouteOptions[],
  api: Api,
  messages: readonly WebhookMessage[],
): Promise<unknown> {
  const writer = fastify({ exposeHeadRoutes: false });
  writer.setValidatorCompiler(() => () => true);
  writer.setSerializerCompiler(() => JSON.stringify);
  await writer.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Quarry',
        description:
          'Files, text extraction, knowledge, automations and key-value storage for AI agents. ' +
          'Each operation lists in `x-callers` who may call it. Every error has the shape of `Error`, with a `code` that docs/errors.md explains.',
        version: '1',
        contact: { name: 'The operator of this installation' },
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: '/' }],
      tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
      components: {
        securitySchemes: {
          apiKey: {
            type: 'apiKey',
            in: 'header',
            name: 'x-api-key',
            description: 'A secret key (`sk_…`), or a publishable key (`pk_…`) for signing in.',
          },
          bearer: {
            type: 'http',
            scheme: 'bearer',
            description:
              'An access token of a user, a personal token (`sat_…`), or a developer token (`dvt_…`) with `x-app`; under `/v1` also a secret key.',
          },
          session: {
            type: 'apiKey',
            in: 'cookie',
            name: 'quarry_session',
            description: 'A session of the web console; valid only with its CSRF token in the header `x-quarry-csrf`.',
          },
        },
      },
    },
    hideUntagged: true,
    transformObject: (given) =>
      'openapiObject' in given ? completeDocument(given.openapiObject, api.routes, messages) : given.swaggerObject,
    refResolver: { buildLocalReference: (json, _base, _fragment, index) => String(json.$id ?? `schema-${index}`) },
    transform: ({ schema, url, route }) => ({
      schema: nameWildcard(withKey(withRawBody(withCallers(schema, route.config?.access), route.config), route.config)),
      url: url.replace(/\*$/, ':path'),
    }),
  });
  for (const schema of Object.values(served.getSchemas())) writer.addSchema(schema);
  for (const { method, url, schema = {}, config = {} } of collected)
    writer.route({ method, url, schema, config, handler: () => null });
  await writer.ready();
  return JSON.parse(JSON.stringify(writer.swagger()));
}

/** Adds the description of a body without a schema, and of its headers. */
function withRawBody(schema: FastifySchema, config: FastifyContextConfig | undefined): FastifySchema {
  if (config?.rawBody === undefined) return schema;
  return Object.assign({}, schema, {
    // Generated clients send the first type unless they are told another one.
    consumes: config.rawBody === '*/*' ? ['application/octet-stream', '*/*'] : [config.rawBody],
    body: config.rawBodySchema ?? bytesSchema,
    ...defined({ headers: config.headers }),
  });
}

const bytesSchema = { type: 'string', format: 'binary', description: 'The bytes.' };

/** Adds the Idempotency-Key header to a POST whose response is stored for retries. */
function withKey(schema: FastifySchema, config: FastifyContextConfig | undefined): FastifySchema {
  if (config?.idempotency === undefined || config.idempotency === 'credential') return schema;
  const { properties = {} } = (schema.headers ?? {}) as TObject;
  return { ...schema, headers: Type.Object({ ...properties, 'Idempotency-Key': Type.Optional(keySchema) }) };
}

const keySchema = Type.String({
  minLength: 1,
  maxLength: 255,
  description:
    'Makes the request safe to repeat: within 24 hours, the same key and body return the first response, without a second effect.',
});

function withCallers(schema: FastifySchema, access: Access | undefined): FastifySchema {
  if (access === undefined) return schema;
  const callers = callersOf(access);
  const { description = '' } = schema as { description?: string };
  const described = `${description}\n\nCallers: ${callers.join(', ')}.`.trim();
  return { ...schema, description: described, 'x-callers': callers } as FastifySchema;
}

/** OpenAPI has no wildcard. What follows the last slash becomes a parameter `path`, which may contain slashes. */
function nameWildcard(schema: FastifySchema): FastifySchema {
  const { properties } = (schema.params ?? {}) as { properties?: Record<string, unknown> };
  if (properties?.['*'] === undefined) return schema;
  const { '*': rest, ...others } = properties;
  return {
    ...schema,
    params: { ...(schema.params as object), properties: { ...others, path: rest }, required: ['path'] },
  };
}

/** Describes in words who may call a route. */
function callersOf(access: Access): string[] {
  switch (access.kind) {
    case 'public':
      return ['anyone'];
    case 'key':
      return ['publishable key', 'secret key'];
    case 'developer':
      return ['developer'];
    case 'app':
      return access.callers.map((caller) => callerWords[caller]);
  }
}

const callerWords = { user: 'user', server: 'secret key', developer: 'developer' } as const;
