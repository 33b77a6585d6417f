import type { Rule } from '../pdf/glyph.ts';
import { darkBelow, type GreyImage } from './image.ts';

/** The length of the shortest line, as a share of the page's width. */
const lengthMin = 1 / 30;
const thicknessMax = 1 / 250;
/** The number of light pixels that do not end a line, because scans have gaps. */
const gapPixelsMax = 2;
const rulesMax = 2_000;

type Run = { from: number; to: number; first: number; last: number };

/** The drawn lines of a page, in pixels: long dark runs that are thin across. */
export function findRules(image: GreyImage): Rule[] {
  const { width, height } = image;
  const dark = darkBelow(image);
  const { pixels } = image;
  const isDark = (x: number, y: number): boolean => (pixels[y * width + x] ?? 255) < dark;
  const level = collectRuns(height, width, lengthMin * width, thicknessMax * width, (line, at) => isDark(at, line));
  const upright = collectRuns(width, height, lengthMin * width, thicknessMax * width, (line, at) => isDark(line, at));
  return [
    ...level.map(({ from, to, first, last }) => ({ left: from, right: to, top: first, bottom: last + 1 })),
    ...upright.map(({ from, to, first, last }) => ({ left: first, right: last + 1, top: from, bottom: to })),
  ].slice(0, rulesMax);
}

/** Joins the dark runs of neighbouring rows (or columns) into bars, and keeps the thin ones. */
function collectRuns(
  lines: number,
  length: number,
  runMin: number,
  thickMax: number,
  isDark: (line: number, at: number) => boolean,
): Run[] {
  const bars: Run[] = [];
  let open: Run[] = [];
  for (let line = 0; line < lines; line++) {
    const next: Run[] = [];
    for (const [from, to] of runsOf(line, length, runMin, isDark)) {
      const bar = open.find((one) => from < one.to && to > one.from);
      if (!bar) {
        const bar = { from, to, first: line, last: line };
        bars.push(bar);
        next.push(bar);
        continue;
      }
      bar.from = Math.min(bar.from, from);
      bar.to = Math.max(bar.to, to);
      bar.last = line;
      if (!next.includes(bar)) next.push(bar);
    }
    open = next;
  }
  return bars.filter(({ first, last }) => last - first < thickMax);
}

function* runsOf(
  line: number,
  length: number,
  runMin: number,
  isDark: (line: number, at: number) => boolean,
): Generator<[number, number]> {
  let from = -1;
  let last = -1;
  for (let at = 0; at < length; at++) {
    if (isDark(line, at)) {
      if (from < 0) from = at;
      last = at;
    } else if (from >= 0 && at - last > gapPixelsMax) {
      if (last - from >= runMin) yield [from, last + 1];
      from = -1;
    }
  }
  if (from >= 0 && last - from >= runMin) yield [from, last + 1];
}
