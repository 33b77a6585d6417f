import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type BenchSites, slowMs } from '../crawl-refresh.ts';

const pagesCount = Number(process.argv[2]);

/** A process that serves articles of about 25 KB with the usual navigation, in a tree of ten links per page. */
async function serveSite(): Promise<void> {
  const words =
    'harbour ship trade stone winter market letter council bridge river tower grain copper silver road guild'.split(
      ' ',
    );
  const sentence = (seed: number): string => {
    const length = 8 + (seed % 13);
    const chosen = Array.from(
      { length },
      (_unused, at) => words[(seed * 31 + at * 17 + ((seed >> 3) % 7)) % words.length],
    );
    return `The ${chosen.join(' ')}, as was said in ${1500 + (seed % 400)}.`;
  };
  const paragraph = (seed: number): string =>
    `<p class="text">${Array.from({ length: 5 }, (_unused, at) => sentence(seed * 5 + at)).join(' ')}</p>`;
  const page = (at: number): string => {
    const links = Array.from({ length: 10 }, (_unused, k) => at * 10 + k + 1).filter((next) => next < pagesCount);
    const menu = Array.from(
      { length: 40 },
      (_unused, k) => `<li class="item"><a href="/#section-${k}">Section number ${k}</a></li>`,
    ).join('');
    const body = Array.from(
      { length: 30 },
      (_unused, k) => (k % 6 === 5 ? `<h2>Part ${k}</h2>` : '') + paragraph(at * 30 + k),
    ).join('\n');
    return `<!doctype html><html lang="en"><head><title>Chronicle ${at} | The site</title><meta name="description" content="Page ${at}."></head>
<body><header class="site-header"><nav class="main-nav"><ul>${menu}</ul></nav></header><main><article class="post"><h1>Chronicle ${at}</h1>
${body}<table><tr><th>Year</th><th>Ships</th></tr>${Array.from({ length: 10 }, (_unused, k) => `<tr><td>${1500 + k}</td><td>${at + k}</td></tr>`).join('')}</table>
<ul>${links.map((next) => `<li><a href="/p/${next}">Chronicle number ${next} continues here</a></li>`).join('')}</ul></article></main>
<aside class="sidebar">${menu}</aside><footer class="site-footer">All rights reserved</footer></body></html>`;
  };
  const server = createServer((request, response) => {
    const path = request.url ?? '/';
    const at = path === '/' ? 0 : Number(/^\/p\/(\d+)$/.exec(path)?.[1] ?? Number.NaN);
    const etag = `"${at}"`;
    if (Number.isNaN(at)) response.writeHead(404).end();
    else if (request.headers['if-none-match'] === etag) response.writeHead(304, { etag }).end();
    else response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', etag }).end(page(at));
  });
  const slow = (): RequestListener => (request, response) =>
    request.url === '/robots.txt'
      ? response.writeHead(404).end()
      : setTimeout(
          () => response.setHeader('content-type', 'text/html').end(page(0)),
          request.url === '/now' ? 0 : slowMs,
        );
  const listen = async (listener: RequestListener | Server): Promise<string> => {
    const one = typeof listener === 'function' ? createServer(listener) : listener;
    await new Promise<void>((resolve) => one.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(one.address() as AddressInfo).port}`;
  };
  const all = (count: number, listener: () => RequestListener) =>
    Promise.all(Array.from({ length: count }, () => listen(listener())));
  const sites: BenchSites = {
    origin: await listen(server),
    slow: await all(200, slow),
    hanging: await all(30, () => () => {}),
  };
  process.send?.(sites);
  process.on('disconnect', () => process.exit(0));
}

await serveSite();
