import type { Rule } from '../pdf/glyph.ts';
import { findRuledCells } from '../pdf/grids.ts';
import type { OcrLine } from './engine.ts';
import { darkBelow, type GreyImage } from './image.ts';

/** A larger cell is a box around a part of the page, which may have columns of its own. */
const cellShareMax = 1 / 8;
/** The blurred edge of a rule. */
const edgePixels = 2;
/** How far the rules of a cell may be from its edge, in points. Double rules have it in their middle. */
const edgePointsMax = 3;
const white = 255;

type ScannedTables = { cells: Rule[]; rules: Set<Rule> };

/**
 * Finds the ruled tables of a scan and makes their rules white in the picture: otherwise a rule becomes
 * a letter.
 */
export function clearTables(image: GreyImage, rules: Rule[], dotsPerInch: number): ScannedTables {
  const scale = 72 / dotsPerInch;
  const areaMax = image.width * image.height * cellShareMax;
  const cells = findRuledCells(rules.map((rule) => scaleBox(rule, scale)))
    .map((cell) => roundBox(scaleBox(cell, 1 / scale)))
    .filter((cell) => areaOf(cell) < areaMax);
  const edges = rules.filter((rule) => cells.some((cell) => isEdge(rule, cell, edgePointsMax / scale)));
  const dark = darkBelow(image);
  for (const cell of cells) if (isReversed(image, cell, dark)) reverse(image, cell);
  for (const rule of edges) clear(image, widen(rule, edgePixels));
  return { cells, rules: new Set(edges) };
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
