import { judgeScope } from '../content/crawl.ts';
import type { Crawl } from './types.ts';

type Found = { url: string; depth: number };

/**
 * Which of these links (normalised) the crawl will visit, and which it leaves out for a reason that its owner may want
 * to know: a path that the settings exclude, the depth, a path that grows without end. Links to other hosts and to
 * pictures are no news.
 */
export function sortLinks(crawl: Crawl, links: readonly string[], depth: number) {
  const pages: Found[] = [];
  const leftOut: (Found & { state: 'left_out'; reason: string })[] = [];
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
    const reason = judgeScope(scope, url, depth);
    if (reason === undefined) pages.push({ url, depth });
    // What is too deep by this path may still be found by a shorter one.
    else if (reason === 'path' || reason === 'trap') leftOut.push({ url, depth, state: 'left_out', reason });
  }
  return { pages, leftOut };
}
