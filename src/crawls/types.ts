import type { OcrReport, PageReport } from '../content/parse/types.ts';
import type { Transaction } from '../db/database.ts';
import type { Scope } from '../tenancy/caller.ts';

/** What a crawl is asked to do. Stored, so treat names as public. */
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

/** A crawl as the engine holds it. */
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
};

export type FailureReason = 'fetch_failed' | 'unsupported_content' | 'extraction_failed' | 'timeout' | 'internal_error';

export type PageFailure = { reason: FailureReason; code: string; message: string };

/** How a page compares with what its collection had: always `new` without a collection. */
type PageChange = 'new' | 'changed' | 'unchanged';

/** One page that was fetched and read. */
export type CrawledPage = {
  url: string;
  isStart: boolean;
  change: PageChange;
  /** Absent when `unchanged`. */
  markdown: string;
  title: string | undefined;
  description: string | undefined;
  language: string | undefined;
  published: string | undefined;
  /** Of an HTML page. */
  report: PageReport | undefined;
  /** For a scan or a picture: what was recognised. */
  ocr: OcrReport | undefined;
  contentType: string;
  /** What is missing because the page is too large, in words. */
  truncated: string[] | undefined;
};

/** A page that could not be had. `gone`: its server says that it is no more (404 or 410). */
export type FailedPage = {
  url: string;
  /** Where it was found the last time, in a collection that has it. */
  lastUrl: string | undefined;
  isStart: boolean;
  failure: PageFailure;
  gone: boolean;
};

type Progress = { discovered: number; done: number; failed: number };

/** How a crawl ended: by its start page, or because nobody wants it any more. */
export type CrawlVerdict = { state: 'done' } | { state: 'failed'; failure: PageFailure };

/**
 * What a crawl works for. `prepare` may do slow things and may run twice for one page; what `commit` and `finish`
 * write is in the same transaction as the crawl's own rows, so it happens exactly once.
 */
export type CrawlSink<Prepared = unknown> = {
  /**
   * Which of these pages (where they were found the last time) the consumer still has. Only those are asked for
   * conditionally. Absent: all that the collection knows.
   */
  listHeld?(crawl: Crawl, urls: string[]): Promise<Set<string>>;
  /** Rejects soon after `signal` is aborted: the crawl is over, or its process stops. */
  prepare(crawl: Crawl, page: CrawledPage, signal: AbortSignal): Promise<Prepared>;
  /** A page that was prepared but is not committed after all. */
  discard(prepared: Prepared): Promise<void>;
  /** False when the consumer is gone: the crawl then ends without a word. */
  commit(tx: Transaction, crawl: Crawl, batch: CommitBatch<Prepared>): Promise<boolean>;
  finish(tx: Transaction, crawl: Crawl, verdict: CrawlVerdict): Promise<void>;
};

export type CommitBatch<Prepared> = {
  pages: { page: CrawledPage; prepared: Prepared }[];
  failures: FailedPage[];
  progress: Progress;
};
