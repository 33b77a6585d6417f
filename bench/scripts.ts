/**
 * How well the text of PDFs in eleven languages of ten scripts is read, beside pdftotext (Debian's poppler-utils):
 *   node bench/scripts.ts [--producer chromium] [--text thai] [--keep DIRECTORY]
 * The texts are in bench/scripts/texts. Chromium, LibreOffice (libreoffice-writer) and XeLaTeX (texlive-xetex) make the
 * PDFs from them with the fonts of fonts-noto-core and fonts-noto-cjk. The figures are the F1 of words, and, in
 * brackets, the share of words in the right order.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { parseDocument } from '../src/content/parse/parse.ts';
import { compareTokens, stripMarkdown } from './extract-quality/score.ts';
import { producers } from './scripts/producers.ts';
import { readTexts, wordsOf } from './scripts/texts.ts';

const { values } = parseArgs({
  options: { producer: { type: 'string' }, text: { type: 'string' }, keep: { type: 'string' } },
});
const folder = values.keep ?? mkdtempSync(join(tmpdir(), 'quarry-scripts-'));
try {
  for (const producer of producers.filter(({ name }) => [undefined, name].includes(values.producer)))
    for (const text of readTexts().filter(({ name }) => [undefined, name].includes(values.text))) {
      const own = join(folder, `${producer.name}-${text.name}`);
      mkdirSync(own, { recursive: true });
      const pdf = producer.make(text, own);
      const { markdown } = await parseDocument({ bytes: pdf });
      writeFileSync(join(own, 'text.md'), markdown);
      const plain = readWithPdftotext(join(own, 'text.pdf'));
      const expected = wordsOf(stripMarkdown(text.markdown), text.language);
      const [ours, theirs] = [stripMarkdown(markdown), plain].map((given) =>
        compareTokens(expected, wordsOf(given, text.language)),
      );
      console.log(`${producer.name.padEnd(12)} ${text.name.padEnd(9)} ${show(ours)}   pdftotext ${show(theirs)}`);
    }
} finally {
  if (values.keep === undefined) rmSync(folder, { recursive: true, force: true });
}

function readWithPdftotext(path: string): string {
  const { status, stdout, error } = spawnSync('pdftotext', ['-enc', 'UTF-8', path, '-'], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`pdftotext ended with ${status}: ${error?.message ?? ''}`);
  return stdout;
}

function show(scores: { f1: number; order: number } | undefined): string {
  return `${scores?.f1.toFixed(3)} (${scores?.order.toFixed(3)})`;
}
