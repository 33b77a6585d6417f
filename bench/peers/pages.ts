import { parsePage } from '../../src/content/parse/html/page.ts';
import { readWebPages, type WebPage } from '../extract-quality/web-pages.ts';
import { scoreWords } from '../extract-quality/web-score.ts';
import { installPackages } from './install.ts';
import { type Extractor, mean, ownVersion, percentile, type Row } from './row.ts';

type Document = object;
type Linkedom = { parseHTML(html: string): { document: Document } };
type JsdomModule = {
  JSDOM: new (html: string, options: object) => { window: { document: Document; close(): void } };
  VirtualConsole: new () => object;
};
type Readable = { Readability: new (document: Document) => { parse(): { content?: string | null } | null } };
type Turndown = { default: new (options: object) => { turndown(html: string): string } };

/** The main content of `count` pages of the half of WCXB on which nothing was fitted, as Markdown, one after another. */
export async function measurePages(directory: string, count: number): Promise<Row[]> {
  const all = [...readWebPages([directory], 'untouched')];
  const pages = all.filter(
    (_page, at) => Math.floor((at * count) / all.length) !== Math.floor(((at + 1) * count) / all.length),
  );
  const rows: Row[] = [];
  for (const { extract, ...row } of [quarry, ...(await readability()), await defuddle()]) {
    for (const page of pages.slice(0, 10)) await extract(page);
    const times: number[] = [];
    const scores: number[] = [];
    for (const page of pages) {
      const before = process.cpuUsage();
      const markdown = await extract(page);
      const { user, system } = process.cpuUsage(before);
      times.push((user + system) / 1_000);
      scores.push(page.reference.measure === 'words' ? scoreWords(page.reference.text, markdown).f1 : 0);
    }
    const median = percentile(
      times.toSorted((a, b) => a - b),
      0.5,
    );
    const processor = `${mean(times).toFixed(1)} ms a page (median ${median.toFixed(1)})`;
    rows.push({ ...row, figures: { F1: mean(scores).toFixed(3).slice(1), processor, of: `${pages.length} pages` } });
  }
  return rows;
}

const quarry: Extractor<WebPage> = {
  program: 'Quarry',
  version: ownVersion,
  guarantees: 'no script runs; Markdown; here in process, in a separate process with limits on a server',
  extract: async ({ bytes, url }) =>
    parsePage({ bytes, contentType: 'text/html; charset=utf-8', url: url || 'about:blank' }).markdown,
};

/** With jsdom, as its documentation shows, and with linkedom, which is faster. */
async function readability(): Promise<Extractor<WebPage>[]> {
  const packages = installPackages('readability', [
    ...['@mozilla/readability@0.6.0', 'jsdom@31.0.1', 'linkedom@0.18.15', 'turndown@7.2.5'],
  ]);
  const { Readability } = await packages.load<Readable>('@mozilla/readability');
  const { JSDOM, VirtualConsole } = await packages.load<JsdomModule>('jsdom');
  const { parseHTML } = await packages.load<Linkedom>('linkedom');
  const turndown = new (await packages.load<Turndown>('turndown')).default({ headingStyle: 'atx' });
  const read = (document: Document) => turndown.turndown(new Readability(document).parse()?.content ?? '');
  const shared = { version: packages.version('@mozilla/readability') };
  const guarantees = 'a library in process; HTML, made Markdown by turndown';
  return [
    {
      ...{ ...shared, guarantees, program: `Readability with jsdom ${packages.version('jsdom')}` },
      async extract({ bytes, url }) {
        const options = { ...(url === '' ? {} : { url }), virtualConsole: new VirtualConsole() };
        const { window } = new JSDOM(new TextDecoder().decode(bytes), options);
        const markdown = read(window.document);
        window.close();
        return markdown;
      },
    },
    {
      ...{ ...shared, guarantees, program: `Readability with linkedom ${packages.version('linkedom')}` },
      extract: async ({ bytes }) => read(parseHTML(new TextDecoder().decode(bytes)).document),
    },
  ];
}

async function defuddle(): Promise<Extractor<WebPage>> {
  const packages = installPackages('defuddle', ['defuddle@0.19.4', 'linkedom@0.18.15']);
  const { parseHTML } = await packages.load<Linkedom>('linkedom');
  type Extract = (document: Document, url: string, options: object) => Promise<{ content: string }>;
  const { Defuddle } = await packages.load<{ Defuddle: Extract }>('defuddle/node');
  return {
    program: `Defuddle with linkedom ${packages.version('linkedom')}`,
    version: packages.version('defuddle'),
    guarantees: 'a library in process; Markdown',
    async extract({ bytes, url }) {
      const { document } = parseHTML(new TextDecoder().decode(bytes));
      return (await Defuddle(document, url || 'about:blank', { markdown: true, useAsync: false })).content;
    },
  };
}
