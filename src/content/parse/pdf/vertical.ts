import type { Glyph, Rule } from './glyph.ts';

/*
 * Pages whose lines run from top to bottom and follow each other from right to left, as in Japanese books. They are
 * rotated by a quarter turn, so that the later steps see lines from left to right.
 */

const firstIdeographic = 0x3000;
const pairsMin = 10;
const verticalShare = 0.6;
/** From the lower edge of a letter to its baseline. */
const descentEms = 0.12;

/** Counts how many ideographs and kana of a page are below, instead of beside, the one before. */
export class DirectionCount {
  #pairs = 0;
  #vertical = 0;
  #right = Number.NaN;
  #bottom = Number.NaN;

  add({ character, right, top, bottom, style, turn }: Glyph): void {
    const isWide = character.charCodeAt(0) >= firstIdeographic && turn === 0;
    if (isWide && !Number.isNaN(this.#right)) {
      this.#pairs += 1;
      if (Math.abs(right - this.#right) < style.size * 0.3 && Math.abs(top - this.#bottom) < style.size * 0.5)
        this.#vertical += 1;
    }
    this.#right = isWide ? right : Number.NaN;
    this.#bottom = bottom;
  }

  /** Called at a blank: the characters around it are not compared. */
  interrupt(): void {
    this.#right = Number.NaN;
  }

  get isVertical(): boolean {
    return this.#pairs >= pairsMin && this.#vertical > this.#pairs * verticalShare;
  }
}

/** Rotates the glyphs of a page of this width in points. A line from left to right, such as a page number, stays one. */
export function turnGlyphs(glyphs: readonly Glyph[], width: number): Glyph[] {
  const runs: Glyph[][] = [];
  for (let start = 0; start < glyphs.length; ) {
    const { style } = glyphs[start] as Glyph;
    let end = start + 1;
    while (glyphs[end]?.style === style) end += 1;
    runs.push(turnRun(glyphs.slice(start, end), width));
    start = end;
  }
  // The engine visits the columns from left to right. Runs of one column stay in its order.
  const lineOf = ([first]: Glyph[]): number => (first ? Math.round((2 * first.top) / first.style.size) : 0);
  return runs.sort((a, b) => lineOf(a) - lineOf(b)).flat();
}

export function turnRule({ left, right, top, bottom }: Rule, width: number): Rule {
  return { left: top, right: bottom, top: width - right, bottom: width - left };
}

function turnRun(run: readonly Glyph[], width: number): Glyph[] {
  const [first, second] = run.filter(({ generated }) => !generated);
  const isHorizontal = first !== undefined && second !== undefined && second.top - first.top < first.style.size * 0.3;
  const edge = Math.max(...run.map(({ right }) => right));
  return run.map((glyph) => {
    const { left, right, top, bottom, style } = glyph;
    const nextTop = width - (isHorizontal ? edge : right);
    const nextLeft = isHorizontal ? top + (left - first.left) : top;
    return {
      ...glyph,
      left: nextLeft,
      right: nextLeft + (isHorizontal ? right - left : bottom - top),
      top: nextTop,
      bottom: nextTop + style.size,
      baseline: nextTop + style.size * (1 - descentEms),
      turn: 0,
    };
  });
}
