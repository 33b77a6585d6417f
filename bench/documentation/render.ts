/**
 * Renders the documents with real generators and with layouts written by hand, and writes the pages to
 * test/fixtures/documentation:
 *   node bench/documentation/render.ts DIRECTORY [--only docusaurus]
 * DIRECTORY holds the generators from npm, each in a folder of its name, and the themes that are taken from their
 * repository; the others are Debian's packages (README.md). Nothing here is needed to score the pages.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import type { PageEntry as Entry } from '../../test/support/documentation/pages.ts';
import type { Structure } from '../../test/support/documentation/structure.ts';
import { compactPage } from './compact-page.ts';
import { documents } from './documents.ts';
import { fromDebian } from './generators/debian.ts';
import { fromNpm } from './generators/npm.ts';
import { byHand } from './layouts/layouts.ts';
import { type Document, withoutParts } from './model.ts';
import { isKeptAside } from './split.ts';
import { structureOf } from './structure-of.ts';

const { values, positionals } = parseArgs({ allowPositionals: true, options: { only: { type: 'string' } } });
const tools = positionals[0];
if (tools === undefined) throw new Error('usage: node bench/documentation/render.ts DIRECTORY [--only THEME]');

const target = fileURLToPath(new URL('../../test/fixtures/documentation/', import.meta.url));
mkdirSync(join(target, 'pages'), { recursive: true });
const themes = [...fromNpm, ...fromDebian, ...byHand];
const known = values.only === undefined ? [] : readList<Entry>('manifest.json');
const truths: Record<string, Structure> = {};
const entries: Entry[] = [];
for (const theme of themes) {
  if (values.only !== undefined && !theme.name.startsWith(values.only)) continue;
  const lacks = theme.lacks ?? [];
  const written: Document[] = documents.map((document) => withoutParts(document, lacks));
  const pages = theme.render(written, { tools, work: join(tools, 'sites', theme.name) });
  for (const [at, html] of pages.entries()) {
    const document = written[at];
    if (document === undefined) continue;
    const id = `${theme.name}-${document.id}`;
    const bytes = gzipSync(compactPage(html), { level: 9 });
    writeFileSync(join(target, 'pages', `${id}.html.gz`), bytes);
    console.log(id, html.length, bytes.length);
    const unseen = theme.unlabelledTabs === true ? ['labels'] : [];
    const truth = [document.id, ...lacks, ...unseen].join('-without-');
    truths[truth] = { ...structureOf(document), ...(unseen.length > 0 ? { tabs: [] } : {}) };
    const { generator, version, licence } = theme;
    entries.push({
      id,
      ...{ generator, version, theme: theme.theme, licence },
      ...(theme.byHand === true ? { written: 'by hand' } : {}),
      aside: isKeptAside(theme, themes),
      url: theme.url(document.id),
      title: document.title,

      truth,
    });
  }
}
const kept = known.filter(({ id }) => !entries.some((entry) => entry.id === id));
const all = [...kept, ...entries].sort((a, b) => (a.id < b.id ? -1 : 1));
writeFileSync(join(target, 'manifest.json'), `${JSON.stringify(all, undefined, 1)}\n`);
const before = values.only === undefined ? {} : JSON.parse(readFileSync(join(target, 'truths.json'), 'utf8'));
writeFileSync(join(target, 'truths.json'), `${JSON.stringify({ ...before, ...truths }, undefined, 1)}\n`);

function readList<T>(name: string): T[] {
  return JSON.parse(readFileSync(join(target, name), 'utf8'));
}
