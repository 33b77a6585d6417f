import type { Rule } from '../pdf/glyph.ts';
import { findRuledCells } from '../pdf/grids.ts';
import type { Layout, OcrLine, TesseractEngine } from './engine.ts';
import { darkBelow, type GreyImage } from './image.ts';

/** A larger cell is a box around a part of the page, which may have columns of its own. */
const cellShareMax = 1 / 8;
const cellsMax = 1_500;
/** The dark pixels of the smallest character, such as a point. */
const inkPixelsMin = 6;
/** Tesseract misreads characters at the edge of a picture. */
const marginPixels = 12;
/** The blurred edge of a rule. */
const edgePixels = 2;
/** How far the rules of a cell may be from its edge, in points. Double rules have it in their middle. */
const edgePointsMax = 3;
/** Half of a thin rule, which noise may have hidden. */
const insetPixels = 3;
const white = 255;

/**
 * The lines of each cell of the ruled tables, recognised cell by cell. Read together with its table, a cell loses
 * spaces and slashes, and a rule becomes a letter. Makes the cells white in the picture.
 */
export function takeCells(engine: TesseractEngine, image: GreyImage, rules: Rule[], dotsPerInch: number): OcrLine[][] {
  const scale = 72 / dotsPerInch;
  const cells = findRuledCells(rules.map((rule) => scaleBox(rule, scale)))
    .map((cell) => roundBox(scaleBox(cell, 1 / scale)))
    .filter((cell) => areaOf(cell) < image.width * image.height * cellShareMax)
    .slice(0, cellsMax);
  if (cells.length === 0) return [];
  const dark = darkBelow(image);
  for (const cell of cells) if (isReversed(image, cell, dark)) reverse(image, cell);
  for (const rule of rules)
    if (cells.some((cell) => isEdge(rule, cell, edgePointsMax / scale))) clear(image, widen(rule, edgePixels));
  const lines = cells.map((cell) => {
    const ink = findInk(image, widen(cell, -insetPixels), dark);
    if (!ink) return [];
    const picture = crop(image, ink.box);
    const found = engine.recognise(picture, dotsPerInch, ink.layout);
    return found.map((line) => moveLine(line, ink.box.left - marginPixels, ink.box.top - marginPixels));
  });
  for (const cell of cells) clear(image, cell);
  return lines;
}

function scaleBox({ left, right, top, bottom }: Rule, by: number): Rule {
  return { left: left * by, right: right * by, top: top * by, bottom: bottom * by };
}

function roundBox({ left, right, top, bottom }: Rule): Rule {
  return { left: Math.round(left), right: Math.round(right), top: Math.round(top), bottom: Math.round(bottom) };
}

function areaOf({ left, right, top, bottom }: Rule): number {
  return (right - left) * (bottom - top);
}

function widen({ left, right, top, bottom }: Rule, by: number): Rule {
  return { left: left - by, right: right + by, top: top - by, bottom: bottom + by };
}

function isEdge(rule: Rule, cell: Rule, distance: number): boolean {
  const x = (rule.left + rule.right) / 2;
  const y = (rule.top + rule.bottom) / 2;
  const isNear = (at: number, edge: number): boolean => Math.abs(at - edge) <= distance;
  return rule.right - rule.left > rule.bottom - rule.top
    ? rule.left < cell.right && rule.right > cell.left && (isNear(y, cell.top) || isNear(y, cell.bottom))
    : rule.top < cell.bottom && rule.bottom > cell.top && (isNear(x, cell.left) || isNear(x, cell.right));
}

function clear({ width, height, pixels }: GreyImage, { left, right, top, bottom }: Rule): void {
  for (let y = Math.max(0, top); y < Math.min(height, bottom); y++)
    pixels.fill(white, y * width + Math.max(0, left), y * width + Math.min(width, right));
}

/** Light text on a dark area, as in headers. */
function isReversed({ width, pixels }: GreyImage, { left, right, top, bottom }: Rule, dark: number): boolean {
  let count = 0;
  for (let y = top; y < bottom; y++)
    for (let x = left; x < right; x++) if ((pixels[y * width + x] ?? white) < dark) count += 1;
  return count > ((right - left) * (bottom - top)) / 2;
}

function reverse({ width, pixels }: GreyImage, { left, right, top, bottom }: Rule): void {
  for (let y = top; y < bottom; y++)
    for (let x = left; x < right; x++) pixels[y * width + x] = white - (pixels[y * width + x] ?? white);
}

/** The box around the dark pixels of a cell, and whether they form one line; undefined if there are too few. */
function findInk(image: GreyImage, cell: Rule, dark: number): { box: Rule; layout: Layout } | undefined {
  const { width, pixels } = image;
  const box = { left: cell.right, right: cell.left, top: cell.bottom, bottom: cell.top };
  let [count, lines, empty] = [0, 0, marginPixels];
  for (let y = Math.max(0, cell.top); y < Math.min(image.height, cell.bottom); y++) {
    const before = count;
    for (let x = Math.max(0, cell.left); x < Math.min(width, cell.right); x++) {
      if ((pixels[y * width + x] ?? white) >= dark) continue;
      count += 1;
      box.left = Math.min(box.left, x);
      box.right = Math.max(box.right, x + 1);
    }
    if (count === before) {
      empty += 1;
      continue;
    }
    box.top = Math.min(box.top, y);
    box.bottom = y + 1;
    if (empty > 3) lines += 1;
    empty = 0;
  }
  return count < inkPixelsMin ? undefined : { box, layout: lines > 1 ? 'block' : 'line' };
}

function crop({ width: from, pixels }: GreyImage, box: Rule): GreyImage {
  const [width, height] = [box.right - box.left + 2 * marginPixels, box.bottom - box.top + 2 * marginPixels];
  const picture = { width, height, pixels: new Uint8Array(width * height).fill(white) };
  for (let y = box.top; y < box.bottom; y++)
    picture.pixels.set(
      pixels.subarray(y * from + box.left, y * from + box.right),
      (y - box.top + marginPixels) * width + marginPixels,
    );
  return picture;
}

function moveLine(line: OcrLine, x: number, y: number): OcrLine {
  const move = ({ x0, y0, x1, y1 }: OcrLine['bbox']): OcrLine['bbox'] => ({
    x0: x0 + x,
    y0: y0 + y,
    x1: x1 + x,
    y1: y1 + y,
  });
  return {
    ...line,
    bbox: move(line.bbox),
    baseline: move(line.baseline),
    words: line.words.map((word) => ({ ...word, bbox: move(word.bbox) })),
  };
}
