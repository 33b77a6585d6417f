import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { after, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { type SiteResponse, startSite } from '../../support/fixture-site.ts';
import { type Json, knowledgeOf } from '../../support/knowledge.ts';
import { startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

let now = Date.now();
const server = await startTestServer({
  env: { QUARRY_FETCH_ALLOW: '127.0.0.0/8' },
  clock: { now: () => new Date(now) },
});
const sites: { close(): Promise<void> }[] = [];
after(async () => {
  await server.close();
  for (const site of sites) await site.close();
});
const world = await server.provision.world();
const app = knowledgeOf(server, { key: world.app.secretKey });
type Listed = { data: { title?: string; external_id: string; source_url?: string }[]; total_entries: number };

async function serve(pages: Record<string, string | SiteResponse>) {
  const site = await startSite(pages);
  sites.push(site);
  return site;
}

const createFeed = (url: string, more: Json = {}, body: Json = {}) =>
  app.createSource({ org: world.org.id, type: 'web/feed', payload: { url, ...more }, ...body });

const titles = async (source: string) =>
  (await app.send<Listed>('GET', `/knowledge_documents?source=${source}&page_size=100`)).body.data
    .map(({ title }) => title)
    .sort();

const pull = (source: string, body: Json = {}) => app.ingest(source, { pull: true, ...body });

const item = (id: string, title: string, text: string, link = `/${id}`) =>
  `<item><title>${title}</title><link>${link}</link><guid isPermaLink="false">${id}</guid><description>${text}</description></item>`;
const rss = (items: string[]) =>
  `<?xml version="1.0"?><rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:media="m"><channel><title>News</title>${items.join('')}</channel></rss>`;

test('every format of feeds is read, with its full text where there is one', async () => {
  const site = await serve({
    '/rss': rss([
      '<item><title>Full &amp; whole</title><media:title>No</media:title><guid>https://example.com/1</guid><description>Short.</description><content:encoded><![CDATA[<p>The long <b>otter</b> story.</p>]]></content:encoded></item>',
    ]),
    '/rdf':
      '<rdf:RDF xmlns:rdf="r" xmlns="http://purl.org/rss/1.0/"><channel><title>Old</title></channel><item rdf:about="urn:1"><title>Badger</title><link>http://example.com/badger</link><description>A badger digs.</description></item></rdf:RDF>',
    '/atom':
      '<a:feed xmlns:a="http://www.w3.org/2005/Atom"><a:entry><a:id>urn:x:1</a:id><a:title>Heron</a:title><a:link rel="self" href="/self"/><a:link href="/heron"/><a:content type="xhtml"><div><p>A heron <em>waits</em>.</p></div></a:content></a:entry></a:feed>',
    '/json': JSON.stringify({
      version: 'https://jsonfeed.org/version/1.1',
      items: [{ id: 7, url: 'https://example.com/7', title: 'Vole', content_text: 'A vole hides.' }],
    }),
  });
  for (const [path, query, title, url] of [
    ['/rss', 'otter story', 'Full & whole', 'https://example.com/1'],
    ['/rdf', 'badger digs', 'Badger', 'http://example.com/badger'],
    ['/atom', 'heron waits', 'Heron', `${site.origin}/heron`],
    ['/json', 'vole hides', 'Vole', 'https://example.com/7'],
  ] as const) {
    const source = await createFeed(site.origin + path);
    const ended = await pull(source);
    assert.equal(ended.status, 'succeeded', JSON.stringify(ended));
    const [hit] = await app.search(source, query);
    assert.deepEqual([hit?.title, hit?.source_url], [title, url], path);
  }
});

test('an entry that leaves the feed stays; a tombstone, a page that is gone and keep_days delete it', async () => {
  let feed = '';
  const gone = new Set<string>();
  const page: SiteResponse = (_request, response, url) =>
    response.writeHead(gone.has(url.pathname) ? 410 : url.pathname === '/broken' ? 500 : 200).end('page');
  const site = await serve({
    '/feed': (_request, response) => response.end(feed),
    ...Object.fromEntries(['/a', '/b', '/c', '/broken'].map((path) => [path, page])),
  });
  const source = await createFeed(`${site.origin}/feed`);
  const entry = (id: string) =>
    `<entry><id>${id}</id><title>${id}</title><link href="/${id}"/><content>Text of ${id}.</content></entry>`;
  const atom = (parts: string[]) =>
    `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:at="http://purl.org/atompub/tombstones/1.0">${parts.join('')}</feed>`;
  feed = atom(['a', 'b', 'c', 'broken'].map(entry));
  assert.equal((await pull(source)).stats.documents, 4);
  feed = atom([entry('a'), '<at:deleted-entry ref="c" when="2026-01-01T00:00:00Z"/>']);
  const second = await pull(source);
  assert.deepEqual([second.stats.removed, second.stats.unchanged], [1, 1]);
  assert.deepEqual(await titles(source), ['a', 'b', 'broken']);
  gone.add('/b');
  feed = atom([]);
  assert.equal((await pull(source)).stats.removed, 1);
  assert.deepEqual(await titles(source), ['a', 'broken']);
  const kept = await app.send('PATCH', `/knowledge_sources/${source}`, {
    payload: { url: `${site.origin}/feed`, keep_days: 3 },
  });
  assert.equal(kept.status, 200, kept.text);
  now += 2 * 24 * 3_600_000;
  assert.equal((await pull(source)).stats.removed, 0);
  now += 2 * 24 * 3_600_000;
  assert.equal((await pull(source)).stats.removed, 2);
  now = Date.now();
});

test('an unchanged feed is asked for once and costs no document', async () => {
  let asked: (string | undefined)[] = [];
  const site = await serve({
    '/feed': (request, response) => {
      asked.push(request.headers['if-none-match']);
      if (request.headers['if-none-match'] === '"one"') return response.writeHead(304).end();
      return response
        .writeHead(200, { etag: '"one"', 'content-encoding': 'gzip' })
        .end(gzipSync(rss([item('1', 'One', 'Text.')])));
    },
  });
  const source = await createFeed(`${site.origin}/feed`);
  await pull(source);
  asked = [];
  const again = await pull(source);
  assert.deepEqual(asked, ['"one"']);
  assert.deepEqual([again.stats.documents, again.stats.unchanged, again.stats.removed], [0, 1, 0]);
});

test('a feed that grows past its bounds keeps all documents of its source', async () => {
  const entry = (name: string) => item(name, name, `Text ${name}.`, '/page');
  const old = ['old-1', 'old-2', 'old-3'];
  let feed = rss(old.map(entry));
  const site = await serve({ '/feed': (_request, response) => response.end(feed), '/page': 'page' });
  const source = await createFeed(`${site.origin}/feed`);
  assert.equal((await pull(source)).stats.documents, 3);
  const count = async () => (await app.send<Listed>('GET', `/knowledge_documents?source=${source}`)).body.total_entries;
  const found = async () => (await app.search(source, 'old'))[0]?.content ?? '';
  for (const [before, added] of [
    // The bound counts what the feed has, even when several entries are one document.
    [Array.from({ length: 1_200 }, (_, i) => entry(`new-${i % 10}`)), 10],
    [[entry('newest'), `<filler>${'x'.repeat(10 * 1024 * 1024)}</filler>`], 1],
  ] as const) {
    const documents = await count();
    feed = rss([...before, ...old.map(entry)]);
    const ended = await pull(source);
    assert.deepEqual([ended.status, ended.metadata.feed_cut], ['succeeded', true]);
    assert.deepEqual([ended.stats.documents, ended.stats.removed], [added, 0]);
    assert.equal(await count(), documents + added);
    assert.match(await found(), /Text old/);
  }
  feed = rss(old.map(entry));
  const shrunk = await pull(source);
  assert.deepEqual([shrunk.stats.unchanged, shrunk.stats.removed, shrunk.metadata.feed_cut], [3, 0, undefined]);
});

test('a feed that never ends or is none is bounded and deletes nothing', async () => {
  const site = await serve({
    '/endless': (_request, response) => {
      response.write(`<rss><channel><title>Endless</title>${item('1', 'First', 'The first entry.')}`);
      const write = () => {
        while (response.write(`<filler>${'x'.repeat(60_000)}</filler>`));
      };
      response.on('drain', write).on('error', () => {});
      write();
    },
    '/page': '<html><body>Not a feed</body></html>',
    '/json': '{"items": 5}',
    '/locked': (_request, response) => response.writeHead(401).end(),
  });
  const endless = await createFeed(`${site.origin}/endless`);
  const read = await pull(endless);
  assert.deepEqual([read.status, read.metadata.feed_cut, read.stats.documents], ['succeeded', true, 1]);
  for (const path of ['/page', '/json', '/locked']) {
    const ended = await pull(await createFeed(site.origin + path));
    assert.equal(ended.status, 'failed', path);
    assert.ok(['unsupported_content', 'bad_response'].includes(ended.error?.code ?? ''), ended.error?.code);
  }
});

test('credentials are sent to their host alone, never shown, and cleared by another address', async () => {
  const seen: string[] = [];
  const other = await serve({
    '/feed': (request, response) => {
      seen.push(`other ${request.headers.authorization ?? 'none'}`);
      response.end(rss([item('1', 'Elsewhere', 'Text.')]));
    },
  });
  const site = await serve({
    '/feed': (request, response) => {
      seen.push(`site ${request.headers.authorization ?? 'none'}`);
      response.end(rss([item('1', 'One', 'Text.')]));
    },
    '/moved': (request, response) => {
      seen.push(`moved ${request.headers.authorization ?? 'none'}`);
      response.writeHead(302, { location: `${other.origin}/feed` }).end();
    },
  });
  const token = 'a-very-secret-token';
  const source = await createFeed(`${site.origin}/feed`, {}, { credentials: { token } });
  await pull(source);
  const shown = await app.send<{ has_credentials: boolean }>('GET', `/knowledge_sources/${source}`);
  assert.equal(shown.body.has_credentials, true);
  assert.ok(!shown.text.includes(token));
  const change = (body: Json) => app.send<{ has_credentials: boolean }>('PATCH', `/knowledge_sources/${source}`, body);
  assert.equal((await change({ payload: { url: `${site.origin}/moved` } })).body.has_credentials, true);
  await pull(source);
  assert.equal((await change({ payload: { url: `${other.origin}/feed` } })).body.has_credentials, false);
  await pull(source);
  assert.equal((await change({ payload: { url: `${site.origin}/feed` } })).body.has_credentials, false);
  assert.deepEqual(seen, [`site Bearer ${token}`, `moved Bearer ${token}`, 'other none', 'other none']);
  const [row] = await server.services.db<[{ credentials: Buffer }]>`
    select credentials from knowledge_sources where credentials is not null
    union all select null limit 1`;
  assert.ok(!row.credentials?.includes(token));
  for (const [body, field] of [
    [{ credentials: { access_key_id: 'x' } }, 'credentials.access_key_id'],
    [{ credentials: { token: '' } }, 'credentials.token'],
    [{ payload: {}, credentials: { token } }, 'credentials'],
  ] as const) {
    const refused = await app.send<{ error: { fields: { field: string }[] } }>(
      'PATCH',
      `/knowledge_sources/${source}`,
      body,
    );
    assert.deepEqual([refused.status, refused.body.error.fields[0]?.field], [422, field], refused.text);
  }
});

test('an end user who changes what a source reads at a host does not get the credentials for it', async () => {
  const seen: string[] = [];
  const answer = (name: string) => (request: IncomingMessage, response: ServerResponse) => {
    seen.push(`${name} ${request.headers.authorization ?? 'none'}`);
    response.end(rss([item('1', name, 'Text.')]));
  };
  const site = await serve({ '/meant': answer('meant'), '/other': answer('other') });
  const own = knowledgeOf(server, { token: world.member.token });
  const source = await createFeed(`${site.origin}/meant`, {}, { credentials: { token: 'of-an-admin' } });
  type Shown = { has_credentials: boolean; payload: { url: string } };
  const change = (payload: Json) => own.send<Shown>('PATCH', `/knowledge_sources/${source}`, { payload });
  const kept = await change({ url: `${site.origin}/meant`, language: 'german' });
  assert.deepEqual([kept.status, kept.body.has_credentials], [200, true], kept.text);
  await own.ingest(source, { pull: true });
  const moved = await change({ url: `${site.origin}/other` });
  assert.deepEqual([moved.status, moved.body.has_credentials], [200, false], moved.text);
  await own.ingest(source, { pull: true });
  assert.equal((await change({ url: `${site.origin}/meant` })).body.has_credentials, false);
  assert.deepEqual(seen, ['meant Bearer of-an-admin', 'other none']);
});

test('a post to the inbound URL of a feed starts a pull', async () => {
  const site = await serve({ '/feed': rss([item('1', 'One', 'Text.')]) });
  const source = await createFeed(`${site.origin}/feed`);
  assert.equal((await app.send('GET', `/knowledge_sources/${source}/inbound_url`)).status, 404);
  const made = await app.send<{ url: string }>('POST', `/knowledge_sources/${source}/inbound_url`);
  assert.equal(made.status, 201, made.text);
  const response = await fetch(made.body.url.replace(/^https?:\/\/[^/]+/, server.baseUrl), {
    method: 'POST',
    body: '{"push": true}',
  });
  assert.equal(response.status, 202);
  const { ingestion } = (await response.json()) as { ingestion: string };
  assert.equal((await app.waitForIngestion(ingestion)).stats.documents, 1);
  await until(async () => (await titles(source)).join() === 'One');
});

test('ids, titles and dates with characters that the database cannot store are stored without them', async () => {
  const odd = String.raw`a\u0000b\ud800c`;
  const entry = `{ "id": "${odd}", "title": "${odd}", "content_text": "Odd ${odd}.", "date_modified": "${odd}" }`;
  const site = await serve({ '/odd': `{ "version": "https://jsonfeed.org/version/1.1", "items": [${entry}] }` });
  const source = await createFeed(`${site.origin}/odd`);
  const read = await pull(source);
  assert.deepEqual([read.status, read.stats.documents], ['succeeded', 1], JSON.stringify(read));
  assert.deepEqual(await titles(source), ['a\ufffdb\ufffdc']);
});
