/**
 * How well the structure of printed texts is read from PDFs:
 *   node bench/pdf-structure.ts [--producer chromium] [--style plain] [--per-document] [--keep DIRECTORY]
 * A report and pages of this manual are printed in 24 styles by Chromium, LibreOffice (libreoffice-writer) and XeLaTeX
 * (texlive-xetex, texlive-latex-extra). The figures are the F1 of headings, headings with their level, items with their
 * depth and kind, cells of tables, and lines of code, each as a mean over the texts.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { requireProgram } from '../scripts/setup.ts';
import { parseDocument } from '../src/content/parse/parse.ts';
import { scoreDocument } from './extract-quality/score.ts';
import { scoreWordLists } from './extract-quality/web-score.ts';
import { type Style, styles } from './pdf-structure/styles.ts';
import { type Block, readBlocks, referenceOf } from './pdf-structure/text.ts';

const pages = ['knowledge', 'reliability', 'search', 'authentication', 'structured-extraction', 'comparison'];
const texts: [name: string, blocks: Block[]][] = [
  ['report', readBlocks(readFileSync(new URL('pdf-structure/report.md', import.meta.url), 'utf8'))],
  ...pages.map((name): [string, Block[]] => [
    name,
    readBlocks(readFileSync(new URL(`../docs/${name}.md`, import.meta.url), 'utf8')),
  ]),
];

const fence = /^```.*\n([\s\S]*?)^```/gm;
const withoutCode = (text: string): string => text.replaceAll(fence, '');

const measures = ['headings', 'levels', 'items', 'cells', 'code'] as const;
type Scores = Record<(typeof measures)[number], number | undefined>;

const { values } = parseArgs({
  options: {
    producer: { type: 'string' },
    style: { type: 'string' },
    keep: { type: 'string' },
    'per-document': { type: 'boolean', default: false },
  },
});
const folder = values.keep ?? mkdtempSync(join(tmpdir(), 'quarry-pdf-structure-'));
try {
  console.log(`${''.padEnd(26)} ${measures.map((measure) => measure.padStart(9)).join('')}`);
  for (const style of styles) {
    if (values.producer !== undefined && style.producer !== values.producer) continue;
    if (values.style !== undefined && style.name !== values.style) continue;
    const scores: Scores[] = [];
    for (const [name, blocks] of texts) {
      const own = join(folder, `${style.producer}-${style.name}-${name}`);
      mkdirSync(own, { recursive: true });
      const { markdown } = await parseDocument({ bytes: print(style, blocks, own) });
      writeFileSync(join(own, 'text.md'), markdown);
      const score = compare(referenceOf(blocks, style.codeWidth), markdown);
      scores.push(score);
      if (values['per-document']) show(`  ${name}`, [score]);
    }
    show(`${style.producer} ${style.name}`, scores);
  }
} finally {
  if (values.keep === undefined) rmSync(folder, { recursive: true, force: true });
}

function show(name: string, scores: Scores[]): void {
  const means = measures.map((measure) => {
    const known = scores.map((score) => score[measure]).filter((one) => one !== undefined);
    const mean = known.reduce((sum, one) => sum + one, 0) / known.length;
    return (known.length === 0 ? '–' : mean.toFixed(3)).padStart(9);
  });
  console.log(`${name.padEnd(26)} ${means.join('')}`);
}

/** The PDF of a text, made in a folder of its own, or the one that is there. */
function print(style: Style, blocks: Block[], own: string): Uint8Array {
  const file = join(own, 'text.pdf');
  if (existsSync(file)) return readFileSync(file);
  const source = join(own, style.producer === 'xelatex' ? 'text.tex' : 'text.html');
  writeFileSync(source, style.source(blocks));
  const page = pathToFileURL(source).href;
  const profile = (name: string): string => join(own, '..', name);
  const [program, options]: [string, string[]] =
    style.producer === 'xelatex'
      ? ['xelatex', ['-interaction=nonstopmode', 'text.tex']]
      : style.producer === 'libreoffice'
        ? [
            'soffice',
            [
              '--headless',
              `-env:UserInstallation=${pathToFileURL(profile('office')).href}`,
              '--convert-to',
              'pdf:writer_web_pdf_Export',
              'text.html',
            ],
          ]
        : [
            requireProgram('browser'),
            [
              ...['--headless', '--no-sandbox', '--disable-gpu', '--no-pdf-header-footer'],
              ...[`--user-data-dir=${profile('browser')}`, '--print-to-pdf=text.pdf', page],
              ...(style.tagged ? [] : ['--disable-pdf-tagging']),
            ],
          ];
  const { error, stderr } = spawnSync(program, options, { cwd: own, encoding: 'utf8', timeout: 180_000 });
  if (!existsSync(file)) throw new Error(`${program} wrote no PDF: ${error?.message ?? stderr?.slice(-2000)}`);
  return readFileSync(file);
}

function compare(reference: string, markdown: string): Scores {
  const { tables } = scoreDocument({ type: 'markdown', text: reference }, markdown);
  const f1 = (read: (text: string) => string[]): number | undefined => {
    const expected = read(reference);
    return expected.length === 0 ? undefined : scoreWordLists(expected, read(markdown)).f1;
  };
  return {
    headings: f1((text) => headingsOf(text).map(([, title]) => title)),
    levels: f1((text) => headingsOf(text).map(([level, title]) => `${level} ${title}`)),
    items: f1(itemsOf),
    cells: tables,
    code: f1(linesOfCode),
  };
}

function headingsOf(text: string): [level: number, title: string][] {
  return [...withoutCode(text).matchAll(/^(#{1,6}) +(.+)$/gm)].map(([, marks = '', title = '']) => [
    marks.length,
    simplify(title),
  ]);
}

function itemsOf(text: string): string[] {
  return [...withoutCode(text).matchAll(/^( *)([-*]|\d+[.)]) +(.+)$/gm)].map(
    ([, indent = '', marker = '', item = '']) =>
      `${Math.floor(indent.length / 3)} ${/\d/.test(marker) ? '1' : '-'} ${simplify(item).slice(0, 30)}`,
  );
}

function linesOfCode(text: string): string[] {
  return [...text.matchAll(fence)]
    .flatMap(([, code = '']) => code.split('\n').map((line) => line.trim()))
    .filter((line) => line !== '');
}

function simplify(text: string): string {
  const bare = text
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/[*`_\\]|<[^>]+>/g, '');
  return bare.replaceAll(/\s+/g, ' ').trim().replace(/\.$/, '');
}
