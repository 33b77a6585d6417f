import { ParseError } from '../content/parse/types.ts';
import type { SitemapPage } from '../content/sitemap-file.ts';
import type { Transaction } from '../db/database.ts';
import { contain, UncaughtError } from '../lib/contain.ts';
import type { AppError } from '../lib/errors.ts';
import { quotaError, usePages } from '../tenancy/quotas.ts';
import { CommitQueue } from './commit-queue.ts';
import { pagesLeft, progressOf, refreshPriority, sortLinks } from './frontier.ts';
import { addPages, PageResults } from './page-results.ts';
import { normalizeUrl } from './page-url.ts';
import { failedPage, type KnownPage, type PageOutcome, readPage } from './read-page.ts';
import { RobotsCache } from './robots-cache.ts';
import { linkedSignal, pause } from './signals.ts';
import { readHeld, SiteBoxes } from './site-boxes.ts';
import { readSitemaps } from './sitemaps.ts';
import * as store from './store.ts';
import { type EngineDeps, type FinishedPage, isCharged, type TurnEnd, type TurnOptions } from './turn.ts';
import type { Crawl, CrawledPage, CrawlSink, PageFailure } from './types.ts';

const codeOfError = 'internal_error';
const internalError = { reason: codeOfError, code: codeOfError, message: 'The crawl could not continue.' } as const;
/** The pages of a commit, and how long the first one waits for others. */
const together = { itemsMax: 32, waitMsMax: 100 };
const lookAhead = 64;
/** How often a crawl with slow pages checks whether it was cancelled. */
const lookEveryMs = 1_000;
/** Shorter waits happen within the turn. A longer wait ends the turn. */
const waitInsideMsMax = 1_500;

/**
 * Works on a crawl for one turn. Results are committed page by page; pages that finish together share a commit. After
 * a crash, only the pages in flight are fetched again. Throws if the database fails or `signal` is aborted; the next
 * turn then resumes from the last commit.
 */
export async function runCrawlTurn(
  deps: EngineDeps,
  appId: string,
  id: string,
  options: TurnOptions,
): Promise<TurnEnd> {
  const crawl = await store.takeCrawl(deps.db, appId, id);
  if (crawl === undefined) return { over: true };
  const sink = deps.sinks.get(crawl.consumer);
  if (sink === undefined) throw new Error(`Unknown crawl consumer "${crawl.consumer}".`);
  return new Turn(deps, crawl, sink, options).run();
}

/** Another process took over the crawl, or it was deleted. */
class CrawlLost extends Error {}

class Turn {
  readonly #deps: EngineDeps;
  readonly #sink: CrawlSink;
  readonly #options: TurnOptions;
  readonly #robots: RobotsCache;
  readonly #boxes: SiteBoxes;
  readonly #stop = new AbortController();
  readonly #inFlight = new Map<number, Promise<void>>();
  /** The number of pages in flight that only wait for their commit. As many other pages may be fetched meanwhile. */
  #committing = 0;
  #hasRoom = Promise.withResolvers<void>();
  readonly #due: { queued: store.QueuedPage; known: KnownPage | undefined }[] = [];
  readonly #commits: CommitQueue<FinishedPage>;
  #exhausted = false;
  #crawl: Crawl;
  #error: unknown;
  #over = false;

