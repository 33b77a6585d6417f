import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { extractUrl } from '../../support/extractions.ts';
import { htmlPage, startSite } from '../../support/fixture-site.ts';
import { type Json, knowledgeOf } from '../../support/knowledge.ts';
import { startTestServer } from '../../support/server.ts';

const server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.0/8', QUARRY_CRAWL_CONCURRENCY: '1' } });
const sites: { close(): Promise<void> }[] = [];
after(async () => {
  await server.close();
  for (const site of sites) await site.close();
});
const world = await server.provision.world();
const app = knowledgeOf(server, { key: world.app.secretKey });

type Page = { body: string; etag?: string; status?: number; location?: string };

/** A site whose pages (each with an ETag) and robots.txt can be changed between pulls, and a source that pulls it. */
async function startSource(pages: Record<string, Page | string>, payload: Json = {}) {
  const rules = { robots: '' };
  const full: string[] = [];
  const site = await startSite({}, (request, response, url) => {
    if (url.pathname === '/robots.txt') return response.setHeader('content-type', 'text/plain').end(rules.robots);
    const given = pages[url.pathname] ?? { body: '', status: 404 };
    const page: Page = typeof given === 'string' ? { body: given } : given;
    if (page.location !== undefined) return response.writeHead(302, { location: page.location }).end();
    const etag = page.etag ?? `"${Buffer.from(page.body).toString('base64url').slice(-200)}"`;
    const headers = { 'content-type': 'text/html', etag };
    if (page.status !== undefined) return response.writeHead(page.status, headers).end(page.body);
    if (request.headers['if-none-match'] === etag) return response.writeHead(304, headers).end();
    full.push(url.pathname);
    return response.writeHead(200, headers).end(page.body);
  });
  sites.push(site);
  const url = `${site.origin}/`;
  const source = await app.createSource({ org: world.org.id, type: 'scrape/site', payload: { url, ...payload } });
  return {
    site,
    rules,
    /** Paths that were sent in full. */
    full,
    change: async (change: Json) => {
      const answer = await app.send('PATCH', `/knowledge_sources/${source}`, { payload: { url, ...change } });
      assert.equal(answer.status, 200, answer.text);
    },
    async pull() {
      full.length = 0;
      const ended = await app.ingest(source, { pull: true });
      assert.equal(ended.status, 'succeeded', JSON.stringify(ended));
      return ended.stats;
    },
    async metadata() {
      type Listed = { data: { metadata: Json }[] };
      return (await app.send<Listed>('GET', `/knowledge_documents?source=${source}`)).body.data[0]?.metadata;
    },
    async titles() {
      type Listed = { data: { title: string; source_url: string }[] };
      const { body } = await app.send<Listed>('GET', `/knowledge_documents?source=${source}&page_size=100`);
      return body.data.map(({ title }) => title).sort();
    },
  };
}

const home = (links: string[]) => htmlPage('Home', links);
const names = (count: number) => Array.from({ length: count }, (_unused, at) => `/p${at}`);
const pagesOf = (paths: string[]) => Object.fromEntries(paths.map((path) => [path, htmlPage(`Page ${path}`)]));

test('a page that robots.txt closed for a while gets its unchanged document back', async () => {
  const source = await startSource({ '/': home(['/a', '/b']), '/a': htmlPage('A'), '/b': htmlPage('B') });
  await source.pull();
  source.rules.robots = 'User-agent: *\nDisallow: /a';
  await source.pull();
  assert.deepEqual(await source.titles(), ['B', 'Home']);
  source.rules.robots = '';
  const stats = await source.pull();
  assert.deepEqual(await source.titles(), ['A', 'B', 'Home']);
  assert.deepEqual([stats.documents, stats.unchanged], [1, 2]);
});

