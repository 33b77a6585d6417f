import type { SitemapPage } from '../content/sitemap-file.ts';
import { checkScope } from './scope.ts';
import type { Crawl, Progress } from './types.ts';

const dayMs = 24 * 3_600_000;
const periodMs: Record<string, number> = {
  always: 0,
  hourly: 3_600_000,
  daily: dayMs,
  weekly: 7 * dayMs,
  monthly: 30 * dayMs,
  yearly: 365 * dayMs,
  never: Number.POSITIVE_INFINITY,
};

/**
 * The priority of a collection's page in a refresh: 0 if the sitemap says that the page changed since the last fetch,
 * 2 if it says that it did not, 1 otherwise. All pages are fetched; the sitemap determines only the order.
 */
export function refreshPriority(page: SitemapPage, fetchedAt: Date | undefined, now: Date): 0 | 1 | 2 {
  if (fetchedAt === undefined) return 1;
  const { lastModified = '', changeFrequency = '' } = page;
  // A date without a time may mean any time of that day.
  const modifiedMs = Date.parse(lastModified) + (lastModified.includes('T') ? 0 : dayMs);
  if (!Number.isNaN(modifiedMs)) return modifiedMs > fetchedAt.getTime() ? 0 : 2;
  const period = periodMs[changeFrequency.toLowerCase()];
  if (period === undefined) return 1;
  return now.getTime() - fetchedAt.getTime() >= period ? 0 : 2;
}

type Found = { url: string; depth: number };

/** The pages that links lead to. */
export type FoundPages = { pages: Found[]; leftOut: (Found & { state: 'left_out'; reason: string })[] };

/**
 * Sorts normalised links into those that the crawl will visit and those it leaves out for a reason that its owner may
 * want to know: a path that the settings exclude, one that grows without end, a page that a generator wrote. Links to other hosts and
 * to images are ignored.
 */
export function sortLinks(crawl: Crawl, links: readonly string[], depth: number): FoundPages {
  const pages: Found[] = [];
  const leftOut: FoundPages['leftOut'] = [];
  if (crawl.scopeUrl === null) return { pages, leftOut };
  const { settings } = crawl;
  const scope = {
    start: crawl.scopeUrl,
    includePaths: settings.includePaths,
    excludePaths: settings.excludePaths,
    depthMax: settings.maxDepth,
    allowSubdomains: settings.allowSubdomains,
  };
  for (const url of links) {
    const reason = checkScope(scope, url, depth);
    if (reason === undefined) pages.push({ url, depth });
    // A link that is too deep on this path may be found again on a shorter path.
    else if (reason === 'path' || reason === 'trap' || reason === 'generated')
      leftOut.push({ url, depth, state: 'left_out', reason });
  }
  return { pages, leftOut };
}

/** The number of pages that may still be added. */
export function pagesLeft(crawl: Crawl): number {
  return crawl.settings.maxPages - crawl.discovered - crawl.dropped;
}

/** The number of rows that say why a page was left out. Further pages are left out without a row. */
export const leftOutMax = 1_000;

export function progressOf({ discovered, done, failed, waiting }: Crawl): Progress {
  return { discovered, done, failed, waiting };
}
