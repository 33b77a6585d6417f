import { readFileSync, writeFileSync } from 'node:fs';
import { parsePage } from '../../src/content/parse/html/page.ts';
import { type Half, readWebPages, type WebReference } from './web-pages.ts';
import { type SnippetScore, scoreShingles, scoreSnippets, scoreWords, type WordScore } from './web-score.ts';

type Options = {
  half: Half;
  set?: string | undefined;
  source?: string | undefined;
  perDocument: boolean;
  /** A file for the scores of each page. */
  save?: string | undefined;
  /** Such a file of an earlier run: differences to it are shown, page by page and as a mean. */
  against?: string | undefined;
};

type PageScore = {
  set: string;
  source: string;
  id: string;
  site: string;
  found: string;
  url: string;
  measure: WebReference['measure'];
  score: WordScore & Partial<SnippetScore>;
};

/** Prints the scores of the sets' web pages by source, with standard errors, and the pages read per second. */
export function reportWebPages(directories: string[], options: Options): void {
  const { scores, pagesPerSecond } = scorePages(directories, options);
  if (options.save !== undefined) writeFileSync(options.save, JSON.stringify(scores));
  const before = options.against === undefined ? undefined : readScores(options.against);
  if (options.perDocument) printPages(scores, before);
  console.log(
    `${`source (${options.half} half)`.padEnd(34)}    n  measure       F1 (error)${before ? '     difference (error)' : ''}`,
  );
  for (const set of new Set(scores.map((one) => one.set))) {
    const ofSet = scores.filter((one) => one.set === set);
    for (const measure of new Set(ofSet.map((one) => one.measure)))
      printGroup(
        `${set} ${measure}`,
        ofSet.filter((one) => one.measure === measure),
        before,
      );
    if (new Set(ofSet.map((one) => one.measure)).size === 1)
      for (const source of [...new Set(ofSet.map((one) => one.source))].sort())
        printGroup(
          `${set} ${source}`,
          ofSet.filter((one) => one.source === source),
          before,
        );
  }
  console.log(`${pagesPerSecond.toFixed(1)} pages/s of processor time`);
}

function scorePages(directories: string[], { half, set, source }: Options) {
  const scores: PageScore[] = [];
  let cpuMs = 0;
  for (const page of readWebPages(directories, half)) {
    if ((set !== undefined && page.set !== set) || (source !== undefined && page.source !== source)) continue;
    const started = process.cpuUsage();
    const { markdown, pageType } = parsePage({
      bytes: page.bytes,
      contentType: page.set === 'wcxb' ? 'text/html; charset=utf-8' : 'text/html',
      url: page.url === '' ? 'about:blank' : page.url,
    });
    const { user, system } = process.cpuUsage(started);
    cpuMs += (user + system) / 1000;
    const { set: from, source: origin, id, site, url, reference } = page;
    const { measure } = reference;
    scores.push({
      set: from,
      source: origin,
      id,
      site,
      found: pageType,
      url,
      measure,
      score: scorePage(reference, markdown),
    });
  }
  return { scores, pagesPerSecond: (1000 * scores.length) / cpuMs };
}

function scorePage(reference: WebReference, markdown: string): PageScore['score'] {
  if (reference.measure !== 'segments')
    return (reference.measure === 'words' ? scoreWords : scoreShingles)(reference.text, markdown);
  const counts = scoreSnippets(reference.wanted, reference.unwanted, markdown);
  const { found, missed, wrong } = counts;
  const f1 = (2 * found) / Math.max(1, 2 * found + missed + wrong);
  return { ...counts, f1, precision: found / Math.max(1, found + wrong), recall: found / Math.max(1, found + missed) };
}

function readScores(file: string): Map<string, PageScore> {
  const scores = JSON.parse(readFileSync(file, 'utf8')) as PageScore[];
  return new Map(scores.map((one) => [`${one.set} ${one.id}`, one]));
}

function printPages(scores: PageScore[], before: Map<string, PageScore> | undefined): void {
  const gain = (one: PageScore): number => {
    const old = before?.get(`${one.set} ${one.id}`);
    return old === undefined ? 0 : one.score.f1 - old.score.f1;
  };
  const shown = before === undefined ? scores : scores.filter((one) => Math.abs(gain(one)) > 0.0005);
  for (const one of shown.toSorted((a, b) => (before ? gain(a) - gain(b) : a.score.f1 - b.score.f1))) {
    const { f1, precision, recall } = one.score;
    const change = before === undefined ? '' : `${gain(one) >= 0 ? '+' : ''}${gain(one).toFixed(3)} `;
    const figures = [f1, precision, recall].map((value) => value.toFixed(3)).join(' ');
    console.log(`${change}${figures} ${one.set} ${one.id} ${one.source} ${one.found} ${one.url}`);
  }
}

function printGroup(name: string, group: PageScore[], before: Map<string, PageScore> | undefined): void {
  const f1 = (pages: PageScore[]): number => combine(pages);
  const pairs = before === undefined ? [] : group.filter((one) => before.has(`${one.set} ${one.id}`));
  const difference = (pages: PageScore[]): number =>
    combine(pages) - combine(pages.flatMap((one) => before?.get(`${one.set} ${one.id}`) ?? []));
  const measure = group[0]?.measure ?? '';
  const own = `${f1(group).toFixed(4)} (${standardError(group, f1).toFixed(4)})`;
  const gain = difference(pairs);
  const change =
    before === undefined
      ? ''
      : `   ${gain >= 0 ? '+' : ''}${gain.toFixed(4)} (${standardError(pairs, difference).toFixed(4)})`;
  console.log(`${name.padEnd(34)} ${String(group.length).padStart(4)}  ${measure.padEnd(9)} ${own}${change}`);
}

/**
 * The score of several pages as each measure's authors combine them: the mean F1 of words, the F1 of the mean precision
 * and recall of runs of words, the F1 of all segments together.
 */
function combine(pages: PageScore[]): number {
  if (pages.length === 0) return 0;
  const sum = (value: (score: PageScore['score']) => number): number =>
    pages.reduce((total, { score }) => total + value(score), 0);
  if (pages[0]?.measure === 'words') return sum((one) => one.f1) / pages.length;
  if (pages[0]?.measure === 'shingles') {
    const [precision, recall] = [sum((one) => one.precision), sum((one) => one.recall)];
    return (2 * precision * recall) / Math.max(1e-9, precision + recall) / pages.length;
  }
  const found = 2 * sum((one) => one.found ?? 0);
  return found / Math.max(1, found + sum((one) => one.missed ?? 0) + sum((one) => one.wrong ?? 0));
}

/** The standard error by jackknife, leaving out one site at a time: pages of a site are not independent. */
function standardError(pages: PageScore[], statistic: (pages: PageScore[]) => number): number {
  const sites = [...new Set(pages.map((one) => one.site))];
  if (sites.length < 2) return Number.NaN;
  const left = sites.map((site) => statistic(pages.filter((one) => one.site !== site)));
  const mean = left.reduce((sum, one) => sum + one, 0) / left.length;
  return Math.sqrt(((sites.length - 1) / sites.length) * left.reduce((sum, one) => sum + (one - mean) ** 2, 0));
}