test('a page that redirected to another host for a while gets its document back', async () => {
  const elsewhere = await startSite({}, (_request, response) => response.end(htmlPage('Elsewhere')));
  sites.push(elsewhere);
  const pages: Record<string, Page | string> = { '/': home(['/a']), '/a': htmlPage('A') };
  const source = await startSource(pages);
  await source.pull();
  pages['/a'] = { body: '', location: `${elsewhere.origin.replace('127.0.0.1', '127.0.0.2')}/a` };
  await source.pull();
  assert.deepEqual(await source.titles(), ['Home']);
  pages['/a'] = htmlPage('A');
  await source.pull();
  assert.deepEqual(await source.titles(), ['A', 'Home']);
});

test('pages that exclude_paths or max_pages left out for a while get their documents back', async () => {
  const paths = names(6);
  const source = await startSource({ '/': home(paths), ...pagesOf(paths) });
  await source.pull();
  const all = await source.titles();
  assert.equal(all.length, 7);
  for (const limited of [{ exclude_paths: ['/p1', '/p2'] }, { max_pages: 3 }, { include_paths: ['/$', '/p1'] }]) {
    await source.change(limited);
    await source.pull();
    assert.ok((await source.titles()).length < all.length);
    await source.change({});
    await source.pull();
    assert.deepEqual(await source.titles(), all, JSON.stringify(limited));
  }
});

test('raising max_pages or max_depth, or widening include_paths, adds the pages that unchanged pages link to', async () => {
  const paths = names(20);
  const deep = {
    '/p0': htmlPage('Page /p0', ['/deep/1']),
    '/deep/1': htmlPage('Deep 1', ['/deep/2']),
    '/deep/2': htmlPage('Deep 2'),
  };
  const narrow = { max_pages: 5, max_depth: 1, include_paths: ['/p'] };
  const source = await startSource({ '/': home(paths), ...pagesOf(paths), ...deep }, narrow);
  await source.pull();
  assert.equal((await source.titles()).length, 5);
  await source.change({ ...narrow, max_pages: 30 });
  await source.pull();
  assert.equal((await source.titles()).length, 21);
  await source.change({ max_pages: 30, max_depth: 2 });
  await source.pull();
  assert.equal((await source.titles()).length, 22);
  await source.change({ max_pages: 30 });
  const stats = await source.pull();
  assert.equal((await source.titles()).length, 23);
  assert.deepEqual(source.full, ['/deep/2'], 'everything else was asked for conditionally');
  assert.equal(stats.unchanged, 22);
});

test('a page that failed at the first pull is added by a later one', async () => {
  const pages: Record<string, Page | string> = { '/': home(['/a']), '/a': { body: 'no', status: 501 } };
  const source = await startSource(pages);
  await source.pull();
  assert.deepEqual(await source.titles(), ['Home']);
  pages['/a'] = htmlPage('A');
  await source.pull();
  assert.deepEqual(await source.titles(), ['A', 'Home']);
});

test('a page that fails for a while keeps its document, and those of the pages that it leads to', async () => {
  const pages: Record<string, Page | string> = {
    '/': home(['/list']),
    '/list': { body: '', location: '/list/1' },
    '/list/1': htmlPage('List', ['/item']),
    '/item': htmlPage('Item'),
  };
  const source = await startSource(pages);
  await source.pull();
  const all = await source.titles();
  assert.deepEqual(all, ['Home', 'Item', 'List']);
  pages['/list'] = { body: 'no', status: 501 };
  const stats = await source.pull();
  assert.deepEqual(await source.titles(), all);
  assert.deepEqual([stats.failed, stats.removed], [1, 0]);
});

test('the document of a page without links to it is deleted', async () => {
  const pages: Record<string, Page | string> = { '/': home(['/a', '/b']), '/a': htmlPage('A'), '/b': htmlPage('B') };
  const source = await startSource(pages);
  await source.pull();
  pages['/'] = home(['/b']);
  const stats = await source.pull();
  assert.deepEqual(await source.titles(), ['B', 'Home']);
  assert.equal(stats.removed, 1);
});

test('a new title is stored although the text is the same', async () => {
  const pages: Record<string, Page | string> = { '/': htmlPage('Before') };
  const source = await startSource(pages);
  await source.pull();
  pages['/'] = htmlPage('Before').replaceAll(/<(title|h1)>Before</g, '<$1>After<');
  await source.pull();
  assert.deepEqual(await source.titles(), ['After']);
});

