import { type BandedRow, BandFinder, hasLongCell } from './banded-tables.ts';
import type { Rule } from './glyph.ts';
import { type Bar, findBars, findGrids, type Grid, joinBars, mergeCells, touch } from './grids.ts';
import { joinSegments, type Line, type Segment, sameBaseline } from './lines.ts';

export type PdfTable = { rows: string[][]; left: number; right: number; top: number; bottom: number };
type FlowItem = { kind: 'line'; line: Line } | { kind: 'table'; table: PdfTable };

type Interval = { left: number; right: number };

/** Finds tables in a page's lines: first ruled ones, then those whose cells merely align. Order is kept. */
export function findTables(lines: Line[], rules: Rule[]): FlowItem[] {
  const { horizontal, vertical } = findBars(rules);
  const items = ruledTables(lines, horizontal, vertical);
  return alignedTables(items, horizontal, new BandFinder(lines));
}

function ruledTables(lines: Line[], horizontal: Bar[], vertical: Bar[]): FlowItem[] {
  const grids = findGrids(horizontal, vertical);
  const taken = new Map<Grid, Segment[]>();
  const items: FlowItem[] = [];
  const placed = new Map<Grid, number>();
  for (const line of lines) {
    const grid = grids.find((one) => holds(one, line));
    if (!grid) {
      items.push({ kind: 'line', line });
      continue;
    }
    const segments = taken.get(grid) ?? [];
    segments.push(...line.segments);
    taken.set(grid, segments);
    if (!placed.has(grid)) {
      placed.set(grid, items.length);
      items.push({ kind: 'table', table: { rows: [], left: 0, right: 0, top: 0, bottom: 0 } });
    }
  }
  const result: FlowItem[] = [];
  items.forEach((item, index) => {
    const grid = [...placed].find(([, at]) => at === index)?.[0];
    if (!grid) {
      result.push(item);
      return;
    }
    const segments = taken.get(grid) ?? [];
    const table = fillGrid(grid, segments);
    if (table) result.push({ kind: 'table', table });
    else result.push(...linesOf(segments).map((line): FlowItem => ({ kind: 'line', line })));
  });
  return result;
}

function linesOf(segments: Segment[]): Line[] {
  const lines: Segment[][] = [];
  for (const segment of segments) {
    const last = lines.at(-1)?.at(-1);
    if (last && sameBaseline(last, segment) && segment.left >= last.right - segment.size) lines.at(-1)?.push(segment);
    else lines.push([segment]);
  }
  return lines.map(joinSegments);
}

function holds(grid: Grid, line: Line): boolean {
  const middle = (line.top + line.bottom) / 2;
  const inside = (x: number): boolean => x >= (grid.xs[0] ?? 0) - touch && x <= (grid.xs.at(-1) ?? 0) + touch;
  return (
    middle > (grid.ys[0] ?? 0) - 1 &&
    middle < (grid.ys.at(-1) ?? 0) + 1 &&
    inside(line.left + 1) &&
    inside(line.right - 1)
  );
}

/** A cell with so many pieces, and most of those of its grid, is the frame of a slide with its title and footer. */
const frameSegmentsMin = 6;

