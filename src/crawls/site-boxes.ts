import { boxLimits, findRepeated, leaveOutRepeated, readKeys } from '../content/page-boxes.ts';
import type { Db } from '../db/database.ts';
import type { PageOutcome } from './read-page.ts';
import * as store from './store.ts';
import type { Crawl, CrawledPage } from './types.ts';

/** So many pages of a site are read before the first is handed over: what repeats is known by then. */
const heldPagesMax = 10;
/** From then on, the pages that are compared hardly change. */
const settledPagesMin = 2 * boxLimits.pagesMax;

export type ReadPage = Extract<PageOutcome, { kind: 'page' }>;

/** What the pages of a crawl repeat, as one turn knows it. The rows of the pages have all of it. */
export class SiteBoxes {
  readonly #crawl: Crawl;
  #compared = 0;
  #repeated: ReadonlySet<string> = new Set();
  #isDrained = false;

  constructor(crawl: Crawl) {
    this.#crawl = crawl;
  }

  /** Whether pages wait to be handed over because too few are read. */
  get isHolding(): boolean {
    return this.#applies && this.#compared < heldPagesMax && !this.#isDrained;
  }

  /** Single pages and very small crawls have nothing to compare. */
  get #applies(): boolean {
    const { mode, maxPages } = this.#crawl.settings;
    return mode === 'site' && maxPages >= boxLimits.repeatsMin;
  }

  /** No further page can be read: those that wait are handed over. */
  drain(): void {
    this.#isDrained = true;
  }

  /** Compares the pages read so far, unless so many are read that a few more decide nothing. */
  async compare(db: Db, { done }: Crawl): Promise<void> {
    if (!this.#applies || (done >= settledPagesMin && this.#compared > 0)) return;
    const pages = await store.listBoxes(db, this.#crawl, boxLimits.pagesMax);
    this.#compared = pages.length;
    this.#repeated = findRepeated(pages.map(readKeys));
  }

  /** The start page never waits, because nothing is left out of it. */
  mustHold(outcome: PageOutcome): boolean {
    return this.isHolding && outcome.kind === 'page' && outcome.page.change !== 'unchanged' && !outcome.page.isStart;
  }

  /** The page without what other pages repeat. The start page keeps it, so that the site is not without it. */
  trim(page: CrawledPage): CrawledPage {
    if (page.isStart || this.#repeated.size === 0) return page;
    return { ...page, markdown: leaveOutRepeated(page.markdown, page.boxes, this.#repeated) };
  }
}

/** A page that was read and is not handed over yet, as it is stored. */
export function heldColumns({ page, finalUrl, canonical, state }: ReadPage): { boxes: Buffer | null; held: string } {
  const [contentHash, pageHash, boxes] = [state.contentHash, state.pageHash, state.boxes].map((one) =>
    one?.toString('hex'),
  );
  const held = JSON.stringify({ page, finalUrl, canonical, state: { ...state, contentHash, pageHash, boxes } });
  return { boxes: state.boxes, held };
}

export function readHeld(text: string): ReadPage {
  const { state, ...outcome } = JSON.parse(text);
  const [contentHash, pageHash, boxes] = [state.contentHash, state.pageHash, state.boxes].map((one: string) =>
    Buffer.from(one, 'hex'),
  );
  return { kind: 'page', ...outcome, state: { ...state, contentHash, pageHash, boxes } };
}
