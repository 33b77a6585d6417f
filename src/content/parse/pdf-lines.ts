import type { Glyph, TextStyle } from './pdfium.ts';

/** Characters that stand side by side: a line, a piece of one, or a table cell's line. */
export type Segment = {
  text: string;
  left: number;
  right: number;
  top: number;
  bottom: number;
  baseline: number;
  size: number;
  bold: boolean;
  italic: boolean;
  mono: boolean;
  /** Ends in a hyphen that the line end may have caused. */
  hyphenated: boolean;
  markedContent: number;
  artifact: boolean;
  turned: boolean;
};

/** Pieces on one baseline, left to right. */
export type Line = Omit<Segment, 'markedContent' | 'artifact' | 'turned'> & { segments: Segment[] };

/** A gap of this many ems ends a segment. */
const gapEms = 0.9;

/** The page's characters as segments, in drawing order. `byContent`: a new piece of marked content starts a new one. */
export function buildSegments(glyphs: Glyph[], byContent = false): Segment[] {
  const segments: Segment[] = [];
  let builder: SegmentBuilder | undefined;
  let space = false;
  for (const glyph of glyphs) {
    if (glyph.generated || /\s/.test(glyph.character)) {
      space = true;
      continue;
    }
    if (builder && !builder.continues(glyph, byContent)) {
      segments.push(builder.finish());
      builder = undefined;
    }
    if (builder) builder.add(glyph, space);
    else builder = new SegmentBuilder(glyph);
    space = false;
  }
  if (builder) segments.push(builder.finish());
  return segments;
}

class SegmentBuilder {
  #text = '';
  #left: number;
  #right: number;
  #top: number;
  #bottom: number;
  #baseline: number;
  readonly #turn: number;
  readonly #styles = new Map<TextStyle, number>();
  #last: Glyph;
  #size: number;

  constructor(glyph: Glyph) {
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
    if (Math.abs(glyph.baseline - this.#baseline) > size * 0.45) return false;
    const [gap, back] =
      this.#turn & 1 ? this.#turnedGap(glyph) : [glyph.left - this.#right, glyph.left - this.#last.left];
    return gap < size * gapEms && gap > -size * 0.8 && (this.#turn === 2 || back > -size * 1.5);
  }

  #turnedGap(glyph: Glyph): [number, number] {
    const gap = this.#turn === 1 ? this.#last.top - glyph.bottom : glyph.top - this.#last.bottom;
    return [gap, 0];
  }

  add(glyph: Glyph, space: boolean): void {
    const gap = this.#turn === 0 ? glyph.left - this.#right : 0;
    const wide = gap > Math.min(this.#size, sizeOf(glyph)) * 0.3;
    if (this.#text !== '' && (space || wide)) this.#text += ' ';
    this.#text += glyph.character;
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

  finish(): Segment {
    const main = [...this.#styles].sort((a, b) => b[1] - a[1])[0]?.[0] ?? this.#last.style;
    const total = [...this.#styles.values()].reduce((sum, one) => sum + one, 0);
    const share = (test: (style: TextStyle) => boolean): boolean =>
      [...this.#styles].reduce((sum, [style, count]) => sum + (test(style) ? count : 0), 0) > total * 0.85;
    return {
      text: this.#text,
      left: this.#left,
      right: this.#right,
      top: this.#top,
      bottom: this.#bottom,
      baseline: this.#turn & 1 ? this.#bottom : this.#baseline,
      size: main.size || this.#size,
      bold: share((style) => style.bold),
      italic: share((style) => style.italic),
      mono: share((style) => style.mono),
      hyphenated: this.#last.hyphen,
      markedContent: main.markedContent,
      artifact: main.artifact,
      turned: this.#turn !== 0,
    };
  }
}

/** Type of size 0 or 1 with a scaling matrix, or with none at all, is measured by its box. */
function sizeOf(glyph: Glyph): number {
  const height = glyph.turn & 1 ? glyph.right - glyph.left : glyph.bottom - glyph.top;
  return glyph.style.size > 0.5 ? glyph.style.size : Math.max(1, height * 0.8);
}

/** Puts segments that stand on one baseline and follow one another into lines, keeping the drawing order. */
export function buildLines(segments: Segment[]): Line[] {
  const lines: Line[] = [];
  let current: Segment[] = [];
  for (const segment of segments) {
    const last = current.at(-1);
    if (last && !(sameBaseline(last, segment) && segment.left >= last.right - segment.size * 0.8)) {
      lines.push(joinSegments(current));
      current = [];
    }
    current.push(segment);
  }
  if (current.length > 0) lines.push(joinSegments(current));
  return lines;
}

/** Pieces of a word that were only drawn apart are put together again. */
function joinByGaps(segments: Segment[]): string {
  let text = '';
  segments.forEach((segment, index) => {
    const last = segments[index - 1];
    const apart = last === undefined || segment.left - last.right > Math.min(last.size, segment.size) * 0.15;
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
    bold: sorted.every((one) => one.bold),
    italic: sorted.every((one) => one.italic),
    mono: sorted.every((one) => one.mono),
    hyphenated: last.hyphenated,
  };
}
