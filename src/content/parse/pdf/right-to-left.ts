import { rightToLeft } from './characters.ts';
import type { Glyph } from './glyph.ts';

const arabicLetter = /[\u0620-\u065f\u066e-\u06d5\u06ee-\u06ef\u06fa-\u08ff\ufb50-\ufdff\ufe70-\ufefc]/;
const digit = /\p{Nd}/u;
const numberSign = /^[%$€£¥₪°#‰]$/;
const alef = /^[اأإآٱ]$/;
const lam = 'ل';
const mirrored = new Map(
  ['()', '[]', '{}', '<>', '«»'].flatMap(([a = '', b = '']) => [
    [a, b],
    [b, a],
  ]),
);

/** A blank of the engine counts only above this gap of ink in ems, because it inserts blanks within Arabic words. */
const insertedBlankEms = 0.2;
/** A gap of ink that separates words even without a blank. */
const wordGapEms = 0.3;
/** A larger step between baselines starts another line. */
const lineStepEms = 0.6;
/** Two drawn parts of a line are at most this far apart. */
const joinEms = 1.5;

/** The letters of one drawn shape, in reading order, with its marks. */
type Shape = { text: string; left: number; inkLeft: number; inkRight: number; size: number; blankBefore: boolean };
type Kind = 'right' | 'left' | 'number' | 'neutral';

export type RightToLeftPage = {
  /** The engine lists the letters of a ligature from last to first. */
  ligaturesReversed: boolean;
  /** Brackets are listed by their shape. */
  bracketsMirrored: boolean;
};

/** Whether most letters of a page are written from right to left. */
export function isMostlyRightToLeft(texts: readonly string[]): boolean {
  if (!texts.some((text) => rightToLeft.test(text))) return false;
  let letters = 0;
  let reversed = 0;
  for (const text of texts) {
    letters += text.match(/\p{L}/gu)?.length ?? 0;
    reversed += text.match(rightToLeftLetters)?.length ?? 0;
  }
  return reversed > letters / 2;
}

const rightToLeftLetters = /(?=\p{L})[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/gu;

/** Groups glyphs by line: at the line ends of the engine and where the baseline jumps. Joins parts that differ only in script. */
export function linesOfGlyphs(glyphs: Glyph[]): Glyph[][] {
  const lines: Glyph[][] = [];
  let open: Glyph[] = [];
  let last: Glyph | undefined;
  const close = (): void => {
    if (open.length > 0) lines.push(open);
    open = [];
    last = undefined;
  };
  for (const glyph of glyphs) {
    if (!glyph.generated) {
      const step = last === undefined ? 0 : Math.abs(glyph.baseline - last.baseline);
      if (step > sizeOf(glyph) * lineStepEms) close();
      last = glyph;
    }
    open.push(glyph);
    if (glyph.generated && glyph.character === '\n') close();
  }
  close();
  return joinParts(lines);
}

function joinParts(lines: Glyph[][]): Glyph[][] {
  const joined: Glyph[][] = [];
  let before: Extent | undefined;
  for (const line of lines) {
    const extent = extentOf(line);
    const last = joined.at(-1);
    if (last && before && extent && isBeside(before, extent) && [last, line].some(hasRightToLeft)) {
      last.push(...line);
      before = { ...before, left: Math.min(before.left, extent.left), right: Math.max(before.right, extent.right) };
      continue;
    }
    joined.push(line);
    before = extent;
  }
  return joined;
}

type Extent = { left: number; right: number; baseline: number; size: number };

function extentOf(line: Glyph[]): Extent | undefined {
  const drawn = line.filter((glyph) => !glyph.generated && glyph.turn === 0);
  const [first] = drawn;
  if (!first) return undefined;
  const extent = { left: first.left, right: first.right, baseline: first.baseline, size: sizeOf(first) };
  for (const { left, right } of drawn) {
    extent.left = Math.min(extent.left, left);
    extent.right = Math.max(extent.right, right);
  }
  return extent;
}

function isBeside(a: Extent, b: Extent): boolean {
  const gap = Math.max(b.left - a.right, a.left - b.right);
  return Math.abs(a.baseline - b.baseline) < a.size * 0.1 && gap > -a.size * 0.5 && gap < a.size * joinEms;
}

function hasRightToLeft(line: Glyph[]): boolean {
  return line.some(({ character }) => rightToLeft.test(character));
}

/** What the lines of a page show about the order in which the engine lists letters and brackets. */
export function inspectPage(lines: Glyph[][]): RightToLeftPage {
  let ligatures = 0;
  let brackets = 0;
  for (const line of lines) {
    line.forEach((glyph, at) => {
      const next = line[at + 1];
      if (!next || !isOneShape(glyph, next)) return;
      if (alef.test(glyph.character) && next.character === lam) ligatures += 1;
      if (glyph.character === lam && alef.test(next.character)) ligatures -= 1;
    });
    const drawn = line.map(({ character }) => character).filter((character) => /[()]/.test(character));
    if (drawn.length < 2 || drawn[0] === drawn.at(-1)) continue;
    const byPosition = line.filter(({ character }) => /[()]/.test(character)).sort((a, b) => b.left - a.left);
    brackets += byPosition[0]?.character === ')' ? 1 : -1;
  }
  return { ligaturesReversed: ligatures >= 0, bracketsMirrored: brackets >= 0 };
}

/** Puts the letters of the ligatures of a line into reading order. */
export function orderLigatures(line: Glyph[], page: RightToLeftPage): Glyph[] {
  if (!page.ligaturesReversed) return line;
  return ligatureGroups(line).flatMap((group) => (isReversible(group) ? group.toReversed() : group));
}

function ligatureGroups(line: Glyph[]): Glyph[][] {
  const groups: Glyph[][] = [];
  for (const glyph of line) {
    const last = groups.at(-1)?.at(-1);
    if (last && isOneShape(last, glyph)) groups.at(-1)?.push(glyph);
    else groups.push([glyph]);
  }
  return groups;
}

function isOneShape(a: Glyph, b: Glyph): boolean {
  return (
    a.style === b.style &&
    Math.abs(a.left - b.left) < 0.01 &&
    Math.abs(a.baseline - b.baseline) < 0.01 &&
    isLetter(a.character) &&
    isLetter(b.character)
  );
}

function isLetter(character: string): boolean {
  return rightToLeft.test(character) && /\p{L}/u.test(character);
}

/** Whether the letters of a ligature may be in reverse order. `لا` is in order already: the engine decomposed a presentation form. */
function isReversible(group: Glyph[]): boolean {
  return group.length > 1 && !(group[0]?.character === lam && alef.test(group[1]?.character ?? ''));
}

/** The parts of a line that gaps of this many ems separate, from right to left. */
export function cutAtGaps(line: Glyph[], gapEms: number): Glyph[][] {
  const drawn = line.filter(({ generated, character }) => !generated && character.trim() !== '');
  const edges: number[] = [];
  let before: Glyph | undefined;
  for (const glyph of drawn.sort((a, b) => a.left - b.left)) {
    const gap = (glyph.inkLeft ?? glyph.left) - (before?.inkRight ?? before?.right ?? Number.POSITIVE_INFINITY);
    if (before && gap > sizeOf(glyph) * gapEms) edges.unshift(glyph.left - 0.01);
    if (!before || (glyph.inkRight ?? glyph.right) > (before.inkRight ?? before.right)) before = glyph;
  }
  if (edges.length === 0) return [line];
  const parts = [...edges, Number.NEGATIVE_INFINITY].map((): Glyph[] => []);
  for (const glyph of line) parts[edges.filter((edge) => glyph.left < edge).length]?.push(glyph);
  return parts.filter((part) => part.some(({ character }) => character.trim() !== ''));
}

/**
 * The text of a line of Hebrew or Arabic in reading order. The engine's own order loses the place of numbers, signs and
 * brackets where scripts meet, so the order follows from the positions: from right to left, except for runs of Latin
 * letters and digits (the reverse of the Unicode bidirectional algorithm).
 */
export function readLine(line: Glyph[], page: RightToLeftPage): string {
  const shapes = shapesOf(line, page);
  const runs = leftToRightRuns(
    shapes,
    line.some(({ character }) => arabicLetter.test(character)),
  );
  const out: string[] = [];
  for (const run of runs.toReversed()) {
    const text = run.shapes.map((shape, at) => `${at > 0 && shape.blankBefore ? ' ' : ''}${shape.text}`).join('');
    out.push(run.isLeftToRight || !page.bracketsMirrored ? text : (mirrored.get(text) ?? text));
    if (run.shapes[0]?.blankBefore) out.push(' ');
  }
  return out.join('').trim();
}

/** The drawn shapes from left to right. */
function shapesOf(line: Glyph[], page: RightToLeftPage): Shape[] {
  const shapes: Shape[] = [];
  const marks: Glyph[] = [];
  for (const group of ligatureGroups(orderLigatures(line, page))) {
    const [first] = group;
    if (!first || /^\s*$/.test(first.character)) continue;
    if (/^\p{M}+$/u.test(first.character)) {
      marks.push(...group);
      continue;
    }
    shapes.push({
      text: group.map(({ character }) => character).join(''),
      left: first.left,
      inkLeft: Math.min(...group.map(({ inkLeft, left }) => inkLeft ?? left)),
      inkRight: Math.max(...group.map(({ inkRight, right }) => inkRight ?? right)),
      size: sizeOf(first),
      blankBefore: false,
    });
  }
  shapes.sort((a, b) => a.left - b.left);
  for (const mark of marks) {
    const base = shapes.findLast(({ left }) => left <= mark.left + 0.01) ?? shapes[0];
    if (base) base.text += mark.character;
  }
  markBlanks(shapes, line);
  return shapes;
}

function markBlanks(shapes: Shape[], line: Glyph[]): void {
  const blanks = line.filter(({ character }) => /^[^\S\r\n]$/.test(character)).sort((a, b) => a.left - b.left);
  let at = 0;
  shapes.forEach((shape, index) => {
    const before = shapes[index - 1];
    let drawn = false;
    let inserted = false;
    for (; at < blanks.length && (blanks[at]?.left ?? 0) <= shape.left + 0.01; at++) {
      if (blanks[at]?.generated) inserted = true;
      else drawn = true;
    }
    if (!before) return;
    const gap = (shape.inkLeft - before.inkRight) / Math.min(shape.size, before.size);
    shape.blankBefore = drawn || gap > (inserted ? insertedBlankEms : wordGapEms);
  });
}

type TextRun = { shapes: Shape[]; isLeftToRight: boolean };

/** Latin words and numbers as runs of their own; every other shape alone. */
function leftToRightRuns(shapes: Shape[], isArabic: boolean): TextRun[] {
  const kinds = shapes.map(kindOf);
  const runs: TextRun[] = [];
  for (let at = 0; at < shapes.length; ) {
    const end = runEnd(shapes, kinds, at, isArabic);
    runs.push({ shapes: shapes.slice(at, end), isLeftToRight: kinds[at] !== 'right' && end - at > 1 });
    at = end;
  }
  return runs;
}

function kindOf({ text }: Shape): Kind {
  if (digit.test(text)) return 'number';
  if (rightToLeft.test(text)) return 'right';
  return /\p{L}/u.test(text) ? 'left' : 'neutral';
}

function runEnd(shapes: Shape[], kinds: Kind[], start: number, isArabic: boolean): number {
  const opens = !isArabic && isSignOf(shapes, kinds, start, start + 1);
  if (kinds[start] !== 'left' && kinds[start] !== 'number' && !opens) return start + 1;
  let end = start + 1;
  const hasLetters = hasLatinLetters(kinds, start);
  for (let at = start + 1; at < shapes.length && kinds[at] !== 'right'; at++) {
    if (kinds[at] === 'neutral') continue;
    if (!hasLetters && !isInsideNumber(shapes, end, at, isArabic)) break;
    end = at + 1;
  }
  if (!isArabic && !hasLetters && isSignOf(shapes, kinds, end, end - 1)) end += 1;
  return hasLetters ? closeBracket(shapes, start, end) : end;
}

/** Whether Latin letters stand between this place and the next letter of another script. */
function hasLatinLetters(kinds: Kind[], from: number): boolean {
  const next = kinds.findIndex((kind, at) => at >= from && (kind === 'left' || kind === 'right'));
  return kinds[next] === 'left';
}

/** A sign directly at a number, as in `12%`. */
function isSignOf(shapes: Shape[], kinds: Kind[], sign: number, number: number): boolean {
  if (kinds[number] !== 'number' || !numberSign.test(shapes[sign]?.text ?? '')) return false;
  return shapes[Math.max(sign, number)]?.blankBefore === false;
}

/** Whether the shapes from `from` up to the digit at `to` continue a number: nothing, or one separator, without a gap. */
function isInsideNumber(shapes: Shape[], from: number, to: number, isArabic: boolean): boolean {
  const between = shapes.slice(from, to + 1);
  if (between.some(({ blankBefore }) => blankBefore) || between.length > 2) return false;
  const separator = between.length === 1 ? '' : (between[0]?.text ?? '');
  return separator === '' || (isArabic ? /^[.,:/٫٬]$/ : /^[.,:/+-]$/).test(separator);
}

/** `Ferry (UK)`: the closing bracket belongs to the Latin words when the opening one does. */
function closeBracket(shapes: Shape[], start: number, end: number): number {
  const text = shapes.slice(start, end).map((shape) => shape.text);
  const isOpen = text.filter((one) => one === '(').length > text.filter((one) => one === ')').length;
  return isOpen && shapes[end]?.text === ')' && !shapes[end]?.blankBefore ? end + 1 : end;
}

function sizeOf(glyph: Glyph): number {
  return glyph.style.size > 0.5 ? glyph.style.size : Math.max(1, (glyph.bottom - glyph.top) * 0.8);
}
