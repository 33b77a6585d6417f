import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { extractUrl, type TestExtraction } from '../../support/extractions.ts';
import {
  type FixtureSite,
  htmlPage,
  type SitePages,
  type SiteResponse,
  startSite,
} from '../../support/fixture-site.ts';
import type { TestApp } from '../../support/provisioner.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';

/** Which pages of documentation a crawl finds, and which of them it reads. */

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

async function siteOf(pages: SitePages): Promise<FixtureSite> {
  const site = await startSite(pages);
  sites.push(site);
  return site;
}

function extract(url: string, body: Record<string, unknown> = {}): Promise<TestExtraction> {
  return extractUrl(server, app.secretKey, { url, ...body });
}

function paths(extraction: TestExtraction): string[] {
  return extraction.outputs.map((output) => new URL(output.source_url).pathname);
}

test('of a manual, indexes, listings of source code and the version for printing are left out, unless a path names them', async () => {
  const robots = '<meta name="robots" content="noindex">';
  const site = await siteOf({
    '/': htmlPage('Manual', [
      '/guide.html',
      '/genindex.html',
      '/_modules/ship.html',
      '/print.html',
      '/print/print.html',
    ]),
    '/guide.html': htmlPage('Guide', ['/py-modindex.html', '/search.html', '/searches.html']),
    '/genindex.html': htmlPage('Index'),
    '/py-modindex.html': htmlPage('Modules'),
    '/_modules/ship.html': htmlPage('Source code'),
    '/print.html': htmlPage('Manual', [], robots),
    '/print/print.html': htmlPage('How to print'),
    '/search.html': htmlPage('Search', [], '<link rel="search" title="Search" href="#">'),
    '/searches.html': htmlPage('Searches', [], '<link rel="search" title="Search" href="search.html">'),
  });
  const done = await extract(`${site.origin}/`);
  assert.deepEqual(paths(done).sort(), ['/', '/guide.html', '/print/print.html', '/searches.html']);
  assert.deepEqual(done.left_out?.map((page) => [new URL(page.url).pathname, page.reason]).sort(), [
    ['/_modules/ship.html', 'generated'],
    ['/genindex.html', 'generated'],
    ['/print.html', 'generated'],
    ['/py-modindex.html', 'generated'],
    ['/search.html', 'generated'],
  ]);
  assert.equal(site.requestCount('/genindex.html') + site.requestCount('/_modules/ship.html'), 0);
  const named = await extract(`${site.origin}/`, { include_paths: ['/', '/_modules/'] });
  assert.ok(paths(named).includes('/_modules/ship.html'));
  const started = await extract(`${site.origin}/genindex.html`, { mode: 'link' });
  assert.deepEqual(paths(started), ['/genindex.html']);
});

test('a menu that pages load by a script or in a frame is followed, and is no page itself', async () => {
  const menu = (...paths: string[]) => paths.map((path) => `<li><a href="${path}">${path}</a></li>`).join('');
  const site = await siteOf({
    '/doxygen/': htmlPage('Library', [], '<script src="menudata.js"></script>'),
    '/doxygen/menudata.js': (_request, response) =>
      response
        .writeHead(200, { 'content-type': 'text/javascript' })
        .end(`var menudata={children:[\n{text:"Pages",url:"pages.html"},\n{text:'Classes',url:'annotated.html'}]}`),
    '/ex/': '<html><head><meta http-equiv="refresh" content="0; url=readme.html"></head></html>',
    '/ex/readme.html': htmlPage('Read me', [], '<script defer src="dist/sidebar_items-1D51.js"></script>'),
    '/ex/dist/sidebar_items-1D51.js': (_request, response) =>
      response
        .writeHead(200, { 'content-type': 'text/javascript' })
        .end(
          `sidebarNodes={"modules":[{"id":"Ship.Log","nodes":[{"id":"add/1"}]}],"extras":[{"id":"readme"},null,{"id":7}]};`,
        ),
    '/ex/Ship.Log.html': htmlPage('Ship.Log'),
    '/doxygen/pages.html': htmlPage('Related pages', ['/doxygen/mooring.html']),
    '/doxygen/annotated.html': htmlPage('Classes', ['/doxygen/doxygen_crawl.html']),
    '/doxygen/doxygen_crawl.html':
      '<html><head><title>Pages</title></head><body><a href="mooring.html"></a></body></html>',
    '/doxygen/mooring.html': htmlPage('Mooring'),
    '/book/': `${htmlPage('Book')}<noscript><iframe src="toc.html"></iframe><a href="plain.html">Plain</a></noscript>`,
    '/book/toc.html': `<ol>${menu('one.html', 'two.html')}</ol>`,
    '/book/one.html': htmlPage('One'),
    '/book/two.html': htmlPage('Two'),
    '/book/plain.html': htmlPage('Plain'),
    '/net/': htmlPage('Net', [], '<meta name="docfx:tocrel" content="api/toc.html">'),
    '/net/api/toc.html': `<form><input></form><ul>${menu('Ship.html')}</ul>`,
    '/net/api/Ship.html': htmlPage('Ship', ['/net/toc.html']),
    '/net/toc.html': htmlPage('How to write a table of contents'),
  });
  const exclude_paths = ['/$'];
  const doxygen = await extract(`${site.origin}/doxygen/`, { exclude_paths });
  assert.deepEqual(paths(doxygen).sort(), [
    '/doxygen/',
    ...['/doxygen/annotated.html', '/doxygen/mooring.html', '/doxygen/pages.html'],
  ]);
  assert.deepEqual(doxygen.left_out?.map((page) => [new URL(page.url).pathname, page.reason]).sort(), [
    ['/', 'path'],
    ['/doxygen/doxygen_crawl.html', 'generated'],
    ['/doxygen/menudata.js', 'generated'],
  ]);
  const near = await extract(`${site.origin}/doxygen/`, { max_depth: 1, exclude_paths });
  assert.deepEqual(paths(near).sort(), ['/doxygen/', '/doxygen/annotated.html', '/doxygen/pages.html']);
  const ex = await extract(`${site.origin}/ex/`, { exclude_paths });
  assert.deepEqual(paths(ex).sort(), ['/ex/Ship.Log.html', '/ex/readme.html']);
  const book = await extract(`${site.origin}/book/`, { exclude_paths });
  assert.deepEqual(paths(book).sort(), ['/book/', '/book/one.html', '/book/plain.html', '/book/two.html']);
  const net = await extract(`${site.origin}/net/`, { exclude_paths });
  assert.deepEqual(paths(net).sort(), ['/net/', '/net/api/Ship.html', '/net/toc.html']);
});

