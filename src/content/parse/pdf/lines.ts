import type { Glyph, TextStyle } from './page.ts';

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
  /** Ends in a hyphen that the line break may have caused. */
  hyphenated: boolean;
  markedContent: number;
  artifact: boolean;
  turned: boolean;
  /** Preceded by white space. */
  spaced: boolean;
  /** Its words, separated by wider gaps than usual; they may turn out to be cells. */
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

/** The page's characters as segments, in drawing order. `byContent`: a new marked content starts a new segment. */
export function buildSegments(glyphs: Glyph[], byContent = false): Segment[] {
  const segments: Segment[] = [];
  for (const line of drawnLines(glyphs)) {
    if (isRightToLeft(line)) segments.push(wholeLine(line));
    else segments.push(...cutLine(line, byContent));
  }
  return segments;
}

/** The engine's own lines, which end where it inserted a line end. */
function drawnLines(glyphs: Glyph[]): Glyph[][] {
  const lines: Glyph[][] = [[]];
  for (const glyph of glyphs) {
    lines.at(-1)?.push(glyph);
    if (glyph.generated && glyph.character === '\n') lines.push([]);
  }
  return lines.some(isRightToLeft) ? lines : [glyphs];
}

const rightToLeft = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

function isRightToLeft(line: Glyph[]): boolean {
  let letters = 0;
  for (const { character } of line) if (rightToLeft.test(character)) letters += 1;
  return letters > line.length * 0.3;
}

/** A line of Hebrew or Arabic is in reading order while its positions alternate: it is kept unchanged. */
function wholeLine(line: Glyph[]): Segment {
  const drawn = line.filter((glyph) => !glyph.generated && !/\s/.test(glyph.character));
  const builder = new SegmentBuilder(drawn[0] ?? (line[0] as Glyph), false);
  for (const glyph of drawn.slice(1)) builder.add(glyph, false);
  return { ...builder.finish(), text: latinInOrder(line), hyphenated: false, parts: [] };
}

/** The engine reverses several Latin words in a row with the rest; their positions show the order. */
function latinInOrder(line: Glyph[]): string {
  const words: { text: string; left: number }[] = [];
  let open = false;
  for (const { character, left } of line) {
    const blank = /\s/.test(character);
    const word = words.at(-1);
    if (!blank && open && word) word.text += character;
    else if (!blank) words.push({ text: character, left });
    open = !blank;
  }
  const ordered: string[] = [];
  for (let at = 0; at < words.length; ) {
    let end = at + 1;
    while (end < words.length && isLatin(words[at]) && isLatin(words[end])) end += 1;
    ordered.push(
      ...words
        .slice(at, end)
        .sort((a, b) => (end - at > 1 ? a.left - b.left : 0))
        .map((word) => word.text),
    );
    at = end;
  }
  return ordered.join(' ');
}

function isLatin(word: { text: string } | undefined): boolean {
  return word !== undefined && /[A-Za-z]/.test(word.text) && !rightToLeft.test(word.text);
}

function cutLine(glyphs: Glyph[], byContent: boolean): Segment[] {
  const segments: Segment[] = [];
  let builder: SegmentBuilder | undefined;
  let space = false;
  for (const glyph of glyphs) {
    if (/\s/.test(glyph.character)) {
      space ||= !(glyph.generated && /[\r\n]/.test(glyph.character)); // line ends follow from the positions
      continue;
    }
    if (builder && !builder.continues(glyph, byContent)) {
      segments.push(builder.finish());
      builder = undefined;
    }
    if (builder) builder.add(glyph, space);
    else builder = new SegmentBuilder(glyph, space);
    space = false;
  }
  if (builder) segments.push(builder.finish());
  return segments;
}

class SegmentBuilder {
  #pieces: { character: string; gap: number; spaced: boolean; left: number; right: number }[] = [];
  #left: number;
  #right: number;
  #top: number;
  #bottom: number;
  #baseline: number;
  readonly #turn: number;
  readonly #styles = new Map<TextStyle, number>();
  #last: Glyph;
  #size: number;
  readonly #spaced: boolean;

  constructor(glyph: Glyph, spaced: boolean) {
    this.#spaced = spaced;
    this.#left = glyph.left;
    this.#right = glyph.right;
    this.#top = glyph.top;
    this.#bottom = glyph.bottom;
    this.#baseline = glyph.baseline;
    this.#turn = glyph.turn;
    this.#size = sizeOf(glyph);
    this.#last = glyph;
    this.add(glyph, false);
  }

