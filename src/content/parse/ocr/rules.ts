import type { Rule } from '../pdf/glyph.ts';
import { darkBelow, type GreyImage } from './image.ts';

/** The length of the shortest line, as a share of the page's width. */
const lengthMin = 1 / 30;
const thicknessMax = 1 / 250;
/** The number of light pixels that do not end a line, because scans have gaps. */
const gapPixelsMax = 2;
/** An upright line may consist of parts this long, as between the rows of a table whose cells have boxes of their own. */
const uprightPieceMin = 1 / 60;
/** The gap between two such parts. */
const pieceGapMax = 1 / 200;
/** The width of the narrowest area of colour whose upper and lower edges are lines, such as the header of a table. */
const areaWidthMin = 1 / 6;
/** The share of an upright bar that continues in the next column. Otherwise an area would take the lines below it. */
const uprightSharedMin = 0.5;
const rulesMax = 2_000;

type Run = { from: number; to: number; first: number; last: number };

/** The drawn lines of a page, in pixels: long dark runs that are thin across. */
export function findRules(image: GreyImage): Rule[] {
  const { width, height } = image;
  const dark = darkBelow(image);
  const { pixels } = image;
  const isDark = (x: number, y: number): boolean => (pixels[y * width + x] ?? 255) < dark;
  const bars = collectRuns(height, width, lengthMin * width, 0, (line, at) => isDark(at, line));
  const pieces = collectRuns(width, height, uprightPieceMin * width, uprightSharedMin, (line, at) => isDark(line, at));
  const [thickMax, gapMax, runMin] = [thicknessMax * width, pieceGapMax * width, lengthMin * width];
  const level = joinRuns(
    bars.flatMap((bar) => linesOf(bar, thickMax, areaWidthMin * width)),
    gapMax,
  );
  const upright = joinRuns(
    pieces.filter((bar) => bar.last - bar.first < thickMax),
    gapMax,
  ).filter(({ from, to }) => to - from >= runMin);
  return [
    ...level.map(({ from, to, first, last }) => ({ left: from, right: to, top: first, bottom: last + 1 })),
    ...upright.map(({ from, to, first, last }) => ({ left: first, right: last + 1, top: from, bottom: to })),
  ].slice(0, rulesMax);
}

/** The line that a bar is, or the edges of an area of colour. */
function linesOf(bar: Run, thickMax: number, widthMin: number): Run[] {
  if (bar.last - bar.first < thickMax) return [bar];
  if (bar.to - bar.from < widthMin) return [];
  return [
    { ...bar, last: bar.first },
    { ...bar, first: bar.last },
  ];
}

/** Joins the dark runs of neighbouring rows (or columns) into bars. */
function collectRuns(
  lines: number,
  length: number,
  runMin: number,
  sharedMin: number,
  isDark: (line: number, at: number) => boolean,
): Run[] {
  const bars: Run[] = [];
  let open: Run[] = [];
  for (let line = 0; line < lines; line++) {
    const next: Run[] = [];
    for (const [from, to] of runsOf(line, length, runMin, isDark)) {
      const bar = open.find((one) => sharedBy(one, from, to) > sharedMin);
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
  return bars;
}

/** The share of the longer one that a bar and a run have in common. */
function sharedBy(bar: Run, from: number, to: number): number {
  return (Math.min(bar.to, to) - Math.max(bar.from, from)) / Math.max(to - from, bar.to - bar.from);
}

/** Joins bars that continue each other. */
function joinRuns(bars: Run[], gapMax: number): Run[] {
  const joined: Run[] = [];
  let open: Run[] = [];
  for (const bar of bars.sort((a, b) => a.from - b.from)) {
    open = open.filter((one) => one.to >= bar.from - gapMax);
    const before = open.find((one) => bar.first <= one.last + 1 && bar.last >= one.first - 1);
    if (!before) {
      joined.push(bar);
      open.push(bar);
      continue;
    }
    before.to = Math.max(before.to, bar.to);
    before.first = Math.min(before.first, bar.first);
    before.last = Math.max(before.last, bar.last);
  }
  return joined;
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
