import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { deflateSync } from 'node:zlib';
import { extractUrl, outputText, type TestExtraction } from '../../support/extractions.ts';
import {
  type FixtureSite,
  htmlPage,
  responses,
  type SitePages,
  type SiteResponse,
  startSite,
} from '../../support/fixture-site.ts';
import type { TestApp } from '../../support/provisioner.ts';
import { type ErrorBody, startTestServer, type TestServer } from '../../support/server.ts';

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

async function siteOf(pages: SitePages, fallback?: SiteResponse): Promise<FixtureSite> {
  const site = await startSite(pages, fallback);
  sites.push(site);
  return site;
}

function extract(url: string, body: Record<string, unknown> = {}): Promise<TestExtraction> {
  return extractUrl(server, app.secretKey, { url, ...body });
}

function paths(extraction: TestExtraction): string[] {
  return extraction.outputs.map((output) => new URL(output.source_url).pathname + new URL(output.source_url).search);
}

test('a link is one page as Markdown, accepted immediately and done soon', async () => {
  const site = await siteOf({ '/a/post.html': htmlPage('A post', ['/b', '/c']) });
  const created = await server.api<TestExtraction>('POST', '/api/v1/extractions', {
    key: app.secretKey,
    body: {
      destination_kind: 'storage',
      destination_path: 'web',
      url: `${site.origin}/a/post.html`,
      mode: 'link',
      max_pages: 50,
    },
  });
  assert.equal(created.status, 202);
  assert.equal(created.body.state, 'running');
  assert.equal(created.body.max_pages, 1);
  assert.deepEqual(created.body.progress, { discovered: 1, done: 0, failed: 0 });
  const done = await extract(`${site.origin}/a/post.html`, { mode: 'link', destination_path: 'web' });
  assert.equal(done.state, 'done');
  assert.equal(done.output_count, 1);
  assert.deepEqual(done.progress, { discovered: 1, done: 1, failed: 0 });
  const [output] = done.outputs;
  assert.equal(output?.ordinal, 0);
  assert.equal(output?.title, 'A post');
  assert.equal(output?.file?.filename, 'web/a/post.md');
  assert.match(await outputText(output), /^This is the page called A post/);
  assert.deepEqual(site.requestedPages(), ['/a/post.html']);
});

test('a site is read page by page, each once, within its host, with any spelling of its links', async () => {
  const other = await siteOf({ '/': htmlPage('Elsewhere') });
  const site = await siteOf({
    '/': htmlPage('Home', [
      '/a',
      '/a#part',
      '/a?utm_source=x',
      'b/',
      '/c.html',
      '/logo.png',
      `${other.origin}/`,
      'mailto:x@y.z',
    ]),
    '/a': htmlPage('A', ['/', '/d']),
    '/b/': htmlPage('B', ['/../a']),
    '/c.html': htmlPage('C'),
    '/d': htmlPage('D', ['/d']),
  });
  const done = await extract(`${site.origin}/`);
  assert.equal(done.state, 'done');
  assert.deepEqual(paths(done).sort(), ['/', '/a', '/b/', '/c.html', '/d']);
  assert.deepEqual(
    done.outputs.map((output) => output.ordinal),
    [0, 1, 2, 3, 4],
  );
  assert.equal(paths(done)[0], '/');
  assert.deepEqual(done.outputs.map((output) => output.file?.filename).sort(), [
    'out/a.md',
    'out/b/index.md',
    'out/c.md',
    'out/d.md',
    'out/index.md',
  ]);
  for (const path of ['/', '/a', '/b/', '/c.html', '/d']) assert.equal(site.requestCount(path), 1, path);
  assert.equal(other.requests.length, 0);
  assert.equal(site.requestCount('/logo.png'), 0);
});

test('at most max_pages pages of a site are requested', async () => {
  const site = await siteOf({ '/': htmlPage('Home', ['/calendar?day=1', '/x/']) }, (request, response, url) =>
    url.pathname === '/calendar'
      ? responses.calendar(request, response, url)
      : response.setHeader('content-type', 'text/html').end(htmlPage(url.pathname, ['x/', 'y/', '../z/'])),
  );
  const done = await extract(`${site.origin}/`, { max_pages: 12 });
  assert.equal(done.state, 'done');
  assert.equal(done.outputs.length, 12);
  assert.ok(site.requestedPages().length <= 12);
  assert.deepEqual(done.progress, { discovered: 12, done: 12, failed: 0 });
});

