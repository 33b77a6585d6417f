import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { extractUrl, outputText, type TestExtraction } from '../../support/extractions.ts';
import { type FixtureSite, type SitePages, startSite } from '../../support/fixture-site.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import type { TestApp } from '../../support/provisioner.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';

/** What the pages of a site repeat beside their text. */

let server: TestServer;
let app: TestApp;
const sites: FixtureSite[] = [];

before(async () => {
  server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.0/8' } });
  app = await server.provision.app();
});
after(async () => {
  await server.close();
  for (const site of sites) await site.close();
});

const ships = [
  'dinghy',
  'barge',
  'ketch',
  'yawl',
  'sloop',
  'cutter',
  'lugger',
  'punt',
  'scow',
  'skiff',
  'smack',
  'dory',
];

const course =
  '<div class="offer-7"><h3>Learn to sail</h3><p>Every summer we teach beginners to sail on the lake, in small groups.</p></div>';
const licence = '<p>This text may be copied and changed by everybody, as long as its author is named.</p>';

/** A page about one ship, with a box that all pages have, a closing line within the text, and a label above a value. */
function shipPage(ship: string, box = course): string {
  return `<!doctype html><html><head><title>The ${ship}</title><meta property="og:type" content="website"></head><body>
    <nav><a href="/">Home</a></nav><main><h1>The ${ship}</h1>
    <section class="text"><p>The ${ship} is a boat that is described on this page alone, with its mast, its keel and its sails.</p>
      <p>It was first built in ${ship.length}00 by people who needed a ${ship}, and they are still built today.</p>${licence}</section>
    <section><h2>Measures</h2><div class="value"><p>A ${ship} is ${ship.length} metres long, more or less.</p></div></section>${box}
    <section class="after"><h2>How to buy a ${ship}</h2><p>Ask the owners of a ${ship} in the harbour, who know where one is for sale.</p></section>
    </main></body></html>`;
}

async function siteOf(
  names: string[],
  box?: (ship: string, at: number) => string,
): Promise<FixtureSite & { pages: SitePages }> {
  const links = names.map((ship) => `<li><a href="/${ship}">All that is known about the ${ship}</a></li>`).join('');
  const pages: SitePages = {
    '/': shipPage('fleet').replace('</main>', `<ul>${links}</ul></main>`),
    ...Object.fromEntries(names.map((ship, at) => [`/${ship}`, shipPage(ship, box?.(ship, at))])),
  };
  const site = await startSite(pages);
  sites.push(site);
  return { ...site, pages };
}

async function textsOf(extraction: TestExtraction): Promise<Map<string, string>> {
  assert.equal(extraction.state, 'done');
  const texts = extraction.outputs.map(
    async (output) => [new URL(output.source_url).pathname, await outputText(output)] as const,
  );
  return new Map(await Promise.all(texts));
}

const extract = (url: string, body: Record<string, unknown> = {}): Promise<TestExtraction> =>
  extractUrl(server, app.secretKey, { url, ...body });

