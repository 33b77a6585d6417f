import { rightToLeft } from './characters.ts';
import { orderClusters } from './clusters.ts';
import type { Glyph, TextStyle } from './glyph.ts';
import {
  cutAtGaps,
  inspectPage,
  isMostlyRightToLeft,
  linesOfGlyphs,
  orderLigatures,
  type RightToLeftPage,
  readLine,
} from './right-to-left.ts';
import { isInSmallCapitals, isLowerCaseSmaller, type SizeChange } from './small-capitals.ts';

/** Characters side by side: a line, a part of one, or a line in a table cell. */
export type Segment = {
  text: string;
  left: number;
  right: number;
  top: number;
  bottom: number;
  baseline: number;
  size: number;
  /** Weight of the type, 400 regular. */
  weight: number;
  font: string;
  bold: boolean;
  italic: boolean;
  mono: boolean;
  /** The colour of nearly all of its text, as 0xRRGGBB; undefined if it has several. */
  colour: number | undefined;
  /** In small capitals whose smaller letters the file knows as lower-case ones, as browsers write them. */
  smallCapitals: boolean;
  /** Ends in a hyphen that the line break may have caused. */
  hyphenated: boolean;
  markedContent: number;
  artifact: boolean;
  turned: boolean;
  /** Preceded by white space. */
  spaced: boolean;
  /** The pieces of its text between gaps that are wider than usual. They may be cells of a table. */
  parts: { text: string; left: number; right: number }[];
};

/** Pieces on one baseline, left to right. */
export type Line = Omit<Segment, 'markedContent' | 'artifact' | 'turned' | 'spaced' | 'parts'> & {
  segments: Segment[];
};

/** A gap of this many ems ends a segment. */
const gapEms = 0.9;
/** A gap of this many ems may separate two cells of a table, when it does so in every row. */
const partGapEms = 0.4;

/** Joins the page's characters into segments, in drawing order. With `byContent`, each marked content is a new segment. */
export function buildSegments(glyphs: Glyph[], byContent = false): Segment[] {
  if (!glyphs.some(({ character }) => rightToLeft.test(character)))
    return cutLine(glyphs, byContent).map((segment) => ({
      ...segment,
      text: orderClusters(segment.text),
      parts: segment.parts.map((part) => ({ ...part, text: orderClusters(part.text) })),
    }));
  const lines = linesOfGlyphs(glyphs);
  const page = inspectPage(lines);
  const isMirrored = isMostlyRightToLeft(glyphs.map(({ character }) => character));
  const share = isMirrored ? 0 : rightToLeftShare;
  const segments: Segment[] = [];
  let open: Glyph[] = [];
  const flush = (): void => {
    segments.push(...cutLine(open, byContent));
    open = [];
  };
  for (const line of lines) {
    if (!isRightToLeft(line, share)) {
      open.push(...orderLigatures(line, page));
      continue;
    }
    flush();
    const parts = byContent ? partsByContent(line) : isMirrored ? cutAtGaps(line, gapEms) : [line];
    for (const part of parts) segments.push(wholeLine(part, page));
  }
  flush();
  return segments;
}

/** A line with more than this share of right-to-left letters is read from right to left. On a page of mostly such letters, one is enough. */
const rightToLeftShare = 0.3;

function isRightToLeft(line: Glyph[], share: number): boolean {
  let letters = 0;
  for (const { character, turn } of line) if (turn === 0 && rightToLeft.test(character)) letters += 1;
  return letters > line.length * share;
}

/** Splits a line by marked content, as the cells of a tagged table have it. */
function partsByContent(line: Glyph[]): Glyph[][] {
  const parts = new Map<number, Glyph[]>();
  for (const glyph of line) {
    if (glyph.generated && glyph.style.markedContent < 0) continue;
    const part = parts.get(glyph.style.markedContent);
    if (part) part.push(glyph);
    else parts.set(glyph.style.markedContent, [glyph]);
  }
  // Blanks inserted by the engine belong to no content. Each part gets all of them and uses those between its own shapes.
  const inserted = line.filter((glyph) => glyph.generated && glyph.style.markedContent < 0);
  return [...parts.values()].map((part) => [...part, ...inserted]);
}