test('broken pages are outputs that failed, and the job is done', async () => {
  const site = await siteOf({
    '/': htmlPage('Home', ['/missing', '/down', '/cut', '/junk', '/bomb', '/loop', '/flaky', '/empty']),
    '/down': responses.status(500),
    '/cut': responses.cut,
    '/junk': responses.junk,
    '/bomb': responses.bomb,
    '/loop': responses.redirect('/loop'),
    '/flaky': responses.flaky(2, htmlPage('Flaky')),
    '/empty': '',
  });
  const done = await extract(`${site.origin}/`);
  assert.equal(done.state, 'done');
  const errors = Object.fromEntries(
    done.outputs
      .filter((output) => output.state === 'failed')
      .map((output) => [new URL(output.source_url).pathname, output.error?.code]),
  );
  assert.equal(errors['/missing'], 'http_404');
  assert.equal(errors['/down'], 'http_500');
  assert.equal(errors['/cut'], 'bad_response');
  assert.equal(errors['/junk'], 'unsupported_content');
  assert.equal(errors['/bomb'], 'too_large');
  assert.equal(errors['/loop'], 'too_many_redirects');
  assert.equal(site.requestCount('/down'), 3);
  assert.equal(site.requestCount('/missing'), 1);
  assert.equal(site.requestCount('/flaky'), 3);
  assert.equal(done.outputs.find((output) => output.title === 'Flaky')?.state, 'done');
  assert.equal(done.output_count, done.progress.done);
  assert.equal(done.progress.discovered, done.progress.done + done.progress.failed);
  for (const output of done.outputs) assert.equal(output.state === 'failed', output.file === undefined);
});

test('a start page that fails also fails the job, with the reason', async () => {
  const site = await siteOf({
    '/down': responses.status(503),
    '/inside': responses.redirect('http://10.0.0.1/'),
    '/named': responses.redirect('http://localhost.evil.test/'),
  });
  const down = await extract(`${site.origin}/down`);
  assert.equal(down.state, 'failed');
  assert.equal(down.failure_reason, 'fetch_failed');
  assert.equal(down.error?.code, 'http_503');
  assert.equal(site.requestCount('/down'), 3);
  const inside = await extract(`${site.origin}/inside`, { mode: 'link' });
  assert.equal(inside.failure_reason, 'fetch_failed');
  assert.equal(inside.error?.code, 'unsafe_url');
  assert.doesNotMatch(JSON.stringify(inside.error), /10\.0\.0\.1/);
  const unknown = await extract(`${site.origin}/named`, { mode: 'link' });
  assert.equal(unknown.failure_reason, 'fetch_failed');
});

test('robots.txt is obeyed, with a reason for each page left out; a secret key may ignore it', async () => {
  const site = await siteOf({
    '/robots.txt': 'User-agent: *\nDisallow: /private\nDisallow: /start',
    '/': htmlPage('Home', ['/private/a', '/open', '/away']),
    '/start': htmlPage('Closed'),
    '/private/a': htmlPage('Private'),
    '/open': htmlPage('Open'),
    '/away': responses.redirect('/private/b'),
    '/private/b': htmlPage('Private too'),
  });
  const done = await extract(`${site.origin}/`);
  assert.deepEqual(paths(done).sort(), ['/', '/open']);
  assert.equal(site.requestCount('/private/a') + site.requestCount('/private/b'), 0);
  assert.deepEqual(done.left_out?.map((page) => [new URL(page.url).pathname, page.reason]).sort(), [
    ['/away', 'redirected_away'],
    ['/private/a', 'robots'],
  ]);
  const closed = await extract(`${site.origin}/start`, { mode: 'link' });
  assert.deepEqual(
    [closed.state, closed.failure_reason, closed.error?.code],
    ['failed', 'fetch_failed', 'robots_disallowed'],
  );
  assert.equal(site.requestCount('/start'), 0);
  const ignored = await extract(`${site.origin}/`, { ignore_robots: true });
  assert.deepEqual(paths(ignored).sort(), ['/', '/open', '/private/a', '/private/b']);

  const user = await server.provision.user(app);
  const refused = await server.api<ErrorBody>('POST', '/api/v1/extractions', {
    key: app.publishableKey,
    token: user.token,
    body: { destination_kind: 'storage', url: `${site.origin}/`, mode: 'site', ignore_robots: true },
  });
  assert.equal(refused.status, 403);
});

test('a page that redirects to another site is left out, even if the target may not be requested', async () => {
  const site = await siteOf({
    '/': htmlPage('Home', ['/private', '/port']),
    '/private': responses.redirect('http://10.0.0.1/'),
    '/port': responses.redirect('http://127.0.0.2:9/'),
  });
  const done = await extract(`${site.origin}/`);
  assert.deepEqual(paths(done), ['/']);
  assert.deepEqual(done.left_out?.map((page) => [new URL(page.url).pathname, page.reason]).sort(), [
    ['/port', 'redirected_away'],
    ['/private', 'redirected_away'],
  ]);
});

