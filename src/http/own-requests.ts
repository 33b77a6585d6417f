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

/** Headers for a request that this process sends to its own API with exactly the rights of this request's caller. */
export function ownHeaders(request: FastifyRequest): Record<string, string> {
  const own: Record<string, string> = { 'x-request-id': request.id };
  for (const name of credentialHeaders) {
    const value = request.headers[name];
    if (typeof value === 'string') own[name] = value;
  }
  const key = keyInPath(request);
  if (key !== undefined && own['x-archastro-api-key'] === undefined) own['x-api-key'] ??= key;
  return own;
}

/** The publishable key in a path that has one. */
export function keyInPath(request: FastifyRequest): string | undefined {
  return request.routeOptions.config.keyInPath ? (request.params as { key?: string }).key : undefined;
}
