/**
 * Quarry beside other programs that do one of its tasks, each task in one run on this machine:
 *   node bench/peers.ts [--only kv,runs,crawl,search,pages,pdf] [--seconds 1.5] [--runs 1000] [--pages 400]
 *     [--documents 150] [--data DIRECTORY]
 * Prints one table in Markdown, which docs/comparison.md explains. The other programs come from npm and Debian and are
 * installed into directories outside the repository. `search`, `pages` and `pdf` need collections with ground truth:
 * `--data DIRECTORY` names the directory that has retrieval, wcxb and extract.
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Row } from './peers/row.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: 'kv,runs,crawl,search,pages,pdf' },
    seconds: { type: 'string', default: '1.5' },
    runs: { type: 'string', default: '1000' },
    pages: { type: 'string', default: '400' },
    documents: { type: 'string', default: '150' },
    data: { type: 'string' },
  },
});
/** The directory of one of the collections. */
function collection(name: string): string {
  if (values.data === undefined) throw new Error('Name the directory of the collections with --data.');
  return join(values.data, name);
}
const tasks: Record<string, () => Promise<Row[]>> = {
  kv: async () => (await import('./peers/kv.ts')).measureKv(Number(values.seconds)),
  runs: async () => (await import('./peers/runs.ts')).measureRuns(Number(values.runs)),
  crawl: async () => (await import('./peers/crawl.ts')).compareCrawls(Number(values.pages)),
  search: async () =>
    (await import('./peers/search.ts')).measureSearch([collection('retrieval/cacm'), collection('retrieval/cisi')]),
  pages: async () => (await import('./peers/pages.ts')).measurePages(collection('wcxb'), Number(values.documents)),
  pdf: async () => (await import('./peers/pdf.ts')).measurePdf(collection('extract')),
};
const names = values.only.split(',');
const unknown = names.filter((name) => !Object.hasOwn(tasks, name));
if (unknown.length > 0)
  throw new Error(`There is no ${unknown.join(', ')}. There are: ${Object.keys(tasks).join(', ')}.`);

console.log('| Task | Program | Version | Guarantees | Measured |\n| --- | --- | --- | --- | --- |');
for (const name of names) {
  const startedAt = performance.now();
  // The rows of the other tasks are worth having if one fails.
  const rows = await tasks[name]?.().catch((error: unknown) => {
    console.error(`${name} failed:`, error);
    process.exitCode = 1;
  });
  for (const { program, version, guarantees, figures } of rows ?? []) {
    const measured = Object.entries(figures).map(([column, figure]) => `${column} ${figure}`);
    console.log(`| ${[name, program, version, guarantees, measured.join('; ')].join(' | ')} |`);
  }
  console.error(`${name} took ${((performance.now() - startedAt) / 1_000).toFixed(0)} s.`);
}
process.exit();