test('with an unavailable robots.txt, nothing of the site is read', async () => {
  const site = await siteOf({ '/robots.txt': responses.status(503), '/': htmlPage('Home') });
  const closed = await extract(`${site.origin}/`);
  assert.deepEqual([closed.state, closed.error?.code], ['failed', 'robots_disallowed']);
  assert.equal(site.requestCount('/'), 0);
});

test('nofollow links and pages are not followed, and a canonical duplicate is read once', async () => {
  const site = await siteOf({
    '/': `${htmlPage('Home', ['/a', '/list', '/twin?x=1', '/twin'])}<a rel="nofollow" href="/secret">s</a>`,
    '/a': htmlPage('A', ['/from-a'], '<meta name="robots" content="nofollow">'),
    '/list': (_request, response) =>
      response
        .writeHead(200, { 'content-type': 'text/html', 'x-robots-tag': 'nofollow' })
        .end(htmlPage('List', ['/from-list'])),
    '/twin': htmlPage('Twin', [], '<link rel="canonical" href="/twin">'),
  });
  const done = await extract(`${site.origin}/`);
  assert.equal(done.outputs.filter((output) => output.title === 'Twin').length, 1);
  assert.deepEqual(done.outputs.map((output) => output.title).sort(), ['A', 'Home', 'List', 'Twin']);
  for (const path of ['/secret', '/from-a', '/from-list']) assert.equal(site.requestCount(path), 0, path);
});

test('paths, depth and sitemaps restrict and extend what is read', async () => {
  const pages: SitePages = {
    '/robots.txt': 'Sitemap: /maps/sitemap-index.xml',
    '/maps/sitemap-index.xml': '<sitemapindex><sitemap><loc>/maps/sitemap-one.xml</loc></sitemap></sitemapindex>',
    '/maps/sitemap-one.xml': '<urlset><url><loc>/docs/hidden</loc></url><url><loc>/blog/hidden</loc></url></urlset>',
    '/docs/': htmlPage('Docs', ['/docs/one', '/blog/one', '/docs/old/x']),
    '/docs/one': htmlPage('One', ['/docs/two']),
    '/docs/two': htmlPage('Two', ['/docs/three']),
    '/docs/three': htmlPage('Three'),
    '/docs/hidden': htmlPage('Hidden'),
    '/docs/old/x': htmlPage('Old'),
    '/blog/one': htmlPage('Blog'),
    '/blog/hidden': htmlPage('Hidden blog'),
  };
  const site = await siteOf(pages);
  const url = `${site.origin}/docs/`;
  const narrow = await extract(url, { include_paths: ['/docs/'], exclude_paths: ['/docs/old'], max_depth: 2 });
  assert.deepEqual(paths(narrow).sort(), ['/docs/', '/docs/hidden', '/docs/one', '/docs/two']);
  // What started it can be read, and starts the same again.
  const { include_paths, exclude_paths, max_depth, allow_subdomains, ignore_robots, sitemap } = narrow;
  assert.deepEqual(
    { include_paths, exclude_paths, max_depth, allow_subdomains, ignore_robots, sitemap },
    {
      ...{ include_paths: ['/docs/'], exclude_paths: ['/docs/old'], max_depth: 2 },
      ...{ allow_subdomains: false, ignore_robots: false, sitemap: 'include' },
    },
  );
  const without = await extract(url, { sitemap: 'skip', max_depth: 1 });
  assert.deepEqual(paths(without).sort(), ['/', '/blog/one', '/docs/', '/docs/old/x', '/docs/one']);
  const only = await extract(url, { sitemap: 'only' });
  assert.deepEqual(paths(only).sort(), ['/blog/hidden', '/docs/', '/docs/hidden']);
});

test('a start page that redirects sets the host', async () => {
  const target = await siteOf({ '/home': htmlPage('Home', ['/a', '/b']), '/a': htmlPage('A'), '/b': htmlPage('B') });
  const site = await siteOf({ '/': responses.redirect(`${target.origin}/home`, 301), '/x': htmlPage('X') });
  const done = await extract(`${site.origin}/`);
  assert.deepEqual(
    done.outputs.map((output) => output.source_url).sort(),
    ['/', '/a', '/b', '/home'].map((path) => target.origin + path),
  );
});

