import type { Transaction } from '../db/database.ts';
import { type FoundPages, leftOutMax, pagesLeft, sortLinks } from './frontier.ts';
import { heldColumns, type ReadPage } from './site-boxes.ts';
import * as store from './store.ts';
import { type FinishedPage, failedOf } from './turn.ts';
import type { Crawl, CrawledPage, FailedPage } from './types.ts';

/** The results of the pages of a commit. Counts them in `crawl`, which its transaction has locked, and writes their rows. */
export class PageResults {
  readonly #tx: Transaction;
  readonly #crawl: Crawl;
  readonly #twins: Set<string>;
  readonly #rows: Parameters<typeof store.finishPages>[2] = [];
  readonly #states: store.PageState[] = [];
  readonly #unchanged: string[] = [];
  readonly #gone: string[] = [];
  readonly #held: { urlHash: Buffer; outcome: ReadPage }[] = [];
  readonly #found: FoundPages = { pages: [], leftOut: [] };
  readonly #pages: { page: CrawledPage; prepared: unknown }[] = [];
  readonly #failures: FailedPage[] = [];
  readonly #accepted = new Set<FinishedPage>();

  /** @param twins the keys of stored pages with the same canonical URL and text as one of these pages */
  constructor(tx: Transaction, crawl: Crawl, twins: Set<string>) {
    this.#tx = tx;
    this.#crawl = crawl;
    this.#twins = twins;
  }

  async add(finished: FinishedPage): Promise<void> {
    const { queued, outcome } = finished;
    if (queued.held !== null) this.#crawl.waiting -= 1;
    if (outcome.kind === 'retry') await store.postponePage(this.#tx, this.#crawl, queued.urlHash, outcome.delayMs);
    else if (outcome.kind === 'left_out') {
      this.#leaveOut(finished, outcome.reason, outcome.fetched);
      // What a menu leads to is as far from the start as the menu itself, which is part of other pages.
      this.#follow(outcome.links ?? [], queued.depth - 1);
    } else if (outcome.kind === 'failed') this.#fail(finished, outcome);
    else await this.#addPage(finished, outcome);
    // At the page limit, order matters: the result must be the same as if each page were committed alone.
    if (this.#found.pages.length > pagesLeft(this.#crawl)) await this.#addFound();
  }

  /** Writes the rows of all pages. Returns what the crawl's consumer receives, and which pages those are. */
  async write() {
    await Promise.all([
      store.finishPages(this.#tx, this.#crawl, this.#rows),
      ...this.#held.map(({ urlHash, outcome }) =>
        store.holdPage(this.#tx, this.#crawl, { urlHash, ...heldColumns(outcome) }),
      ),
      store.savePageStates(this.#tx, this.#crawl, this.#states),
      store.touchPageStates(this.#tx, this.#crawl, this.#unchanged),
      store.dropPageStates(this.#tx, this.#crawl, this.#gone),
      this.#addFound(),
    ]);
    return { pages: this.#pages, failures: this.#failures, accepted: this.#accepted };
  }

  #leaveOut({ queued }: FinishedPage, reason: string, fetched: boolean): void {
    this.#rows.push({ ...withoutText, urlHash: queued.urlHash, state: 'left_out', reason });
    this.#crawl.discovered -= 1;
    this.#crawl.leftOut += 1;
    if (fetched) this.#crawl.dropped += 1;
  }

  #fail(finished: FinishedPage, outcome: Outcome<'failed'>): void {
    const { queued, known } = finished;
    this.#rows.push({ ...withoutText, urlHash: queued.urlHash, state: 'failed', reason: outcome.failure.code });
    this.#crawl.failed += 1;
    if (outcome.gone) this.#gone.push(queued.url);
    // The target of a redirect exists, although it cannot be read now.
    else if (known !== undefined) this.#follow(known.links, queued.depth);
    this.#failures.push(failedOf(finished, outcome));
  }

  async #addPage(finished: FinishedPage, outcome: Outcome<'page'>): Promise<void> {
    const { queued } = finished;
    const { state } = outcome;
    const canonicalHash = store.hashUrl(outcome.canonical);
    const twin = store.duplicateKey(canonicalHash, state.contentHash);
    const isStart = queued.depth === 0;
    // A redirect to a page with its own row adds nothing. Neither does the same text under one canonical URL.
    const moved = outcome.finalUrl !== queued.url;
    const elsewhere = moved && queued.held === null && (await this.#isKnownElsewhere(outcome.finalUrl, queued.depth));
    if (isStart) this.#crawl.scopeUrl = outcome.finalUrl;
    const isHeld = finished.isHeld && !elsewhere;
    if (isHeld) {
      this.#held.push({ urlHash: queued.urlHash, outcome });
      this.#crawl.waiting += 1;
    } else if (!isStart && (elsewhere || this.#twins.has(twin))) this.#leaveOut(finished, 'duplicate', true);
    else {
      this.#twins.add(twin);
      const { contentHash, boxes } = state;
      this.#rows.push({ urlHash: queued.urlHash, state: 'done', reason: null, canonicalHash, contentHash, boxes });
      this.#crawl.done += 1;
      this.#pages.push({ page: outcome.page, prepared: finished.prepared });
      this.#accepted.add(finished);
    }
    if (state === finished.known) this.#unchanged.push(queued.url);
    else if (!isHeld) this.#states.push(state);
    this.#follow(state.links, queued.depth);
  }

  #follow(links: string[], depth: number): void {
    const { mode, sitemap } = this.#crawl.settings;
    if (mode !== 'site' || sitemap === 'only') return;
    const { pages, leftOut } = sortLinks(this.#crawl, links, depth + 1);
    this.#found.pages.push(...pages);
    this.#found.leftOut.push(...leftOut);
  }

  #addFound(): Promise<void> {
    const { pages, leftOut } = this.#found;
    return addPages(this.#tx, this.#crawl, { pages: pages.splice(0), leftOut: leftOut.splice(0) });
  }

  async #isKnownElsewhere(finalUrl: string, depth: number): Promise<boolean> {
    const alias = [{ url: finalUrl, depth, state: 'alias' as const, reason: null }];
    return (await store.insertFinishedPages(this.#tx, this.#crawl, alias)) === 0;
  }
}

type Outcome<Kind> = Extract<FinishedPage['outcome'], { kind: Kind }>;

const withoutText = { canonicalHash: null, contentHash: null, boxes: null };

/** Adds pages to visit, up to the crawl's limit, and says of others why they are left out. Counts both in the crawl. */
export async function addPages(tx: Transaction, crawl: Crawl, { pages, leftOut }: FoundPages): Promise<void> {
  const unique = [...new Map(pages.map((page) => [page.url, page])).values()];
  crawl.discovered += await store.insertPages(tx, crawl, unique, pagesLeft(crawl));
  const kept = leftOut.slice(0, Math.max(0, leftOutMax - crawl.leftOut));
  crawl.leftOut += await store.insertFinishedPages(tx, crawl, [
    ...new Map(kept.map((page) => [page.url, page])).values(),
  ]);
}
