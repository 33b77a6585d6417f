/** A range of a text in UTF-16 units; `end` is exclusive. */
export type TextRange = { start: number; end: number };

const occurrencesMax = 50;

/**
 * Finds values in a part of a text. A value matches only where the text contains it: exactly; or ignoring case, white
 * space, quotation marks and Markdown syntax; or, for a number, as a number of equal value.
 */
export class TextIndex {
  readonly #text: string;
  readonly #offset: number;
  #plain: PlainText | undefined;
  #numbers: Map<number, TextRange[]> | undefined;

  /** @param offset where this part begins in the whole text; ranges refer to the whole text */
  constructor(text: string, offset: number) {
    this.#text = text;
    this.#offset = offset;
  }

  get length(): number {
    return this.#text.length;
  }

  find(value: string | number): TextRange[] {
    const found = typeof value === 'number' ? this.#findNumber(value) : this.#findText(value);
    return found.map(({ start, end }) => ({ start: start + this.#offset, end: end + this.#offset }));
  }

  #findNumber(value: number): TextRange[] {
    this.#numbers ??= readNumbers(this.#text);
    return this.#numbers.get(Object.is(value, -0) ? 0 : value) ?? [];
  }

  #findText(value: string): TextRange[] {
    const wanted = value.trim();
    if (wanted === '') return [];
    const exact = findWhole(this.#text, wanted);
    if (exact.length > 0) return exact;
    const plain = toPlainText(wanted).text.trim();
    if (plain === '') return [];
    this.#plain ??= toPlainText(this.#text);
    const { text, starts, ends } = this.#plain;
    return findWhole(text, plain).map(({ start, end }) => ({ start: starts[start] ?? 0, end: ends[end - 1] ?? 0 }));
  }
}

/** The first occurrences that are not part of a longer word or number. */
function findWhole(text: string, wanted: string): TextRange[] {
  const found: TextRange[] = [];
  for (let start = text.indexOf(wanted); start >= 0; start = text.indexOf(wanted, start + 1)) {
    const end = start + wanted.length;
    if (joins(text, start) || joins(text, end)) continue;
    found.push({ start, end });
    if (found.length === occurrencesMax) break;
  }
  return found;
}

const wordCharacter = /[\p{L}\p{N}\p{M}]/u;
/** Scripts that have no spaces between words. */
const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;

/** Whether a word or number continues across this position. */
function joins(text: string, at: number): boolean {
  const before = characterBefore(text, at);
  const after = String.fromCodePoint(text.codePointAt(at) ?? 0x20);
  if (!wordCharacter.test(before) || !wordCharacter.test(after)) return false;
  return !unspaced.test(before) && !unspaced.test(after);
}

function characterBefore(text: string, at: number): string {
  if (at === 0) return ' ';
  const low = text.charCodeAt(at - 1);
  return low >= 0xdc00 && low < 0xe000 && at > 1 ? text.slice(at - 2, at) : text.slice(at - 1, at);
}

/** A text without case, repeated white space and Markdown syntax, and for each of its units the range in the source. */
type PlainText = { text: string; starts: Int32Array; ends: Int32Array };

const marks = new Set('*_`\\#>');
const replaced: Record<string, string> = {
  '|': ' ',
  '\u00ad': '',
  '\u200b': '',
  '\u2018': "'",
  '\u2019': "'",
  '\u201c': '"',
  '\u201d': '"',
  '\u201e': '"',
  '\u00ab': '"',
  '\u00bb': '"',
  '\u2010': '-',
  '\u2011': '-',
  '\u2013': '-',
  '\u2014': '-',
  '\u2212': '-',
};

function toPlainText(source: string): PlainText {
  const starts = new Int32Array(source.length);
  const ends = new Int32Array(source.length);
  const parts: string[] = [];
  let length = 0;
  let afterSpace = true;
  for (let at = 0; at < source.length; at++) {
    const unit = source.charAt(at);
    if (marks.has(unit)) continue;
    const plain = Object.hasOwn(replaced, unit) ? (replaced[unit] ?? '') : unit;
    if (plain === '') continue;
    const isSpace = plain.trim() === '';
    if (isSpace && afterSpace) continue;
    afterSpace = isSpace;
    const lower = isSpace ? ' ' : plain.toLowerCase();
    // A letter whose lower case is longer keeps its case, so that each unit has one source.
    parts.push(lower.length === 1 ? lower : plain);
    starts[length] = at;
    ends[length] = at + 1;
    length += 1;
  }
  return { text: parts.join(''), starts, ends };
}

/** Longer runs of digits are not numbers. */
const digitsMax = 60;
/** Digits with separators between them. No part can match in two ways. */
const numberPattern = /\d+(?:[.,'\u2019\u00a0\u202f\u2009 ]\d+)*/g;

/** Every number of the text, with each value that its separators allow. */
function readNumbers(text: string): Map<number, TextRange[]> {
  const found = new Map<number, TextRange[]>();
  const add = (value: number, range: TextRange): void => {
    const ranges = found.get(value);
    if (ranges === undefined) found.set(value, [range]);
    else if (ranges.length < occurrencesMax) ranges.push(range);
  };
  for (const { 0: digits, index } of text.matchAll(numberPattern)) {
    const isNegative =
      /[-\u2212]/.test(text.charAt(index - 1)) && !/[\p{L}\p{N}]/u.test(characterBefore(text, index - 1));
    for (const [reading, start, end] of readingsOf(digits)) {
      const range = { start: index + start, end: index + end };
      add(reading, range);
      if (isNegative && start === 0) add(-reading, { ...range, start: range.start - 1 });
    }
  }
  return found;
}

/**
 * The possible readings of a run of digits and separators: as one number, and as a number for each group between
 * spaces.
 */
function readingsOf(digits: string): [value: number, start: number, end: number][] {
  const whole = digits.length > digitsMax ? [] : [...valuesOf(digits)];
  const readings = whole.map((value) => [value, 0, digits.length] as [number, number, number]);
  const groups = /[^ \u00a0\u202f\u2009]+/g;
  if (/[ \u00a0\u202f\u2009]/.test(digits))
    for (const { 0: group, index } of digits.matchAll(groups))
      if (group.length <= digitsMax)
        for (const value of valuesOf(group)) readings.push([value, index, index + group.length]);
  return readings;
}

/** `1,234.5`, `1.234,5`, `1 234,5` and `1'234.5`: groups of three, then at most one decimal separator. */
function* valuesOf(digits: string): Generator<number> {
  const spaced = digits.replaceAll(/[\u00a0\u202f\u2009 ]/g, ' ').replaceAll('\u2019', "'");
  const seen = new Set<number>();
  for (const [thousands, decimal] of [
    ...[
      [',', '.'],
      ['.', ','],
      [' ', '.'],
      [' ', ','],
      ["'", '.'],
      ["'", ','],
    ],
  ] as [string, string][]) {
    const [whole = '', fraction, ...rest] = spaced.split(decimal);
    if (rest.length > 0 || (fraction !== undefined && !/^\d+$/.test(fraction))) continue;
    const groups = whole.split(thousands);
    const isGrouped = groups.length > 1;
    if (!groups.every((group) => /^\d+$/.test(group))) continue;
    if (isGrouped && ((groups[0]?.length ?? 0) > 3 || groups.slice(1).some((group) => group.length !== 3))) continue;
    const value = Number(`${groups.join('')}${fraction === undefined ? '' : `.${fraction}`}`);
    if (Number.isFinite(value)) seen.add(value);
  }
  yield* seen;
}
