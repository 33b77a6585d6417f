/** Scans made of the PDFs of a set, read by recognition: token F1 and processor time for a page. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseDocument } from '../../src/content/parse/parse.ts';
import { Reading } from '../../src/content/parse/reading.ts';
import { makeScan, noisy } from '../../test/support/scans.ts';
import { type Reference, scoreDocument } from './score.ts';

export type ScanEntry = { id: string; format: string; file: string; gt: Reference & { file?: string } };

const kinds = { clean: undefined, noisy };

/** Prints each document's scores and their means. Documents with more pages than `pagesMax` are left out and named. */
export async function reportScans(
  directory: string,
  entries: ScanEntry[],
  { languages, pagesMax }: { languages: string[]; pagesMax: number },
): Promise<void> {
  for (const [kind, spoiling] of Object.entries(kinds)) {
    const scores: number[] = [];
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
      const seconds = (user + system) / 1_000_000 / pageCount;
      console.log(`${kind}  ${f1.toFixed(3)}  ${seconds.toFixed(2)} s/page  ${ocr?.confidence ?? '-'}  ${entry.id}`);
      scores.push(f1);
      pages += pageCount;
      processorMs += (user + system) / 1_000;
    }
    const mean = scores.reduce((sum, one) => sum + one, 0) / Math.max(1, scores.length);
    const each = processorMs / 1_000 / Math.max(1, pages);
    console.log(
      `${kind}  mean F1 ${mean.toFixed(3)} of ${scores.length}, ${each.toFixed(2)} s of processor time a page`,
    );
  }
}
