import { createWorkClock } from './pool/deadline.ts';
import type { OcrSettings } from './pool/ocr-data.ts';
import { type ParsedDocument, ParseError } from './types.ts';

/** What a parser process may do for one document. The pool sends it. */
export type ReadingTerms = {
  /** How to read pictures of text. `later`: stop at the first one, and the pool sends the document again. */
  ocr?: OcrSettings | 'later';
  /** If `ocr` is absent: why pictures cannot be read, and what to do about it. */
  ocrProblem?: string;
  /**
   * When time or memory runs out: `refuse` the document, `keep` what was read, or let the pool send it again `later`.
   */
  whenOut?: 'refuse' | 'keep' | 'later';
  deadlineMs?: number;
  memoryMb?: number;
};

/** The document must be read again under other terms: it has pictures of text, or needs more time. */
export class Unfinished extends Error {
  readonly why: 'pictures' | 'time';

  constructor(why: 'pictures' | 'time') {
    super(why);
    this.why = why;
  }
}

/** The share of the deadline for reading pages. The rest is for writing what was read. */
const readingTimeShare = 0.65;
/** No page is started that would end after this share, assuming that it takes as long as the longest page so far. */
const lastPageShare = 0.9;
const readingMemoryShare = 0.7;
const memoryCheckPages = 8;
const progressMs = 500;

/** One document in a parser process: its terms, its pages so far, and the time and memory left. */
export class Reading {
  readonly terms: ReadingTerms;
  /** Pages whose text was recognised, and the engine's confidence in each. */
  readonly recognised: { page: number; confidence: number; characters: number }[] = [];
  readonly #onProgress: (done: number, total: number) => void;
  readonly #now: () => number;
  readonly #startedMs: number;
  #lastMs: number;
  #longestPageMs = 0;
  #collectAboveBytes = 0;
  #reportedMs = Number.NEGATIVE_INFINITY;
  /** Describes what is missing, once reading was stopped. */
  #missing: string | undefined;

  constructor(
    terms: ReadingTerms = { ocrProblem: 'no OCR engine is installed' },
    onProgress: (done: number, total: number) => void = () => {},
    now: () => number = createWorkClock(),
  ) {
    this.terms = terms;
    this.#onProgress = onProgress;
    this.#now = now;
    this.#startedMs = now();
    this.#lastMs = this.#startedMs;
  }

  /**
   * Whether reading must stop before page number `done` + 1, because time or memory runs out and what was read is
   * kept.
   * Throws ParseError if it is not kept, or Unfinished.
   */
  enough(done: number, total: number): boolean {
    const now = this.#now();
    if (done > 0 && now - this.#reportedMs > progressMs) {
      this.#reportedMs = now;
      this.#onProgress(done, total);
    }
    this.#longestPageMs = Math.max(this.#longestPageMs, now - this.#lastMs);
    this.#lastMs = now;
    const { deadlineMs = Number.POSITIVE_INFINITY, memoryMb } = this.terms;
    const spentMs = now - this.#startedMs;
    if (spentMs > deadlineMs * readingTimeShare || spentMs + this.#longestPageMs > deadlineMs * lastPageShare)
      return this.#stop('time', done, total);
    if (memoryMb === undefined || done % memoryCheckPages !== 0) return false;
    return this.#isOutOfMemory(memoryMb) && this.#stop('memory', done, total);
  }

  #isOutOfMemory(memoryMb: number): boolean {
    const bound = memoryMb * 1024 * 1024 * readingMemoryShare;
    if (process.memoryUsage.rss() < Math.max(bound, this.#collectAboveBytes)) return false;
    // Much of the process's memory is garbage that was not collected yet.
    globalThis.gc?.();
    const { rss } = process.memoryUsage();
    this.#collectAboveBytes = rss + (memoryMb * 1024 * 1024 - rss) * 0.3;
    return rss > bound;
  }

  /** For a document inside this one: the same terms with a share of the remaining time, and separate pages. */
  part(share: number): Reading {
    const { deadlineMs } = this.terms;
    if (deadlineMs === undefined) return new Reading(this.terms, () => {}, this.#now);
    const leftMs = Math.max(1, Math.round((deadlineMs - (this.#now() - this.#startedMs)) * share));
    return new Reading({ ...this.terms, deadlineMs: leftMs }, () => {}, this.#now);
  }

  /** The members of the document that say how it was read. */
  report(): Pick<ParsedDocument, 'ocr' | 'truncated'> {
    const characters = this.recognised.reduce((sum, one) => sum + one.characters, 0);
    const certain = this.recognised.reduce((sum, one) => sum + one.confidence * one.characters, 0);
    const confidence = Math.round((certain / characters) * 1000) / 1000;
    return {
      ...(characters === 0
        ? {}
        : { ocr: { pages: [...new Set(this.recognised.map(({ page }) => page))], confidence } }),
      ...(this.#missing === undefined ? {} : { truncated: [this.#missing] }),
    };
  }

  #stop(what: 'time' | 'memory', done: number, total: number): boolean {
    const { whenOut = 'refuse', deadlineMs = 0, memoryMb = 0 } = this.terms;
    if (what === 'time' && whenOut === 'later') throw new Unfinished('time');
    const bound = what === 'time' ? `${Math.ceil(deadlineMs / 1000)} seconds` : `${memoryMb} MB of memory`;
    if (whenOut === 'refuse' || done === 0) {
      const advice = whenOut === 'refuse' ? ' A knowledge source has more time, and keeps what was read.' : '';
      throw new ParseError(
        what === 'time' ? 'timeout' : 'extraction_failed',
        `The document is too long for ${bound}: ${done} of ${total} pages were read.${advice}`,
      );
    }
    this.#missing = `pages ${done + 1} to ${total}: ${bound} were not enough`;
    return true;
  }
}
