import { parseLimits } from '../limits.ts';
import { failed, requireTextSize } from '../types.ts';
import type { Block } from '../write-markdown.ts';

/** The limits of all sheets in a workbook: a small file can repeat one long string or one sheet many times. */
export class SheetBudget {
  #cells = 0;
  #characters = 0;
  #places = 0;

  /** Throws ParseError. */
  addCell(text: string): void {
    this.#cells += 1;
    this.#characters += text.length;
    if (this.#cells > parseLimits.sheetCellsMax) throw failed('The workbook has more cells than can be read.');
    requireTextSize(this.#characters);
  }

  /** Counts a table's cells, the empty ones too. Throws ParseError. */
  addPlaces(count: number): void {
    this.#places += count;
    if (this.#places > parseLimits.tablePlacesMax) throw failed('The workbook has more cells than can be read.');
  }
}

/** The filled cells of one worksheet by row and column (from 0), and its merged ranges. Texts are inline Markdown. */
export class SheetGrid {
  readonly rows = new Map<number, Map<number, string>>();
  readonly merges: { top: number; left: number; bottom: number; right: number }[] = [];
  readonly budget: SheetBudget;
  /** Rows beyond the limit were left out. */
  truncated = false;

  constructor(budget: SheetBudget) {
    this.budget = budget;
  }

  set(row: number, column: number, text: string): void {
    if (text.trim() === '') return;
    let cells = this.rows.get(row);
    if (!cells) {
      if (this.rows.size >= parseLimits.sheetRowsMax) {
        this.truncated = true;
        return;
      }
      cells = new Map();
      this.rows.set(row, cells);
    }
    this.budget.addCell(text);
    cells.set(column, text);
  }
}

type Area = { rows: number[]; columns: number[] };
const mergeCellsMax = 10_000;

/** Writes a sheet. Empty rows and columns separate it into tables; a lone cell becomes a paragraph. */
export function sheetBlocks(grid: SheetGrid): Block[] {
  const merged = fillMerges(grid);
  const blocks: Block[] = [];
  const rows = [...grid.rows.keys()].sort((a, b) => a - b);
  const columns = [...new Set([...grid.rows.values()].flatMap((cells) => [...cells.keys()]))].sort((a, b) => a - b);
  for (const area of splitIntoTables(grid, { rows, columns }, 0)) blocks.push(...areaBlocks(grid, area, merged));
  if (grid.truncated) blocks.push({ type: 'comment', text: `only the first ${parseLimits.sheetRowsMax} rows` });
  return blocks;
}

/**
 * A merged cell repeats its text in each position, so that every row can be read by itself. Returns the last column of each,
 * by row and first column.
 */
function fillMerges(grid: SheetGrid): Map<string, number> {
  const merged = new Map<string, number>();
  for (const { top, left, bottom, right } of grid.merges) {
    const text = grid.rows.get(top)?.get(left);
    if (text === undefined || (bottom - top + 1) * (right - left + 1) > mergeCellsMax) continue;
    for (let row = top; row <= bottom; row++) {
      merged.set(`${row} ${left}`, right);
      for (let column = left; column <= right; column++)
        if (row !== top || column !== left) grid.set(row, column, text);
    }
  }
  return merged;
}

/** Splits along empty rows, then along empty columns, until nothing separates further. */
function splitIntoTables(grid: SheetGrid, area: Area, depth: number): Area[] {
  if (depth > 6) return [area];
  const bands = split(area.rows).map((rows) => ({ rows, columns: used(grid, rows, area.columns) }));
  return bands.flatMap((band) => {
    const parts = split(band.columns);
    if (parts.length === 1) return bands.length === 1 ? [band] : splitIntoTables(grid, band, depth + 1);
    const partOf = new Map(parts.flatMap((columns, index) => columns.map((column) => [column, index] as const)));
    const rowsOf = parts.map((): number[] => []);
    for (const row of band.rows) {
      const filled = filledColumns(grid, row, band.columns).map((column) => partOf.get(column));
      for (const index of new Set(filled)) if (index !== undefined) rowsOf[index]?.push(row);
    }
    return parts.flatMap((columns, index) => splitIntoTables(grid, { rows: rowsOf[index] ?? [], columns }, depth + 1));
  });
}

function used(grid: SheetGrid, rows: number[], columns: number[]): number[] {
  const found = new Set<number>();
  for (const row of rows) for (const column of filledColumns(grid, row, columns)) found.add(column);
  return columns.filter((column) => found.has(column));
}

/** The filled columns of a row within these, found by the cheaper of two ways. */
function filledColumns(grid: SheetGrid, row: number, columns: number[]): number[] {
  const cells = grid.rows.get(row);
  if (!cells) return [];
  return cells.size < columns.length ? [...cells.keys()] : columns.filter((column) => cells.has(column));
}

/** Runs of consecutive numbers. */
function split(numbers: number[]): number[][] {
  const runs: number[][] = [];
  for (const one of numbers) {
    const last = runs.at(-1);
    if (last && one === (last.at(-1) ?? 0) + 1) last.push(one);
    else runs.push([one]);
  }
  return runs;
}

/** A first row that is one cell merged over the whole width is the table's title. */
function areaBlocks(grid: SheetGrid, area: Area, merged: Map<string, number>): Block[] {
  grid.budget.addPlaces(area.rows.length * area.columns.length);
  const rows = area.rows.map((row) => area.columns.map((column) => grid.rows.get(row)?.get(column) ?? ''));
  const [first = 0] = area.columns;
  const last = area.columns.at(-1) ?? first;
  const isTitle = (index: number): boolean =>
    area.columns.length === 1
      ? rows.length === index + 1
      : (merged.get(`${area.rows[index]} ${first}`) ?? first) >= last;
  const start = rows.findIndex((_row, index) => !isTitle(index));
  const titles = rows.slice(0, start < 0 ? rows.length : start);
  const blocks = titles.map((row): Block => ({ type: 'paragraph', text: row[0] ?? '' }));
  return start < 0 ? blocks : [...blocks, { type: 'table', rows: rows.slice(start) }];
}

const dayMs = 86_400_000;

/** An Excel serial day as ISO date and time (`2024-01-31 00:00:00`), a time only as `13:30:00`. */
export function serialDate(serial: number, from1904: boolean): string {
  const days = from1904 ? serial + 1462 : serial;
  const time = Math.round((days - 25_569) * 86_400) * 1000;
  if (!Number.isFinite(time) || days < 0 || days > 2_958_466) return String(serial);
  const corrected = days < 60 && !from1904 ? time + dayMs : time;
  const text = new Date(corrected).toISOString();
  return serial < 1 ? text.slice(11, 19) : `${text.slice(0, 10)} ${text.slice(11, 19)}`;
}

/** Whether a number format shows a date or a time. */
export function isDateFormat(id: number, code: string | undefined): boolean {
  if ((id >= 14 && id <= 22) || (id >= 27 && id <= 36) || (id >= 45 && id <= 47) || (id >= 50 && id <= 58)) return true;
  if (code === undefined || /^general$/i.test(code)) return false;
  const bare = code.replaceAll(/"[^"]*"|\\.|\[(?!h+\]|m+\]|s+\])[^\]]*\]|_.|\*./gi, '').split(';')[0] ?? '';
  return /[dyhs]|m{1,5}/i.test(bare) && !/[#0?].*[#0?]*(?<![:.])$/.test(bare.replaceAll(/s\.0+/gi, 's'));
}

/** A number as typed: no exponent in the usual range, no digits beyond the precision of a double. */
export function numberText(value: number): string {
  return String(Number(value.toPrecision(15)));
}