  continues(glyph: Glyph, byContent: boolean): boolean {
    if (glyph.turn !== this.#turn || glyph.style.artifact !== this.#last.style.artifact) return false;
    if (byContent && glyph.style.markedContent !== this.#last.style.markedContent) return false;
    const size = Math.max(this.#size, sizeOf(glyph));
    if (this.#isPartOfLigature(glyph)) return true;
    if (Math.abs(glyph.baseline - this.#baseline) > size * 0.45) return false;
    const [gap, back] =
      this.#turn & 1 ? this.#turnedGap(glyph) : [glyph.left - this.#right, glyph.left - this.#last.left];
    return gap < size * gapEms && gap > -size * 0.8 && (this.#turn === 2 || back > -size * 1.5);
  }

  /** The letters of a ligature all have its box. */
  #isPartOfLigature(glyph: Glyph): boolean {
    const last = this.#last;
    const near = (a: number, b: number): boolean => Math.abs(a - b) < 0.01;
    return (
      near(glyph.left, last.left) &&
      near(glyph.right, last.right) &&
      near(glyph.top, last.top) &&
      near(glyph.bottom, last.bottom)
    );
  }

  #turnedGap(glyph: Glyph): [number, number] {
    const gap = this.#turn === 1 ? this.#last.top - glyph.bottom : glyph.top - this.#last.bottom;
    return [gap, 0];
  }

  add(glyph: Glyph, space: boolean): void {
    const gap = this.#turn === 0 ? glyph.left - this.#right : 0;
    const wide = gap > Math.min(this.#size, sizeOf(glyph)) * 0.3;
    const spaced = this.#pieces.length > 0 && (space || wide) && !this.#isPartOfLigature(glyph);
    this.#pieces.push({ character: glyph.character, gap, spaced, left: glyph.left, right: glyph.right });
    this.#left = Math.min(this.#left, glyph.left);
    this.#right = Math.max(this.#right, glyph.right);
    this.#top = Math.min(this.#top, glyph.top);
    this.#bottom = Math.max(this.#bottom, glyph.bottom);
    this.#styles.set(glyph.style, (this.#styles.get(glyph.style) ?? 0) + 1);
    if (sizeOf(glyph) > this.#size) {
      this.#size = sizeOf(glyph);
      this.#baseline = glyph.baseline;
    }
    this.#last = glyph;
  }

  /** Letter-spaced text (`C H A P T E R`) is a word; only the wider gaps separate words. */
  #writeText(): string {
    const pieces = this.#pieces;
    const gaps = pieces
      .slice(1)
      .filter((piece) => piece.spaced)
      .map((piece) => piece.gap);
    const isTracked = pieces.length >= 4 && gaps.length >= (pieces.length - 1) * 0.7;
    const usual = [...gaps].sort((a, b) => a - b)[Math.floor(gaps.length / 2)] ?? 0;
    return pieces
      .map(({ character, gap, spaced }) =>
        spaced && !(isTracked && gap < usual * 1.5 + 0.5) ? ` ${character}` : character,
      )
      .join('');
  }

  #parts(): Segment['parts'] {
    const parts: Segment['parts'] = [];
    for (const { character, gap, spaced, left, right } of this.#pieces) {
      const part = parts.at(-1);
      if (part && !(spaced && gap > this.#size * partGapEms)) {
        part.text += spaced ? ` ${character}` : character;
        part.right = Math.max(part.right, right);
      } else parts.push({ text: character, left, right });
    }
    return parts;
  }

  finish(): Segment {
    const main = [...this.#styles].sort((a, b) => b[1] - a[1])[0]?.[0] ?? this.#last.style;
    const total = [...this.#styles.values()].reduce((sum, one) => sum + one, 0);
    const share = (test: (style: TextStyle) => boolean): boolean =>
      [...this.#styles].reduce((sum, [style, count]) => sum + (test(style) ? count : 0), 0) > total * 0.85;
    return {
      text: this.#writeText(),
      left: this.#left,
      right: this.#right,
      top: this.#top,
      bottom: this.#bottom,
      baseline: this.#turn & 1 ? this.#bottom : this.#baseline,
      size: main.size || this.#size,
      weight: main.weight,
      font: main.font,
      bold: share((style) => style.weight >= 600),
      italic: share((style) => style.italic),
      mono: share((style) => style.mono),
      hyphenated: this.#last.hyphen,
      markedContent: main.markedContent,
      artifact: main.artifact,
      turned: this.#turn !== 0,
      spaced: this.#spaced,
      parts: this.#turn === 0 ? this.#parts() : [],
    };
  }
}

/** Type of size 0 or 1 with a scaling matrix, or with none at all, is measured by its box. */
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

/** Joins parts of a word that were only drawn separately. */
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

export function joinSegments(segments: Segment[]): Line {
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
    hyphenated: last.hyphenated,
  };
}
