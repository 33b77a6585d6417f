import { hash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance } from 'fastify';
import { found } from '../../lib/errors.ts';
import { referenceExamples } from './docs-examples.ts';
import { referencePage, referencePlugin, referenceStart, referenceStyles } from './docs-page.ts';
import { documentationPolicy, registerSite } from './site.ts';

const uiDirectory = fileURLToPath(new URL('../../../node_modules/@fastify/swagger-ui/static/', import.meta.url));
const copiedTypes: Record<string, string> = {
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'swagger-ui-standalone-preset.js': 'text/javascript; charset=utf-8',
  'swagger-ui.css': 'text/css; charset=utf-8',
};

/**
 * Serves the documentation below /docs/, with no request to another host: the built site, or in a clone that has not
 * built it, only the API reference. Inline styles are allowed, because both set them on their elements.
 */
export async function registerDocs(fastify: FastifyInstance, site: string | undefined): Promise<void> {
  await fastify.register(async (scope) => (site === undefined ? registerReference(scope) : registerSite(scope, site)));
}

/** Swagger UI. Files are read when they are first requested. */
function registerReference(scope: FastifyInstance): void {
  const assets = new Map<string, Asset>();
  scope.addHook('onRequest', async (_request, reply) => {
    reply.header('content-security-policy', documentationPolicy());
  });
  const schema = { hide: true };
  // Browsers keep the fragment, so that addresses of operations lead to them.
  for (const path of ['/docs', '/docs/']) scope.get(path, { schema }, (_request, reply) => reply.redirect('/docs/api'));
  scope.get('/docs/api', { schema }, (_request, reply) => reply.type('text/html; charset=utf-8').send(referencePage));
  scope.get('/docs/static/:name', { schema }, (request, reply) => {
    const { name } = request.params as { name: string };
    const asset = found(assets.get(name) ?? createAsset(name));
    assets.set(name, asset);
    reply.headers({ etag: asset.tag, 'cache-control': 'no-cache' });
    if (request.headers['if-none-match'] === asset.tag) return reply.code(304).send();
    return reply.type(asset.type).send(asset.bytes);
  });
  scope.get('/docs/*', { schema }, (_request, reply) =>
    reply
      .code(404)
      .type('text/plain; charset=utf-8')
      .send(
        'The guides are in the folder docs. `npm run site` builds a site of them, which this server then shows here.\n',
      ),
  );
}

type Asset = { type: string; bytes: Buffer; tag: string };

function createAsset(name: string): Asset | undefined {
  const own = ownAssets[name];
  const type = own?.type ?? copiedTypes[name];
  if (type === undefined || (own === undefined && !existsSync(uiDirectory))) return undefined;
  const bytes = own === undefined ? readFileSync(join(uiDirectory, name)) : Buffer.from(own.text());
  return { type, bytes, tag: `"${hash('sha256', bytes, 'base64url')}"` };
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
