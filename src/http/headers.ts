import type { FastifyRequest } from 'fastify';

/** Returns a header as one value. Repeated headers are joined, as HTTP allows. */
export function oneHeader(request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(',') : value;
}