test('a crawl leaves out a box that its pages repeat in the same place, and keeps what is repeated within the text', async () => {
  const site = await siteOf(ships);
  const texts = await textsOf(await extract(`${site.origin}/`));
  assert.equal(texts.size, ships.length + 1);
  for (const [path, text] of texts) {
    const isStart = path === '/';
    assert.equal(text.includes('Learn to sail'), isStart, `the heading of the box: ${text}`);
    assert.equal(text.includes('we teach beginners'), isStart, text);
    assert.ok(text.includes('may be copied and changed'), `a line within the text stays: ${text}`);
    assert.ok(text.includes('## Measures'), `a heading stays with what it announces: ${text}`);
    assert.match(text, /metres long, more or less\.\n\n(?:## How to buy|### Learn)/);
  }
  assert.equal(site.requestCount('/dinghy'), 1, 'no page is fetched again for it');
});

test('a box on fewer than five pages, or on less than half of a site, stays', async () => {
  const few = await siteOf(ships.slice(0, 3));
  for (const text of (await textsOf(await extract(`${few.origin}/`))).values())
    assert.ok(text.includes('we teach beginners'), text);
  const fleet = ships.flatMap((ship) => [ship, `${ship}-model`]);
  const rare = await siteOf(fleet, (_ship, at) => (at % 4 === 0 ? course : ''));
  const texts = await textsOf(await extract(`${rare.origin}/`));
  // Those pages, and the start page.
  assert.equal([...texts.values()].filter((text) => text.includes('we teach beginners')).length, 7);
});

test('pages that are read and wait for others are counted until they are outputs', async () => {
  const names = ships.slice(0, 6);
  const site = await siteOf(names);
  const shown = Promise.withResolvers<void>();
  const last = names.at(-1) ?? '';
  const page = site.pages[`/${last}`];
  site.pages[`/${last}`] = (_request, response) =>
    void shown.promise.then(() => response.setHeader('content-type', 'text/html').end(page));
  const body = { url: `${site.origin}/`, mode: 'site', destination_kind: 'storage', destination_path: 'out' };
  const started = await server.api<TestExtraction>('POST', '/api/v1/extractions', { key: app.secretKey, body });
  const stream = await fetch(`${server.baseUrl}/api/v1/extractions/${started.body.id}/stream`, {
    headers: { 'x-api-key': app.secretKey },
  });
  let text = '';
  for await (const bytes of stream.body ?? []) {
    text += Buffer.from(bytes).toString();
    if (text.includes('"waiting_count":5')) shown.resolve();
  }
  const path = `/api/v1/extractions/${started.body.id}`;
  const ended = (await server.api<TestExtraction>('GET', path, { key: app.secretKey })).body;
  assert.equal(ended.output_count, names.length + 1);
  assert.equal(ended.waiting_count, undefined);
});

test('a single page keeps all its boxes', async () => {
  const site = await siteOf(ships);
  const texts = await textsOf(await extract(`${site.origin}/dinghy`, { mode: 'link' }));
  assert.match(texts.get('/dinghy') ?? '', /we teach beginners/);
});

test('a source leaves out what its pages repeat, also of a page that changes later', async () => {
  const site = await siteOf(ships);
  const { app: owner, org } = await server.provision.world();
  const knowledge = knowledgeOf(server, { key: owner.secretKey });
  const source = await knowledge.createSource({
    org: org.id,
    type: 'scrape/site',
    payload: { url: `${site.origin}/` },
  });
  assert.equal((await knowledge.ingest(source, { pull: true })).status, 'succeeded');
  const withBox = async (): Promise<string[]> => {
    const hits = await knowledge.search(source, {
      query: 'teach beginners to sail',
      mode: 'fulltext',
      max_results: 20,
    });
    return hits.filter(({ content }) => content.includes('we teach beginners')).map(({ document }) => document);
  };
  const before = await withBox();
  assert.equal(before.length, 1, 'only the start page has it');
  site.pages['/dinghy'] = shipPage('dinghy').replace('on this page alone', 'again on this page alone');
  assert.equal((await knowledge.ingest(source, { pull: true })).stats.documents, 1);
  assert.deepEqual(await withBox(), before);
});

test('a folder and its index file are one page if their text is the same, and two if it is not', async () => {
  const names = ['/guide/', '/guide/index.html', '/notes/', '/notes/index.html'];
  const links = names.map((path) => `<li><a href="${path}">What is written at ${path}</a></li>`).join('');
  const home = shipPage('fleet').replace('</main>', `<ul>${links}<li><a href="/index.html">Home</a></li></ul></main>`);
  const site = await startSite({
    ...{ '/': home, '/index.html': home, '/guide/': shipPage('barge'), '/guide/index.html': shipPage('barge') },
    ...{ '/notes/': shipPage('ketch'), '/notes/index.html': shipPage('yawl') },
  });
  sites.push(site);
  const extraction = await extract(`${site.origin}/`);
  const paths = [...(await textsOf(extraction)).keys()];
  assert.equal(paths.length, 4, paths.join(' '));
  assert.equal(paths.filter((path) => path.startsWith('/guide/')).length, 1);
  assert.deepEqual(paths.filter((path) => path.startsWith('/notes/')).sort(), ['/notes/', '/notes/index.html']);
  assert.equal(paths.filter((path) => path === '/' || path === '/index.html').join(), '/');
  assert.equal(extraction.left_out?.filter(({ reason }) => reason === 'duplicate').length, 2);
});
