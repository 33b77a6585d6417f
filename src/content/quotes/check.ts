import { Pace } from '../../lib/pace.ts';
import { Automaton } from './automaton.ts';
import { kinds, kindTable } from './characters.ts';
import { saysTheSame } from './compare.ts';
import { type Aligned, align, type Difference, wordsOf } from './difference.ts';
import { type NormalForm, normalise } from './normal-form.ts';
import { Seeds } from './seeds.ts';

export const quoteStatuses = ['exact', 'normalised', 'elided', 'altered', 'not_found', 'too_short'] as const;
type QuoteStatus = (typeof quoteStatuses)[number];

/** UTF-16 units of a text. */
type Range = { start: number; end: number };

export type CheckedQuote<Key> = {
  status: QuoteStatus;
  /** Where it stands: one range, or one for each part of an elided quote. */
  place?: { key: Key; ranges: Range[] };
  difference?: Difference;
};

type Part = { pattern: number; form: NormalForm };

type Quote<Key> = {
  text: string;
  form: NormalForm;
  /** The patterns of the whole quote and of the parts between its ellipses. */
  whole: number;
  parts: Part[];
  found: CheckedQuote<Key> | undefined;
};

/** A quote under this number of words is found in any text. */
const wordsMin = 3;
/** Ideographs that count as one word. */
const ideographsPerWord = 2;
/** How often a pattern is compared within one text. */
const comparisonsMax = 256;
/** How often the parts of an elided quote are compared within one text, together. */
const partComparisonsMax = 4_096;
/** The parts of an elided quote stand at most this far apart, and under the same heading. */
const elisionMax = 10_000;
/** Units that are read without letting other work run. */
const windowUnits = 65_536;
/** At the cut ends of a window, it is not known whether a word is whole. The windows beside it have these places. */
const marginUnits = 64;
/** Of a quote of more words, the difference is not computed. */
const alignedWordsMax = 400;
/** The least part of a quote's words that a passage shares with it, for the quote to be an altered one. */
const sharedMin = 0.6;

const ellipsis = /\[ ?(?:\.{3}|\u2026) ?\]|\( ?(?:\.{3}|\u2026) ?\)|\.{3}|\u2026/u;

/**
 * Checks quotes against texts, which are added one by one. The time is linear in the texts. `exact` and `normalised`
 * mean that a text says precisely this.
 */
export class QuoteCheck<Key> {
  readonly #automaton = new Automaton(comparisonsMax);
  readonly #quotes: Quote<Key>[] = [];
  readonly #seeds = new Seeds<Key>();
  readonly #overlap: number;
  readonly #pace = new Pace();

  /** Prepares to look for these quotes. */
  static async of<Key>(texts: readonly string[]): Promise<QuoteCheck<Key>> {
    const check = new QuoteCheck<Key>(texts);
    for (const text of texts) {
      await check.#pace.keep();
      check.#quotes.push(check.#prepare(text.trim()));
    }
    return check;
  }

  private constructor(texts: readonly string[]) {
    const longest = texts.reduce((max, text) => Math.max(max, text.length), 0);
    // Layout may make a passage longer than its quote.
    this.#overlap = 2 * longest + elisionMax;
  }

  /** The numbers of the quotes that no text has yet. */
  open(): number[] {
    return this.#quotes.flatMap(({ found }, number) => (found === undefined ? [number] : []));
  }

  /** Looks for the open quotes in a text. */
  async add(key: Key, text: string): Promise<void> {
    if (this.open().length === 0) return;
    for (let begin = 0; begin < text.length; begin += windowUnits) {
      const window = text.slice(begin, begin + windowUnits + this.#overlap);
      const isLast = begin + window.length >= text.length;
      const known = { start: begin === 0 ? 0 : marginUnits, end: window.length - (isLast ? 0 : marginUnits) };
      await this.#scan(key, { text: window, offset: begin, known });
      if (isLast) break;
    }
  }

  /** What is known of each quote, in their order. */
  async results(): Promise<CheckedQuote<Key>[]> {
    const results: CheckedQuote<Key>[] = [];
    for (const [number, quote] of this.#quotes.entries()) {
      await this.#pace.keep();
      results.push(quote.found ?? this.#compare(number, quote));
    }
    return results;
  }

  #prepare(text: string): Quote<Key> {
    const form = normalise(text);
    if (countWords(form) < wordsMin) return { text, form, whole: -1, parts: [], found: { status: 'too_short' } };
    const whole = this.#automaton.add(form.units.subarray(0, form.length));
    return { text, form, whole, found: undefined, parts: text.search(ellipsis) < 0 ? [] : this.#prepareParts(text) };
  }

  /** Equal parts are the same object, so that each is compared once. Nothing if one of them is too short. */
  #prepareParts(text: string): Part[] {
    const known = new Map<string, Part>();
    const parts: Part[] = [];
    for (const own of text.split(ellipsis)) {
      if (own === '') continue;
      let part = known.get(own);
      if (part === undefined) {
        const form = normalise(own);
        if (countWords(form) < wordsMin) return [];
        part = { form, pattern: this.#automaton.add(form.units.subarray(0, form.length)) };
        known.set(own, part);
      }
      parts.push(part);
    }
    return parts;
  }

  async #scan(key: Key, { text, offset, known: inside }: Window): Promise<void> {
    const pace = this.#pace;
    await pace.keep();
    const form = normalise(text);
    const matches = new Map<number, number[]>();
    await pace.keep();
    await this.#automaton.scan(form.units, form.length, pace, (pattern, start, end) => {
      if ((form.starts[start] ?? 0) < inside.start || (form.ends[end - 1] ?? 0) > inside.end) return;
      const known = matches.get(pattern);
      if (known === undefined) matches.set(pattern, [start]);
      else known.push(start);
    });
    for (const quote of this.#quotes) {
      if (quote.found !== undefined) continue;
      const ranges =
        (await findWhole(quote, form, text, matches.get(quote.whole) ?? [], pace)) ??
        (await findElided(quote.parts, form, matches, pace));
      if (ranges === undefined) continue;
      const shifted = ranges.ranges.map(({ start, end }) => ({ start: start + offset, end: end + offset }));
      quote.found = { status: ranges.status, place: { key, ranges: shifted } };
    }
    const open = this.open();
    if (open.length === 0) return;
    await this.#seeds.scan({ key, form, offset }, new Set(open), (number) => this.#quotes[number]?.form, pace);
  }

  /** An altered quote with its difference, or one that is not found. */
  #compare(number: number, { form }: Quote<Key>): CheckedQuote<Key> {
    const seed = this.#seeds.best(number);
    if (seed === undefined) return { status: 'not_found' };
    const words = [...wordsOf(form)];
    if (words.length > alignedWordsMax) {
      if (seed.votes < sharedMin * words.length) return { status: 'not_found' };
      const [first, last] = [seed.words[0], seed.words.at(-1)];
      const ranges = [{ start: seed.offset + (first?.start ?? 0), end: seed.offset + (last?.end ?? 0) }];
      return { status: 'altered', place: { key: seed.key, ranges } };
    }
    const aligned: Aligned | undefined = align(words, seed.words);
    if (aligned === undefined || aligned.same < sharedMin * words.length) return { status: 'not_found' };
    const { start, end, difference } = aligned;
    const ranges = [{ start: seed.offset + start, end: seed.offset + end }];
    return { status: 'altered', place: { key: seed.key, ranges }, difference };
  }
}

