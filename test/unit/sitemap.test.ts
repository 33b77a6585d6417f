import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { parseSitemap } from '../../src/content/parse/web/sitemap.ts';
import { walkSitemaps } from '../../src/crawls/sitemaps.ts';
import { speedTest, startWatch } from '../support/speed.ts';

async function walk(files: Record<string, string | Uint8Array>, pagesMax = 100) {
  const loaded: string[] = [];
  const found = [];
  const load = async (url: string) => {
    loaded.push(url);
    const file = files[new URL(url).pathname];
    return file === undefined ? [] : parseSitemap(Buffer.from(file), 1_000);
  };
  for await (const page of walkSitemaps(['http://s.test/sitemap.xml'], load, pagesMax)) found.push(page);
  return { found, loaded, urls: found.map((page) => new URL(page.url).pathname) };
}

const index = (...urls: string[]) =>
  `<?xml version="1.0"?><sitemapindex xmlns="x">${urls.map((url) => `<sitemap><loc>${url}</loc></sitemap>`).join('')}</sitemapindex>`;

test('nested and gzipped sitemaps are walked, each file and page once, with lastmod', async () => {
  const { found, loaded } = await walk({
    '/sitemap.xml': index('http://s.test/a.xml.gz', '/b.txt', 'http://s.test/sitemap.xml', '/gone.xml'),
    '/a.xml.gz': gzipSync(
      '<urlset><url>\n<loc> http://s.test/1?a=1&amp;b=2 </loc><lastmod>2024-05-01</lastmod><changefreq>daily</changefreq></url><url><loc><![CDATA[http://s.test/2]]></loc></url></urlset>',
    ),
    '/b.txt': 'http://s.test/2\r\nhttp://s.test/3\nnonsense\nhttp://s.test/4',
  });
  assert.deepEqual(found, [
    { url: 'http://s.test/1?a=1&b=2', lastModified: '2024-05-01', changeFrequency: 'daily' },
    { url: 'http://s.test/2', lastModified: undefined, changeFrequency: undefined },
    { url: 'http://s.test/3', lastModified: undefined, changeFrequency: undefined },
    { url: 'http://s.test/4', lastModified: undefined, changeFrequency: undefined },
  ]);
  assert.equal(new Set(loaded).size, loaded.length);
});

test('the walk ends on junk, loops, endless nesting and page limits', async () => {
  assert.deepEqual(
    (await walk({ '/sitemap.xml': '<urlset><url><loc>http://s.test/1</loc></url><url><loc>http' })).urls,
    ['/1'],
  );
  assert.deepEqual((await walk({ '/sitemap.xml': gzipSync('<urlset>').subarray(0, 12) })).urls, []);
  assert.deepEqual((await walk({ '/sitemap.xml': Buffer.from([0x1f, 0x8b, 9, 9, 9, 9]) })).urls, []);
  assert.deepEqual((await walk({ '/sitemap.xml': Buffer.from([0x1f, 0x8b]) })).urls, []);
  const many = `<urlset>${'<url><loc>/p</loc></url>'.repeat(50)}</urlset>`;
  assert.equal((await walk({ '/sitemap.xml': many }, 1)).urls.length, 1);
  let depth = 0;
  const endless: Record<string, string> = { '/sitemap.xml': index('/d0.xml') };
  for (; depth < 100; depth++) endless[`/d${depth}.xml`] = index(`/d${depth + 1}.xml`, `/e${depth}.xml`);
  assert.ok((await walk(endless)).loaded.length < 20);
  const unclosed = await walk({ '/sitemap.xml': `<urlset><url><loc>${'a'.repeat(300_000)}` }, 10);
  assert.deepEqual(unclosed.urls, []);
});

speedTest('blanks without end cost no more than their number', async () => {
  const bytes = gzipSync(Buffer.alloc(50 * 1024 * 1024, ' '));
  const watch = startWatch();
  await parseSitemap(gzipSync(Buffer.alloc(5 * 1024 * 1024, ' ')), 10);
  const tenth = watch.passedMs();
  assert.deepEqual(await parseSitemap(bytes, 10), []);
  const whole = watch.passedMs() - tenth;
  assert.ok(whole < 50 * Math.max(tenth, 5), `${whole} ms for ten times what took ${tenth} ms`);
});

test('a long line cut by the pieces that are read is one entry', async () => {
  const urls = Array.from({ length: 3_000 }, (_unused, n) => `http://s.test/${n}/${'x'.repeat(50)}`);
  const xml = `<urlset>${urls.map((url) => `<url><loc>${url}</loc></url>`).join('')}</urlset>`;
  for (const file of [xml, urls.join('\n')])
    assert.deepEqual(
      (await parseSitemap(Buffer.from(file), 10_000)).map(({ url }) => url),
      urls,
    );
  assert.equal((await parseSitemap(Buffer.from(xml), 5)).length, 5);
});

test('a picture’s address before the page’s is not mistaken for the page', async () => {
  const { urls } = await walk({
    '/sitemap.xml':
      '<urlset><url><image:image><image:loc>/a.png</image:loc></image:image><loc>/a</loc></url><url><loc>/b</loc></url></urlset>',
  });
  assert.deepEqual(urls, ['/a', '/b']);
  const prefixed = '<s:urlset><s:url><image:loc>/c.png</image:loc><s:loc>/c</s:loc></s:url></s:urlset>';
  assert.deepEqual((await walk({ '/sitemap.xml': prefixed })).urls, ['/c']);
});
