import type { FastifyRequest } from 'fastify';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route serves content that users have stored. */
    servesContent?: boolean;
  }
}

/**
 * Keeps stored content off the origin of the console and the API: the second origin serves nothing else, and the first
 * one redirects such requests there, so that old URLs stay valid.
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
