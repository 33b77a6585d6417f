/** A page in a sitemap, with the last change and change frequency that the site states. */
export type SitemapPage = { url: string; lastModified?: string | undefined; changeFrequency?: string | undefined };

/** One entry of a sitemap: a page, or (in an index) another sitemap. */
export type SitemapEntry = SitemapPage & { kind: 'page' | 'sitemap' };

/** The limits of one sitemap. */
export const sitemapLimits = {
  bytesMax: 50 * 1024 * 1024,
  entryCharactersMax: 16_384,
} as const;
