import type { Rule } from '../pdf/glyph.ts';
import { findRuledTables } from '../pdf/grids.ts';
import type { OcrLine, TesseractEngine } from './engine.ts';
import { darkBelow, type GreyImage, paperLevel } from './image.ts';

/** A larger cell is a box around a part of the page, which may have columns of its own. */
const cellShareMax = 1 / 8;
/** The tables of a page that are recognised by themselves, because each takes time of its own. */
const tablesMax = 50;
/** Tesseract misreads characters at the edge of a picture. */
const marginPixels = 12;
/** The blurred edge of a rule. */
const edgePixels = 2;
/** How far the rules of a cell may be from its edge, in points. Double rules have it in their middle. */
const edgePointsMax = 3;
/** The same of dashed lines, because strokes of the first letters of a cell may look like one. */
const dashedEdgePointsMax = 1;
const white = 255;

type ScannedTables = { cells: Rule[]; lines: OcrLine[]; rules: Set<Rule> };

/**
 * Recognises the ruled tables of a scan, each by itself and without its rules: otherwise a rule becomes a letter, and
 * the engine takes columns of cells for columns of text. Makes the tables white in the picture.
 */
export function takeTables(
  engine: TesseractEngine,
  image: GreyImage,
  { solid, dashed }: { solid: Rule[]; dashed: Rule[] },
  dotsPerInch: number,
): ScannedTables {
  const scale = 72 / dotsPerInch;
  const found = findTables(image, solid, scale);
  // Strokes of letters in a table that has whole rules would split its cells.
  const boxes = found.map((cells) => widen(boxOf(cells), edgePointsMax / scale));
  const isOutside = (rule: Rule): boolean => !boxes.some((box) => overlap(rule, box));
  const dashes = dashed.filter(isOutside);
  const tables = [...found, ...findTables(image, [...solid.filter(isOutside), ...dashes], scale)].slice(0, tablesMax);
  const cells = tables.flat();
  const edgesAmong = (rules: Rule[], pointsMax: number): Rule[] =>
    rules.filter((rule) => cells.some((cell) => isEdge(rule, cell, pointsMax / scale)));
  const edges = [...edgesAmong(solid, edgePointsMax), ...edgesAmong(dashes, dashedEdgePointsMax)];
  const dark = darkBelow(image);
  const paper = paperLevel(image, dark);
  for (const cell of cells) if (isReversed(image, cell, dark)) reverse(image, cell);
  for (const rule of edges) clear(image, widen(rule, edgePixels), paper);
  const lines = tables.flatMap((table) => {
    const box = boxOf(table);
    const found = engine.recognise(crop(image, box, paper), dotsPerInch, 'table');
    for (const cell of table) clear(image, cell, paper);
    return found.map((line) => moveLine(line, box.left - marginPixels, box.top - marginPixels));
  });
  return { cells, lines, rules: new Set(edges) };
}

function findTables(image: GreyImage, rules: Rule[], scale: number): Rule[][] {
  const areaMax = image.width * image.height * cellShareMax;
  return findRuledTables(rules.map((rule) => scaleBox(rule, scale)))
    .map((cells) => cells.map((cell) => roundBox(scaleBox(cell, 1 / scale))).filter((cell) => areaOf(cell) < areaMax))
    .filter((cells) => cells.length > 0);
}

function overlap(one: Rule, other: Rule): boolean {
  return one.left < other.right && one.right > other.left && one.top < other.bottom && one.bottom > other.top;
}

/** The lines outside tables, then those of each cell, because a recognised line goes through all cells of a row. */
export function splitByCells(lines: OcrLine[], cells: Rule[]): OcrLine[][] {
  const parts = new Map<Rule | undefined, OcrLine[]>([[undefined, []]]);
  for (const line of lines) {
    const groups = Map.groupBy(line.words, (word) => cells.find((cell) => isInside(word.bbox, cell)));
    for (const [cell, words] of groups) {
      const part = parts.get(cell) ?? [];
      part.push({ ...line, words });
      parts.set(cell, part);
    }
  }
  return [...parts.values()];
}

function isInside({ x0, x1, y0, y1 }: OcrLine['bbox'], cell: Rule): boolean {
  const [x, y] = [(x0 + x1) / 2, (y0 + y1) / 2];
  return x >= cell.left && x < cell.right && y >= cell.top && y < cell.bottom;
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

function clear({ width, height, pixels }: GreyImage, { left, right, top, bottom }: Rule, paper: number): void {
  for (let y = Math.max(0, top); y < Math.min(height, bottom); y++)
    pixels.fill(paper, y * width + Math.max(0, left), y * width + Math.min(width, right));
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

function boxOf(cells: Rule[]): Rule {
  return {
    left: Math.min(...cells.map(({ left }) => left)),
    right: Math.max(...cells.map(({ right }) => right)),
    top: Math.min(...cells.map(({ top }) => top)),
    bottom: Math.max(...cells.map(({ bottom }) => bottom)),
  };
}

function crop({ width: from, pixels }: GreyImage, box: Rule, paper: number): GreyImage {
  const [width, height] = [box.right - box.left + 2 * marginPixels, box.bottom - box.top + 2 * marginPixels];
  const picture = { width, height, pixels: new Uint8Array(width * height).fill(paper) };
  for (let y = box.top; y < box.bottom; y++)
    picture.pixels.set(
      pixels.subarray(y * from + box.left, y * from + box.right),
      (y - box.top + marginPixels) * width + marginPixels,
    );
  return picture;
}

function moveLine(line: OcrLine, x: number, y: number): OcrLine {
  const move = (box: OcrLine['bbox']) => ({ x0: box.x0 + x, y0: box.y0 + y, x1: box.x1 + x, y1: box.y1 + y });
  return {
    ...line,
    bbox: move(line.bbox),
    baseline: move(line.baseline),
    words: line.words.map((word) => ({ ...word, bbox: move(word.bbox) })),
  };
}