/** A line of Hebrew or Arabic as one segment, its text in reading order. */
function wholeLine(line: Glyph[], page: RightToLeftPage): Segment {
  const drawn = line.filter((glyph) => !glyph.generated && !/\s/.test(glyph.character));
  const builder = new SegmentBuilder(drawn[0] ?? (line[0] as Glyph), false);
  for (const glyph of drawn.slice(1)) builder.add(glyph, false);
  const parts = cutAtGaps(line, partGapEms).map((part) => ({
    text: readLine(part, page),
    left: Math.min(...part.map(({ left }) => left)),
    right: Math.max(...part.map(({ right }) => right)),
  }));
  return { ...builder.finish(), text: readLine(line, page), hyphenated: false, parts };
}

function cutLine(glyphs: Glyph[], byContent: boolean): Segment[] {
  const cutter = new SegmentCutter(byContent);
  for (const glyph of glyphs) cutter.add(glyph);
  return cutter.finish();
}

/** Builds segments from characters that are added one by one. It keeps no glyph, so the caller may reuse the object. */
export class SegmentCutter {
  readonly #byContent: boolean;
  readonly #segments: Segment[] = [];
  #builder: SegmentBuilder | undefined;
  #space = false;

  constructor(byContent: boolean) {
    this.#byContent = byContent;
  }