/** Assigns texts to cells; neighbouring cells without a bar between them are one and repeat its text. */
function fillGrid(grid: Grid, segments: Segment[]): PdfTable | undefined {
  const { xs, ys } = grid;
  const columns = xs.length - 1;
  const rows = ys.length - 1;
  const owner = mergeCells(grid, columns, rows);
  const cells = new Map<number, Segment[]>();
  for (const segment of segments) {
    const x = slot(xs, (segment.left + segment.right) / 2);
    const y = slot(ys, (segment.top + segment.bottom) / 2);
    const cell = owner[y * columns + x] ?? 0;
    const list = cells.get(cell) ?? [];
    list.push(segment);
    cells.set(cell, list);
  }
  const largest = Math.max(0, ...[...cells.values()].map((one) => one.length));
  if (rows <= 3 && largest >= frameSegmentsMin && largest > segments.length * 0.6) return undefined; // a frame
  const filled = cells.size;
  if (filled < 3 || new Set(owner).size < 4) return undefined;
  // Repeating a heading over three columns is useful; repeating a nested table would copy half the page.
  const repeated = owner.filter((cell, index) => cell !== index && cells.has(cell)).length;
  if (repeated > cells.size * 2) return undefined; // a drawing, not a table
  const repeats = repeated <= cells.size;
  const texts = Array.from({ length: rows }, (_, y) =>
    Array.from({ length: columns }, (_unused, x) => {
      const cell = owner[y * columns + x] ?? 0;
      return repeats || cell === y * columns + x ? cellText(cells.get(cell) ?? []) : '';
    }),
  );
  const kept = texts.filter((row) => row.some((text) => text !== ''));
  if (kept.length < 2) return undefined;
  const usedColumns = Array.from({ length: columns }, (_, x) => x).filter((x) => kept.some((row) => row[x] !== ''));
  if (usedColumns.length < 2) return undefined;
  return {
    rows: kept.map((row) => usedColumns.map((x) => row[x] ?? '')),
    left: xs[0] ?? 0,
    right: xs.at(-1) ?? 0,
    top: ys[0] ?? 0,
    bottom: ys.at(-1) ?? 0,
  };
}

function slot(edges: number[], value: number): number {
  let index = 0;
  while (index < edges.length - 2 && value > (edges[index + 1] ?? 0)) index += 1;
  return index;
}

function cellText(segments: Segment[]): string {
  const rows: Segment[][] = [];
  for (const segment of [...segments].sort((a, b) => a.baseline - b.baseline || a.left - b.left)) {
    const last = rows.at(-1)?.[0];
    if (last && sameBaseline(last, segment)) rows.at(-1)?.push(segment);
    else rows.push([segment]);
  }
  return rows
    .map((row) =>
      row
        .sort((a, b) => a.left - b.left)
        .map((one) => one.text)
        .join(' '),
    )
    .join(' ');
}

/** Runs of lines whose parts are in the same columns. */
function alignedTables(items: FlowItem[], horizontal: Bar[], bands: BandFinder): FlowItem[] {
  const result: FlowItem[] = [];
  let at = 0;
  while (at < items.length) {
    const rows = bands.find(items, at);
    const banded = bandedTable(rows);
    const region = tableRegion(items, at);
    // Rows of one line each are found more exactly by their columns.
    const table =
      region.length >= 2 && !(banded && rows.some(hasLongCell)) ? alignedTable(region, horizontal) : undefined;
    if (banded && !table) {
      result.push({ kind: 'table', table: banded.table });
      at += banded.count;
      continue;
    }
    if (table) {
      result.push({ kind: 'table', table });
      at += region.length;
    } else {
      const item = items[at];
      if (item) result.push(item);
      at += 1;
    }
  }
  return result;
}

const bandedCellMax = 120;
const label = /^(?:[•‣▪●○◦■–*-]|\(?\w{1,3}[.)]|\[\w{1,6}\])$/;

/** Rows of cells with several lines as a table, and how many lines it has. Lists and glossaries of one long column are none. */
function bandedTable(rows: BandedRow[]): { table: PdfTable; count: number } | undefined {
  const columns = columnsOf(rows, 0.3);
  const heads = rows[0]?.segments ?? [];
  if (columns.length < 2 || heads.some((head) => columnsAt(head, 10, columns).length > 1)) return undefined;
  const cells = rows.map(({ lines }) => {
    const row = columns.map((): string[] => []);
    for (const line of [...lines].sort((a, b) => a.baseline - b.baseline))
      cellsOf(line, columns).forEach((text, column) => {
        if (text !== '') row[column]?.push(text);
      });
    return row.map((texts) => texts.join(' '));
  });
  const texts = cells.flat().filter((text) => text !== '');
  const length = texts.reduce((sum, text) => sum + text.length, 0) / Math.max(1, texts.length);
  if (texts.length < cells.length * columns.length * 0.5 || length > bandedCellMax) return undefined;
  if (cells.filter((row) => label.test(row[0] ?? '')).length > cells.length * 0.4) return undefined;
  const lines = rows.flatMap((row) => row.lines);
  return {
    table: {
      rows: cells,
      left: Math.min(...lines.map((line) => line.left)),
      right: Math.max(...lines.map((line) => line.right)),
      top: Math.min(...lines.map((line) => line.top)),
      bottom: Math.max(...lines.map((line) => line.bottom)),
    },
    count: lines.length,
  };
}

