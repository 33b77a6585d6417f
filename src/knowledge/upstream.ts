import type { Upstream } from './document-store.ts';

/** What a request for a page came to. */
export type PageAnswer =
  | { kind: 'content'; url: string; bytes: Buffer; contentType: string | null; upstream: Upstream }
  /** The version that we have is still the current one. */
  | { kind: 'unchanged'; url: string }
  /** The server says that the page is no longer there. */
  | { kind: 'gone'; url: string; message: string }
  | { kind: 'failed'; url: string; code: string; message: string };

export type CrawlRequest = {
  url: string;
  pagesMax: number;
  includePaths: string[];
  excludePaths: string[];
  depthMax: number | undefined;
  allowSubdomains: boolean;
  /** Where the crawl finds the links of a page that is unchanged and so not sent again. */
  knownLinks?: (url: string) => string[];
};

/** The guarded way to pages on the web. */
export type PageReader = {
  /** What is wrong with a URL by itself; undefined when nothing is. */
  check(url: string): string | undefined;
  /** Reads one page; `known` makes the request conditional. */
  read(url: string, known: Upstream | undefined, signal: AbortSignal): Promise<PageAnswer>;
  /**
   * Visits the pages of a site one after another. Answers whether it came to an end by itself (false: `pagesMax` cut it
   * short), or why not even the start page could be read.
   */
  crawl(
    request: CrawlRequest,
    known: (url: string) => Upstream | undefined,
    visit: (answer: PageAnswer) => Promise<void>,
    signal: AbortSignal,
  ): Promise<{ complete: boolean } | { error: { code: string; message: string } }>;
};
