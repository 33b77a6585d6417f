import { crawlWithCrawlee } from './crawl/crawlee.ts';
import { type CrawlResult, crawlWithQuarry } from './crawl/quarry.ts';
import { startSites } from './crawl/start-sites.ts';
import { measureWaiting } from './crawl-refresh.ts';

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

const { sites, stop } = await startSites(pagesCount);
try {
  if (only === 'refresh') await measureWaiting(sites, pagesCount);
  else await compare(sites.origin);
} finally {
  stop();
}

async function compare(origin: string): Promise<void> {
  const crawl = { origin, pagesCount, concurrency };
  const ours = only === 'crawlee' ? undefined : await crawlWithQuarry(crawl);
  const theirs = only === 'quarry' ? undefined : crawlWithCrawlee(crawl);
  if (ours) print('quarry', ours);
  if (theirs) print('crawlee', theirs);
  if (ours && theirs) {
    const ratio = ours.pages / ours.seconds / (theirs.pages / theirs.seconds);
    console.log(`ratio    ${ratio.toFixed(2)} times the pages/s of crawlee (wanted: 3)`);
  }
}

function print(name: string, { pages, seconds, cpuSeconds }: CrawlResult): void {
  console.log(
    `${name.padEnd(8)} ${(pages / seconds).toFixed(1).padStart(7)} pages/s  ${((cpuSeconds / pages) * 1_000).toFixed(1).padStart(6)} ms CPU a page  (${pages} pages, ${seconds.toFixed(1)} s)`,
  );
}
