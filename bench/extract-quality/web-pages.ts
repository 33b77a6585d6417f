import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { parseHtml, textOf } from '../../src/content/parse/html/tree.ts';

/**
 * The half that a page belongs to, by its site alone: rules and weights are fitted on one half of all sets together and
 * judged by the other.
 */
export const halves = ['tuned', 'untouched', 'all'] as const;
export type Half = (typeof halves)[number];

export type WebPage = {
  /** The name of its set: the directory. */
  set: string;
  /** The origin within the set. */
  source: string;
  id: string;
  site: string;
  url: string;
  bytes: Uint8Array;
  /** The type of page that the set states. */
  type?: string;
  reference: WebReference;
};

export type WebReference =
  | { measure: 'words'; text: string }
  | { measure: 'shingles'; text: string }
  | { measure: 'segments'; wanted: string[]; unwanted: string[] };

/** The web pages of all sets in these directories. A directory is a set or holds sets. */
export function* readWebPages(directories: string[], half: Half): Generator<WebPage> {
  for (const directory of directories) {
    const inside = readdirSync(directory, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    const sets = isSet(directory) ? [directory] : inside.map(({ name }) => join(directory, name)).filter(isSet);
    for (const set of sets) yield* isWcxb(set) ? readWcxb(set, half) : readManifest(set, half);
  }
}

export function isWcxb(directory: string): boolean {
  return existsSync(join(directory, 'dev/ground-truth'));
}

export function isSet(directory: string): boolean {
  return isWcxb(directory) || existsSync(join(directory, 'manifest.json'));
}

/** The development split of the Web Content eXtraction Benchmark: `dev/html`, `dev/ground-truth`. */
function* readWcxb(directory: string, half: Half): Generator<WebPage> {
  for (const name of readdirSync(join(directory, 'dev/ground-truth')).sort()) {
    const id = name.replace(/\.json$/, '');
    const truth = JSON.parse(readFileSync(join(directory, 'dev/ground-truth', name), 'utf8'));
    const url: string = truth.url ?? '';
    const site = siteOf(url, id);
    if (half !== 'all' && halfOf(site) !== half) continue;
    const found: string = truth._internal.page_type.primary;
    const type = found === 'category' ? 'collection' : found;
    const bytes = gunzipSync(readFileSync(join(directory, 'dev/html', `${id}.html.gz`)));
    const reference = { measure: 'words' as const, text: truth.ground_truth.main_content ?? '' };
    yield { set: basename(resolve(directory)), source: type, id, site, url, bytes, type, reference };
  }
}

type ManifestEntry = {
  id: string;
  kind: string;
  file: string;
  url?: string;
  gt: { file?: string; with?: string[]; without?: string[] };
};

/** The web pages of a set with a manifest: articles, pages with wanted and unwanted segments, pages with HTML. */
function* readManifest(directory: string, half: Half): Generator<WebPage> {
  for (const { id, kind, file, url = '', gt } of JSON.parse(
    readFileSync(join(directory, 'manifest.json'), 'utf8'),
  ) as ManifestEntry[]) {
    if (!kind.startsWith('web-')) continue;
    const site = siteOf(url, id);
    if (half !== 'all' && halfOf(site) !== half) continue;
    const stored = readFileSync(join(directory, file));
    yield {
      set: basename(resolve(directory)),
      source: kind.replace(/^web-/, ''),
      id,
      site,
      url,
      bytes: file.endsWith('.gz') ? gunzipSync(stored) : stored,
      reference: referenceOf(directory, kind, gt),
    };
  }
}

function referenceOf(directory: string, kind: string, gt: ManifestEntry['gt']): WebReference {
  if (kind === 'web-snippets') return { measure: 'segments', wanted: gt.with ?? [], unwanted: gt.without ?? [] };
  const text = readFileSync(join(directory, gt.file ?? ''), 'utf8');
  if (kind === 'web-article') return { measure: 'shingles', text };
  return { measure: 'words', text: textOf(parseHtml(text).root) };
}

/** The host up to the registered name, so that all hosts of a publisher are one site. Pages without one are their own. */
function siteOf(url: string, id: string): string {
  const host = URL.canParse(url) ? new URL(url).hostname : '';
  if (!host.includes('.')) return id;
  const labels = host.split('.');
  const second =
    /^(?:com?|org|net|gov|ac|edu|or|ne|go)$/.test(labels.at(-2) ?? '') && (labels.at(-1) ?? '').length === 2;
  return labels.slice(second ? -3 : -2).join('.');
}

export function halfOf(site: string): Exclude<Half, 'all'> {
  const first = createHash('sha256').update(site).digest()[0] ?? 0;
  return (first & 1) === 0 ? 'tuned' : 'untouched';
}