/** Consecutive lines from here on that could be rows: several parts each, or one part that continues a cell. */
function tableRegion(items: FlowItem[], from: number): Line[] {
  const region: Line[] = [];
  let singles = 0;
  for (let at = from; at < items.length && region.length < 400; at++) {
    const item = items[at];
    if (item?.kind !== 'line') break;
    const { line } = item;
    const last = region.at(-1);
    if (last && (line.baseline < last.baseline - last.size * 1.5 || line.top - last.bottom > last.size * 2.2)) break;
    if (line.segments.length < 2) {
      if (
        singles >= 4 ||
        (last && region.some((one) => one.segments.length > 1) && widthOf(line) > widthOfAll(region) * 0.6)
      )
        break;
      if (!last && !startsHeader(items, at)) break;
      singles += 1;
    } else singles = 0;
    region.push(line);
  }
  while (region.length > 0 && (region.at(-1)?.segments.length ?? 0) < 2) region.pop();
  return region;
}

/** Whether a lone piece of text starts a table: the next lines are beside it and at most two lines lower. */
function startsHeader(items: FlowItem[], at: number): boolean {
  const first = items[at];
  const next = items.slice(at + 1, at + 5);
  const [row] = next;
  if (first?.kind !== 'line') return false;
  if (
    row?.kind === 'line' &&
    first.line.mono === row.line.mono &&
    row.line.segments.length >= 2 &&
    splitRow(first.line).segments.length >= row.line.segments.length
  ) {
    const gap = row.line.top - first.line.bottom;
    if (gap > -first.line.size && gap < first.line.size * 1.5) return true;
  }
  if (widthOf(first.line) > 150) return false;
  return next.some(
    (item) =>
      item.kind === 'line' &&
      item.line.segments.length >= 1 &&
      sameBaseline(item.line, first.line) &&
      item.line.left > first.line.right,
  );
}

function alignedTable(region: Line[], horizontal: Bar[]): PdfTable | undefined {
  const rows = rowsOf(region);
  const several = rows.filter((row) => row.segments.length >= 2);
  if (several.length < 2) return undefined;
  const coarse = columnsOf(several);
  const fineRows = rows.map(splitRow);
  // Column heads are often centred and cross gutters that all rows below them respect.
  const fine = [columnsOf(fineRows), columnsOf(fineRows.slice(1))].sort((a, b) => b.length - a.length)[0] ?? [];
  const isFine = fine.length > coarse.length && several.length >= 3 && filledShare(fineRows, fine) > 0.7;
  const columns = isFine ? fine : coarse;
  if (columns.length < 2) return undefined;
  const box = {
    left: Math.min(...region.map((line) => line.left)),
    right: Math.max(...region.map((line) => line.right)),
    top: Math.min(...region.map((line) => line.top)),
    bottom: Math.max(...region.map((line) => line.bottom)),
  };
  const ruled = rulesAcross(box, horizontal);
  const cells = (isFine ? fineRows : rows).map((row) => cellsOf(row, columns));
  const isMono = several.filter((row) => row.mono).length > several.length / 2;
  if (ruled < 2 && isMono && shareOf(cells.flat(), isNumber) < 0.5) return undefined; // code
  if (!looksTabular(cells, columns.length, ruled) && !isGlossary(several, cells)) return undefined;
  return { ...box, rows: mergeContinuations(rows, cells) };
}

/** How many rules go across a table. Rules of its cells that touch end to end are one; those of a slide's frame begin farther left. */
function rulesAcross({ left, right, top, bottom }: Omit<PdfTable, 'rows'>, horizontal: Bar[]): number {
  const near = horizontal.filter(({ at }) => at > top - 12 && at < bottom + 12);
  const isAcross = ({ from, to }: Bar): boolean => from < left + 20 && to > right - 20;
  const pieces = near.filter(({ from }) => from > left - 20);
  return Math.max(near.filter(isAcross).length, joinBars(pieces).filter(isAcross).length);
}

