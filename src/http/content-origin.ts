import type { FastifyRequest } from 'fastify';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route serves content that users stored. */
    servesContent?: boolean;
  }
}

/**
 * Keeps stored content off the origin of the console and the API. The content origin serves nothing else, and the
 * main origin redirects requests for content there, so old URLs stay valid.
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
