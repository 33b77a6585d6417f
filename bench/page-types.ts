/**
 * Fits the weights that determine the type of a web page from its signals, on the tuned half of WCXB:
 *   node bench/page-types.ts WCXB > src/content/parse/html/page-type-weights.ts
 * Multinomial logistic regression; the same pages give the same weights.
 */
import { parseArgs } from 'node:util';
import { decodeHtml } from '../src/content/parse/html/charset.ts';
import { linkedThings } from '../src/content/parse/html/linked-data.ts';
import { metaTags, readMetadata } from '../src/content/parse/html/metadata.ts';
import { pageSignals } from '../src/content/parse/html/page-signals.ts';
import { pageTypes } from '../src/content/parse/html/page-types.ts';
import { parseHtml } from '../src/content/parse/html/tree.ts';
import { readWcxb } from './extract-quality/web-pages.ts';

const { positionals } = parseArgs({ allowPositionals: true });
const directory = positionals[0];
if (directory === undefined) throw new Error('usage: node bench/page-types.ts WCXB');

/** Signals on fewer pages than this are ignored. */
const pagesOfSignMin = 6;
const penalty = 3;
const rounds = 600;
const rate = 0.05;
/** Signals that change no type by more than this are left out. */
const weightMin = 0.15;

const pages = [...readWcxb(directory, 'tuned')].map(({ bytes, url, type }) => {
  const tree = parseHtml(decodeHtml(bytes, 'text/html; charset=utf-8'));
  const { title } = readMetadata(tree, url || 'about:blank');
  const facts = { tree, url, meta: metaTags(tree.root), things: linkedThings(tree.embedded), title };
  return { signs: pageSignals(facts), type: pageTypes.indexOf(type as (typeof pageTypes)[number]) };
});
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
  type,
}));
const weights = centre(fit());
console.log(
  [
    '/**',
    ' * Points that each sign of a page gives to each type, in the order of `pageTypes`. Fitted by `bench/page-types.ts` on',
    ' * one half of WCXB; do not edit by hand.',
    ' */',
    'export const typeWeights: Record<string, readonly number[]> = {',
  ].join('\n'),
);
names.forEach((name, at) => {
  const row = (weights[at] ?? []).map((weight) => Math.round(weight * 10) / 10 + 0);
  if (name !== 'base' && Math.max(...row.map(Math.abs)) < weightMin) return;
  console.log(`  ${/^\w+$/.test(name) ? name : `'${name}'`}: [${row.join(', ')}],`);
});
console.log('};');

/** Gradient descent with Adam; all weights except the base are regularised towards zero. */
function fit(): number[][] {
  const zeros = (): number[][] => names.map(() => pageTypes.map(() => 0));
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