test('links in Markdown are followed, so that a crawl can start at a list of pages such as llms.txt', async () => {
  const text = (type: string, body: string): SiteResponse => {
    return (_request, response) => response.writeHead(200, { 'content-type': type }).end(body);
  };
  const site = await siteOf({
    '/llms.txt': text(
      'text/plain; charset=utf-8',
      '# Harbour\n\n- [Guide](/guide.md): how to moor\n- [Rules](rules.html)\n',
    ),
    '/guide.md': text(
      'text/markdown',
      '# Guide\n\nRead [the rules](<rules.html#one>) and [the signals][1], not [this](#guide) or [that](mailto:a@b.test).\n\n' +
        '```\n[in code](/code.html)\n```\n\n[1]: /signals.html "Signals"\n',
    ),
    '/rules.html': htmlPage('Rules'),
    '/signals.html': htmlPage('Signals'),
    '/code.html': htmlPage('Code'),
  });
  const done = await extract(`${site.origin}/llms.txt`, { exclude_paths: ['/$'] });
  assert.deepEqual(paths(done).sort(), ['/guide.md', '/llms.txt', '/rules.html', '/signals.html']);
  assert.equal(done.progress.failed, 0);
});

test('a page that sends its readers on in its text is a redirect', async () => {
  const onTo = (content: string, text = '<p>Redirecting to the manual</p>') =>
    `<html><head><meta http-equiv="Refresh" content="${content}"></head><body>${text}</body></html>`;
  const site = await siteOf({
    '/': onTo('0; url=versions/latest/'),
    '/versions/latest/': htmlPage('Manual', [
      '/old',
      '/away',
      '/round',
      '/news',
      '/slow',
      '/long',
      '/quoted',
      '/mike',
      '/scripts',
      '/jump',
      '/login',
    ]),
    '/old': onTo('5;URL=/new'),
    '/new': htmlPage('New'),
    '/away': onTo('0;url=http://127.0.0.2:9/'),
    '/round': onTo('0;url=/trip'),
    '/trip': onTo('0;url=/round'),
    '/news': onTo('300', '<h1>News</h1><p>Ships came and went.</p>'),
    '/slow': onTo('300;url=/new', '<h1>Slow</h1><p>Ships came and went.</p>'),
    '/long': onTo('10;url=/new', `<h1>Long</h1><p>${'Ships came and went. '.repeat(30)}</p>`),
    '/quoted': onTo("0; url='/target'"),
    '/mike':
      '<head><noscript><meta http-equiv="refresh" content="1; url=/latest"></noscript><script>location.replace("/latest")</script></head><body>Redirecting to <a href="/latest">the latest version</a></body>',
    '/latest': htmlPage('Latest'),
    '/scripts': `<noscript><meta http-equiv="refresh" content="0; url=/new"></noscript><h1>Scripts</h1><p>${'Ships came and went. '.repeat(30)}</p>`,
    '/jump': '<script>\n  window.location.replace("./jumped" + window.location.hash);\n</script>',
    '/jumped': htmlPage('Jumped'),
    '/login': '<p>Welcome</p><script>if (!user) location.href = "/private"</script>',
    '/target': htmlPage('Target'),
    '/private': htmlPage('Private'),
    '/closed': onTo('0;url=/private'),
    '/robots.txt': 'User-agent: *\nDisallow: /private',
  });
  const done = await extract(`${site.origin}/`);
  assert.deepEqual(paths(done).sort(), [
    '/jumped',
    '/latest',
    '/login',
    '/long',
    '/new',
    '/news',
    '/round',
    '/scripts',
    '/slow',
    '/target',
    '/versions/latest/',
  ]);
  const failed = done.outputs.filter((output) => output.state === 'failed');
  assert.deepEqual(failed.map((output) => [new URL(output.source_url).pathname, output.error?.code]).sort(), [
    ['/login', 'needs_browser'],
    ['/round', 'too_many_redirects'],
  ]);
  assert.deepEqual(
    done.left_out?.map((page) => [new URL(page.url).pathname, page.reason]),
    [['/away', 'redirected_away']],
  );
  const closed = await extract(`${site.origin}/closed`, { mode: 'link' });
  assert.deepEqual([closed.state, closed.error?.code], ['failed', 'robots_disallowed']);
  assert.equal(site.requestCount('/private'), 0);
});
