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
 * other path is a client-side route and returns the console's page. After another build, its files are served as soon
 * as one of the former is missing.
 * @param isRoute whether a path belongs to an operation
 */
export async function registerConsole(
  fastify: FastifyInstance,
  {
    config,
    baseUrl,
    isRoute,
    built = builtDirectory,
  }: { config: Config; baseUrl: () => string; isRoute: (url: string) => boolean; built?: string },
): Promise<void> {
  let assets = findAssets(built);
  await fastify.register(async (scope) => {
    scope.get('/', { schema: { hide: true } }, (_request, reply) => reply.redirect('/console'));
    scope.get('/console', { schema: { hide: true } }, sendPage);
    scope.get('/console/*', { schema: { hide: true } }, (request, reply) => {
      const name = (request.params as { '*': string })['*'];
      const asset = name === 'index.html' ? undefined : assets.get(name);
      const body = asset && read(asset, encodingFor(request, asset));
      if (body) {
        // File names contain a digest of the contents, so a file never changes.
        reply.header('cache-control', name.startsWith('assets/') ? 'public, max-age=31536000, immutable' : 'no-cache');
        return send(reply, asset, encodingFor(request, asset), body);
      }
      if (name.startsWith('assets/')) throw notFound();
      // A route that accepts another method is not a page.
      if (isRoute(request.url)) return reply.callNotFound();
      return sendPage(request, reply);
    });
  });

  /** The bytes of a file. Undefined if it is gone, which means that there was another build. */
  function read(asset: Asset, encoding: string): Buffer | undefined {
    try {
      return asset.encodings.get(encoding)?.();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      assets = findAssets(built);
      return undefined;
    }
  }

  function readPage(): Buffer | undefined {
    const asset = assets.get('index.html');
    return asset && read(asset, 'identity');
  }

  function sendPage(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    let body = readPage();
    if (body === undefined) {
      assets = findAssets(built);
      body = readPage();
    }
    if (body === undefined) return notBuilt(reply);
    const nonce = randomBytes(16).toString('base64');
    reply.headers({
      'cache-control': 'no-store',
      'content-security-policy': policy(config, baseUrl(), request.host, nonce),
    });
    return reply.type(pageType).send(body.toString('utf8').replaceAll(noncePlaceholder, nonce));
  }
}

function encodingFor(request: FastifyRequest, { encodings }: Asset): string {
  const accepted = String(request.headers['accept-encoding'] ?? '');
  const isAccepted = (name: string) => new RegExp(`\\b${name}\\b`).test(accepted) && encodings.has(name);
  return ['br', 'gzip'].find(isAccepted) ?? 'identity';
}

function send(reply: FastifyReply, { contentType }: Asset, encoding: string, body: Buffer): FastifyReply {
  reply.header('vary', 'accept-encoding');
  if (encoding !== 'identity') reply.header('content-encoding', encoding);
  return reply.type(contentType).send(body);
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

const pageType = 'text/html; charset=utf-8';

const contentTypes: Record<string, string> = {
  '.html': pageType,
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
};