  constructor(deps: EngineDeps, crawl: Crawl, sink: CrawlSink, options: TurnOptions) {
    this.#deps = deps;
    this.#crawl = crawl;
    this.#sink = sink;
    this.#options = options;
    this.#boxes = new SiteBoxes(crawl);
    this.#robots = new RobotsCache(deps, crawl, this.#stop.signal);
    this.#commits = new CommitQueue({
      ...together,
      commit: (batch) => deps.workSlots.run(crawl.appId, () => this.#flush(batch)),
      // As many wait as may be read at a time, or no other page is being read.
      isWhole: (waiting) => waiting >= deps.concurrency || this.#committing >= this.#inFlight.size,
    });
  }

  async run(): Promise<TurnEnd> {
    const giveUp = (): void => this.#stop.abort(this.#options.signal.reason);
    if (this.#options.signal.aborted) giveUp();
    else this.#options.signal.addEventListener('abort', giveUp, { once: true });
    try {
      await this.#robots.load();
      await this.#boxes.compare(this.#deps.db, this.#crawl);
      const end = await this.#work();
      if (this.#over) await this.#discardInFlight();
      return end;
    } catch (error) {
      this.#stop.abort(error);
      await Promise.allSettled([...this.#inFlight.values(), this.#commits.running]);
      await this.#discard(this.#commits.drain());
      if (error instanceof CrawlLost) return { over: true };
      if (this.#options.isLastAttempt === true && !this.#options.signal.aborted) {
        await this.#handOverHeld(this.#options.signal);
        await this.#fail(internalError);
      }
      throw error;
    } finally {
      this.#options.signal.removeEventListener('abort', giveUp);
    }
  }

  async #work(): Promise<TurnEnd> {
    let yielding = false;
    for (;;) {
      this.#options.signal.throwIfAborted();
      if (this.#error !== undefined) throw this.#error;
      if (this.#over) return { over: true };
      yielding ||= this.#options.mustYield();
      if (!yielding) {
        if (this.#hasListsToRead()) await this.#options.waitOutside(() => this.#readListsOfPages());
        await this.#fill();
      }
      if (this.#inFlight.size > 0) {
        await this.#options.waitOutside(() => this.#waitForPage());
        continue;
      }
      const withHeld = !this.#boxes.isHolding;
      const waitMs = await store.findNextDueMs(this.#deps.db, this.#crawl, { withHeld });
      if (waitMs === undefined && !withHeld) {
        this.#boxes.drain();
        this.#exhausted = false;
        continue;
      }
      if (waitMs === undefined) {
        await this.#finish();
        return { over: true };
      }
      if (yielding || waitMs > waitInsideMsMax) return { over: false, inMs: Math.max(0, waitMs) };
      this.#exhausted = false;
      if (waitMs > 0) await this.#options.waitOutside(() => pause(waitMs, this.#stop.signal));
    }
  }

  /** Results that arrive after the end of the crawl are discarded. */
  async #discardInFlight(): Promise<void> {
    this.#stop.abort(new CrawlLost('The crawl is over.'));
    await Promise.allSettled([...this.#inFlight.values(), this.#commits.running]);
    await this.#discard(this.#commits.drain());
  }

  /** Waits for a page to finish, and regularly checks whether the crawl was cancelled. */
  async #waitForPage(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(() => resolve('late'), lookEveryMs);
    });
    const event = await Promise.race([...this.#inFlight.values(), this.#hasRoom.promise, late]).finally(() =>
      clearTimeout(timer),
    );
    // The next wait is for other room: a turn that starts no more pages would wait for the same for ever, without a pause.
    this.#hasRoom = Promise.withResolvers();
    if (event === 'late' && !(await store.isCrawlHeld(this.#deps.db, this.#crawl)))
      throw new CrawlLost('The crawl is gone.');
  }

  /** Starts as many pages as may be active. */
  async #fill(): Promise<void> {
    const { concurrency } = this.#deps;
    const room = concurrency - this.#inFlight.size + Math.min(this.#committing, concurrency);
    if (room <= 0) return;
    if (this.#due.length < room && !this.#exhausted) await this.#refill();
    for (const { queued, known } of this.#due.splice(0, room)) {
      const work = this.#process(queued, known)
        .catch((error: unknown) => {
          this.#error ??= error;
        })
        .finally(() => this.#inFlight.delete(queued.position));
      this.#inFlight.set(queued.position, work);
    }
  }

  /** Reads ahead, so that not every page costs a query. */
  async #refill(): Promise<void> {
    const without = [...this.#inFlight.keys(), ...this.#due.map(({ queued }) => queued.position)];
    const options = { without, count: lookAhead, withHeld: !this.#boxes.isHolding };
    const due = await store.listDuePages(this.#deps.db, this.#crawl, options);
    const urls = due.map((page) => page.url);
    const known = await this.#listKnown(urls);
    this.#due.push(...due.map((queued) => ({ queued, known: known.get(queued.url) })));
    // Nothing changes before the next commit or the end of a pause.
    this.#exhausted = due.length === 0;
  }

  async #listKnown(urls: string[]): Promise<Map<string, KnownPage>> {
    const known = await store.listKnownPages(this.#deps.db, this.#crawl, urls);
    const finalUrls = [...known.values()].map((state) => state.finalUrl);
    const held = known.size === 0 ? undefined : await this.#sink.listHeld?.(this.#crawl, finalUrls);
    return new Map([...known].map(([url, state]) => [url, { state, isHeld: held?.has(state.finalUrl) ?? true }]));
  }

  /** Processes one page, from its URL to its commit. */
  async #process(queued: store.QueuedPage, known: KnownPage | undefined): Promise<void> {
    const outcome = queued.held === null ? await this.#read(queued, known) : readHeld(queued.held);
    const isHeld = queued.held === null && this.#boxes.mustHold(outcome);
    const finished: FinishedPage = { queued, known: known?.state, outcome, isHeld };
    if (outcome.kind === 'page' && outcome.page.change !== 'unchanged' && !isHeld) {
      outcome.page = this.#boxes.trim(outcome.page);
      await this.#prepare(finished, outcome.page, this.#stop.signal);
    }
    this.#committing += 1;
    this.#hasRoom.resolve();
    await this.#commits.add(finished);
    this.#committing -= 1;
    if (this.#error !== undefined) throw this.#error;
  }

  async #read(queued: store.QueuedPage, known: KnownPage | undefined): Promise<PageOutcome> {
    const robotsOf = (url: URL) => this.#robots.rulesFor(url);
    const { signal, unlink } = linkedSignal(this.#stop.signal);
    return contain(() => readPage(this.#deps, this.#crawl, queued, { robotsOf, known, signal }))
      .catch((error: unknown) => this.#failUncaught(error, queued))
      .finally(unlink);
  }

  /** An uncaught exception in a library fails only its page. */
  #failUncaught(error: unknown, queued: store.QueuedPage): PageOutcome {
    if (!(error instanceof UncaughtError)) throw error;
    this.#deps.log.error(
      { err: error, crawl: this.#crawl.id, position: queued.position },
      'An uncaught error failed a page',
    );
    return failedPage('internal_error', 'internal_error', 'The page could not be read because of an internal error.');
  }

  /** Prepares the page for the sink. A text that the sink cannot store fails only that page. */
  async #prepare(finished: FinishedPage, page: CrawledPage, signal: AbortSignal): Promise<void> {
    try {
      finished.prepared = await this.#deps.workSlots.run(this.#crawl.appId, () =>
        this.#sink.prepare(this.#crawl, page, signal),
      );
    } catch (error) {
      if (!(error instanceof ParseError)) throw error;
      finished.outcome = failedPage(error.reason, error.code, error.message);
    }
  }

  async #flush(batch: FinishedPage[]): Promise<void> {
    const refused = new Set(batch);
    try {
      if (!this.#over) await this.#commitWhatFits(batch, refused);
    } catch (error) {
      this.#error ??= error;
    } finally {
      await this.#discard([...refused]);
    }
  }

  /**
   * Commits all pages together. If a quota does not allow all of them, commits one by one up to the first that fails.
   */
  async #commitWhatFits(batch: FinishedPage[], refused: Set<FinishedPage>): Promise<void> {
    try {
      const after = await this.#deps.db.begin((tx) => this.#commit(tx, batch));
      for (const finished of after.accepted) refused.delete(finished);
      this.#crawl = after.crawl;
      await this.#boxes.compare(this.#deps.db, after.crawl);
      this.#exhausted = false;
      this.#over = after.over;
    } catch (error) {
      const overQuota = quotaError(error);
      if (overQuota === undefined) throw error;
      if (batch.length === 1) return this.#endAtQuota(overQuota);
      for (const finished of batch) {
        await this.#commitWhatFits([finished], refused);
        if (this.#over) return;
      }
    }
  }

  async #endAtQuota({ code, message }: AppError): Promise<void> {
    await this.#handOverHeld(this.#stop.signal);
    await this.#fail({ reason: 'extraction_failed', code, message });
    this.#over = true;
  }

  /** Hands over what was read and is charged, up to the first page that a quota does not allow. An error concerns one page. */
  async #handOverHeld(signal: AbortSignal): Promise<void> {
    for (const queued of await store.listHeldPages(this.#deps.db, this.#crawl)) {
      const outcome = readHeld(queued.held);
      outcome.page = this.#boxes.trim(outcome.page);
      const finished: FinishedPage = { queued, known: undefined, outcome, isHeld: false };
      const refused = new Set([finished]);
      try {
        await this.#prepare(finished, outcome.page, signal);
        const after = await this.#deps.db.begin((tx) => this.#commit(tx, [finished]));
        if (after.accepted.has(finished)) refused.delete(finished);
      } catch (error) {
        if (quotaError(error) !== undefined) return;
        this.#deps.log.error({ err: error, crawl: this.#crawl.id, url: queued.url }, 'A page could not be handed over');
      } finally {
        await this.#discard([...refused]);
      }
    }
  }

  async #discard(finished: FinishedPage[]): Promise<void> {
    for (const { prepared } of finished) if (prepared !== undefined) await this.#sink.discard(prepared);
  }

  async #lock(tx: Transaction): Promise<Crawl> {
    const crawl = await store.lockCrawl(tx, this.#crawl);
    if (crawl === undefined) throw new CrawlLost('The crawl was taken over by another process or deleted.');
    return crawl;
  }

  async #commit(tx: Transaction, batch: FinishedPage[]) {
    const canonical = batch.flatMap(({ outcome }) => (outcome.kind === 'page' ? store.hashUrl(outcome.canonical) : []));
    // These statements do not need each other's results, so they are sent together: a commit consists mostly of
    // waiting for replies.
    const [crawl, twins] = await Promise.all([this.#lock(tx), store.listDuplicatePages(tx, this.#crawl, canonical)]);
    const results = new PageResults(tx, crawl, twins);
    for (const finished of batch) await results.add(finished);
    const { pages, failures, accepted } = await results.write();
    const [isWanted] = await Promise.all([
      this.#sink.commit(tx, crawl, { pages, failures, progress: progressOf(crawl) }),
      store.updateCrawl(tx, crawl),
    ]);
    if (!isWanted) {
      await store.deleteCrawl(tx, crawl.appId, crawl.id);
      return { crawl, accepted: new Set<FinishedPage>(), over: true };
    }
    await usePages(tx, crawl, batch.filter(isCharged).length);
    const start = failures.find((failure) => failure.isStart);
    if (start !== undefined) {
      await store.finishCrawl(tx, crawl);
      await this.#sink.finish(tx, crawl, { state: 'failed', failure: start.failure });
    }
    return { crawl, accepted, over: start !== undefined };
  }

  #hasListsToRead(): boolean {
    const { settings, sitemapRead, scopeUrl } = this.#crawl;
    return !sitemapRead && scopeUrl !== null && settings.mode === 'site';
  }

  /** Adds the pages in the sitemaps, after the start page. */
  async #readListsOfPages(): Promise<void> {
    const { settings } = this.#crawl;
    const isRefresh = this.#crawl.collectionId !== null;
    const add = async (listed: Map<string, SitemapPage>, last: boolean): Promise<boolean> => {
      const crawl = await this.#deps.db.begin(async (tx) => {
        const locked = await this.#lock(tx);
        const urls = [...listed.keys()];
        const sorted = sortLinks(locked, urls, 1);
        const now = this.#deps.clock.now();
        const pages = [...(await store.listFetchTimes(tx, locked, urls))].flatMap(([url, fetchedAt]) => {
          const page = listed.get(url);
          return page === undefined ? [] : [{ url, priority: refreshPriority(page, fetchedAt, now) }];
        });
        await addPages(tx, locked, sorted);
        await store.prioritizePages(tx, locked, pages);
        locked.sitemapRead = last;
        await store.updateCrawl(tx, locked);
        const batch = { pages: [], failures: [], progress: progressOf(locked) };
        if (!(await this.#sink.commit(tx, locked, batch))) throw new CrawlLost();
        return locked;
      });
      this.#crawl = crawl;
      return isRefresh || pagesLeft(crawl) > 0;
    };
    // The queue of a refresh is already ordered by the sitemap.
    if (settings.sitemap !== 'skip' && (isRefresh || pagesLeft(this.#crawl) > 0))
      await readSitemaps(this.#deps, this.#crawl, this.#robots, this.#stop.signal, (pages) =>
        add(
          new Map(
            pages.flatMap((page) => {
              const url = normalizeUrl(page.url);
              return url === undefined ? [] : [[url, page] as const];
            }),
          ),
          false,
        ),
      );
    await add(new Map(), true);
  }

  async #fail(failure: PageFailure): Promise<void> {
    await this.#deps.db.begin(async (tx) => {
      const crawl = await this.#lock(tx);
      await store.finishCrawl(tx, crawl);
      await this.#sink.finish(tx, crawl, { state: 'failed', failure });
    });
  }

  async #finish(): Promise<void> {
    await this.#deps.db.begin(async (tx) => {
      const crawl = await this.#lock(tx);
      await store.dropUnvisitedStates(tx, crawl);
      await store.finishCrawl(tx, crawl);
      await this.#sink.finish(tx, crawl, { state: 'done' });
    });
  }
}
