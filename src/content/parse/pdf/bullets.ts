import type { Rule } from './glyph.ts';
import type { Segment } from './lines.ts';

const bulletsMax = 2_000;
/** The size of a bullet and its distance from the text, as shares of the text's size. */
const bullet = { sizeMin: 0.15, sizeMax: 0.65, gapMin: 0.15, gapMax: 2.5, freeBefore: 1 } as const;

/** A point of a drawing has a letter or a number beside it, and an item at least a word. */
const word = /\p{L}{3}|\d{4}|[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}]/u;

/**
 * The segments with a bullet before each that has a small shape to its left: browsers draw bullets as shapes. A shape
 * that follows other text is part of a drawing.
 */
export function addDrawnBullets(segments: Segment[], shapes: Rule[]): Segment[] {
  const dots = shapes.filter(isSmallShape).slice(0, bulletsMax);
  if (dots.length === 0) return segments;
  const byBaseline = Map.groupBy(segments, ({ baseline }) => Math.round(baseline));
  for (const line of byBaseline.values()) line.sort((a, b) => a.left - b.left);
  const bullets = new Map<Segment, Segment>();
  for (const dot of dots) {
    const middle = (dot.top + dot.bottom) / 2;
    for (let baseline = Math.floor(middle); baseline < middle + shapeMax / bullet.sizeMin; baseline++) {
      const line = byBaseline.get(baseline);
      const at = line === undefined ? -1 : firstRightOf(line, dot.right);
      const next = line?.[at];
      if (next === undefined || !isBullet(dot, next, line?.[at - 1])) continue;
      const { left, right } = dot;
      bullets.set(next, { ...next, text: '•', left, right, parts: [{ text: '•', left, right }], hyphenated: false });
      break;
    }
  }
  return segments.flatMap((segment) => {
    const own = bullets.get(segment);
    return own === undefined ? [segment] : [own, { ...segment, spaced: true }];
  });
}

const shapeMin = 1;
const shapeMax = 8;

function isSmallShape({ left, right, top, bottom }: Rule): boolean {
  const [width, height] = [right - left, bottom - top];
  return width >= shapeMin && width <= shapeMax && Math.abs(width - height) < width * 0.25;
}

function firstRightOf(line: Segment[], x: number): number {
  let [from, to] = [0, line.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((line[middle]?.left ?? 0) < x) from = middle + 1;
    else to = middle;
  }
  return from;
}

function isBullet(dot: Rule, next: Segment, before: Segment | undefined): boolean {
  const { size } = next;
  const height = (next.baseline - (dot.top + dot.bottom) / 2) / size;
  const width = (dot.right - dot.left) / size;
  const gap = (next.left - dot.right) / size;
  return (
    !next.turned &&
    word.test(next.text) &&
    height > 0 &&
    height < 0.7 &&
    width >= bullet.sizeMin &&
    width <= bullet.sizeMax &&
    gap >= bullet.gapMin &&
    gap <= bullet.gapMax &&
    (before === undefined || before.right < dot.left - size * bullet.freeBefore)
  );
}
