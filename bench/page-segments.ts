/**
 * Fits the trees that determine which parts of a web page are content, on the tuned half of the sets
 * whose references are texts:
 *   node bench/page-segments.ts DIRECTORY… > src/content/parse/html/main/segment-trees.ts
 *   node bench/page-segments.ts DIRECTORY… --check [--half tuned|untouched|all] [--share 0.5] [--seed 1]
 * `--check` prints word F1 by five-fold cross-validation (pages of a host in one fold) instead, beside that of the
 * rules alone, with that of trees that choose on every page. `--share` fits on a part of the hosts of the other folds.
 * The same pages give the same trees.
 */
import { createHash } from 'node:crypto';
import { parseArgs } from 'node:util';
import { decodeHtml } from '../src/content/parse/html/charset.ts';
import { linkedThings } from '../src/content/parse/html/linked-data.ts';
import { isUnsure, pageBody, ruledContent } from '../src/content/parse/html/main/content.ts';
import { enoughByType, holdsAny, segmentsMin } from '../src/content/parse/html/main/learned.ts';
import { textsIn } from '../src/content/parse/html/main/measure.ts';
import { segmentFeatures } from '../src/content/parse/html/main/segment-features.ts';
import { chooseSegments, promisedScore, scoreSegments } from '../src/content/parse/html/main/segment-scores.ts';
import type { SegmentTree } from '../src/content/parse/html/main/segment-trees.ts';
import { findSegments } from '../src/content/parse/html/main/segments.ts';
import { metaTags, readMetadata } from '../src/content/parse/html/metadata.ts';
import { pageSignals } from '../src/content/parse/html/page-signals.ts';
import { likeliestType, weighSigns } from '../src/content/parse/html/page-type.ts';
import { type PageType, pageTypes } from '../src/content/parse/html/page-types.ts';
import { parseHtml } from '../src/content/parse/html/tree.ts';
import { type Half, halves, readWebPages, type WebPage } from './extract-quality/web-pages.ts';
import { scoreWordLists, wordsOf } from './extract-quality/web-score.ts';
import { labelSegments } from './page-segments/labels.ts';
import { fitTrees, type Sample } from './page-segments/trees.ts';
import { fitTypes } from './page-types/fit.ts';

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    check: { type: 'boolean', default: false },
    half: { type: 'string', default: 'tuned' },
    share: { type: 'string', default: '1' },
    seed: { type: 'string', default: '1' },
  },
});
if (positionals.length === 0) throw new Error('usage: node bench/page-segments.ts DIRECTORY… [--check]');
const half = halves.find((one) => one === values.half);
if (half === undefined) throw new Error(`--half is one of ${halves.join(', ')}`);
const share = Number(values.share);

const folds = 5;
/** Large pages contribute a sample of their segments, each with more weight. */
const segmentsOfPageMax = 120;
const options = { trees: 150, leaves: 15, rate: 0.08, seed: Number(values.seed) };

type Page = {
  type: PageType;
  found: PageType;
  fold: number;
  place: number;
  reference: string[];
  words: string[][];
  features: number[][];
  labels: number[];
  ruled: string[];
  byRules: boolean[];
  unsure: boolean;
};

const pages = readPages(positionals, half);
if (values.check) check();
else write(fitTrees(samplesOf(pages), options));

type TextPage = Omit<WebPage, 'type' | 'reference'> & { type: PageType; text: string };

function* readTextPages(from: string[], chosen: Half): Generator<TextPage> {
  for (const { type = 'article', reference, ...page } of readWebPages(from, chosen))
    if (reference.measure === 'words') yield { ...page, type: type as PageType, text: reference.text };
}

/** The type of each page comes from a fit without its fold, so types are as uncertain as at run time. */
function readPages(from: string[], chosen: Half): Page[] {
  const signs: { signs: Set<string>; type: PageType; fold: number }[] = [];
  for (const page of readTextPages(from, chosen)) {
    const { facts } = factsOf(page);
    signs.push({ signs: pageSignals(facts), type: page.type, fold: foldOf(page) });
  }
  const shares = new Map<number, Record<PageType, number>>();
  for (let fold = 0; fold < folds; fold++) {
    const weights = Object.fromEntries(fitTypes(signs.filter((one) => one.fold !== fold)));
    signs.forEach((one, at) => {
      if (one.fold === fold) shares.set(at, weighSigns(one.signs, weights));
    });
  }
  return [...readTextPages(from, chosen)].map((page, at): Page => {
    const { tree, facts, metadata } = factsOf(page);
    const types = shares.get(at) ?? weighSigns(new Set());
    const found = likeliestType(types);
    const body = pageBody(tree);
    // Facts from metadata are not in the page, so no segment has them.
    const ruled = ruledContent(found, body, facts, metadata.description, {});
    const kept = textsIn(ruled);
    const segments = findSegments(body).filter(({ text }) => text !== '');
    const words = segments.map(({ text }) => wordsOf(text.toLowerCase()));
    const reference = wordsOf(page.text.toLowerCase());
    return {
      type: page.type,
      found,
      fold: foldOf(page),
      place: siteByte(page, 2) / 256,
      reference,
      words,
      features: segmentFeatures({ body, segments, title: facts.title, types, kept }),
      labels: labelSegments(words, reference),
      byRules: segments.map(({ nodes }) => nodes.some((node) => holdsAny(node, kept))),
      unsure: isUnsure(found, body, ruled, facts.title),
      ruled: wordsOf(
        [...kept]
          .map(({ text }) => text)
          .join(' ')
          .toLowerCase(),
      ),
    };
  });
}

