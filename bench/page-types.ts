/**
 * Fits the weights that determine the type of a web page from its signals, on the tuned half of all sets:
 *   node bench/page-types.ts DIRECTORY… > src/content/parse/html/page-type-weights.ts
 * Pages of sets that state no type are articles. Multinomial logistic regression; the same pages give the same weights.
 */
import { parseArgs } from 'node:util';
import { decodeHtml } from '../src/content/parse/html/charset.ts';
import { linkedThings } from '../src/content/parse/html/linked-data.ts';
import { metaTags, readMetadata } from '../src/content/parse/html/metadata.ts';
import { pageSignals } from '../src/content/parse/html/page-signals.ts';
import type { PageType } from '../src/content/parse/html/page-types.ts';
import { parseHtml } from '../src/content/parse/html/tree.ts';
import { readWebPages } from './extract-quality/web-pages.ts';
import { fitTypes } from './page-types/fit.ts';

const { positionals } = parseArgs({ allowPositionals: true });
if (positionals.length === 0) throw new Error('usage: node bench/page-types.ts DIRECTORY…');

/** Signals that change no type by more than this are left out. */
const weightMin = 0.15;

const pages = [...readWebPages(positionals, 'tuned')].map(({ bytes, url, type = 'article' }) => {
  const tree = parseHtml(decodeHtml(bytes, 'text/html; charset=utf-8'));
  const { title } = readMetadata(tree, url || 'about:blank');
  const facts = { tree, url, meta: metaTags(tree.root), things: linkedThings(tree.embedded), title };
  return { signs: pageSignals(facts), type: type as PageType };
});
const weights = fitTypes(pages);
console.log(
  [
    '/**',
    ' * The points that each signal gives to each type, in the order of `pageTypes`. Fitted by `bench/page-types.ts` on one',
    ' * half of the sites of several sets. Do not edit by hand.',
    ' */',
    'export const typeWeights: Record<string, readonly number[]> = {',
  ].join('\n'),
);
weights.forEach((points, name) => {
  const row = points.map((weight) => Math.round(weight * 10) / 10 + 0);
  if (name !== 'base' && Math.max(...row.map(Math.abs)) < weightMin) return;
  console.log(`  ${/^\w+$/.test(name) ? name : `'${name}'`}: [${row.join(', ')}],`);
});
console.log('};');