  add(glyph: Glyph): void {
    if (isBlank(glyph.character)) {
      this.#space ||= !(glyph.generated && /[\r\n]/.test(glyph.character)); // line ends are found by position
      return;
    }
    if (this.#builder && !this.#builder.continues(glyph, this.#byContent)) {
      this.#segments.push(this.#builder.finish());
      this.#builder = undefined;
    }
    if (this.#builder) this.#builder.add(glyph, this.#space);
    else this.#builder = new SegmentBuilder(glyph, this.#space);
    this.#space = false;
  }

  addSpace(): void {
    this.#space = true;
  }

  finish(): Segment[] {
    if (this.#builder) this.#segments.push(this.#builder.finish());
    this.#builder = undefined;
    return this.#segments;
  }
}

/** Like `/\s/`, but ten times as fast: it runs for every character of every document. */
function isBlank(character: string): boolean {
  const code = character.charCodeAt(0);
  return code <= 0x20 || (code >= 0xa0 && /^\s/.test(character));
}

class SegmentBuilder {
  // Characters or words, each with its gap to the one before. These are arrays because an object for each would take most
  // of the memory of a page.
  readonly #pieces: string[] = [];
  #length = 0;
  readonly #gaps: number[] = [];
  readonly #spaces: boolean[] = [];
  #spaceCount = 0;
  /** The widest gap at a space. */
  #widestGap = Number.NEGATIVE_INFINITY;
  readonly #lefts: number[] = [];
  readonly #rights: number[] = [];
  #left: number;
  #right: number;
  #top: number;
  #bottom: number;
  #baseline: number;
  readonly #turn: number;
  /** How many characters of each style; absent while there is only one. */
  #styles: Map<TextStyle, number> | undefined;
  /** The pieces with which another size begins; absent while there is only one size. */
  #sizes: SizeChange[] | undefined;
  #style: TextStyle;
  #styleCount = 0;
  /** Whether all styles are equal. Words that are drawn one by one each have a style object, usually with equal members. */
  #isUniform = true;
  // The box of the previous character.
  #lastLeft: number;
  #lastRight: number;
  #lastTop: number;
  #lastBottom: number;
  #lastIsHyphen: boolean;
  #size: number;
  readonly #spaced: boolean;
  readonly #firstSize: number;

  constructor(glyph: Glyph, spaced: boolean) {
    this.#spaced = spaced;
    this.#left = glyph.left;
    this.#right = glyph.right;
    this.#top = glyph.top;
    this.#bottom = glyph.bottom;
    this.#baseline = glyph.baseline;
    this.#turn = glyph.turn;
    this.#size = sizeOf(glyph);
    this.#firstSize = glyph.style.size;
    this.#style = glyph.style;
    this.#lastLeft = glyph.left;
    this.#lastRight = glyph.right;
    this.#lastTop = glyph.top;
    this.#lastBottom = glyph.bottom;
    this.#lastIsHyphen = glyph.hyphen;
    this.add(glyph, false);
  }

  continues(glyph: Glyph, byContent: boolean): boolean {
    if (glyph.turn !== this.#turn || glyph.style.artifact !== this.#style.artifact) return false;
    if (byContent && glyph.style.markedContent !== this.#style.markedContent) return false;
    const size = Math.max(this.#size, sizeOf(glyph));
    if (this.#isPartOfLigature(glyph)) return true;
    if (Math.abs(glyph.baseline - this.#baseline) > size * 0.45) return false;
    const [gap, back] =
      this.#turn & 1 ? this.#turnedGap(glyph) : [glyph.left - this.#right, glyph.left - this.#lastLeft];
    return gap < size * gapEms && gap > -size * 0.8 && (this.#turn === 2 || back > -size * 1.5);
  }

  /** Whether the glyph is a letter of the same ligature as the previous one: all its letters have the same box. */
  #isPartOfLigature(glyph: Glyph): boolean {
    return (
      isNear(glyph.left, this.#lastLeft) &&
      isNear(glyph.right, this.#lastRight) &&
      isNear(glyph.top, this.#lastTop) &&
      isNear(glyph.bottom, this.#lastBottom)
    );
  }

  #turnedGap(glyph: Glyph): [number, number] {
    const gap = this.#turn === 1 ? this.#lastTop - glyph.bottom : glyph.top - this.#lastBottom;
    return [gap, 0];
  }

  add(glyph: Glyph, space: boolean): void {
    const gap = this.#turn === 0 ? glyph.left - this.#right : 0;
    const wide = gap > Math.min(this.#size, sizeOf(glyph)) * 0.3;
    const spaced = this.#pieces.length > 0 && (space || wide) && !this.#isPartOfLigature(glyph);
    this.#pieces.push(glyph.character);
    this.#length += glyph.character.length;
    this.#gaps.push(gap);
    this.#spaces.push(spaced);
    if (spaced) {
      this.#spaceCount += 1;
      if (gap > this.#widestGap) this.#widestGap = gap;
    }
    this.#lefts.push(glyph.left);
    this.#rights.push(glyph.right);
    if (glyph.left < this.#left) this.#left = glyph.left;
    if (glyph.right > this.#right) this.#right = glyph.right;
    if (glyph.top < this.#top) this.#top = glyph.top;
    if (glyph.bottom > this.#bottom) this.#bottom = glyph.bottom;
    if (glyph.style.size !== this.#style.size) {
      this.#sizes ??= [{ from: 0, size: this.#firstSize }];
      this.#sizes.push({ from: this.#pieces.length - 1, size: glyph.style.size });
    }
    if (glyph.style !== this.#style) this.#countStyle(glyph.style);
    this.#styleCount += 1;
    if (sizeOf(glyph) > this.#size) {
      this.#size = sizeOf(glyph);
      this.#baseline = glyph.baseline;
    }
    this.#lastLeft = glyph.left;
    this.#lastRight = glyph.right;
    this.#lastTop = glyph.top;
    this.#lastBottom = glyph.bottom;
    this.#lastIsHyphen = glyph.hyphen;
  }

  /** Adds the characters of the current style to its count, and makes `next` the current style. */
  #countStyle(next: TextStyle): void {
    this.#styles ??= new Map();
    if (this.#styleCount > 0) this.#styles.set(this.#style, (this.#styles.get(this.#style) ?? 0) + this.#styleCount);
    this.#isUniform &&= isSameStyle(next, this.#style);
    this.#style = next;
    this.#styleCount = 0;
  }

  /** Letter-spaced text (`C H A P T E R`) is a word; only the wider gaps separate words. */
  #writeText(): string {
    const pieces = this.#pieces;
    const isTracked = this.#length >= 4 && this.#spaceCount >= (this.#length - 1) * 0.7;
    if (!isTracked) {
      if (this.#spaceCount === pieces.length - 1) return pieces.join(' ');
      return joinPieces(pieces, 0, pieces.length, (at) => this.#spaces[at] === true);
    }
    const gaps = this.#gaps.filter((_gap, at) => this.#spaces[at]).sort((a, b) => a - b);
    const usual = gaps[Math.floor(gaps.length / 2)] ?? 0;
    const isSpace = (at: number): boolean => this.#spaces[at] === true && (this.#gaps[at] ?? 0) >= usual * 1.5 + 0.5;
    return joinPieces(pieces, 0, pieces.length, isSpace);
  }

  #parts(text: string): Segment['parts'] {
    const widthMin = this.#size * partGapEms;
    if (!(this.#widestGap > widthMin)) return [{ text, left: this.#lefts[0] ?? 0, right: this.#right }];
    const starts = [0];
    for (let at = 1; at < this.#pieces.length; at++)
      if (this.#spaces[at] && (this.#gaps[at] ?? 0) > widthMin) starts.push(at);
    return starts.map((start, index) => {
      const end = starts[index + 1] ?? this.#pieces.length;
      return {
        text: joinPieces(this.#pieces, start, end, (at) => this.#spaces[at] === true),
        left: this.#lefts[start] ?? 0,
        right: Math.max(...this.#rights.slice(start, end)),
      };
    });
  }

  /** The style of most characters, and what holds for nearly all of them. */
  #look(): { main: TextStyle; isBold: boolean; isItalic: boolean; isMono: boolean; colour: number | undefined } {
    if (this.#isUniform) {
      const main = this.#style;
      return { main, isBold: main.weight >= 600, isItalic: main.italic, isMono: main.mono, colour: main.colour };
    }
    this.#countStyle(this.#style);
    const styles = [...(this.#styles ?? [])].sort((a, b) => b[1] - a[1]);
    const total = styles.reduce((sum, [, count]) => sum + count, 0);
    const share = (test: (style: TextStyle) => boolean): boolean =>
      styles.reduce((sum, [style, count]) => sum + (test(style) ? count : 0), 0) > total * 0.85;
    const main = styles[0]?.[0] ?? this.#style;
    return {
      main,
      colour: share((style) => style.colour === main.colour) ? main.colour : undefined,
      isBold: share((style) => style.weight >= 600),
      isItalic: share((style) => style.italic),
      isMono: share((style) => style.mono),
    };
  }

  finish(): Segment {
    const { main, isBold, isItalic, isMono, colour } = this.#look();
    const text = this.#writeText();
    const smallCapitals = isLowerCaseSmaller(this.#pieces, this.#sizes ?? []);
    const isLarger = smallCapitals || isInSmallCapitals(text, this.#firstSize / main.size);
    return {
      text,
      left: this.#left,
      right: this.#right,
      top: this.#top,
      bottom: this.#bottom,
      baseline: this.#turn & 1 ? this.#bottom : this.#baseline,
      size: isLarger ? this.#firstSize : main.size || this.#size,
      weight: main.weight,
      font: main.font,
      bold: isBold,
      italic: isItalic,
      mono: isMono,
      colour,
      smallCapitals,
      hyphenated: this.#lastIsHyphen,
      markedContent: main.markedContent,
      artifact: main.artifact,
      turned: this.#turn !== 0,
      spaced: this.#spaced,
      parts: this.#turn === 0 ? this.#parts(text) : [],
    };
  }
}

/** Joins an array instead of appending to a string: V8 would keep the string as a tree of twenty times its size. */
function joinPieces(pieces: string[], start: number, end: number, isSpace: (at: number) => boolean): string {
  const out: string[] = [];
  for (let at = start; at < end; at++) {
    if (at > start && isSpace(at)) out.push(' ');
    out.push(pieces[at] ?? '');
  }
  return out.join('');
}

function isSameStyle(a: TextStyle, b: TextStyle): boolean {
  return (
    a.size === b.size &&
    a.font === b.font &&
    a.weight === b.weight &&
    a.italic === b.italic &&
    a.mono === b.mono &&
    a.colour === b.colour &&
    a.markedContent === b.markedContent &&
    a.artifact === b.artifact
  );
}

function isNear(a: number, b: number): boolean {
  return Math.abs(a - b) < 0.01;
}

/** The size of the type in points; the height of the box decides if the file states no usable size. */
function sizeOf(glyph: Glyph): number {
  const height = glyph.turn & 1 ? glyph.right - glyph.left : glyph.bottom - glyph.top;
  return glyph.style.size > 0.5 ? glyph.style.size : Math.max(1, height * 0.8);
}

/** Joins segments on one baseline that follow one another into lines, in drawing order. */
export function buildLines(segments: Segment[]): Line[] {
  const lines: Line[] = [];
  let current: Segment[] = [];
  for (const segment of segments) {
    const last = current.at(-1);
    if (
      last &&
      (last.turned ||
        segment.turned ||
        !(sameBaseline(last, segment) && segment.left >= last.right - segment.size * 0.8))
    ) {
      lines.push(joinSegments(current));
      current = [];
    }
    current.push(segment);
  }
  if (current.length > 0) lines.push(joinSegments(current));
  return lines;
}

/** Joins pieces of words that were drawn separately, without a space where there is no gap. */
function joinByGaps(segments: Segment[]): string {
  let text = '';
  segments.forEach((segment, index) => {
    const last = segments[index - 1];
    const apart =
      last === undefined || segment.spaced || segment.left - last.right > Math.max(last.size, segment.size) * 0.25;
    text += last !== undefined && apart ? ` ${segment.text}` : segment.text;
  });
  return text;
}

export function sameBaseline(a: { baseline: number; size: number }, b: { baseline: number; size: number }): boolean {
  return Math.abs(a.baseline - b.baseline) <= Math.max(a.size, b.size) * 0.4;
}

/** Joins segments of one baseline into a line, from left to right. Its size and font are those of the longest. */
export function joinSegments(segments: Segment[]): Line {
  const [only] = segments;
  if (only && segments.length === 1) return lineOf(only);
  const sorted = [...segments].sort((a, b) => a.left - b.left);
  const longest = sorted.reduce((best, one) => (one.text.length > best.text.length ? one : best));
  const last = sorted.at(-1) ?? longest;
  return {
    segments: sorted,
    text: joinByGaps(sorted),
    left: Math.min(...sorted.map((one) => one.left)),
    right: Math.max(...sorted.map((one) => one.right)),
    top: Math.min(...sorted.map((one) => one.top)),
    bottom: Math.max(...sorted.map((one) => one.bottom)),
    baseline: longest.baseline,
    size: longest.size,
    weight: Math.min(...sorted.map((one) => one.weight)),
    font: longest.font,
    bold: sorted.every((one) => one.bold),
    italic: sorted.every((one) => one.italic),
    mono: sorted.every((one) => one.mono),
    colour: sorted.every((one) => one.colour === longest.colour) ? longest.colour : undefined,
    smallCapitals:
      sorted.some((one) => one.smallCapitals) && sorted.every((one) => one.smallCapitals || !/\p{L}/u.test(one.text)),
    hyphenated: last.hyphenated,
  };
}

function lineOf(segment: Segment): Line {
  const { text, left, right, top, bottom, baseline, size, weight, font, bold, italic, mono, hyphenated } = segment;
  const { colour, smallCapitals } = segment;
  const look = { size, weight, font, bold, italic, mono, colour, smallCapitals };
  return { segments: [segment], text, left, right, top, bottom, baseline, ...look, hyphenated };
}

/** The usual distance of baselines in ems. */
export function typicalLeading(lines: Line[]): number {
  const ratios: number[] = [];
  for (let index = 1; index < lines.length; index++) {
    const [above, line] = [lines[index - 1], lines[index]];
    if (!above || !line || Math.abs(above.size - line.size) > 0.6) continue;
    const ratio = (line.baseline - above.baseline) / line.size;
    if (ratio > 0.8 && ratio < 2.4) ratios.push(ratio);
  }
  ratios.sort((a, b) => a - b);
  return ratios[Math.floor(ratios.length * 0.4)] ?? 1.25;
}
