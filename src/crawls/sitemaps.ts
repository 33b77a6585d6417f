import type { Fetcher } from '../content/fetch/guarded-fetch.ts';
import type { ParserPool } from '../content/parse/pool/pool.ts';
import { type SitemapEntry, type SitemapPage, sitemapLimits, walkSitemaps } from '../content/sitemap.ts';
import type { BodyMemory } from './body-memory.ts';
import type { RobotsCache } from './robots-cache.ts';
import type { Crawl } from './types.ts';

const sitemapTimeoutMs = 30_000;
const chunkMax = 500;

/**
 * Passes the pages in the site's sitemaps to `add`, in batches, until it needs no more. Reads the sitemaps that
 * robots.txt names, otherwise /sitemap.xml. Unavailable sitemaps count as empty.
 */
export async function readSitemaps(
  deps: { fetcher: Fetcher; parser: ParserPool; bodies: BodyMemory },
  crawl: Crawl,
  robots: RobotsCache,
  signal: AbortSignal,
  add: (pages: SitemapPage[]) => Promise<boolean>,
): Promise<void> {
  const start = new URL(crawl.scopeUrl ?? crawl.settings.startUrl);
  const named = (await robots.rulesFor(start)).sitemaps;
  const starts = named.length > 0 ? named : ['/sitemap.xml'];
  const urls = starts.flatMap((url) => (URL.canParse(url, start.origin) ? [new URL(url, start.origin).href] : []));
  // Most entries of a sitemap may be out of scope, so the crawl reads more than it has room for.
  const urlsMax = crawl.settings.maxPages * 4 + chunkMax;
  const load = async (url: string) => {
    const response = await deps.fetcher.fetch(url, {
      lane: crawl.appId,
      signal,
      timeoutMs: sitemapTimeoutMs,
      bytesMax: sitemapLimits.bytesMax,
    });
    if (response.status < 200 || response.status >= 300) {
      response.discard();
      return [];
    }
    const { bytes, free } = await deps.bodies.read(crawl.appId, response.body, signal);
    const input = {
      bytes,
      contentEncoding: response.headers['content-encoding'] ?? '',
      decodedBytesMax: sitemapLimits.bytesMax,
      cutBody: true,
      entriesMax: urlsMax,
    };
    return deps.parser.run<SitemapEntry[]>('sitemap', input, { lane: crawl.appId, signal }).finally(free);
  };
  let chunk: SitemapPage[] = [];
  for await (const page of walkSitemaps(urls, load, urlsMax)) {
    chunk.push(page);
    if (chunk.length < chunkMax) continue;
    if (!(await add(chunk))) return;
    chunk = [];
  }
  signal.throwIfAborted();
  if (chunk.length > 0) await add(chunk);
}