function factsOf({ bytes, url }: TextPage) {
  const tree = parseHtml(decodeHtml(bytes, 'text/html; charset=utf-8'));
  const metadata = readMetadata(tree, url || 'about:blank');
  const facts = { tree, url, meta: metaTags(tree.root), things: linkedThings(tree.embedded), title: metadata.title };
  return { tree, facts, metadata };
}

function foldOf(page: TextPage): number {
  return siteByte(page, 1) % folds;
}

/** One byte of the hash of the page's site. The first determines its half. */
function siteByte({ site }: TextPage, at: number): number {
  return createHash('sha256').update(site).digest()[at] ?? 0;
}

/** The weight of a segment is how much its words change the score of its page. */
function samplesOf(chosen: Page[]): Sample[] {
  return chosen.flatMap(({ features, labels, words, reference }) => {
    const step = Math.max(1, labels.length / segmentsOfPageMax);
    const samples: Sample[] = [];
    for (let at = 0; at < labels.length; at += step) {
      const row = Math.floor(at);
      const weight = step * Math.min(0.5, (words[row]?.length ?? 0) / (reference.length + 100));
      samples.push({ features: features[row] ?? [], label: labels[row] ?? 0, weight });
    }
    return samples;
  });
}

function check(): void {
  const rows: { type: PageType; found: PageType; ruled: number; learned: number; alone: number }[] = [];
  for (let fold = 0; fold < folds; fold++) {
    const trees = fitTrees(samplesOf(pages.filter((page) => page.fold !== fold && page.place < share)), options);
    for (const page of pages.filter((one) => one.fold === fold)) {
      const counts = page.words.map((words) => words.length);
      const scores = scoreSegments(page.features, trees);
      const chosen = chooseSegments(scores, counts);
      const enough = enoughByType[page.found];
      const replaced =
        enough !== undefined &&
        page.unsure &&
        page.words.length >= segmentsMin &&
        promisedScore(scores, counts, page.byRules) < enough * promisedScore(scores, counts, chosen);
      rows.push({
        type: page.type,
        found: page.found,
        ruled: scoreWordLists(page.reference, page.ruled).f1,
        learned: scoreWordLists(
          page.reference,
          replaced
            ? page.words.filter((_words, at) => chosen[at] && (page.found !== 'product' || page.byRules[at])).flat()
            : page.ruled,
        ).f1,
        alone: scoreWordLists(page.reference, page.words.filter((_words, at) => chosen[at]).flat()).f1,
      });
    }
  }
  for (const key of ['type', 'found'] as const)
    for (const type of ['all', ...pageTypes]) {
      const group = rows.filter((row) => type === 'all' || row[key] === type);
      const mean = (list: number[]): number => list.reduce((sum, one) => sum + one, 0) / Math.max(1, list.length);
      const gains = group.map((row) => row.learned - row.ruled);
      const error = Math.sqrt(mean(gains.map((gain) => (gain - mean(gains)) ** 2)) / Math.max(1, group.length));
      console.log(
        `${key} ${type.padEnd(14)} ${String(group.length).padStart(4)}  rules ${mean(group.map((row) => row.ruled)).toFixed(3)}  ` +
          `learned ${mean(group.map((row) => row.learned)).toFixed(3)}  gain ${mean(gains).toFixed(4)} ± ${error.toFixed(4)}  trees alone ${mean(group.map((row) => row.alone)).toFixed(3)}`,
      );
    }
}

function write(trees: SegmentTree[]): void {
  console.log(
    [
      '/**',
      ' * A decision tree. Node n compares a feature with a bound; its next node is `children[2n]` up to the bound and',
      ' * `children[2n + 1]` above it, and a negative number -1-n ends at `values[n]`.',
      ' */',
      'export type SegmentTree = readonly [',
      '  features: readonly number[],',
      '  bounds: readonly number[],',
      '  children: readonly number[],',
      '  values: readonly number[],',
      '];',
      '',
      '/**',
      ' * Which parts of a page are content; features by their place in `featureNames`. Fitted by `bench/page-segments.ts` on',
      ' * one half of the Web Content eXtraction Benchmark (Murrough Foley, 2026, CC BY 4.0), of which it contains no text. Do',
      ' * not edit by hand.',
      ' */',
      '// biome-ignore format: one tree a line',
      'export const segmentTrees: readonly SegmentTree[] = [',
      ...trees.map((tree) => `  ${JSON.stringify(tree).replaceAll(',', ', ')},`),
      '];',
    ].join('\n'),
  );
}
