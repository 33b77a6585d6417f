import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { type ParsedPage, parsePage } from '../../../src/content/parse/html/page.ts';
import { readStructure } from './read-structure.ts';
import { f1, measures, type Structure } from './structure.ts';

/** A rendered page of documentation. `bench/documentation` holds its source and the program that rendered it. */
export type PageEntry = {
  id: string;
  generator: string;
  version: string;
  theme: string;
  licence: string;
  /** Present if the layout was written after the public pages of its generator. */
  written?: string;
  /** No rule is written for pages that are kept aside; only they are reported. */
  aside: boolean;
  url: string;
  /** Pages show their title as a heading; it is returned separately. */
  title: string;
  /** The key of its structure in truths.json. */
  truth: string;
};

const folder = fileURLToPath(new URL('../../fixtures/documentation/', import.meta.url));

export function listPages(): PageEntry[] {
  return JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')) as PageEntry[];
}

export function readTruths(): Record<string, Structure> {
  return JSON.parse(readFileSync(join(folder, 'truths.json'), 'utf8')) as Record<string, Structure>;
}

export function convertPage({ id, url }: PageEntry): ParsedPage {
  const bytes = gunzipSync(readFileSync(join(folder, 'pages', `${id}.html.gz`)));
  return parsePage({ bytes, contentType: 'text/html; charset=utf-8', url });
}

export type PageScores = Partial<Record<keyof Structure, number>>;

export function scorePage({ title }: PageEntry, markdown: string, truth: Structure): PageScores {
  const found = structureWithoutTitle(markdown, title);
  const scores: PageScores = {};
  for (const measure of measures) {
    const score = f1(truth[measure], found[measure]);
    if (score !== undefined) scores[measure] = score;
  }
  return scores;
}

/** The page's title is not part of its text, but one that stays as the first heading is not a fault. */
export function structureWithoutTitle(markdown: string, title: string): Structure {
  const found = readStructure(markdown);
  const [first] = found.headings;
  return first?.replace(/^\d /, '') === title ? { ...found, headings: found.headings.slice(1) } : found;
}
