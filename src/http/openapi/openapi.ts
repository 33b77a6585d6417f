import type { FastifyInstance, RouteOptions } from 'fastify';
import { mapOf } from '../../lib/map-schema.ts';
import { Type } from '../../lib/type.ts';
import type { Api } from '../route/route.ts';
import type { WebhookMessage } from './details.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /** The OpenAPI document of all routes, as plain data, with members in the order of registration. */
    writeOpenApi(): Promise<unknown>;
  }
}

/** Collects every route registered after this call for one OpenAPI 3.1 document. */
export function collectOpenApi(fastify: FastifyInstance, api: Api, messages: readonly WebhookMessage[]): void {
  const collected: RouteOptions[] = [];
  fastify.addHook('onRoute', (route) => {
    if (route.method !== 'HEAD') collected.push(route);
  });
  fastify.decorate('writeOpenApi', async () => {
    // The code for it is large, and an idle process needs none.
    const { writeDocument } = await import('./write-document.ts');
    return writeDocument(fastify, collected, api, messages);
  });
}

export function registerOpenApiRoute(api: Api, fastify: FastifyInstance): void {
  let document: Promise<string> | undefined;
  api.public({
    method: 'GET',
    path: '/openapi.json',
    operationId: 'getOpenApi',
    tag: 'Server',
    summary: 'Get this document',
    description:
      'This OpenAPI 3.1 document describes the installation that serves it. `openapi.json` in the package is the same document.',
    responses: { 200: mapOf(Type.Unknown()) },
    handler: async ({ reply }) => {
      document ??= fastify.writeOpenApi().then((written) => `${JSON.stringify(written, null, 2)}\n`);
      return reply.type('application/json; charset=utf-8').send(await document);
    },
  });
}
