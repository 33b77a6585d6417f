import type { PageType } from '../../src/content/parse/html/page-types.ts';
import { pageTypes } from '../../src/content/parse/html/page-types.ts';

/** Signals on fewer pages than this are ignored. */
const pagesOfSignMin = 6;
const penalty = 3;
const rounds = 600;
const rate = 0.05;

/** The points that each signal gives to each type, by multinomial logistic regression. `base` comes first. */
export function fitTypes(pages: { signs: Set<string>; type: PageType }[]): Map<string, number[]> {
  const counts = new Map<string, number>();
  for (const { signs } of pages) for (const sign of signs) counts.set(sign, (counts.get(sign) ?? 0) + 1);
  const names = [
    'base',
    ...[...counts]
      .filter(([, count]) => count >= pagesOfSignMin)
      .map(([name]) => name)
      .sort(),
  ];
  const rows = pages.map(({ signs, type }) => ({
    columns: names.flatMap((name, at) => (name === 'base' || signs.has(name) ? [at] : [])),
    type: pageTypes.indexOf(type),
  }));
  const weights = centre(fit(rows, names.length));
  return new Map(names.map((name, at) => [name, weights[at] ?? []]));
}

type Row = { columns: number[]; type: number };

/** Gradient descent with Adam; all weights except the base are regularised towards zero. */
function fit(rows: Row[], names: number): number[][] {
  const zeros = (): number[][] => Array.from({ length: names }, () => pageTypes.map(() => 0));
  const found = zeros();
  const first = zeros();
  const second = zeros();
  for (let round = 1; round <= rounds; round++) {
    const gradient = found.map((row, at) => row.map((weight) => (at === 0 ? 0 : (penalty * weight) / rows.length)));
    for (const { columns, type } of rows) {
      const points = pageTypes.map((_unused, k) => columns.reduce((sum, at) => sum + (found[at]?.[k] ?? 0), 0));
      const highest = Math.max(...points);
      const odds = points.map((point) => Math.exp(point - highest));
      const total = odds.reduce((sum, one) => sum + one, 0);
      odds.forEach((one, k) => {
        const error = (one / total - (k === type ? 1 : 0)) / rows.length;
        for (const at of columns) add(gradient, at, k, error);
      });
    }
    gradient.forEach((row, at) => {
      row.forEach((slope, k) => {
        const m = 0.9 * (first[at]?.[k] ?? 0) + 0.1 * slope;
        const v = 0.999 * (second[at]?.[k] ?? 0) + 0.001 * slope * slope;
        set(first, at, k, m);
        set(second, at, k, v);
        add(found, at, k, (-rate * (m / (1 - 0.9 ** round))) / (Math.sqrt(v / (1 - 0.999 ** round)) + 1e-8));
      });
    });
  }
  return found;
}

function set(matrix: number[][], at: number, k: number, value: number): void {
  const row = matrix[at];
  if (row !== undefined) row[k] = value;
}

function add(matrix: number[][], at: number, k: number, value: number): void {
  set(matrix, at, k, (matrix[at]?.[k] ?? 0) + value);
}

/** Only differences between types count. */
function centre(matrix: number[][]): number[][] {
  return matrix.map((row) => row.map((value) => value - row.reduce((sum, one) => sum + one, 0) / row.length));
}
