import type { Rule } from '../pdf/glyph.ts';
import { darkBelow, type GreyImage } from './image.ts';

/** The length of the shortest line, as a share of the page's width. */
const lengthMin = 1 / 30;
const thicknessMax = 1 / 250;
/** The two lines of a double rule may run together. */
const doubleThicknessMax = 1 / 125;
/** An upright double rule. Dark areas between the letters of a header are as thick, and shorter. */
const doubleUprightThicknessMax = 1 / 190;
const doubleLengthMin = 1 / 15;
/** The number of light pixels that do not end a line, because scans have gaps. */
const gapPixelsMax = 2;
/** The gap between two dashes, and the length of the shortest dashed line: longer than the strokes of one row of text. */
const dashGapMax = 1 / 200;
const dashedLengthMin = 1 / 15;
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

/**
 * The drawn lines of a page, in pixels: long dark runs that are thin across. Strokes of letters above each other may
 * look like a dashed line, and so does a row of dots, so `dashed` says little outside of a table.
 */
export function findRules(image: GreyImage): { solid: Rule[]; dashed: Rule[] } {
  const { width, height } = image;
  const rows = darkPixels(image);
  const columns = turned(rows, width, height);
  const [thickMax, gapMax, runMin] = [thicknessMax * width, pieceGapMax * width, lengthMin * width];
  const bars = collectRuns(rows, width, { runMin, gap: gapPixelsMax, sharedMin: 0 });
  const ofPieces = { runMin: uprightPieceMin * width, gap: gapPixelsMax, sharedMin: uprightSharedMin };
  const pieces = Map.groupBy(collectRuns(columns, height, ofPieces), isThin(thickMax));
  const isDouble = isThin(doubleUprightThicknessMax * width);
  const lines = bars.flatMap((bar) => linesOf(bar, width));
  const level = joinRuns(lines, gapMax).flatMap((bar) => halvesOf(bar, thickMax));
  const joinPieces = (some: Run[], lengthMin: number): Run[] =>
    joinRuns(some, gapMax).filter(({ from, to }) => to - from >= lengthMin);
  const upright = [
    ...joinPieces(pieces.get(true) ?? [], runMin),
    ...joinPieces((pieces.get(false) ?? []).filter(isDouble), doubleLengthMin * width),
  ];
  const dashes = (pixels: Uint8Array, length: number): Run[] => {
    const ofDashes = { runMin: dashedLengthMin * width, gap: dashGapMax * width, sharedMin: 0 };
    const found = collectRuns(pixels, length, ofDashes);
    return joinRuns(found.filter(isThin(thickMax)), gapMax);
  };
  return {
    solid: [...level.map(levelRule), ...upright.map(uprightRule)].slice(0, rulesMax),
    dashed: [...dashes(rows, width).map(levelRule), ...dashes(columns, height).map(uprightRule)].slice(0, rulesMax),
  };
}

/** 1 for each dark pixel, row by row. */
function darkPixels(image: GreyImage): Uint8Array {
  const dark = darkBelow(image);
  return image.pixels.map((value) => (value < dark ? 1 : 0));
}

/** The same picture column by column, which is read much faster than every nth pixel. */
function turned(pixels: Uint8Array, width: number, height: number): Uint8Array {
  const columns = new Uint8Array(pixels.length);
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) columns[x * height + y] = pixels[y * width + x] ?? 0;
  return columns;
}

function isThin(thickMax: number): (bar: Run) => boolean {
  return ({ first, last }) => last - first < thickMax;
}

function levelRule({ from, to, first, last }: Run): Rule {
  return { left: from, right: to, top: first, bottom: last + 1 };
}

function uprightRule({ from, to, first, last }: Run): Rule {
  return { left: first, right: last + 1, top: from, bottom: to };
}

/** The line that a bar is, or the edges of an area of colour. */
function linesOf(bar: Run, width: number): Run[] {
  if (isThin(thicknessMax * width)(bar)) return [bar];
  if (bar.to - bar.from < areaWidthMin * width) return [];
  if (isThin(doubleThicknessMax * width)(bar)) return [bar];
  return [
    { ...bar, last: bar.first },
    { ...bar, first: bar.last },
  ];
}

/** The upper and the lower half of a double rule, because a rule of a table is thin. */
function halvesOf(bar: Run, thickMax: number): Run[] {
  if (isThin(thickMax)(bar)) return [bar];
  const middle = Math.floor((bar.first + bar.last) / 2);
  return [
    { ...bar, last: middle },
    { ...bar, first: middle },
  ];
}

type Shape = {
  runMin: number;
  /** The number of light pixels that do not end a run. */
  gap: number;
  /** The share that runs of neighbouring rows have in common if they are one bar. */
  sharedMin: number;
};

/** Joins the dark runs of neighbouring rows (or columns), each of which has `length` pixels, into bars. */
function collectRuns(pixels: Uint8Array, length: number, { runMin, gap, sharedMin }: Shape): Run[] {
  const bars: Run[] = [];
  let open: Run[] = [];
  for (let line = 0; line * length < pixels.length; line++) {
    const next: Run[] = [];
    for (const [from, to] of runsOf(pixels.subarray(line * length, (line + 1) * length), runMin, gap)) {
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

function* runsOf(pixels: Uint8Array, runMin: number, gap: number): Generator<[number, number]> {
  let from = -1;
  let last = -1;
  for (let at = 0; at < pixels.length; at++) {
    if (pixels[at] === 1) {
      if (from < 0) from = at;
      last = at;
    } else if (from >= 0 && at - last > gap) {
      if (last - from >= runMin) yield [from, last + 1];
      from = -1;
    }
  }
  if (from >= 0 && last - from >= runMin) yield [from, last + 1];
}