test('documents among the pages go through the same parsers', async () => {
  const site = await siteOf({
    '/': htmlPage('Home', ['/notes.txt', '/data.csv']),
    '/notes.txt': 'Notes in plain text.',
    '/data.csv': (_request, response) => response.setHeader('content-type', 'text/csv').end('a,b\n1,2\n'),
  });
  const done = await extract(`${site.origin}/`);
  const notes = done.outputs.find((output) => output.source_url.endsWith('/notes.txt'));
  assert.match(await outputText(notes), /Notes in plain text\./);
  const table = done.outputs.find((output) => output.source_url.endsWith('/data.csv'));
  assert.match(await outputText(table), /\| 1 \| 2 \|/);
});

test('outputs with equal names get a number, and config outputs are entries at their path', async () => {
  const site = await siteOf({}, (_request, response, url) =>
    response
      .setHeader('content-type', 'text/html')
      .end(htmlPage(`Page ${url.search}`, url.search === '' ? ['/p?1', '/p?2', '/p?3', '/p-2'] : [])),
  );
  const done = await extract(`${site.origin}/p`, { destination_kind: 'config', destination_path: 'site' });
  assert.equal(done.state, 'done');
  const names = done.outputs.map((output) => output.file?.filename).sort();
  assert.equal(new Set(names).size, 6);
  assert.ok(names.includes('site/p.md') && names.includes('site/p-2.md'));
  const entry = await server.api<{ content: string; version: number }>('GET', '/api/v1/config/site/p.md', {
    key: app.secretKey,
  });
  assert.equal(entry.status, 200);
  assert.equal(entry.body.version, 1);
  await extract(`${site.origin}/p`, { destination_kind: 'config', destination_path: 'site', mode: 'link' });
  const again = await server.api<{ version: number }>('GET', '/api/v1/config/site/p.md', { key: app.secretKey });
  assert.equal(again.body.version, 2);
});

test('crawl-delay is kept, and Retry-After is waited for', async () => {
  const site = await siteOf({
    '/robots.txt': 'User-agent: quarry\nCrawl-delay: 0.05',
    '/': htmlPage('Home', ['/a', '/b', '/c']),
    '/a': htmlPage('A'),
    '/b': responses.flaky(1, htmlPage('B'), { 'retry-after': '1' }),
    '/c': htmlPage('C'),
  });
  const done = await extract(`${site.origin}/`, { sitemap: 'skip' });
  assert.equal(done.progress.done, 4);
  assert.equal(site.maxConcurrency(), 1);
  assert.equal(site.requestCount('/b'), 2);
});

test('invalid requests are 422 on the member, unsafe URLs on url, before anything is fetched', async () => {
  const valid = { destination_kind: 'storage', url: 'http://example.com/', mode: 'site' };
  const wrong: [Record<string, unknown>, string][] = [
    [{ ...valid, mode: undefined }, 'mode'],
    [{ ...valid, mode: 'page' }, 'mode'],
    [{ ...valid, max_pages: 0 }, 'max_pages'],
    [{ ...valid, max_pages: '5' }, 'max_pages'],
    [{ ...valid, max_depth: -1 }, 'max_depth'],
    [{ ...valid, include_paths: 'x' }, 'include_paths'],
    [{ ...valid, sitemap: 'maybe' }, 'sitemap'],
    [{ ...valid, colour: 1 }, 'colour'],
    [{ ...valid, destination_kind: 'config' }, 'destination_path'],
    [{ ...valid, file: 'fil_x' }, 'url'],
  ];
  const unsafe = [
    'http://10.0.0.1/',
    'http://0x0a000001/',
    'http://[::1]/',
    'http://[::ffff:10.0.0.1]/',
    'http://192.168.0.1./',
    'http://u:p@example.com/',
    'ftp://example.com/',
    'example.com',
    'http://169.254.169.254/latest',
  ];
  for (const url of unsafe) wrong.push([{ ...valid, url }, 'url']);
  for (const [body, field] of wrong) {
    const answer = await server.api<ErrorBody>('POST', '/api/v1/extractions', { key: app.secretKey, body });
    assert.equal(answer.status, 422, JSON.stringify(body));
    assert.ok(
      answer.body.error.fields.some((each) => each.field.startsWith(field)),
      `${JSON.stringify(body)} → ${answer.text}`,
    );
  }
});

test('a sitemap of two gzip bytes and a deflated page with bytes after its end fail nothing else', async () => {
  const site = await siteOf({
    '/': htmlPage('Home', ['/page']),
    '/sitemap.xml': Buffer.from([0x1f, 0x8b]),
    '/page': (_request, response) =>
      response
        .writeHead(200, { 'content-type': 'text/html', 'content-encoding': 'deflate' })
        .end(Buffer.concat([deflateSync(htmlPage('Page')), Buffer.from('xy')])),
  });
  const done = await extract(`${site.origin}/`);
  assert.equal(done.state, 'done');
  assert.deepEqual(paths(done).sort(), ['/', '/page']);
});
