import type { OcrSettings } from './ocr/languages.ts';
import { type ParsedDocument, ParseError } from './types.ts';

/** What a parser process may do for one document, as the pool sends it. */
export type ReadingTerms = {
  /** How to read pictures of text; `later`: stop at the first one, the pool sends the document again. */
  ocr?: OcrSettings | 'later';
  /** Why pictures cannot be read, when `ocr` is absent. */
  ocrProblem?: string;
  /** When time or memory runs out: `refuse` the document, `keep` what was read, or let the pool send it again `later`. */
  whenOut?: 'refuse' | 'keep' | 'later';
  deadlineMs?: number;
  memoryMb?: number;
};

/** The document must be read again on other terms: its pictures need a turn at recognition, or it is long. */
export class Unfinished extends Error {
  readonly why: 'pictures' | 'time';

  constructor(why: 'pictures' | 'time') {
    super(why);
    this.why = why;
  }
}

/** Parts of the deadline and of the memory that reading pages may use; the rest is for writing what was read. */
const readingTimeShare = 0.65;
const readingMemoryShare = 0.7;
const memoryCheckPages = 8;
const progressMs = 500;

/** One document in a parser process: its terms, its pages so far, and what runs out. */
export class Reading {
  readonly terms: ReadingTerms;
  /** Pages whose text was recognised, and the engine's certainty about each. */
  readonly recognised: { page: number; confidence: number; characters: number }[] = [];
  readonly #startedMs = performance.now();
  readonly #onProgress: (done: number, total: number) => void;
  #reportedMs = 0;
  /** What is missing, in words, once reading was stopped. */
  #missing: string | undefined;

  constructor(terms: ReadingTerms = {}, onProgress: (done: number, total: number) => void = () => {}) {
    this.terms = terms;
    this.#onProgress = onProgress;
  }

  /**
   * Whether reading must stop before page number `done` + 1, because time or memory runs out and what was read is kept.
   * Throws ParseError when it is not kept.
   */
  enough(done: number, total: number): boolean {
    const now = performance.now();
    if (now - this.#reportedMs > progressMs && done > 0) {
      this.#reportedMs = now;
      this.#onProgress(done, total);
    }
    const { deadlineMs = Number.POSITIVE_INFINITY, memoryMb = Number.POSITIVE_INFINITY } = this.terms;
    if (now - this.#startedMs > deadlineMs * readingTimeShare) return this.#stop('time', done, total);
    const isLarge = (): boolean => process.memoryUsage.rss() > memoryMb * 1024 * 1024 * readingMemoryShare;
    if (done % memoryCheckPages === 0 && memoryMb !== Number.POSITIVE_INFINITY && isLarge())
      return this.#stop('memory', done, total);
    return false;
  }

  /** The members of the document that say how it was read. */
  report(): Pick<ParsedDocument, 'ocr' | 'truncated'> {
    const characters = this.recognised.reduce((sum, one) => sum + one.characters, 0);
    const certain = this.recognised.reduce((sum, one) => sum + one.confidence * one.characters, 0);
    const confidence = Math.round((certain / characters) * 1000) / 1000;
    return {
      ...(characters === 0 ? {} : { ocr: { pages: this.recognised.map(({ page }) => page), confidence } }),
      ...(this.#missing === undefined ? {} : { truncated: [this.#missing] }),
    };
  }

  #stop(what: 'time' | 'memory', done: number, total: number): boolean {
    const { whenOut = 'refuse', deadlineMs = 0, memoryMb = 0 } = this.terms;
    if (what === 'time' && whenOut === 'later') throw new Unfinished('time');
    const bound = what === 'time' ? `${Math.ceil(deadlineMs / 1000)} seconds` : `${memoryMb} MB of memory`;
    if (whenOut === 'refuse' || done === 0) {
      const rest = whenOut === 'refuse' ? ' A knowledge source keeps what can be read, and has more time.' : '';
      throw new ParseError(
        what === 'time' ? 'timeout' : 'extraction_failed',
        `The document is too long for ${bound}: ${done} of ${total} pages were read.${rest}`,
      );
    }
    this.#missing = `pages ${done + 1} to ${total}: ${bound} were not enough`;
    return true;
  }
}
