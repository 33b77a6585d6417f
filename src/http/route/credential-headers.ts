import { AsyncLocalStorage } from 'node:async_hooks';
import type { FastifyRequest } from 'fastify';

const credentialHeaders = [
  'x-api-key',
  'x-archastro-api-key',
  'authorization',
  'x-app',
  'x-sandbox',
  'cookie',
  'x-quarry-csrf',
];

const mcpCalls = new AsyncLocalStorage<true>();

/** Sends requests of this process to its own API for a call of the MCP endpoint. */
export function forMcpEndpoint<T>(send: () => Promise<T>): Promise<T> {
  return mcpCalls.run(true, send);
}

/** Whether the request came to the MCP endpoint, or is one that this process sends for it. */
export function isForMcpEndpoint(request: FastifyRequest): boolean {
  return request.routeOptions.config.keyInPath === true || mcpCalls.getStore() === true;
}

/** Headers for a request that this process sends to its own API with exactly the rights of this request's caller. */
export function callerHeaders(request: FastifyRequest): Record<string, string> {
  const own: Record<string, string> = { 'x-request-id': request.id };
  for (const name of credentialHeaders) {
    const value = request.headers[name];
    if (typeof value === 'string') own[name] = value;
  }
  const bearer = bearerKey(request);
  if (bearer !== undefined) {
    delete own.authorization;
    own['x-api-key'] = bearer;
  }
  const key = keyInPath(request);
  if (key !== undefined && own['x-archastro-api-key'] === undefined) own['x-api-key'] ??= key;
  return own;
}

/** The publishable key in the path, if the route has one there. */
export function keyInPath(request: FastifyRequest): string | undefined {
  return request.routeOptions.config.keyInPath ? (request.params as { key?: string }).key : undefined;
}

/** The secret key that was sent as a bearer token to a route with `keyAsBearer`. */
export function bearerKey(request: FastifyRequest): string | undefined {
  if (!request.routeOptions.config.keyAsBearer) return undefined;
  return /^Bearer +(sk_\S+)$/i.exec(request.headers.authorization?.trim() ?? '')?.[1];
}
