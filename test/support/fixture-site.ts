import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';

export type SiteResponse = (request: IncomingMessage, response: ServerResponse, url: URL) => unknown;
export type SitePages = Record<string, string | Uint8Array | SiteResponse>;

export type FixtureSite = {
  origin: string;
  /** Requests by path and query, in order of arrival, including robots.txt and sitemaps. */
  requests: string[];
  /** How often a path was requested. */
  requestCount(path: string): number;
  /** The distinct pages that were requested, without robots.txt and sitemaps. */
  requestedPages(): string[];
  /** The highest number of requests that were open at the same time. */
  maxConcurrency(): number;
  /** Resolves when a path has been requested. */
  waitForRequest(path: string): Promise<void>;
  close(): Promise<void>;
};

/** A website on a free port of this machine. A path that is not in `pages` uses `fallback`, or is 404. */
export async function startSite(pages: SitePages, fallback?: SiteResponse): Promise<FixtureSite> {
  const requests: string[] = [];
  const waiting = new Map<string, (() => void)[]>();
  let open = 0;
  let most = 0;
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://site');
    const path = url.pathname + url.search;
    requests.push(path);
    for (const resolve of waiting.get(path) ?? []) resolve();
    waiting.delete(path);
    open += 1;
    most = Math.max(most, open);
    response.on('close', () => {
      open -= 1;
    });
    const page = pages[path] ?? pages[url.pathname] ?? fallback ?? notFound;
    if (typeof page === 'function') page(request, response, url);
    else {
      response.setHeader('content-type', contentTypeOf(url.pathname));
      response.end(page);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const isPage = (path: string) => path !== '/robots.txt' && !path.includes('sitemap');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    requestCount: (path) => requests.filter((asked) => asked === path).length,
    requestedPages: () => [...new Set(requests.filter(isPage))],
    maxConcurrency: () => most,
    waitForRequest: (path) =>
      requests.includes(path)
        ? Promise.resolve()
        : new Promise((resolve) => waiting.set(path, [...(waiting.get(path) ?? []), resolve])),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A page with unique text and links. */
export function htmlPage(title: string, links: string[] = [], head = ''): string {
  return `<!doctype html><html lang="en"><head><title>${title}</title>${head}</head><body><nav><a href="/">Home</a></nav>
<main><h1>${title}</h1><p>This is the page called ${title}, and these words are its text, long enough to be one.</p>
${links.map((link) => `<p>A sentence that leads on to <a href="${link}">another page</a> of this site.</p>`).join('\n')}</main>
<footer>Imprint</footer></body></html>`;
}

export const responses = {
  status:
    (status: number, headers: Record<string, string> = {}): SiteResponse =>
    (_request, response) =>
      response.writeHead(status, { 'content-type': 'text/html', ...headers }).end(htmlPage(`Status ${status}`)),
  redirect:
    (location: string, status = 302): SiteResponse =>
    (_request, response) =>
      response.writeHead(status, { location }).end(),
  /** Fails this many times, then responds. */
  flaky: (failures: number, page: string, headers: Record<string, string> = {}): SiteResponse => {
    let left = failures;
    return (_request, response) => {
      if (left-- > 0) response.writeHead(503, headers).end();
      else response.setHeader('content-type', 'text/html').end(page);
    };
  },
  /** Every page links to the next day, forever. */
  calendar: (_request: IncomingMessage, response: ServerResponse, url: URL) => {
    const day = Number(url.searchParams.get('day') ?? 0);
    response.setHeader('content-type', 'text/html');
    response.end(htmlPage(`Day ${day}`, [`/calendar?day=${day + 1}`, `/calendar?day=${day + 2}`]));
  },
  /** A response that never ends and has no meaning. */
  endless: (_request: IncomingMessage, response: ServerResponse) => {
    response.setHeader('content-type', 'text/html');
    const piece = Buffer.alloc(256 * 1024, '<p>more ');
    const more = (): void => {
      while (!response.destroyed && response.write(piece));
      if (!response.destroyed) response.once('drain', more);
    };
    more();
  },
  cut: (_request: IncomingMessage, response: ServerResponse) => {
    response.writeHead(200, { 'content-type': 'text/html', 'content-length': '5000' });
    response.write('<p>half', () => response.destroy());
  },
  silent: () => {},
  junk: (_request: IncomingMessage, response: ServerResponse) => {
    response.setHeader('content-type', 'application/octet-stream');
    response.end(Buffer.from(Array.from({ length: 5_000 }, (_unused, at) => (at * 7919) % 256)));
  },
  bomb: (_request: IncomingMessage, response: ServerResponse) => {
    response.writeHead(200, { 'content-type': 'text/html', 'content-encoding': 'gzip' });
    response.end(gzipSync(Buffer.alloc(64 * 1024 * 1024, ' ')));
  },
} satisfies Record<string, unknown>;

function notFound(_request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(404, { 'content-type': 'text/html' }).end(htmlPage('Not found'));
}

function contentTypeOf(path: string): string {
  if (path.endsWith('.txt')) return 'text/plain';
  if (path.endsWith('.xml')) return 'application/xml';
  if (path.endsWith('.gz')) return 'application/gzip';
  return path.endsWith('.pdf') ? 'application/pdf' : 'text/html; charset=utf-8';
}
