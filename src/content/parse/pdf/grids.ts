import type { Rule } from './glyph.ts';

export type Bar = { at: number; from: number; to: number };
export type Grid = { xs: number[]; ys: number[]; horizontal: Bar[]; vertical: Bar[] };

const barThickness = 3.5;
/** How far apart things may be that touch. */
export const touch = 3;
const barsMax = 4_000;
const crossingsMax = 400_000;
/** The share of a table's height that the rules between two columns have at least. */
const columnShareMin = 0.6;

/** The cells of each ruled table, as boxes between the middles of rules. Cells without a rule between them are one. */
export function findRuledTables(rules: Rule[]): Rule[][] {
  const { horizontal, vertical } = findBars(rules);
  const grids = findGrids(horizontal, vertical).filter(hasWholeColumns);
  return grids.map((grid) => {
    const { xs, ys } = grid;
    const columns = xs.length - 1;
    const cells = new Map<number, Rule>();
    mergeCells(grid, columns, ys.length - 1).forEach((owner, index) => {
      const [x, y] = [index % columns, Math.floor(index / columns)];
      const [left = 0, right = 0, top = 0, bottom = 0] = [xs[x], xs[x + 1], ys[y], ys[y + 1]];
      const cell = cells.get(owner) ?? { left, right, top, bottom };
      cells.set(owner, {
        left: Math.min(cell.left, left),
        right: Math.max(cell.right, right),
        top: Math.min(cell.top, top),
        bottom: Math.max(cell.bottom, bottom),
      });
    });
    return [...cells.values()];
  });
}

/** Strokes of letters that happen to lie above each other are not rules of a table: they end with their lines. */
function hasWholeColumns({ xs, ys, vertical }: Grid): boolean {
  const height = (ys.at(-1) ?? 0) - (ys[0] ?? 0);
  return xs.every((x) => {
    const own = vertical.filter((bar) => Math.abs(bar.at - x) <= touch * 1.5);
    return own.reduce((sum, bar) => sum + bar.to - bar.from, 0) >= height * columnShareMin;
  });
}

export function findBars(rules: Rule[]): { horizontal: Bar[]; vertical: Bar[] } {
  const horizontal: Bar[] = [];
  const vertical: Bar[] = [];
  for (const rule of rules.slice(0, barsMax)) {
    const width = rule.right - rule.left;
    const height = rule.bottom - rule.top;
    if (height <= barThickness && width > 8)
      horizontal.push({ at: (rule.top + rule.bottom) / 2, from: rule.left, to: rule.right });
    else if (width <= barThickness && height > 5)
      vertical.push({ at: (rule.left + rule.right) / 2, from: rule.top, to: rule.bottom });
    else if (width > 8 && height > 5) {
      horizontal.push(
        { at: rule.top, from: rule.left, to: rule.right },
        { at: rule.bottom, from: rule.left, to: rule.right },
      );
      vertical.push(
        { at: rule.left, from: rule.top, to: rule.bottom },
        { at: rule.right, from: rule.top, to: rule.bottom },
      );
    }
  }
  return { horizontal, vertical };
}

/** Bars that touch end to end as one, as the rules below the cells of a row are. */
export function joinBars(bars: Bar[]): Bar[] {
  const joined: Bar[] = [];
  for (const bar of bars.toSorted((a, b) => Math.round(a.at) - Math.round(b.at) || a.from - b.from)) {
    const last = joined.at(-1);
    if (last && Math.round(last.at) === Math.round(bar.at) && bar.from <= last.to + touch)
      last.to = Math.max(last.to, bar.to);
    else joined.push({ ...bar });
  }
  return joined;
}

/** Groups of crossing bars that form at least two columns and two rows, or a box of them. */
export function findGrids(horizontal: Bar[], vertical: Bar[]): Grid[] {
  if (horizontal.length < 2 || vertical.length < 2 || horizontal.length * vertical.length > crossingsMax) return [];
  const parents = new Map<Bar, Bar>();
  const root = (bar: Bar): Bar => {
    let current = bar;
    for (let parent = parents.get(current); parent && parent !== current; parent = parents.get(current))
      current = parent;
    if (current !== bar) parents.set(bar, current);
    return current;
  };
  for (const across of horizontal)
    for (const down of vertical) {
      const crosses =
        down.at >= across.from - touch &&
        down.at <= across.to + touch &&
        across.at >= down.from - touch &&
        across.at <= down.to + touch;
      if (crosses) parents.set(root(across), root(down));
    }
  const groups = new Map<Bar, { horizontal: Bar[]; vertical: Bar[] }>();
  const groupOf = (bar: Bar): { horizontal: Bar[]; vertical: Bar[] } => {
    const key = root(bar);
    const group = groups.get(key) ?? { horizontal: [], vertical: [] };
    groups.set(key, group);
    return group;
  };
  for (const bar of horizontal) groupOf(bar).horizontal.push(bar);
  for (const bar of vertical) groupOf(bar).vertical.push(bar);
  return [...groups.values()]
    .map((group) => ({
      ...group,
      xs: distinct(group.vertical.map((bar) => bar.at)),
      ys: distinct(group.horizontal.map((bar) => bar.at)),
    }))
    .filter((grid) => grid.xs.length >= 3 && grid.ys.length >= 3 && grid.xs.length <= 60 && grid.ys.length <= 400);
}

/** Merges values that are close together. */
function distinct(values: number[]): number[] {
  const sorted = [...values].sort((a, b) => a - b);
  const kept: number[] = [];
  for (const value of sorted) if (kept.length === 0 || value - (kept.at(-1) ?? 0) > touch * 1.5) kept.push(value);
  return kept;
}

export function mergeCells(grid: Grid, columns: number, rows: number): number[] {
  const owner = Array.from({ length: columns * rows }, (_, index) => index);
  const find = (index: number): number => {
    let current = index;
    while (owner[current] !== undefined && owner[current] !== current) current = owner[current] ?? current;
    return current;
  };
  const covered = (list: Bar[], at: number, from: number, to: number): boolean =>
    list.some(
      (bar) =>
        Math.abs(bar.at - at) <= touch && bar.from <= from + (to - from) * 0.35 && bar.to >= to - (to - from) * 0.35,
    );
  for (let y = 0; y < rows; y++)
    for (let x = 0; x < columns; x++) {
      const [left = 0, right = 0, top = 0, bottom = 0] = [grid.xs[x], grid.xs[x + 1], grid.ys[y], grid.ys[y + 1]];
      if (x + 1 < columns && !covered(grid.vertical, right, top, bottom))
        owner[find(y * columns + x + 1)] = find(y * columns + x);
      if (y + 1 < rows && !covered(grid.horizontal, bottom, left, right))
        owner[find((y + 1) * columns + x)] = find(y * columns + x);
    }
  return owner.map((_, index) => find(index));
}
