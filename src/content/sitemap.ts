/** A page in a sitemap, with its last change and change frequency as the site wrote them. */
export type SitemapPage = { url: string; lastModified?: string | undefined; changeFrequency?: string | undefined };

/** One entry of a sitemap: a page, or (in an index) another sitemap. */
export type SitemapEntry = SitemapPage & { kind: 'page' | 'sitemap' };

/** The limits of one walk through a site's sitemaps. */
export const sitemapLimits = {
  filesMax: 50,
  depthMax: 4,
  bytesMax: 50 * 1024 * 1024,
  entryCharactersMax: 16_384,
} as const;

/** Fetches and parses one sitemap. Throws, or returns nothing, when it is unavailable. */
type SitemapLoader = (url: string) => Promise<readonly SitemapEntry[]>;

/**
 * The pages in the sitemaps at `starts` and in nested ones, in order and each once, at most `pagesMax`.
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
      // A sitemap is only a hint: the walk continues without it.
    }
  }
}
