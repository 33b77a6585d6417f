import type { Fetcher } from '../content/fetch/guarded-fetch.ts';
import type { ParserPool } from '../content/parse/pool/pool.ts';
import { type SitemapEntry, type SitemapPage, sitemapLimits } from '../content/sitemap-file.ts';
import type { BodyMemory } from './body-memory.ts';
import type { RobotsCache } from './robots-cache.ts';
import type { Crawl } from './types.ts';

const sitemapTimeoutMs = 30_000;
const chunkMax = 500;

/** The limits of one walk through a site's sitemaps. */
const filesMax = 50;
const depthMax = 4;

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

/** Fetches and parses one sitemap. If it is unavailable, throws or returns nothing. */
type SitemapLoader = (url: string) => Promise<readonly SitemapEntry[]>;

/**
 * The pages in the sitemaps at `starts` and in nested ones, in order, each once, at most `pagesMax`.
 * A broken, oversized or self-referencing sitemap ends early; it never fails the walk.
 */
export async function* walkSitemaps(
  starts: readonly string[],
  load: SitemapLoader,
  pagesMax: number,
): AsyncGenerator<SitemapPage> {
  const queue = starts.map((url) => ({ url, depth: 1 }));
  const seenFiles = new Set(starts);
  const seenPages = new Set<string>();
  let files = 0;
  for (let next = queue.shift(); next !== undefined && files < filesMax; next = queue.shift()) {
    files += 1;
    try {
      for (const entry of await load(next.url)) {
        if (!URL.canParse(entry.url, next.url)) continue;
        const url = new URL(entry.url, next.url).href;
        if (entry.kind === 'sitemap') {
          const fresh = !seenFiles.has(url) && queue.length < filesMax && next.depth < depthMax;
          if (fresh) queue.push({ url, depth: next.depth + 1 });
          seenFiles.add(url);
        } else if (!seenPages.has(url)) {
          seenPages.add(url);
          yield { url, lastModified: entry.lastModified, changeFrequency: entry.changeFrequency };
          if (seenPages.size >= pagesMax) return;
        }
      }
    } catch {
      // A sitemap is only a hint: the walk continues without it.
    }
  }
}
