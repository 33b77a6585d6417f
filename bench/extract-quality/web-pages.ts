import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { parsePage } from '../../src/content/parse/html/page.ts';
import { type SnippetScore, scoreShingles, scoreSnippets, scoreWords, type WordScore } from './web-score.ts';

/** The half of WCXB that a page belongs to, by its id alone: rules are tuned on one half and judged by the other. */
export const halves = ['tuned', 'untouched', 'all'] as const;
export type Half = (typeof halves)[number];

export type WcxbPage = { id: string; type: string; url: string; text: string; bytes: Uint8Array };

/** The pages of WCXB's development split in DIRECTORY (`dev/html`, `dev/ground-truth`). */
export function* readWcxb(directory: string, half: Half, type?: string): Generator<WcxbPage> {
  for (const name of readdirSync(join(directory, 'dev/ground-truth')).sort()) {
    const id = name.replace(/\.json$/, '');
    if (half !== 'all' && halfOf(id) !== half) continue;
    const truth = JSON.parse(readFileSync(join(directory, 'dev/ground-truth', name), 'utf8'));
    const found: string = truth._internal.page_type.primary;
    const pageType = found === 'category' ? 'collection' : found;
    if (type !== undefined && pageType !== type) continue;
    yield {
      id,
      type: pageType,
      url: truth.url ?? '',
      text: truth.ground_truth.main_content ?? '',
      bytes: gunzipSync(readFileSync(join(directory, 'dev/html', `${id}.html.gz`))),
    };
  }
}

export function halfOf(id: string): Exclude<Half, 'all'> {
  const first = createHash('sha256').update(id).digest()[0] ?? 0;
  return (first & 1) === 0 ? 'tuned' : 'untouched';
}

type PageScore = WordScore & { id: string; type: string; found: string; url: string };

/** Prints word F1, precision and recall by type, and how many pages per second one core reads. */
export function reportWcxb(directory: string, options: { half: Half; type?: string; perDocument: boolean }): void {
  const scores: PageScore[] = [];
  let cpuMs = 0;
  for (const { id, type, url, text, bytes } of readWcxb(directory, options.half, options.type)) {
    const started = process.cpuUsage();
    const page = parsePage({ bytes, contentType: 'text/html; charset=utf-8', url });
    const { user, system } = process.cpuUsage(started);
    cpuMs += (user + system) / 1000;
    scores.push({ id, type, url, found: page.pageType, ...scoreWords(text, page.markdown) });
  }
  if (options.perDocument)
    for (const one of scores.toSorted((a, b) => a.f1 - b.f1))
      console.log(
        `${one.f1.toFixed(3)} ${one.precision.toFixed(3)} ${one.recall.toFixed(3)} ${one.id} ${one.type} ${one.found} ${one.url}`,
      );
  console.log(`type (${options.half} half)    n      F1   precision  recall  type found`);
  for (const type of ['all', ...new Set(scores.map((one) => one.type).toSorted())]) {
    const group = scores.filter((one) => type === 'all' || one.type === type);
    const mean = (value: (one: PageScore) => number): string =>
      (group.reduce((sum, one) => sum + value(one), 0) / Math.max(1, group.length)).toFixed(3);
    const measures = [mean((one) => one.f1), mean((one) => one.precision), mean((one) => one.recall)].join('     ');
    console.log(
      `${type.padEnd(16)} ${String(group.length).padStart(5)}    ${measures}     ${mean((one) => Number(one.found === one.type))}`,
    );
  }
  console.log(`${((1000 * scores.length) / cpuMs).toFixed(1)} pages/s of processor time`);
}

export type WebEntry = {
  kind: string;
  file: string;
  url?: string;
  gt: { file?: string; with?: string[]; without?: string[] };
};

/** Scores the web pages of an `extract` manifest: 4-gram F1 of articles, F1 of wanted and unwanted segments. */
export function reportWebEntries(directory: string, entries: WebEntry[]): void {
  const articles: WordScore[] = [];
  const snippets: SnippetScore[] = [];
  for (const { kind, file, url, gt } of entries) {
    if (kind !== 'web-article' && kind !== 'web-snippets') continue;
    const bytes = readFileSync(join(directory, file));
    const { markdown } = parsePage({ bytes, contentType: 'text/html', url: url ?? 'about:blank' });
    if (kind === 'web-article')
      articles.push(scoreShingles(readFileSync(join(directory, gt.file ?? ''), 'utf8'), markdown));
    else snippets.push(scoreSnippets(gt.with ?? [], gt.without ?? [], markdown));
  }
  const mean = (value: (score: WordScore) => number): number =>
    articles.reduce((sum, score) => sum + value(score), 0) / Math.max(1, articles.length);
  const [precision, recall] = [mean((score) => score.precision), mean((score) => score.recall)];
  const sum = (value: (score: SnippetScore) => number): number =>
    snippets.reduce((total, one) => total + value(one), 0);
  const [found, missed, wrong] = [sum((one) => one.found), sum((one) => one.missed), sum((one) => one.wrong)];
  console.log(
    `web articles (${articles.length}): 4-gram F1 ${((2 * precision * recall) / (precision + recall)).toFixed(3)}`,
  );
  console.log(`web snippets (${snippets.length}): F1 ${((2 * found) / (2 * found + missed + wrong)).toFixed(3)}`);
}
