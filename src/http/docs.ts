import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';

/**
 * The reference at /docs: everything from this server, no script inline, nothing from or to another host. Styles stay
 * inline, because the library sets them on its elements.
 */
export async function registerDocs(fastify: FastifyInstance): Promise<void> {
  await fastify.register(async (scope) => {
    scope.addHook('onRequest', async (_request, reply) => {
      reply.header('content-security-policy', contentSecurityPolicy);
    });
    await scope.register(swaggerUi, {
      routePrefix: '/docs',
      staticCSP: false,
      uiConfig: { docExpansion: 'none', deepLinking: true, persistAuthorization: false, validatorUrl: null },
    });
  });
}

const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');
