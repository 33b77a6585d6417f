/**
 * Quality of extraction against sets with ground truth.
 *   node bench/extract-quality.ts DIRECTORY… [--half tuned|untouched|all] [--set NAME] [--source NAME] [--per-document]
 *     [--save FILE] [--against FILE]
 * scores the web pages of every set in the directories, by source, with standard errors: of the half of the sites that
 * nothing was fitted on unless another is named. `--save` keeps the score of each page, and `--against` shows the paired
 * differences to a kept run. A set is a copy of WCXB (`dev/html`, `dev/ground-truth`) or has a manifest.json: a list of
 * {id, kind, format, file, url, gt: {type, file | with, without}}.
 *   node bench/extract-quality.ts SET [--kind pdf] [--per-document] [--out DIRECTORY]
 * scores the documents of one set with a manifest, beside what the plain engines give in the same run. `--kind web`
 * scores its web pages, `--kind scans [--languages eng,deu] [--pages-max 40]` scans that it makes of its PDFs, clean and
 * noisy.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ParserPool } from '../src/content/parse/pool/pool.ts';
import { createLogger } from '../src/lib/log.ts';
import { reportScans, type ScanEntry } from './extract-quality/scans.ts';
import { type Reference, type Scores, scoreDocument } from './extract-quality/score.ts';
import { halves, isSet, isWcxb } from './extract-quality/web-pages.ts';
import { reportWebPages } from './extract-quality/web-report.ts';

type Entry = { id: string; kind: string; format: string; file: string; gt: Reference & { file?: string } };

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    kind: { type: 'string' },
    set: { type: 'string' },
    source: { type: 'string' },
    save: { type: 'string' },
    against: { type: 'string' },
    half: { type: 'string', default: 'untouched' },
    out: { type: 'string' },
    'per-document': { type: 'boolean', default: false },
    'no-plain': { type: 'boolean', default: false },
    languages: { type: 'string', default: 'eng' },
    'pages-max': { type: 'string', default: '40' },
  },
});
const directory = positionals[0];
if (directory === undefined)
  throw new Error('usage: node bench/extract-quality.ts DIRECTORY… [--kind KIND] [--per-document]');
if (values.kind === 'web' || isWcxb(directory) || !isSet(directory)) {
  const half = halves.find((one) => one === values.half);
  if (half === undefined) throw new Error(`--half is one of ${halves.join(', ')}`);
  const { set, source, save, against } = values;
  reportWebPages(positionals, { half, set, source, save, against, perDocument: values['per-document'] });
  process.exit();
}
if (values.kind === 'scans') {
  const entries = JSON.parse(readFileSync(join(directory, 'manifest.json'), 'utf8')) as ScanEntry[];
  const pagesMax = Number(values['pages-max']);
  await reportScans(directory, entries, { languages: values.languages.split(','), pagesMax });
  process.exit();
}
if (values.out !== undefined) mkdirSync(values.out, { recursive: true });

const entries = (JSON.parse(readFileSync(join(directory, 'manifest.json'), 'utf8')) as Entry[]).filter(
  (entry) => !entry.kind.startsWith('web') && (values.kind === undefined || entry.kind === values.kind),
);
// Only the benchmarks depend on the engines. Without the comparison, they need not be installed.
const engines = values['no-plain'] ? undefined : await import('./extract-quality/plain-engines.ts');
const pool = new ParserPool({ workers: 2, memoryMb: 512, deadlineMs: 30_000, log: createLogger('error') });
type Row = { entry: Entry; ours: Scores; plain: Scores | undefined; note: string };
const rows: Row[] = [];
for (const entry of entries) {
  const bytes = readFileSync(join(directory, entry.file));
  const reference: Reference =
    entry.gt.file === undefined
      ? entry.gt
      : { ...entry.gt, text: readFileSync(join(directory, entry.gt.file), 'utf8') };
  let markdown = '';
  let note = '';
  try {
    markdown = (await pool.parse({ bytes, filename: entry.file })).markdown;
  } catch (error) {
    note = String(error);
  }
  if (values.out !== undefined) writeFileSync(join(values.out, `${entry.id}.md`), markdown);
  const plainText = await engines?.plainEngine(entry.format, bytes);
  rows.push({
    entry,
    note,
    ours: scoreDocument(reference, markdown),
    plain: plainText === undefined ? undefined : scoreDocument(reference, plainText),
  });
}
await pool.close();

const measures = ['f1', 'order', 'headings', 'tables'] as const;
if (values['per-document'])
  for (const { entry, ours, note } of rows.sort((a, b) => a.ours.f1 - b.ours.f1))
    console.log(measures.map((measure) => show(ours[measure])).join(' '), entry.id, note);
console.log(`${'kind'.padEnd(16)}    n ${measures.map((measure) => measure.padStart(9)).join('')}   plain engine`);
for (const group of ['pdf', 'office', 'legacy', 'text', 'html-doc', ...formats()])
  print(
    group,
    rows.filter((row) => groupOf(row, group)),
  );
print('all', rows);

function formats(): string[] {
  return [...new Set(rows.map((row) => `${row.entry.kind}/${row.entry.format}`))].sort();
}

function groupOf(row: Row, group: string): boolean {
  return row.entry.kind === group || `${row.entry.kind}/${row.entry.format}` === group;
}

function print(name: string, group: Row[]): void {
  if (group.length === 0) return;
  const ours = measures.map((measure) => show(mean(group.map((row) => row.ours[measure])))).join('  ');
  const plain = measures.map((measure) => show(mean(group.map((row) => row.plain?.[measure])))).join('  ');
  console.log(`${name.padEnd(16)} ${String(group.length).padStart(4)}   ${ours}   ${plain}`);
}

function mean(values: (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : known.reduce((sum, value) => sum + value, 0) / known.length;
}

function show(value: number | undefined): string {
  return value === undefined ? '      -' : value.toFixed(3).padStart(7);
}
