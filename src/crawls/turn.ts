import type { Database } from '../db/database.ts';
import type { WaitOutside } from '../jobs/workers.ts';
import type { Logger } from '../lib/log.ts';
import type { PageOutcome, ReaderDeps } from './read-page.ts';
import type { PageState, QueuedPage } from './store.ts';
import type { CrawlSink, FailedPage } from './types.ts';

export type EngineDeps = ReaderDeps & {
  db: Database;
  log: Logger;
  /** The sink of each kind of consumer. */
  sinks: ReadonlyMap<string, CrawlSink>;
  /** The number of concurrent pages of one crawl. */
  concurrency: number;
};

/** The end of a turn: the crawl has ended or was deleted, or its next turn is due in so many milliseconds. */
export type TurnEnd = { over: true } | { over: false; inMs: number };

export type TurnOptions = {
  signal: AbortSignal;
  /** Polled: returns whether to make room for other crawls. */
  mustYield: () => boolean;
  /** Waits for sites without holding a job slot. */
  waitOutside: WaitOutside;
  /** Whether this is the last attempt: an error then fails the crawl. */
  isLastAttempt?: boolean;
};

/** A page of a turn between its attempt and its commit. */
export type FinishedPage = {
  queued: QueuedPage;
  known: PageState | undefined;
  outcome: PageOutcome;
  prepared?: unknown;
  /** Whether the page waits until enough is known about what the site repeats. */
  isHeld: boolean;
};

/**
 * Whether the app is charged for the page. Retries are charged once, pages that wait to be handed over when they are read,
 * and pages without a request never.
 */
export function isCharged({ queued, outcome }: FinishedPage): boolean {
  if (queued.held !== null) return false;
  return outcome.kind === 'page' || outcome.kind === 'failed' || (outcome.kind === 'left_out' && outcome.fetched);
}

/** The page as the sink gets it. */
export function failedOf(
  { queued, known }: FinishedPage,
  { failure, gone }: Extract<PageOutcome, { kind: 'failed' }>,
): FailedPage {
  return { url: queued.url, lastUrl: known?.finalUrl, isStart: queued.depth === 0, failure, gone };
}
