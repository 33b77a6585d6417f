import { isLongDash, kinds, kindTable, replacements } from './characters.ts';

/*
 * The form in which quotes are compared with texts. It has neither layout nor typography: runs of white space are one
 * space, and quotation marks of one kind, emphasis, the pipes of tables and the marks at the start of lines do not
 * differ or do not exist. Case, digits and words stay. Dashes are kept beside the units: whether a hyphen at the end
 * of a line belongs to its word cannot be known, so a comparison decides.
 */

/** How a dash stands between two units. */
export const dashSides = { spaceBefore: 1, spaceAfter: 2, lineEnd: 4 } as const;

export type NormalForm = {
  units: Uint16Array;
  length: number;
  /** For each unit, where its character begins and ends in the text. */
  starts: Uint32Array;
  ends: Uint32Array;
  /** By the index of the unit after it. */
  dashes: Map<number, number>;
  /** A bit for each unit with a dash before it: in `any` for every dash, in `certain` unless it is at the end of a line. */
  dashBits: { any: Uint32Array; certain: Uint32Array };
  /** Where lines with headings begin in the text. */
  headings: number[];
};

const pageMark = /<!-- page \d{1,9} -->/y;
const lineMarks = /[ \t]{0,8}(?:>[ \t]?|#{1,6}[ \t]+|[-+*\u2022][ \t]+){1,8}/y;
const isPunctuation = /[!-/:-@[-`{-~]/;
const marksMax = 16;

export function normalise(text: string): NormalForm {
  return new Normaliser(text).run();
}

class Normaliser {
  readonly #text: string;
  readonly #kinds = kindTable();
  readonly #form: NormalForm;
  #at = 0;
  #space = false;
  /** The sides of a dash that waits for the next unit; undefined without one. */
  #dash: number | undefined;
  /** Whether only white space, pipes and rules have been read of the line. */
  #bare = true;

  constructor(text: string) {
    this.#text = text;
    // A ligature is one unit of text and up to three units here.
    const size = text.length * 3;
    const words = (size >>> 5) + 1;
    this.#form = {
      ...{ units: new Uint16Array(size), starts: new Uint32Array(size), ends: new Uint32Array(size) },
      ...{ length: 0, dashes: new Map(), headings: [] },
      dashBits: { any: new Uint32Array(words), certain: new Uint32Array(words) },
    };
  }

  run(): NormalForm {
    this.#startLine();
    while (this.#at < this.#text.length) this.#step();
    return this.#form;
  }

  #kindAt(at: number): number {
    return at < 0 || at >= this.#text.length ? kinds.space : (this.#kinds[this.#text.charCodeAt(at)] ?? kinds.other);
  }

  #step(): void {
    const at = this.#at;
    const kind = this.#kindAt(at);
    const character = this.#text[at] ?? '';
    if (kind === kinds.removed) this.#at += 1;
    else if (kind === kinds.space) {
      this.#skip(1);
      if (character === '\n') this.#startLine();
    } else if (kind === kinds.dash) this.#readDashes();
    else if (character === '|') this.#skip(1);
    else if (character === '*' || character === '_') this.#readEmphasis(character);
    else if (character === '`') this.#at += 1;
    else if (character === '\\' && isPunctuation.test(this.#text[at + 1] ?? '')) {
      this.#emit(this.#text[at + 1] ?? '', at, at + 2);
      this.#at += 2;
    } else if (character === '<' && this.#matches(pageMark)) this.#skip(pageMark.lastIndex - at);
    else this.#readCharacter(character, kind);
  }

  /** White space, or what counts as such. */
  #skip(length: number): void {
    this.#at += length;
    this.#space = true;
    if (this.#dash !== undefined && (this.#dash & dashSides.lineEnd) === 0) this.#dash |= dashSides.spaceAfter;
  }

  #matches(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    return pattern.test(this.#text);
  }

  #startLine(): void {
    this.#bare = true;
    if (!this.#matches(lineMarks)) return;
    if (this.#text.slice(this.#at, lineMarks.lastIndex).includes('#')) this.#form.headings.push(this.#at);
    this.#skip(lineMarks.lastIndex - this.#at);
  }

  #readDashes(): void {
    const begin = this.#at;
    while (this.#kindAt(this.#at) === kinds.dash) this.#at += 1;
    const length = this.#at - begin;
    if (length >= 3 && this.#bare) {
      this.#space = true;
      return;
    }
    let sides = this.#dash ?? 0;
    if (this.#space || this.#form.length === 0) sides |= dashSides.spaceBefore;
    if (length > 1 || isLongDash(this.#text[begin] ?? '')) sides |= dashSides.spaceBefore | dashSides.spaceAfter;
    else if (this.#kindAt(begin - 1) === kinds.letter && this.#endsLine()) sides |= dashSides.lineEnd;
    this.#dash = sides;
    this.#space = false;
  }

  /** Whether only blanks follow on the line, and the next line continues in lower case. */
  #endsLine(): boolean {
    let at = this.#at;
    const blanksMax = at + 8;
    while (at < blanksMax && ' \t\r'.includes(this.#text[at] ?? 'x')) at += 1;
    if (this.#text[at] !== '\n') return false;
    at += 1;
    const indentMax = at + 64;
    while (at < indentMax && ' \t'.includes(this.#text[at] ?? 'x')) at += 1;
    return /\p{Ll}/u.test(this.#text[at] ?? '');
  }

  /** Marks of emphasis are dropped; operators and parts of names stay. */
  #readEmphasis(mark: string): void {
    const begin = this.#at;
    let end = begin;
    while (this.#text[end] === mark) end += 1;
    const before = this.#kindAt(begin - 1);
    const after = this.#kindAt(end);
    const isWord = (kind: number) => kind === kinds.letter || kind === kinds.digit;
    const isBold = mark === '*' && end - begin > 1 && !(before === kinds.digit && after === kinds.digit);
    const joins = isWord(before) && isWord(after) && !isBold;
    const standsAlone = before === kinds.space && after === kinds.space;
    this.#at = end;
    if (joins || standsAlone) this.#emit(this.#text.slice(begin, Math.min(end, begin + marksMax)), begin, end);
  }

  #readCharacter(character: string, kind: number): void {
    const begin = this.#at;
    let end = begin + 1;
    if (kind !== kinds.mark)
      while (end - begin < marksMax && end < this.#text.length && this.#kindAt(end) === kinds.mark) end += 1;
    this.#at = end;
    if (this.#bare && character === ':' && this.#isRule(end)) return;
    const written =
      end === begin + 1 ? (replacements.get(character) ?? character) : this.#text.slice(begin, end).normalize('NFC');
    this.#emit(written, begin, end);
  }

  /** Whether a colon belongs to the line below the head of a table. */
  #isRule(next: number): boolean {
    const beside = (at: number) => this.#text[at] === '-' || this.#text[at] === '|';
    return beside(next) || (beside(next - 2) && (this.#text[next] === '\n' || next === this.#text.length));
  }

  #emit(written: string, start: number, end: number): void {
    const { units, starts, ends } = this.#form;
    if (this.#dash !== undefined) this.#pushDash(this.#dash);
    else if (this.#space && this.#form.length > 0) this.#push(0x20, start, start);
    this.#dash = undefined;
    this.#space = false;
    this.#bare = false;
    for (let i = 0; i < written.length; i++) {
      const at = this.#form.length;
      units[at] = written.charCodeAt(i);
      starts[at] = start;
      ends[at] = end;
      this.#form.length += 1;
    }
  }

  #pushDash(sides: number): void {
    const { dashes, dashBits, length } = this.#form;
    dashes.set(length, sides);
    const [word, bit] = [length >>> 5, 1 << (length & 31)];
    dashBits.any[word] = (dashBits.any[word] ?? 0) | bit;
    if ((sides & dashSides.lineEnd) === 0) dashBits.certain[word] = (dashBits.certain[word] ?? 0) | bit;
  }

  #push(unit: number, start: number, end: number): void {
    const at = this.#form.length;
    this.#form.units[at] = unit;
    this.#form.starts[at] = start;
    this.#form.ends[at] = end;
    this.#form.length += 1;
  }
}
