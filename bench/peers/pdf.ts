import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ParserPool } from '../../src/content/parse/pool/pool.ts';
import { createLogger } from '../../src/lib/log.ts';
import { type Reference, type Scores, scoreDocument } from '../extract-quality/score.ts';
import { installPackages } from './install.ts';
import { type Extractor, mean, ownVersion, percentile, type Row } from './row.ts';

type Entry = { id: string; kind: string; file: string; gt: Reference & { file?: string } };
type LiteParse = new (options: object) => { parse(bytes: Buffer): Promise<{ text: string }> };
type PdfInspector = { processPdfAsync(bytes: Buffer): Promise<{ markdown?: string }> };
type Pdf = { bytes: Buffer; file: string; reference: Reference };

const measures = { F1: 'f1', order: 'order', headings: 'headings', tables: 'tables' } as const;

/** The set's PDFs as Markdown, one after another, without reading pictures of text. */
export async function measurePdf(directory: string): Promise<Row[]> {
  const entries = JSON.parse(readFileSync(join(directory, 'manifest.json'), 'utf8')) as Entry[];
  const pdfs: Pdf[] = entries
    .filter(({ kind }) => kind === 'pdf')
    .map(({ file, gt }) => ({
      bytes: readFileSync(join(directory, file)),
      file,
      reference: gt.file === undefined ? gt : { ...gt, text: readFileSync(join(directory, gt.file), 'utf8') },
    }));
  const pool = new ParserPool({ workers: 1, memoryMb: 512, deadlineMs: 30_000, log: createLogger('error') });
  const rows: Row[] = [];
  for (const { extract, ...row } of [quarry(pool), await liteParse(), await pdfInspector()]) {
    // The first documents start processes and compile code.
    for (const pdf of pdfs.slice(0, 3)) await extract(pdf).catch(() => '');
    const times: number[] = [];
    const scores: Scores[] = [];
    let failed = 0;
    for (const pdf of pdfs) {
      const startedAt = performance.now();
      const markdown = await extract(pdf).catch(() => {
        failed += 1;
        return '';
      });
      times.push(performance.now() - startedAt);
      scores.push(scoreDocument(pdf.reference, markdown));
    }
    rows.push({ ...row, figures: figuresOf(scores, times, failed) });
  }
  await pool.close();
  return rows;
}

function figuresOf(scores: Scores[], times: number[], failed: number): Row['figures'] {
  const quality = Object.entries(measures).map(([name, measure]) => {
    const known = scores.map((one) => one[measure]).filter((value) => value !== undefined);
    return [name, known.length === 0 ? '–' : mean(known).toFixed(3).replace(/^0/, '')];
  });
  const sorted = times.toSorted((a, b) => a - b);
  const [p50, p95] = [percentile(sorted, 0.5).toFixed(0), percentile(sorted, 0.95).toFixed(0)];
  const time = `mean ${mean(times).toFixed(0)} ms, p50 ${p50} ms, p95 ${p95} ms`;
  return { ...Object.fromEntries(quality), time, of: `${times.length} PDFs${failed > 0 ? `, ${failed} failed` : ''}` };
}

function quarry(pool: ParserPool): Extractor<Pdf> {
  return {
    program: 'Quarry',
    version: ownVersion,
    guarantees: 'a separate process with limits of memory and time',
    extract: async ({ bytes, file }) => (await pool.parse({ bytes, filename: file })).markdown,
  };
}

async function liteParse(): Promise<Extractor<Pdf>> {
  const packages = installPackages('liteparse', ['@llamaindex/liteparse@2.14.7']);
  const { LiteParse: Parser } = await packages.load<{ LiteParse: LiteParse }>('@llamaindex/liteparse');
  const parser = new Parser({ outputFormat: 'markdown', imageMode: 'off', ocrEnabled: false, quiet: true });
  return {
    program: 'LiteParse',
    version: packages.version('@llamaindex/liteparse'),
    guarantees: 'a native library in process',
    extract: async ({ bytes }) => (await parser.parse(bytes)).text,
  };
}

async function pdfInspector(): Promise<Extractor<Pdf>> {
  const packages = installPackages('pdf-inspector', ['@firecrawl/pdf-inspector@1.25.1']);
  const { processPdfAsync } = await packages.load<PdfInspector>('@firecrawl/pdf-inspector');
  return {
    program: 'pdf-inspector',
    version: packages.version('@firecrawl/pdf-inspector'),
    guarantees: 'a native library in process',
    extract: async ({ bytes }) => (await processPdfAsync(bytes)).markdown ?? '',
  };
}
