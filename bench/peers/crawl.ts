import { crawlWithCrawlee } from '../crawl/crawlee.ts';
import { type CrawlResult, crawlWithQuarry } from '../crawl/quarry.ts';
import { startSites } from '../crawl/start-sites.ts';
import { ownVersion, type Row } from './row.ts';

/** A site of `pagesCount` pages on this machine, crawled whole with eight requests at a time. */
export async function compareCrawls(pagesCount: number): Promise<Row[]> {
  const { sites, stop } = await startSites(pagesCount);
  try {
    const crawl = { origin: sites.origin, pagesCount, concurrency: 8 };
    const ours = await crawlWithQuarry(crawl);
    const { version, ...theirs } = crawlWithCrawlee(crawl);
    return [
      {
        ...{ program: 'Quarry', version: ownVersion, figures: figuresOf(ours) },
        guarantees: 'pages, Markdown and progress in the database and fsynced; resumes after a crash; apps separated',
      },
      {
        ...{ program: 'crawlee, CheerioCrawler with Readability and turndown', version, figures: figuresOf(theirs) },
        guarantees: 'queue and dataset in files, not fsynced; a library in one process, without tenants',
      },
    ];
  } finally {
    stop();
  }
}

function figuresOf({ pages, seconds, cpuSeconds }: CrawlResult): Row['figures'] {
  return {
    pages: `${(pages / seconds).toFixed(0)}/s`,
    processor: `${((cpuSeconds / pages) * 1_000).toFixed(1)} ms a page`,
    of: `${pages} pages`,
  };
}
