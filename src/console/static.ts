import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '../config/config.ts';
import { notFound } from '../lib/errors.ts';

/** A built file, and a function for each encoding that reads its bytes. */
type Asset = { contentType: string; encodings: Map<string, () => Buffer> };

/** In console/index.html, replaced with a different value in each response. */
const noncePlaceholder = 'QUARRY_NONCE';

const builtDirectory = fileURLToPath(new URL('../../console/dist/', import.meta.url));

/**
 * Serves the web console at /console: the files built by `npm ci`, cached in memory once they are requested. Every
 * other path is a client-side route and returns the console's page.
 * @param isRoute whether a path belongs to an operation
 */
export async function registerConsole(
  fastify: FastifyInstance,
  { config, baseUrl, isRoute }: { config: Config; baseUrl: () => string; isRoute: (url: string) => boolean },
): Promise<void> {
  const assets = findAssets(builtDirectory);
  const page = assets.get('index.html');
  await fastify.register(async (scope) => {
    scope.get('/', { schema: { hide: true } }, (_request, reply) => reply.redirect('/console'));
    scope.get('/console', { schema: { hide: true } }, (request, reply) =>
      page ? sendPage(request, reply, page) : notBuilt(reply),
    );
    scope.get('/console/*', { schema: { hide: true } }, (request, reply) => {
      const name = (request.params as { '*': string })['*'];
      const asset = name === 'index.html' ? undefined : assets.get(name);
      if (asset) {
        // File names contain a digest of the contents, so a file never changes.
        reply.header('cache-control', name.startsWith('assets/') ? 'public, max-age=31536000, immutable' : 'no-cache');
        return send(request, reply, asset);
      }
      if (name.startsWith('assets/')) throw notFound();
      // A route that accepts another method is not a page.
      if (isRoute(request.url)) return reply.callNotFound();
      return page ? sendPage(request, reply, page) : notBuilt(reply);
    });
  });

  function sendPage(request: FastifyRequest, reply: FastifyReply, asset: Asset): FastifyReply {
    const nonce = randomBytes(16).toString('base64');
    reply.headers({
      'cache-control': 'no-store',
      'content-security-policy': policy(config, baseUrl(), request.host, nonce),
    });
    const page = asset.encodings.get('identity')?.().toString('utf8') ?? '';
    return reply.type(asset.contentType).send(page.replaceAll(noncePlaceholder, nonce));
  }
}

function send(request: FastifyRequest, reply: FastifyReply, { contentType, encodings }: Asset): FastifyReply {
  const accepted = String(request.headers['accept-encoding'] ?? '');
  const encoding = ['br', 'gzip'].find((name) => new RegExp(`\\b${name}\\b`).test(accepted) && encodings.has(name));
  reply.header('vary', 'accept-encoding');
  if (encoding !== undefined) reply.header('content-encoding', encoding);
  return reply.type(contentType).send(encodings.get(encoding ?? 'identity')?.());
}

function notBuilt(reply: FastifyReply): FastifyReply {
  return reply
    .code(404)
    .type('text/plain; charset=utf-8')
    .send('The console is not built. Run: npm run build:console\n');
}

/**
 * Allows no inline code and no other origins, except for the contents of files. Style elements need the page's nonce:
 * dialogs and editors create some, while a file or a response on display has none.
 */
function policy(config: Config, baseUrl: string, host: string, nonce: string): string {
  const files = [new URL(baseUrl).origin, ...contentOrigins(config), ...blobOrigins(config)].join(' ');
  // Names the requested host, so that nothing else on this origin, neither files nor responses, can be a script or a
  // style.
  // A policy cannot name an IPv6 address.
  const assets = /^[\w.-]+(?::\d+)?$/.test(host) ? `${host}/console/assets/` : "'self'";
  return [
    "default-src 'none'",
    `script-src ${assets}`,
    `style-src ${assets} 'nonce-${nonce}'`,
    `img-src 'self' blob: data: ${files}`,
    "font-src 'self'",
    `connect-src 'self' ${files}`,
    'frame-src blob:',
    'object-src blob:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

function contentOrigins({ contentOrigin }: Config): string[] {
  return contentOrigin === undefined ? [] : [contentOrigin];
}

/** The origin of presigned URLs of the blob store. */
function blobOrigins({ blobStore, s3Endpoint, s3Region, s3Bucket, s3PathStyle }: Config): string[] {
  if (blobStore !== 's3') return [];
  const { protocol, host } = new URL(s3Endpoint ?? `https://s3.${s3Region}.amazonaws.com`);
  return [s3PathStyle ? `${protocol}//${host}` : `${protocol}//${s3Bucket}.${host}`];
}

function findAssets(directory: string): Map<string, Asset> {
  const assets = new Map<string, Asset>();
  if (!existsSync(directory)) return assets;
  for (const name of readdirSync(directory, { recursive: true, encoding: 'utf8' }).sort()) {
    const type = contentTypes[/\.\w+$/.exec(name)?.[0] ?? ''];
    if (type === undefined) continue;
    const encodings = new Map([['identity', readOnce(join(directory, name))]]);
    for (const [encoding, ending] of [
      ['br', '.br'],
      ['gzip', '.gz'],
    ] as const)
      if (existsSync(join(directory, name + ending))) encodings.set(encoding, readOnce(join(directory, name + ending)));
    assets.set(name.replaceAll('\\', '/'), { contentType: type, encodings });
  }
  return assets;
}

function readOnce(path: string): () => Buffer {
  let bytes: Buffer | undefined;
  return () => {
    bytes ??= readFileSync(path);
    return bytes;
  };
}

const contentTypes: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
};
