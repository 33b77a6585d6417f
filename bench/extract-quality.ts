/**
 * Quality of extraction against a set with ground truth, beside what the plain engines give in the same run.
 *   node bench/extract-quality.ts DIRECTORY [--kind pdf] [--per-document] [--out DIRECTORY]
 * DIRECTORY holds manifest.json: a list of {id, kind, format, file, gt: {type, file | with, without}}. `--kind web` scores
 * its web pages, `--kind scans [--languages eng,deu] [--pages-max 40]` scans that it makes of its PDFs, clean and noisy.
 *   node bench/extract-quality.ts WCXB [--type forum] [--half tuned|untouched|all] [--per-document]
 * scores pages of the Web Content eXtraction Benchmark (`dev/html`, `dev/ground-truth`) by type, the half that no rule
 * was tuned on unless another is named.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ParserPool } from '../src/content/parse/pool/pool.ts';
import { createLogger } from '../src/log.ts';
import { reportScans, type ScanEntry } from './extract-quality/scans.ts';
import { type Reference, type Scores, scoreDocument } from './extract-quality/score.ts';
import { type Half, halves, reportWcxb, reportWebEntries, type WebEntry } from './extract-quality/web-pages.ts';

type Entry = { id: string; kind: string; format: string; file: string; gt: Reference & { file?: string } };

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    kind: { type: 'string' },
    type: { type: 'string' },
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
  throw new Error('usage: node bench/extract-quality.ts DIRECTORY [--kind KIND] [--per-document]');
if (existsSync(join(directory, 'dev/ground-truth'))) {
  if (!halves.includes(values.half as Half)) throw new Error(`--half is one of ${halves.join(', ')}`);
  const type = values.type === undefined ? {} : { type: values.type };
  reportWcxb(directory, { half: values.half as Half, perDocument: values['per-document'], ...type });
  process.exit();
}
if (values.kind === 'web') {
  reportWebEntries(directory, JSON.parse(readFileSync(join(directory, 'manifest.json'), 'utf8')) as WebEntry[]);
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
