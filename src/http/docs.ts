import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import { referenceExamples } from './docs-examples.ts';
import { referencePlugin, referenceStyles } from './docs-page.ts';

/**
 * The reference at /docs: everything is served from here, with no inline script and no request to another host. Styles
 * stay inline, because the library sets them on its elements.
 */
export async function registerDocs(fastify: FastifyInstance): Promise<void> {
  await fastify.register(async (scope) => {
    scope.addHook('onRequest', async (_request, reply) => {
      reply.header('content-security-policy', contentSecurityPolicy);
    });
    await scope.register(swaggerUi, {
      routePrefix: '/docs',
      staticCSP: false,
      logo: { type: 'image/svg+xml', content: icon, href: '/docs' },
      theme: {
        title: 'Quarry API',
        favicon: [{ filename: 'icon.svg', rel: 'icon', type: 'image/svg+xml', sizes: 'any', content: icon }],
        css: [{ filename: 'reference.css', content: referenceStyles }],
      },
      uiConfig,
    });
  });
}

/** Configures the page: Swagger UI passes on what it does not know to its plugins. */
const uiConfig = {
  ...{ docExpansion: 'none' as const, deepLinking: true, persistAuthorization: false, validatorUrl: null },
  ...{ filter: true, plugins: [referencePlugin], referenceExamples },
};

/** The console's icon, for installations without the console. */
const icon =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><title>Quarry</title><rect width="32" height="32" rx="7" fill="#0f6b5c"/><path d="M7 22h18M10 17h12M13 12h6" stroke="#fff" stroke-width="3" stroke-linecap="round"/></svg>';

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