/** The row with its parts cut at every wider gap. */
function splitRow(row: Line): Line {
  const segments = row.segments.flatMap((segment) =>
    segment.parts.length < 2 ? [segment] : segment.parts.map((part) => ({ ...segment, ...part, parts: [part] })),
  );
  return { ...row, segments };
}

function filledShare(rows: Line[], columns: Interval[]): number {
  const filled = rows.flatMap((row) => cellsOf(row, columns)).filter((text) => text !== '').length;
  return filled / Math.max(1, rows.length * columns.length);
}

/** Lines as rows from top to bottom. Lines nearer than their own height (centred cells beside two-line cells) are one row. */
function rowsOf(region: Line[]): Line[] {
  const sorted = [...region].sort((a, b) => a.baseline - b.baseline);
  const groups: Line[][] = [];
  let last: Line | undefined;
  for (const line of sorted) {
    if (last && line.baseline - last.baseline < Math.min(line.size, last.size) * 0.9) groups.at(-1)?.push(line);
    else groups.push([line]);
    last = line;
  }
  return groups.map((group) => {
    const [first] = group;
    return group.length === 1 && first ? first : joinRow(group);
  });
}

function joinRow(group: Line[]): Line {
  const row = joinSegments(group.flatMap((line) => line.segments));
  const places = [...row.segments].sort((a, b) => a.baseline - b.baseline || a.left - b.left);
  return { ...row, segments: places };
}

/** Columns lie between gutters: strips that at most a few rows (with a spanning cell) cross. */
function columnsOf(rows: { segments: Interval[]; size: number }[], crossedShare = 0.2): Interval[] {
  const edges = rows.flatMap((row) =>
    row.segments.flatMap((one) => [
      { x: one.left, step: 1 },
      { x: one.right, step: -1 },
    ]),
  );
  edges.sort((a, b) => a.x - b.x || b.step - a.step);
  const tolerated = rows.length >= 4 ? Math.floor(rows.length * crossedShare) : 0;
  const columns: Interval[] = [];
  let cover = 0;
  let start: number | undefined;
  for (const { x, step } of edges) {
    cover += step;
    if (cover > tolerated && start === undefined) start = x;
    else if (cover <= tolerated && start !== undefined) {
      columns.push({ left: start, right: x });
      start = undefined;
    }
  }
  const size = rows[0]?.size ?? 10;
  const merged: Interval[] = [];
  for (const column of columns) {
    const last = merged.at(-1);
    if (last && column.left - last.right < size * 0.35) last.right = Math.max(last.right, column.right);
    else merged.push({ ...column });
  }
  return merged;
}

/**
 * The text of a line in each column. Text across several columns is cut at its gaps if each of them gets a part, as in
 * narrow tables, and is in each of them otherwise.
 */
function cellsOf(line: Line, columns: Interval[]): string[] {
  const cells = columns.map(() => '');
  const add = (index: number, text: string): void => {
    cells[index] = cells[index] ? `${cells[index]} ${text}` : text;
  };
  for (const segment of line.segments) {
    const targets = columnsAt(segment, segment.size, columns);
    const parts = segment.parts.map((part) => ({ text: part.text, at: columnsAt(part, segment.size, columns) }));
    const isCut =
      parts.every(({ at }) => at.length === 1) && new Set(parts.map(({ at }) => at[0])).size === targets.length;
    if (targets.length > 1 && isCut) for (const { text, at } of parts) add(at[0] ?? 0, text);
    else for (const index of targets) add(index, segment.text);
  }
  return cells;
}

/** The columns that a piece of text is in, or the nearest one. */
function columnsAt({ left, right }: Interval, size: number, columns: Interval[]): number[] {
  const covered = columns.flatMap((column, index) =>
    Math.min(column.right, right) - Math.max(column.left, left) > Math.min(size, 4) ? [index] : [],
  );
  return covered.length > 0 ? covered : [nearest(columns, (left + right) / 2)];
}

