import { type ChildProcess, execFileSync, fork, spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startServe } from '../test/support/serve.ts';
import { type BenchSites, measureWaiting, slowMs } from './crawl-refresh.ts';

/*
 * A site of PAGES pages (2,000) on this machine, crawled whole: by Quarry (Markdown, files and rows, everything
 * durable) and by crawlee's CheerioCrawler that runs Readability and turndown on each page and keeps the result in its
 * dataset. Same site, same concurrency, one run. crawlee is installed for this alone, into a directory of its own.
 *
 *   node bench/crawl.ts            both, and the ratio
 *   ONLY=refresh node bench/crawl.ts   a refresh, 200 slow hosts at a time, and a crawl beside 30 hosts that hang
 *   PAGES=10000 ONLY=quarry node bench/crawl.ts    memory of a long crawl
 */
const pagesCount = Number(process.env.PAGES ?? 2_000);
const concurrency = Number(process.env.CONCURRENCY ?? 8);
const only = process.env.ONLY;
const self = fileURLToPath(import.meta.url);

type Result = { seconds: number; cpuSeconds: number; pages: number };

async function main(): Promise<void> {
  const site = fork(self, ['site'], { execArgv: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  try {
    const sites = await new Promise<BenchSites>((resolve) =>
      site.once('message', (message) => resolve(message as BenchSites)),
    );
    const { origin } = sites;
    if (only === 'refresh') return await measureWaiting(sites, pagesCount);
    const ours = only === 'crawlee' ? undefined : await crawlWithQuarry(origin, site);
    const theirs = only === 'quarry' ? undefined : crawlWithCrawlee(origin);
    for (const [name, result] of [
      ['quarry', ours],
      ['crawlee', theirs],
    ] as const)
      if (result)
        console.log(
          `${name.padEnd(8)} ${(result.pages / result.seconds).toFixed(1).padStart(7)} pages/s  ${((result.cpuSeconds / result.pages) * 1_000).toFixed(1).padStart(6)} ms CPU a page  (${result.pages} pages, ${result.seconds.toFixed(1)} s)`,
        );
    if (ours && theirs) {
      const ratio = ours.pages / ours.seconds / (theirs.pages / theirs.seconds);
      console.log(`ratio    ${ratio.toFixed(2)} times the pages/s of crawlee (wanted: 3)`);
    }
  } finally {
    site.kill();
  }
}

async function crawlWithQuarry(origin: string, site: ChildProcess): Promise<Result> {
  const dataDir = mkdtempSync(join(tmpdir(), 'quarry-bench-crawl-'));
  chmodSync(dataDir, 0o755);
  const serve = await startServe({
    QUARRY_DATA_DIR: dataDir,
    QUARRY_LOG_LEVEL: 'error',
    QUARRY_FETCH_ALLOW: '127.0.0.1',
    QUARRY_CRAWL_CONCURRENCY: String(concurrency),
    QUARRY_CRAWL_HOST_CONCURRENCY: String(concurrency),
  });
  try {
    const { secret_key: key } = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as {
      secret_key: string;
    };
    const headers = { 'x-api-key': key, 'content-type': 'application/json' };
    const idleMb = residentMb(serve.pid);
    let peakMb = idleMb;
    const watch = setInterval(() => {
      peakMb = Math.max(peakMb, residentMb(serve.pid));
    }, 250);
    const cpuBefore = cpuOfTree([serve.pid, ...postmasters(dataDir)]);
    const startedAt = performance.now();
    const created = await fetch(`${serve.baseUrl}/api/v1/extractions`, {
      method: 'POST',
      headers,
      body: JSON.stringify({
        destination_kind: 'storage',
        url: `${origin}/`,
        mode: 'site',
        max_pages: pagesCount,
        sitemap: 'skip',
      }),
    });
    const { id } = (await created.json()) as { id: string };
    const stream = await fetch(`${serve.baseUrl}/api/v1/extractions/${id}/stream`, { headers });
    const last = (await stream.text())
      .trim()
      .split('\n\n')
      .findLast((event) => event.startsWith('id:'));
    const seconds = (performance.now() - startedAt) / 1_000;
    const cpuSeconds = cpuOfTree([serve.pid, ...postmasters(dataDir)]) - cpuBefore;
    clearInterval(watch);
    const { output_count: pages } = JSON.parse(last?.split('data: ')[1] ?? '{}') as { output_count: number };
    console.log(
      `quarry   server memory: ${idleMb.toFixed(0)} MiB idle, ${peakMb.toFixed(0)} MiB at most while crawling`,
    );
    return { seconds, cpuSeconds, pages };
  } finally {
    await serve.stop();
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
    site.ref();
  }
}

function crawlWithCrawlee(origin: string): Result {
  const directory = process.env.CRAWLEE_DIR ?? join(tmpdir(), 'quarry-bench-crawlee');
  mkdirSync(directory, { recursive: true });
  if (!existsSync(join(directory, 'node_modules/@crawlee/cheerio'))) {
    writeFileSync(join(directory, 'package.json'), '{"private":true}');
    const packages = ['@crawlee/cheerio@3', 'linkedom@0.18.12', '@mozilla/readability@0.6.0', 'turndown@7.2.5'];
    spawnSync('npm', ['install', ...packages], { cwd: directory, stdio: 'inherit' });
  }
  const storage = mkdtempSync(join(tmpdir(), 'quarry-bench-dataset-'));
  writeFileSync(join(directory, 'crawl.mjs'), crawleeProgram);
  const out = execFileSync(process.execPath, ['crawl.mjs', origin, String(concurrency), String(pagesCount)], {
    cwd: directory,
    env: { ...process.env, CRAWLEE_STORAGE_DIR: storage, CRAWLEE_LOG_LEVEL: 'ERROR' },
    encoding: 'utf8',
  });
  rmSync(storage, { recursive: true, force: true });
  return JSON.parse(out.trim().split('\n').at(-1) ?? '{}') as Result;
}

const crawleeProgram = `
import { CheerioCrawler, Dataset } from '@crawlee/cheerio';
import { Readability } from '@mozilla/readability';
import { parseHTML } from 'linkedom';
import TurndownService from 'turndown';
const [origin, concurrency, pages] = process.argv.slice(2);
const turndown = new TurndownService();
let done = 0;
const crawler = new CheerioCrawler({
  minConcurrency: Number(concurrency),
  maxConcurrency: Number(concurrency),
  maxRequestsPerCrawl: Number(pages),
  async requestHandler({ request, body, enqueueLinks }) {
    const { document } = parseHTML(String(body));
    const article = new Readability(document).parse();
    await Dataset.pushData({ url: request.loadedUrl, title: article?.title, markdown: turndown.turndown(article?.content ?? '') });
    done += 1;
    await enqueueLinks({ strategy: 'same-hostname' });
  },
});
const startedAt = performance.now();
await crawler.run([origin + '/']);
const seconds = (performance.now() - startedAt) / 1000;
const { user, system } = process.cpuUsage();
console.log(JSON.stringify({ seconds, cpuSeconds: (user + system) / 1e6, pages: done }));
process.exit(0);
`;

/** Serves articles of about 25 KB with the usual navigation, in a tree of ten links per page. */
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
<ul>${links.map((next) => `<li><a href="/p/${next}">Chronicle number ${next} goes on from here</a></li>`).join('')}</ul></article></main>
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

function residentMb(pid: number): number {
  const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kilobytes ?? 0) / 1_024;
}

function postmasters(dataDir: string): number[] {
  const found = spawnSync('pgrep', ['-f', dataDir], { encoding: 'utf8' }).stdout;
  return found
    .split('\n')
    .filter((line) => line !== '')
    .map(Number);
}

/** Seconds of processor time of these processes and all of their children, including ended ones. */
function cpuOfTree(roots: number[]): number {
  const stats = readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const fields = readFileSync(`/proc/${name}/stat`, 'utf8')
        .replace(/^.*\) /s, '')
        .split(' ');
      const ticks = [11, 12, 13, 14].reduce((sum, at) => sum + Number(fields[at]), 0);
      return [{ pid: Number(name), parent: Number(fields[1]), ticks }];
    } catch {
      return [];
    }
  });
  const wanted = new Set(roots);
  for (let grown = true; grown; ) {
    grown = false;
    for (const { pid, parent } of stats)
      if (wanted.has(parent) && !wanted.has(pid)) {
        wanted.add(pid);
        grown = true;
      }
  }
  return stats.filter(({ pid }) => wanted.has(pid)).reduce((sum, { ticks }) => sum + ticks, 0) / 100;
}

if (process.argv[2] === 'site') await serveSite();
else await main();
