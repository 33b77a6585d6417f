import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installPackages } from '../peers/install.ts';
import type { Crawl, CrawlResult } from './quarry.ts';

const packages = ['@crawlee/cheerio@3.18.1', 'linkedom@0.18.12', '@mozilla/readability@0.6.0', 'turndown@7.2.5'];

export function crawlWithCrawlee({ origin, concurrency, pagesCount }: Crawl): CrawlResult & { version: string } {
  const { directory, version } = installPackages('crawlee', packages);
  const storage = mkdtempSync(join(tmpdir(), 'quarry-bench-dataset-'));
  writeFileSync(join(directory, 'crawl.mjs'), program);
  const out = execFileSync(process.execPath, ['crawl.mjs', origin, String(concurrency), String(pagesCount)], {
    cwd: directory,
    env: { ...process.env, CRAWLEE_STORAGE_DIR: storage, CRAWLEE_LOG_LEVEL: 'ERROR' },
    encoding: 'utf8',
  });
  rmSync(storage, { recursive: true, force: true });
  return { ...JSON.parse(out.trim().split('\n').at(-1) ?? '{}'), version: version('@crawlee/cheerio') };
}

const program = `
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
