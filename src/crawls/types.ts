import type { HeadingFragments } from '../content/fragments.ts';
import type { PageBox } from '../content/page-boxes.ts';
import type { OcrReport, PageReport } from '../content/parse/types.ts';
import type { Transaction } from '../db/database.ts';
import type { Scope } from '../tenancy/caller.ts';

/** A crawl's settings. Stored, so the names are public API. */
export type CrawlSettings = {
  mode: 'link' | 'site';
  startUrl: string;
  maxPages: number;
  includePaths: string[];
  excludePaths: string[];
  maxDepth?: number;
  allowSubdomains: boolean;
  ignoreRobots: boolean;
  sitemap: 'include' | 'skip' | 'only';
};

/** A crawl as the engine uses it. */
export type Crawl = Scope & {
  id: string;
  consumer: string;
  collectionId: string | null;
  settings: CrawlSettings;
  epoch: number;
  scopeUrl: string | null;
  sitemapRead: boolean;
  discovered: number;
  done: number;
  failed: number;
  dropped: number;
  leftOut: number;
  /** The number of pages that are read and not handed over yet. */
  waiting: number;
};

export type FailureReason = 'fetch_failed' | 'unsupported_content' | 'extraction_failed' | 'timeout' | 'internal_error';

export type PageFailure = { reason: FailureReason; code: string; message: string };

/** How a page compares with the collection's state. Always `new` without a collection. */
type PageChange = 'new' | 'changed' | 'unchanged';

/** A page that was fetched and read. */
export type CrawledPage = {
  url: string;
  isStart: boolean;
  change: PageChange;
  /** Absent when `unchanged`. */
  markdown: string;
  /** The fragments that lead to the headings of an HTML page. */
  fragments: HeadingFragments;
  /** The boxes of the text of an HTML page. */
  boxes: PageBox[];
  title: string | undefined;
  description: string | undefined;
  language: string | undefined;
  published: string | undefined;
  /** Set for an HTML page. */
  report: PageReport | undefined;
  /** The extractor that read a document. */
  reader: string | undefined;
  /** Set for a scan or a picture: what was recognised. */
  ocr: OcrReport | undefined;
  contentType: string;
  /** Descriptions of what is missing because the page is too large. */
  truncated: string[] | undefined;
};

/** A page that could not be fetched. `gone`: its server reports that it no longer exists (404 or 410). */
export type FailedPage = {
  url: string;
  /** The page's last known URL, if the collection has it. */
  lastUrl: string | undefined;
  isStart: boolean;
  failure: PageFailure;
  gone: boolean;
};

/** `waiting`: pages that are read and are handed over once it is known what the site repeats. */
export type Progress = { discovered: number; done: number; failed: number; waiting: number };

/** How a crawl ended: decided by its start page, or because its consumer was deleted. */
export type CrawlVerdict = { state: 'done' } | { state: 'failed'; failure: PageFailure };

/**
 * The consumer of a crawl. `prepare` may be slow and may run twice for one page. `commit` and `finish` write in the
 * transaction of the crawl's own rows, so their effects happen exactly once.
 */
export type CrawlSink<Prepared = unknown> = {
  /**
   * Returns which of these pages (by their last known URL) the consumer still has. Only those are requested
   * conditionally. Absent: the consumer has all pages of the collection.
   */
  listHeld?(crawl: Crawl, urls: string[]): Promise<Set<string>>;
  /** Rejects soon after `signal` is aborted because the crawl has ended or its process is stopping. */
  prepare(crawl: Crawl, page: CrawledPage, signal: AbortSignal): Promise<Prepared>;
  /** Discards a page that was prepared but is not committed. */
  discard(prepared: Prepared): Promise<void>;
  /** Returns false if the consumer was deleted: the crawl then ends silently. */
  commit(tx: Transaction, crawl: Crawl, batch: CommitBatch<Prepared>): Promise<boolean>;
  finish(tx: Transaction, crawl: Crawl, verdict: CrawlVerdict): Promise<void>;
};

export type CommitBatch<Prepared> = {
  pages: { page: CrawledPage; prepared: Prepared }[];
  failures: FailedPage[];
  progress: Progress;
};
