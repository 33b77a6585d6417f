import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance } from 'fastify';
import { found } from '../../lib/errors.ts';
import { referenceExamples } from './docs-examples.ts';
import { referencePage, referencePlugin, referenceStart, referenceStyles } from './docs-page.ts';

/** In the package, `scripts/build.ts` copies the files here; in a clone, they come from the npm package. */
const places = ['./reference/', '../../../node_modules/@fastify/swagger-ui/static/'];
const copiedTypes: Record<string, string> = {
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'swagger-ui-standalone-preset.js': 'text/javascript; charset=utf-8',
  'swagger-ui.css': 'text/css; charset=utf-8',
};

/**
 * Serves the reference at /docs, with no inline script and no request to another host. Inline styles are allowed,
 * because Swagger UI sets them on its elements. Files are read when they are first requested.
 */
export async function registerDocs(fastify: FastifyInstance): Promise<void> {
  const directory = places
    .map((place) => fileURLToPath(new URL(place, import.meta.url)))
    .find((place) => existsSync(place));
  const assets = new Map<string, Asset>();
  await fastify.register(async (scope) => {
    scope.addHook('onRequest', async (_request, reply) => {
      reply.header('content-security-policy', contentSecurityPolicy);
    });
    const schema = { hide: true };
    for (const path of ['/docs', '/docs/'])
      scope.get(path, { schema }, (_request, reply) => reply.type('text/html; charset=utf-8').send(referencePage));
    scope.get('/docs/static/:name', { schema }, (request, reply) => {
      const { name } = request.params as { name: string };
      const asset = found(assets.get(name) ?? createAsset(name, directory));
      assets.set(name, asset);
      reply.headers({ etag: asset.tag, 'cache-control': 'no-cache' });
      if (request.headers['if-none-match'] === asset.tag) return reply.code(304).send();
      return reply.type(asset.type).send(asset.bytes);
    });
  });
}

type Asset = { type: string; bytes: Buffer; tag: string };

function createAsset(name: string, directory: string | undefined): Asset | undefined {
  const own = ownAssets[name];
  const type = own?.type ?? copiedTypes[name];
  if (type === undefined || (own === undefined && directory === undefined)) return undefined;
  const bytes = own === undefined ? readFileSync(join(directory ?? '', name)) : Buffer.from(own.text());
  return { type, bytes, tag: `"${createHash('sha256').update(bytes).digest('base64url')}"` };
}

const ownAssets: Record<string, { type: string; text: () => string }> = {
  'reference.css': { type: 'text/css; charset=utf-8', text: () => referenceStyles },
  'reference.js': {
    type: 'text/javascript; charset=utf-8',
    text: () =>
      `window.onload = () => (${String(referenceStart)})(${String(referencePlugin)}, ${JSON.stringify(referenceExamples)}, window);\n`,
  },
  // The console's icon, for installations without the console.
  'icon.svg': {
    type: 'image/svg+xml',
    text: () =>
      '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><title>Quarry</title><rect width="32" height="32" rx="7" fill="#0f6b5c"/><path d="M7 22h18M10 17h12M13 12h6" stroke="#fff" stroke-width="3" stroke-linecap="round"/></svg>',
  },
};

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
