/**
 * What the analysis of pages costs beside the bare engine, in one process and in turns:
 *   node bench/parse-long.ts [FILE.pdf] [--pages 1000] [--rounds 5] [--kind lines|words]
 * The engine opens each page and returns its text; the parser makes Markdown of the document. Without a file, dense
 * pages of prose in two kinds: lines drawn in one operation each, and words drawn one by one, as justified text is.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { PDFiumLibrary } from '@hyzyla/pdfium';
import { parsePdf } from '../src/content/parse/pdf/pdf.ts';
import { Reading } from '../src/content/parse/reading.ts';
import { buildPdf } from '../src/content/parse/sample-pdf.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    pages: { type: 'string', default: '1000' },
    rounds: { type: 'string', default: '5' },
    kind: { type: 'string' },
  },
});
const words = 'the harbour master keeps a record of every ship that enters or leaves with its tonnage and master'.split(
  ' ',
);
/** The widths of Helvetica's lower-case letters in thousandths of its size. */
const letterWidths = [
  ...[556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833],
  ...[556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500],
];

const library = await PDFiumLibrary.init();
const file = positionals[0];
if (file !== undefined) await compare(file, readFileSync(file));
else
  for (const kind of ['lines', 'words'])
    if (values.kind === undefined || values.kind === kind)
      await compare(`${kind} drawn one by one`, densePdf(Number(values.pages), kind === 'words'));
library.destroy();

async function compare(name: string, bytes: Uint8Array): Promise<void> {
  const engineMs: number[] = [];
  const parserMs: number[] = [];
  let pages = 0;
  for (let round = 0; round <= Number(values.rounds); round++) {
    const engine = await processorMs(plainEngine);
    const parser = await processorMs(async () => {
      pages = (await parsePdf(bytes, new Reading())).pages ?? 0;
    });
    if (round === 0) continue; // until the code is compiled
    engineMs.push(engine);
    parserMs.push(parser);
  }
  const ratios = parserMs.map((parser, round) => parser / (engineMs[round] ?? 1));
  console.log(
    `${name}: ${pages} pages; engine ${median(engineMs).toFixed(0)} ms, parser ${median(parserMs).toFixed(0)} ms, ratio ${median(ratios).toFixed(2)} (${ratios.map((one) => one.toFixed(2)).join(' ')})`,
  );

  async function plainEngine(): Promise<void> {
    const document = await library.loadDocument(bytes);
    for (const page of document.pages()) page.getText();
    document.destroy();
  }
}

/** Pages of 58 lines and about 5,400 characters, with headings, a running header and page numbers. */
function densePdf(pages: number, byWord: boolean): Uint8Array {
  const sentence = (first: number): string[] =>
    Array.from({ length: 17 }, (_unused, at) => words[(first + at * 7) % words.length] ?? '');
  return buildPdf(
    Array.from({ length: pages }, (_, page) => {
      const content = [drawn('The keeping of records', 72, 770, 8), drawn(String(page + 1), 300, 24, 8)];
      for (let row = 0; row < 58; row++) {
        const y = 750 - row * 12.2;
        const isTitle = row % 20 === 0;
        const line = isTitle ? ['Chapter', String(page), 'part', String(row)] : sentence(page * 58 + row);
        let x = 40;
        if (!byWord || isTitle) content.push(drawn(line.join(' '), x, y, isTitle ? 13 : 9));
        else
          for (const word of line) {
            content.push(drawn(word, x, y, 9));
            x += textWidth(word, 9) + 3;
          }
      }
      return content.join('\n');
    }),
  );
}

function drawn(text: string, x: number, y: number, size: number): string {
  return `BT /F1 ${size} Tf ${x.toFixed(1)} ${y.toFixed(1)} Td (${text}) Tj ET`;
}

function textWidth(word: string, size: number): number {
  return ([...word].reduce((sum, letter) => sum + (letterWidths[letter.charCodeAt(0) - 97] ?? 556), 0) * size) / 1000;
}

async function processorMs(act: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  await act();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

function median(all: number[]): number {
  return [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)] ?? 0;
}
