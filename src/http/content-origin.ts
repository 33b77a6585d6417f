import type { FastifyRequest } from 'fastify';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route serves what users have stored. */
    servesContent?: boolean;
  }
}

/**
 * Keeps what users have stored away from the origin of the console and the API: at the second origin nothing else is
 * served, and at the first one such a request is sent on there, so that URLs from before stay good.
 */
export function createContentGate(
  contentOrigin: string,
): (request: FastifyRequest) => 'serve' | 'hide' | { to: string } {
  const { host } = new URL(contentOrigin);
  return (request) => {
    const servesContent = request.routeOptions.config.servesContent === true;
    if (request.host === host) return servesContent ? 'serve' : 'hide';
    return servesContent ? { to: contentOrigin + request.originalUrl.replace(/^https?:\/\/[^/]*/i, '') } : 'serve';
  };
}
