/** A page that a sitemap names. When it changed and how often it does are as the site wrote them. */
export type SitemapPage = { url: string; lastModified?: string | undefined; changeFrequency?: string | undefined };

/** One entry of a sitemap: a page, or (in an index) another sitemap. */
export type SitemapEntry = SitemapPage & { kind: 'page' | 'sitemap' };

/** The bounds of one walk through a site's sitemaps. */
export const sitemapLimits = {
  filesMax: 50,
  depthMax: 4,
  bytesMax: 50 * 1024 * 1024,
  entryCharactersMax: 16_384,
} as const;

/** Fetches one sitemap and has it read. Throws, or returns nothing, when it cannot be had. */
type SitemapLoader = (url: string) => Promise<readonly SitemapEntry[]>;

/**
 * The pages that the sitemaps at `starts` name, nested ones included, in order and each once, `pagesMax` at most.
 * A sitemap that is broken, huge or refers to itself ends early; it never fails the walk.
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
  for (let next = queue.shift(); next !== undefined && files < sitemapLimits.filesMax; next = queue.shift()) {
    files += 1;
    try {
      for (const entry of await load(next.url)) {
        if (!URL.canParse(entry.url, next.url)) continue;
        const url = new URL(entry.url, next.url).href;
        if (entry.kind === 'sitemap') {
          const fresh =
            !seenFiles.has(url) && queue.length < sitemapLimits.filesMax && next.depth < sitemapLimits.depthMax;
          if (fresh) queue.push({ url, depth: next.depth + 1 });
          seenFiles.add(url);
        } else if (!seenPages.has(url)) {
          seenPages.add(url);
          yield { url, lastModified: entry.lastModified, changeFrequency: entry.changeFrequency };
          if (seenPages.size >= pagesMax) return;
        }
      }
    } catch {
      // A sitemap is a hint: without it the walk goes on.
    }
  }
}
