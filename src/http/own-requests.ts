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
  return own;
}
