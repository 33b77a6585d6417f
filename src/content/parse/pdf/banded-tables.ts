import { type Line, typicalLeading } from './lines.ts';

type FlowItem = { kind: 'line'; line: Line } | { kind: 'table' };
type Interval = { left: number; right: number };
type Band = { lines: Line[]; top: number; bottom: number };
/** A row of a table: the lines of its cells, and its text side by side, with white space in between over its height. */
export type BandedRow = { lines: Line[]; segments: Interval[]; size: number };

/** The dots of a table of contents. */
const leaders = /(?:\.\s?){5,}/;
/** A row is set off from the next by this many times the usual distance of lines. */
const setOffMin = 1.25;
const bandsMin = 3;
const linesOfBandMax = 40;
const linesMax = 400;

/**
 * Finds tables whose cells have several lines and which have no rules: white space goes between the rows and between the
 * columns, and the rows are drawn one after another. Columns of prose are drawn one after another instead.
 */
export class BandFinder {
  readonly #leading: number;

  constructor(lines: Line[]) {
    this.#leading = typicalLeading(lines);
  }

  /** The rows of the table that begins with the line at `from`; none if it begins no such table. */
  find(items: FlowItem[], from: number): BandedRow[] {
    const bands: Band[] = [];
    let count = 0;
    for (let at = from; at < items.length && count < linesMax; ) {
      const band = this.#bandAt(items, at, bands.at(-1)?.bottom ?? bottomAbove(items, at));
      if (
        !band ||
        band.top <= (bands.at(-1)?.bottom ?? Number.NEGATIVE_INFINITY) ||
        piecesOf(band).length < 2 ||
        band.lines.some(isNoRow) ||
        hasRows(band) ||
        hasTitle(band)
      )
        break;
      bands.push(band);
      at += band.lines.length;
      count += band.lines.length;
    }
    if (bands.length < bandsMin) return [];
    return bands.map((band) => ({ lines: band.lines, segments: piecesOf(band), size: band.lines[0]?.size ?? 10 }));
  }

  /** The lines from here on without white space across all of them, each below what is above the first one. */
  #bandAt(items: FlowItem[], from: number, before: number): Band | undefined {
    const band: Band = { lines: [], top: Number.POSITIVE_INFINITY, bottom: Number.NEGATIVE_INFINITY };
    for (let at = from; at < items.length; at++) {
      const item = items[at];
      if (item?.kind !== 'line') break;
      const { line } = item;
      if (band.lines.length > 0) {
        if (line.baseline < before + this.#distance(line)) break;
        if (line.baseline > band.bottom + this.#distance(line)) break;
        if (line.baseline < band.top - this.#distance(line) * linesOfBandMax) break;
      }
      band.lines.push(line);
      band.top = Math.min(band.top, line.baseline);
      band.bottom = Math.max(band.bottom, line.baseline);
      if (band.lines.length > linesOfBandMax) return undefined;
    }
    return band.lines.length === 0 ? undefined : band;
  }

  #distance({ size }: Line): number {
    return size * this.#leading * setOffMin;
  }
}

/** The baseline of the line above this one, if the line before is above it and not at the end of another column. */
function bottomAbove(items: FlowItem[], at: number): number {
  const [before, first] = [items[at - 1], items[at]];
  if (before?.kind !== 'line' || first?.kind !== 'line') return Number.NEGATIVE_INFINITY;
  return before.line.baseline < first.line.baseline ? before.line.baseline : Number.NEGATIVE_INFINITY;
}

function piecesOf({ lines }: Band): Interval[] {
  const found: Interval[] = [];
  const segments = lines.flatMap((line) => line.segments).sort((a, b) => a.left - b.left);
  for (const { left, right, size } of segments) {
    const last = found.at(-1);
    if (last && left < last.right + size * 0.4) last.right = Math.max(last.right, right);
    else found.push({ left, right });
  }
  return found;
}

/** Whether a line begins with a bullet that stands apart, or belongs to a table of contents. */
function isNoRow({ segments, text }: Line): boolean {
  return /^[•‣▪●○◦■–*-]$/.test(segments[0]?.text ?? '') || leaders.test(text);
}

/** Whether its first line is larger than the others: the title above a table is none of its rows. */
function hasTitle({ lines: [first, ...others] }: Band): boolean {
  return first !== undefined && others.length > 0 && others.every(({ size }) => first.size > size * 1.08);
}

/** Whether lines of several pieces are above each other, which are rows already: the lines of a cell are drawn one by one. */
function hasRows({ lines }: Band): boolean {
  const starts = lines.filter(({ segments }) => segments.length > 1).map(({ left }) => left);
  return starts.some((left, index) => starts.slice(index + 1).some((other) => Math.abs(other - left) < 2));
}

/** Whether a cell has several lines: two lines of the row are above each other. */
export function hasLongCell({ lines }: BandedRow): boolean {
  return lines.some((line) =>
    lines.some(
      (other) => other.baseline > line.baseline + line.size * 0.8 && other.left < line.right && other.right > line.left,
    ),
  );
}
