/** Scans made from the PDFs of a set and read by OCR: token F1 and processor time per page. */
import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { parseDocument } from '../../src/content/parse/parse.ts';
import { Reading } from '../../src/content/parse/reading.ts';
import { makeScan, noisy } from '../../test/support/scans.ts';
import { type Reference, scoreDocument } from './score.ts';
import { type Half, halfOf, halves } from './web-pages.ts';

export type ScanEntry = { id: string; format: string; file: string; gt: Reference & { file?: string } };

const kinds = { clean: undefined, noisy };

/**
 * Prints each document's scores and the means of each half, divided as the web pages are. Documents with more pages
 * than `pagesMax` are left out and listed.
 */
export async function reportScans(
  directory: string,
  entries: ScanEntry[],
  { languages, pagesMax }: { languages: string[]; pagesMax: number },
): Promise<void> {
  for (const [kind, spoiling] of Object.entries(kinds)) {
    const scores: { half: Half; f1: number }[] = [];
    let [pages, processorMs] = [0, 0];
    for (const entry of entries.filter(({ format }) => format === 'pdf')) {
      const original = readFileSync(join(directory, entry.file));
      const { pages: pageCount = 0 } = await parseDocument({ bytes: original });
      if (pageCount > pagesMax) {
        console.log(`${kind}  left out: ${entry.id}, ${pageCount} pages`);
        continue;
      }
      const bytes = await makeScan(original, spoiling, 1);
      const before = process.cpuUsage();
      const { markdown, ocr } = await parseDocument({ bytes }, new Reading({ ocr: { languages } }));
      const { user, system } = process.cpuUsage(before);
      const { file } = entry.gt;
      const text = file === undefined ? entry.gt.text : readFileSync(join(directory, file), 'utf8');
      const { f1 } = scoreDocument(text === undefined ? entry.gt : { ...entry.gt, text }, markdown);
      const half = halfOf(entry.id);
      const seconds = (user + system) / 1_000_000 / pageCount;
      console.log(
        `${kind}  ${f1.toFixed(3)}  ${seconds.toFixed(2)} s/page  ${ocr?.confidence ?? '-'}  ${half}  ${entry.id}`,
      );
      scores.push({ half, f1 });
      pages += pageCount;
      processorMs += (user + system) / 1_000;
    }
    for (const half of halves) {
      const own = scores.filter((one) => half === 'all' || one.half === half).map(({ f1 }) => f1);
      if (own.length === 0) continue;
      const mean = own.reduce((sum, one) => sum + one, 0) / own.length;
      const lowest = Math.min(...own).toFixed(3);
      console.log(`${kind}  ${half}: mean F1 ${mean.toFixed(3)} of ${own.length}, lowest ${lowest}`);
    }
    const each = processorMs / 1_000 / Math.max(1, pages);
    console.log(`${kind}  ${each.toFixed(2)} s of processor time a page, load ${loadavg()[0]?.toFixed(1)}`);
  }
}
