import { parseLimits } from '../limits.ts';
import { failed, requireTextSize } from '../types.ts';
import { type Block, escapeText } from '../write-markdown.ts';

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

/**
 * The visible sheets of a workbook that contain anything, each below its name, and their number. If all of them are empty, the
 * hidden ones are shown.
 */
export function workbookBlocks<Sheet extends { name: string; hidden: boolean }>(
  sheets: Sheet[],
  read: (sheet: Sheet) => Block[],
): { blocks: Block[]; pages: number } {
  const blocks: Block[] = [];
  for (const isHidden of [false, true]) {
    const group = sheets.filter(({ hidden }) => hidden === isHidden);
    for (const sheet of group) {
      const contents = read(sheet);
      if (contents.length > 0) blocks.push({ type: 'heading', level: 2, text: escapeText(sheet.name) }, ...contents);
    }
    if (blocks.length > 0) return { blocks, pages: group.length };
  }
  return { blocks, pages: sheets.length };
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
