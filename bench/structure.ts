/**
 * Quality of the structure of documentation: pages of documentation generators whose source is known, rendered with
 * several themes each. Reports the themes that no rule was written for.
 *   node bench/structure.ts [--all] [--per-page] [--missing PAGE] [--markdown PAGE]
 */
import { parseArgs } from 'node:util';
import {
  convertPage,
  listPages,
  type PageEntry,
  type PageScores,
  readTruths,
  scorePage,
  structureWithoutTitle,
} from '../test/support/documentation/pages.ts';
import { measures } from '../test/support/documentation/structure.ts';

const { values } = parseArgs({
  options: {
    all: { type: 'boolean', default: false },
    'per-page': { type: 'boolean', default: false },
    /** Shows what one page lacks or has too much. */
    missing: { type: 'string' },
    markdown: { type: 'string' },
  },
});
const truths = readTruths();
const pages = listPages();
if (values.markdown !== undefined) console.log(convertPage(find(values.markdown)).markdown);
else if (values.missing !== undefined) showMissing(find(values.missing));
else report();

function find(id: string): PageEntry {
  const page = pages.find((one) => one.id === id);
  if (page === undefined) throw new Error(`There is no page ${id}.`);
  return page;
}

function report(): void {
  const scored = pages
    .filter(({ aside }) => values.all || aside)
    .map((page) => ({
      page,
      scores: scorePage(page, convertPage(page).markdown, truths[page.truth] ?? never(page.id)),
    }));
  const width = Math.max(...scored.map(({ page }) => page.id.length));
  console.log(`${''.padEnd(width)} ${measures.map((measure) => measure.slice(0, 9).padStart(10)).join('')}`);
  if (values['per-page'])
    for (const { page, scores } of scored)
      console.log(`${page.id.padEnd(width)} ${line([scores])}${page.aside ? '' : ' tuned'}`);
  const aside = scored.filter(({ page }) => page.aside).map(({ scores }) => scores);
  console.log(`${`kept aside (${aside.length})`.padEnd(width)} ${line(aside)}`);
  if (!values.all) return;
  const tuned = scored.filter(({ page }) => !page.aside).map(({ scores }) => scores);
  console.log(`${`tuned (${tuned.length})`.padEnd(width)} ${line(tuned)}`);
}

function line(scores: PageScores[]): string {
  return measures
    .map((measure) => {
      const known = scores.map((one) => one[measure]).filter((one) => one !== undefined);
      if (known.length === 0) return '-'.padStart(10);
      return (known.reduce((sum, one) => sum + one, 0) / known.length).toFixed(3).padStart(10);
    })
    .join('');
}

function showMissing(page: PageEntry): void {
  const truth = truths[page.truth] ?? never(page.id);
  const found = structureWithoutTitle(convertPage(page).markdown, page.title);
  for (const measure of measures) {
    const extra = [...found[measure]];
    const missing = truth[measure].filter((one) => {
      const at = extra.indexOf(one);
      if (at >= 0) extra.splice(at, 1);
      return at < 0;
    });
    if (missing.length + extra.length === 0) continue;
    console.log(`## ${measure}`);
    for (const one of missing) console.log(`- ${one}`);
    for (const one of extra) console.log(`+ ${one}`);
  }
}

function never(id: string): never {
  throw new Error(`The page ${id} has no truth.`);
}