/** A part of a text, and the range of it in which words are whole. */
type Window = { text: string; offset: number; known: Range };

type Found = { status: QuoteStatus; ranges: Range[] };

/** The first place that has the quote's own characters, else the first that says the same. */
async function findWhole<Key>(
  quote: Quote<Key>,
  form: NormalForm,
  text: string,
  starts: number[],
  pace: Pace,
): Promise<Found | undefined> {
  let normalised: Range | undefined;
  for (const at of starts) {
    await pace.keep();
    if (!saysTheSame(quote.form, form, at)) continue;
    const range = rangeOf(form, at, quote.form.length);
    const start = range.start - (quote.form.starts[0] ?? 0);
    if (start >= 0 && text.startsWith(quote.text, start))
      return { status: 'exact', ranges: [{ start, end: start + quote.text.length }] };
    normalised ??= range;
  }
  return normalised && { status: 'normalised', ranges: [normalised] };
}

/** The parts in their order, near each other and under one heading. */
async function findElided(
  parts: readonly Part[],
  form: NormalForm,
  matches: ReadonlyMap<number, number[]>,
  pace: Pace,
): Promise<Found | undefined> {
  const [first, ...others] = await placesOf(parts, form, matches, pace);
  if (first === undefined || others.length === 0) return undefined;
  for (const begin of first.starts) {
    await pace.keep();
    const ranges = [rangeOf(form, begin, first.length)];
    let at = begin + first.length;
    for (const part of others) {
      // Whatever stands before the end of this part does so for all later beginnings.
      while ((part.starts[part.next] ?? at) < at) part.next += 1;
      const next = part.starts[part.next];
      if (next === undefined) return undefined;
      ranges.push(rangeOf(form, next, part.length));
      at = next + part.length;
    }
    const [start, end] = [ranges[0]?.start ?? 0, ranges.at(-1)?.end ?? 0];
    if (end - start <= elisionMax && !isDivided(form.headings, start, end)) return { status: 'elided', ranges };
  }
  return undefined;
}

/** Whether one of the headings, which are in order, is between the two places. */
function isDivided(headings: readonly number[], start: number, end: number): boolean {
  let [low, high] = [0, headings.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((headings[middle] ?? 0) > start) high = middle;
    else low = middle + 1;
  }
  return (headings[low] ?? end) < end;
}

/** Where each part stands, in order. Nothing if one stands nowhere. */
async function placesOf(
  parts: readonly Part[],
  form: NormalForm,
  matches: ReadonlyMap<number, number[]>,
  pace: Pace,
): Promise<{ length: number; starts: number[]; next: number }[]> {
  const places: Awaited<ReturnType<typeof placesOf>> = [];
  const startsMax = Math.ceil(partComparisonsMax / parts.length);
  const known = new Map<Part, number[]>();
  for (const part of parts) {
    await pace.keep();
    const { pattern, form: own } = part;
    let starts = known.get(part);
    starts ??= (matches.get(pattern) ?? []).slice(0, startsMax).filter((at) => saysTheSame(own, form, at));
    if (starts.length === 0) return [];
    known.set(part, starts);
    places.push({ length: own.length, starts, next: 0 });
  }
  return places;
}

function rangeOf(form: NormalForm, at: number, length: number): Range {
  return { start: form.starts[at] ?? 0, end: form.ends[at + length - 1] ?? 0 };
}

function countWords(form: NormalForm): number {
  const table = kindTable();
  let words = 0;
  let ideographs = 0;
  let isInside = false;
  for (let at = 0; at < form.length; at++) {
    const kind = table[form.units[at] ?? 0x20];
    const isPart = kind === kinds.letter || kind === kinds.digit || kind === kinds.mark;
    if (kind === kinds.ideograph) ideographs += 1;
    // An apostrophe divides no word; a dash does.
    if (isPart && (!isInside || form.dashes.has(at))) words += 1;
    if (isPart || form.units[at] === 0x20 || kind === kinds.ideograph) isInside = isPart;
  }
  return words + Math.floor(ideographs / ideographsPerWord);
}
