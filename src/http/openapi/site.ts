import { hash } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliDecompress, gzip } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

const compress = promisify(gzip);
const decompress = promisify(brotliDecompress);

type Encoding = 'br' | 'gzip' | 'identity';
type Page = {
  type: string;
  tag: string;
  policy: string | undefined;
  /** Those that the server can send, the best first. */
  encodings: Encoding[];
  bytes(encoding: Encoding): Promise<Buffer>;
};

/** In the package, `scripts/build.ts` puts the built site here, compressed; in a clone, `npm run site` builds it. */
const places = ['./site/', '../../../site/dist/'];

/** The folder of the built documentation site, if there is one. */
export function findSite(): string | undefined {
  return places
    .map((place) => fileURLToPath(new URL(place, import.meta.url)))
    .find((place) => ['index.html', 'index.html.br'].some((name) => existsSync(join(place, name))));
}

/** Serves the built documentation at /docs/. Files are read when they are first requested, and cached. */
export function registerSite(scope: FastifyInstance, directory: string): void {
  const names = new Set<string>();
  for (const name of readdirSync(directory, { recursive: true, encoding: 'utf8' }))
    names.add(name.replaceAll('\\', '/').replace(/\.br$/, ''));
  const pages = new Map<string, Promise<Page>>();
  const load = (name: string) => {
    const page = pages.get(name) ?? readPage(directory, name);
    pages.set(name, page);
    // A file that could not be read is read again.
    page.catch(() => pages.delete(name));
    return page;
  };
  const schema = { hide: true };
  scope.get('/docs', { schema }, (_request, reply) => reply.redirect('/docs/'));
  // The document of this server, which contains its own address.
  scope.get('/docs/openapi.json', { schema }, (_request, reply) => reply.redirect('/openapi.json'));
  scope.get('/docs/*', { schema }, async (request, reply) => {
    const path = (request.params as { '*': string })['*'];
    const name = [path, `${path}.html`, `${path}index.html`].find((each) => names.has(each) && types[extname(each)]);
    if (name !== undefined) return send(request, reply, name, await load(name));
    if (names.has(`${path}/index.html`)) return reply.redirect(`/docs/${path}/`);
    return send(request, reply.code(404), '404.html', await load('404.html'));
  });
}

async function send(request: FastifyRequest, reply: FastifyReply, name: string, page: Page): Promise<FastifyReply> {
  // The names of these files contain a digest of their contents.
  const immutable = name.startsWith('assets/') && /\.[\w-]{8,}\.(?:js|css)$/.test(name);
  reply.headers({
    'cache-control': immutable ? 'public, max-age=31536000, immutable' : 'no-cache',
    etag: page.tag,
    vary: 'accept-encoding',
  });
  if (page.policy !== undefined) reply.header('content-security-policy', page.policy);
  if (reply.statusCode === 200 && request.headers['if-none-match'] === page.tag) return reply.code(304).send();
  const encoding = chooseEncoding(request, page);
  if (encoding !== 'identity') reply.header('content-encoding', encoding);
  return reply.type(page.type).send(await page.bytes(encoding));
}

function chooseEncoding(request: FastifyRequest, { encodings }: Page): Encoding {
  const accepted = String(request.headers['accept-encoding'] ?? '');
  return encodings.find((name) => new RegExp(`\\b${name}\\b`).test(accepted)) ?? 'identity';
}

/** A file. The package has its compressed form only, a clone only the other; gzip is computed when it is asked for. */
async function readPage(directory: string, name: string): Promise<Page> {
  const isCompressed = existsSync(join(directory, `${name}.br`));
  const stored = await readFile(join(directory, isCompressed ? `${name}.br` : name));
  const plain = isCompressed ? await decompress(stored) : stored;
  let zipped: Promise<Buffer> | undefined;
  const isPicture = name.endsWith('.png');
  return {
    type: types[extname(name)] ?? 'application/octet-stream',
    tag: `W/"${hash('sha256', plain, 'base64url')}"`,
    policy: name.endsWith('.html') ? policyOf(plain.toString()) : undefined,
    encodings: isPicture ? [] : isCompressed ? ['br', 'gzip'] : ['gzip'],
    async bytes(encoding) {
      if (encoding === 'identity') return plain;
      if (encoding === 'br') return stored;
      zipped ??= compress(plain);
      return zipped;
    },
  };
}

/** Allows the scripts that the page contains by their digests, those of this server, and no others. */
function policyOf(html: string): string {
  const scripts = [...html.matchAll(/<script(?![^>]*\bsrc=)[^>]*>([\s\S]*?)<\/script>/g)].map(
    ([, text = '']) => `'sha256-${hash('sha256', text, 'base64')}'`,
  );
  return documentationPolicy([...new Set(scripts)]);
}

/** The policy of the documentation's pages. Code has its colours, and the reference its layout, as inline styles. */
export function documentationPolicy(scripts: string[] = []): string {
  return [
    "default-src 'none'",
    ["script-src 'self'", ...scripts].join(' '),
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

const types: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.md': 'text/markdown; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
};