test('a 304 from a page other than that of the ETag does not count as unchanged', async () => {
  const pages: Record<string, Page | string> = {
    '/': home(['/latest']),
    '/latest': { body: '', location: '/v1' },
    '/v1': { body: htmlPage('Version 1'), etag: '"1"' },
    '/v2': { body: htmlPage('Version 2'), etag: '"1"' },
  };
  const source = await startSource(pages);
  await source.pull();
  assert.deepEqual(await source.titles(), ['Home', 'Version 1']);
  pages['/latest'] = { body: '', location: '/v2' };
  await source.pull();
  assert.deepEqual(await source.titles(), ['Home', 'Version 2']);
});

test('of two identical pages the remaining one keeps its document, and takes over when the other is removed', async () => {
  const twin = htmlPage('Twin', [], '<link rel="canonical" href="/twin">');
  const pages: Record<string, Page | string> = { '/': home(['/t1', '/t2']), '/t1': twin, '/t2': twin };
  const source = await startSource(pages);
  await source.pull();
  assert.deepEqual(await source.titles(), ['Home', 'Twin']);
  const stats = await source.pull();
  assert.deepEqual([stats.unchanged, stats.documents, stats.removed], [2, 0, 0]);
  pages['/'] = home(['/t2']);
  await source.pull();
  assert.deepEqual(await source.titles(), ['Home', 'Twin']);
});

test('a page that is too large to be read whole is marked with the missing parts for as long as it is too large', async () => {
  const links = Array.from({ length: 5_001 }, (_unused, at) => `https://elsewhere.example/${at}`);
  const pages: Record<string, Page | string> = { '/': home(links) };
  const source = await startSource(pages);
  await source.pull();
  assert.deepEqual(await source.metadata(), { truncated: ['links after the first 5000'] });
  const extracted = await extractUrl(server, world.app.secretKey, { url: `${source.site.origin}/`, mode: 'link' });
  assert.deepEqual(extracted.outputs[0]?.metadata.truncated, ['links after the first 5000']);
  pages['/'] = home(links.slice(0, 10));
  await source.pull();
  assert.deepEqual(await source.metadata(), {});
});

test('for a robots.txt of more than 20 MiB, the first 512 KiB count', async () => {
  const source = await startSource({ '/': home(['/a', '/b']), '/a': htmlPage('A'), '/b': htmlPage('B') });
  source.rules.robots = `User-agent: *\nDisallow: /a\n${'# filler\n'.repeat(3_000_000)}Disallow: /b`;
  await source.pull();
  assert.deepEqual(await source.titles(), ['B', 'Home']);
});

test('a refresh reads pages that the sitemap calls changed first and unchanged ones last, and omits none', async () => {
  const paths = names(5);
  const pages: Record<string, Page | string> = { '/': home(paths), ...pagesOf(paths) };
  const source = await startSource(pages);
  await source.pull();
  const all = await source.titles();
  const day = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();
  const entry = (path: string, more: string) => `<url><loc>${source.site.origin}${path}</loc>${more}</url>`;
  pages['/sitemap.xml'] = `<urlset>${[
    entry('/p0', `<lastmod>${day(-400)}</lastmod>`),
    entry('/p1', '<changefreq>yearly</changefreq>'),
    entry('/p3', '<changefreq>always</changefreq>'),
    entry('/p4', `<lastmod>${day(1).slice(0, 10)}</lastmod><changefreq>never</changefreq>`),
  ].join('')}</urlset>`;
  const before = source.site.requests.length;
  const stats = await source.pull();
  const order = source.site.requests.slice(before).filter((path) => path.startsWith('/p'));
  assert.deepEqual(order, ['/p3', '/p4', '/p2', '/p0', '/p1']);
  assert.equal(stats.unchanged, 6);
  assert.deepEqual(await source.titles(), all);
});