function nearest(columns: Interval[], x: number): number {
  let best = 0;
  let distance = Number.POSITIVE_INFINITY;
  columns.forEach((column, index) => {
    const away = x < column.left ? column.left - x : x > column.right ? x - column.right : 0;
    if (away < distance) {
      distance = away;
      best = index;
    }
  });
  return best;
}

/** Rejects columns of prose, label lists and justified lines that look like a table. */
function looksTabular(cells: string[][], columns: number, ruled: number): boolean {
  const rows = cells.filter((row) => row.filter((text) => text !== '').length >= 2);
  const texts = rows.flat().filter((text) => text !== '');
  const length = texts.reduce((sum, text) => sum + text.length, 0) / Math.max(1, texts.length);
  const filled = texts.length / Math.max(1, rows.length * columns);
  const numeric = shareOf(texts, (text) => numeral.test(text));
  if (rows.some((row) => /^(?:[•‣▪●○◦■–-]|\(?\w{1,3}[.)])$/.test(row[0] ?? '')) && columns === 2) return false;
  if (filled < 0.45) return false;
  if (ruled >= 2) return rows.length >= 2 && length < 80;
  if (columns === 2) return rows.length >= 3 && length < 28 && (numeric > 0.25 || (rows.length >= 4 && length < 22));
  return (rows.length >= 3 && length < 30) || (rows.length >= 2 && length < 22 && columns >= 3);
}

const numeral = /^[\s\d.,%$€£+()/:-]+$/;

function isNumber(text: string): boolean {
  return /\d/.test(text) && numeral.test(text);
}

function shareOf(cells: string[], test: (text: string) => boolean): number {
  const texts = cells.filter((text) => text !== '');
  return texts.filter(test).length / Math.max(1, texts.length);
}

/** Whether rows of two columns have short names at the left, and beside them texts that begin at exactly the same place. */
function isGlossary(several: Line[], cells: string[][]): boolean {
  const rows = cells.filter(([name, text]) => name !== '' && text !== '');
  const [first] = several;
  if (!first || rows.length < 4 || rows.some((row) => row.length !== 2 || label.test(row[0] ?? ''))) return false;
  const start = first.segments[1]?.left ?? 0;
  if (several.some(({ segments }) => segments.length !== 2 || Math.abs((segments[1]?.left ?? 0) - start) > 2))
    return false;
  const names = rows.reduce((sum, [name = '']) => sum + name.length, 0) / rows.length;
  return (
    names < glossaryNameMax && rows.every(([name = '', text = '']) => name.length < text.length + glossaryNameMax * 2)
  );
}

const glossaryNameMax = 28;

/** A line that leaves the first column empty and follows closely belongs to the row above it. */
function mergeContinuations(region: Line[], cells: string[][]): string[][] {
  const gaps = region
    .slice(1)
    .map((line, index) => line.baseline - (region[index]?.baseline ?? 0))
    .sort((a, b) => a - b);
  const wide = (gaps.at(-1) ?? 0) > (gaps[0] ?? 0) * 1.25;
  const size = Math.max(...region.map((line) => line.size));
  const rows: string[][] = [];
  region.forEach((line, index) => {
    const row = cells[index] ?? [];
    const above = rows.at(-1);
    const gap = index === 0 ? Number.POSITIVE_INFINITY : line.baseline - (region[index - 1]?.baseline ?? 0);
    const close = gap < size * 1.45 && (!wide || gap <= (gaps[0] ?? 0) * 1.15);
    const partial = row.filter((text) => text !== '').length < row.length && row[0] === '';
    if (above && close && partial && index > 1)
      row.forEach((text, column) => {
        if (text !== '') above[column] = above[column] ? `${above[column]} ${text}` : text;
      });
    else rows.push([...row]);
  });
  return rows;
}

function widthOf(line: Line): number {
  return line.right - line.left;
}

function widthOfAll(lines: Line[]): number {
  return Math.max(...lines.map((line) => line.right)) - Math.min(...lines.map((line) => line.left));
}
