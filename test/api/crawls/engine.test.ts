import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createFetcher } from '../../../src/content/fetch/guarded-fetch.ts';
import { BodyMemory } from '../../../src/crawls/body-memory.ts';
import { runCrawlTurn } from '../../../src/crawls/engine.ts';
import { HostGate } from '../../../src/crawls/host-gate.ts';
import { createHostLedger } from '../../../src/crawls/host-store.ts';
import { insertCrawl, takeCrawl } from '../../../src/crawls/store.ts';
import type { EngineDeps } from '../../../src/crawls/turn.ts';
import type { CrawledPage, CrawlSettings, CrawlSink, CrawlVerdict, FailedPage } from '../../../src/crawls/types.ts';
import { Slots } from '../../../src/fairness/slots.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { newUuid } from '../../../src/lib/ids.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { extractUrl, type TestExtraction, waitForExtraction } from '../../support/extractions.ts';
import {
  type FixtureSite,
  htmlPage,
  responses,
  type SitePages,
  type SiteResponse,
  startSite,
} from '../../support/fixture-site.ts';
import type { TestApp } from '../../support/provisioner.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';

let server: TestServer;
let app: TestApp;
const fetcher = createFetcher({
  allow: ['127.0.0.0/8', 'site.test', '*.site.test'],
  resolve: async () => ['127.0.0.1'],
});
const sites: FixtureSite[] = [];

before(async () => {
  server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.0/8', QUARRY_JOB_WORKERS: '1' } });
  app = await server.provision.app();
});
after(async () => {
  await server.close();
  await fetcher.close();
  for (const site of sites) await site.close();
});

async function siteOf(pages: SitePages, fallback?: SiteResponse): Promise<FixtureSite> {
  const site = await startSite(pages, fallback);
  sites.push(site);
  return site;
}

/** What a crawl committed, as its consumer saw it. */
class Memory implements CrawlSink<string> {
  pages: CrawledPage[] = [];
  failures: FailedPage[] = [];
  verdict: CrawlVerdict | undefined;
  discarded: string[] = [];
  wanted = true;
  prepare = async (_crawl: unknown, page: CrawledPage) => page.url;
  discard = async (prepared: string) => void this.discarded.push(prepared);
  async commit(...[, , batch]: Parameters<CrawlSink<string>['commit']>) {
    this.pages.push(...batch.pages.map(({ page }) => page));
    this.failures.push(...batch.failures);
    return this.wanted;
  }
  async finish(...[, , verdict]: Parameters<CrawlSink<string>['finish']>) {
    this.verdict = verdict;
  }
  changes(): Record<string, string> {
    return Object.fromEntries(this.pages.map((page) => [new URL(page.url).pathname, page.change]));
  }
}

function settingsFor(url: string): CrawlSettings {
  const none = { includePaths: [], excludePaths: [], allowSubdomains: false, ignoreRobots: false };
  return { mode: 'site', startUrl: url, maxPages: 50, sitemap: 'skip', ...none };
}

async function crawl(
  url: string,
  sink: Memory,
  collectionId: string | null = null,
  settings: Partial<CrawlSettings> = {},
): Promise<string> {
  const id = newUuid();
  await insertCrawl(server.db, {
    appId: app.app.uuid,
    sandboxId: app.sandboxUuid,
    id,
    consumer: 'memory',
    collectionId,
    settings: { ...settingsFor(url), ...settings },
  });
  await turn(id, sink);
  return id;
}

/** Room for two small pages at a time. */
const bodies = new BodyMemory(1_024);

function turn(id: string, sink: Memory, options: Partial<Parameters<typeof runCrawlTurn>[3]> = {}) {
  const { parser } = server.services;
  const log = createLogger('silent');
  const gate = new HostGate(createHostLedger(server.db, newUuid()), { concurrencyMax: 4, delayMs: 0, log });
  const sinks = new Map<string, CrawlSink>([['memory', sink as unknown as CrawlSink]]);
  const deps: EngineDeps = {
    db: server.db,
    log,
    clock: systemClock,
    fetcher,
    parser,
    gate,
    workSlots: new Slots({ slots: 16 }),
    bodies,
    sinks,
    concurrency: 4,
  };
  return runCrawlTurn(deps, app.app.uuid, id, {
    signal: new AbortController().signal,
    mustYield: () => false,
    waitOutside: (wait) => wait(),
    isLastAttempt: false,
    ...options,
  });
}

test('a second crawl of a collection requests only changes, and reports new, changed, unchanged and gone pages', async () => {
  const asked: string[] = [];
  const tagged =
    (tag: string, body: string): SiteResponse =>
    (request, response) => {
      if (request.headers['if-none-match'] === tag) {
        asked.push(tag);
        response.writeHead(304).end();
      } else response.writeHead(200, { 'content-type': 'text/html', etag: tag }).end(body);
    };
  const pages: SitePages = {
    '/': tagged('"home"', htmlPage('Home', ['/same', '/plain', '/edited', '/gone'])),
    '/same': tagged('"same"', htmlPage('Same', ['/under-same'])),
    '/under-same': htmlPage('Under same'),
    '/plain': htmlPage('Plain'),
    '/edited': htmlPage('Before', ['/old']),
    '/gone': htmlPage('Gone'),
    '/old': htmlPage('Old'),
  };
  const site = await siteOf(pages);
  const collection = newUuid();
  const first = new Memory();
  await crawl(`${site.origin}/`, first, collection);
  assert.deepEqual(new Set(Object.values(first.changes())), new Set(['new']));
  assert.equal(first.pages.length, 7);

  pages['/edited'] = htmlPage('After', ['/fresh']);
  pages['/fresh'] = htmlPage('Fresh');
  delete pages['/gone'];
  const second = new Memory();
  // No page leads to /old any more.
  await crawl(`${site.origin}/`, second, collection);
  assert.deepEqual(second.changes(), {
    '/': 'unchanged',
    '/same': 'unchanged',
    '/under-same': 'unchanged',
    '/plain': 'unchanged',
    '/edited': 'changed',
    '/fresh': 'new',
  });
  assert.deepEqual(asked.sort(), ['"home"', '"same"']);
  assert.deepEqual(
    second.failures.map((failure) => [new URL(failure.url).pathname, failure.gone]),
    [['/gone', true]],
  );
  assert.deepEqual(second.verdict, { state: 'done' });
});

test('a turn that makes room for others while a page is read waits for the page, and does not ask again and again', async () => {
  const site = await siteOf({
    '/': htmlPage('Home', ['/one', '/two']),
    '/one': htmlPage('One'),
    '/two': htmlPage('Two'),
  });
  const sink = new Memory();
  const id = newUuid();
  const row = { appId: app.app.uuid, sandboxId: app.sandboxUuid, id, consumer: 'memory', collectionId: null };
  await insertCrawl(server.db, { ...row, settings: settingsFor(`${site.origin}/`) });
  let turns = 0;
  for (let over = false; !over; turns++) {
    let looks = 0;
    let waits = 0;
    ({ over } = await turn(id, sink, {
      // The first turn is over as soon as it has begun to read.
      mustYield: () => turns === 0 && looks++ > 0,
      waitOutside: (wait) => {
        waits += 1;
        assert.ok(waits < 20, 'the turn waits for what has happened already');
        return wait();
      },
    }));
  }
  assert.ok(turns > 1);
  assert.equal(sink.pages.length, 3);
  assert.deepEqual(sink.verdict, { state: 'done' });
});

test('pages whose robots.txt cannot be read fail, and are kept if they were read before', async () => {
  const down = new Set<string>();
  const site = await siteOf({
    '/robots.txt': (request, response) =>
      response.writeHead(down.has(request.headers.host?.split(':')[0] ?? '') ? 503 : 404).end(),
    '/': (_request, response) =>
      response.setHeader('content-type', 'text/html').end(htmlPage('Home', [`${docs}/guide`, '/moved'])),
    '/moved': (_request, response) => response.writeHead(302, { location: `${docs}/new` }).end(),
    '/guide': htmlPage('Guide'),
    '/new': htmlPage('New'),
  });
  const { port } = new URL(site.origin);
  const docs = `http://docs.site.test:${port}`;
  const start = `http://site.test:${port}/`;
  const collection = newUuid();
  const settings = { allowSubdomains: true };
  const first = new Memory();
  await crawl(start, first, collection, settings);
  assert.deepEqual(Object.keys(first.changes()).sort(), ['/', '/guide', '/new']);

  down.add('docs.site.test');
  const second = new Memory();
  await crawl(start, second, collection, settings);
  const failures = new Map(
    second.failures.map(({ url, lastUrl, failure, gone }) => [url, [lastUrl, failure.code, gone]]),
  );
  assert.deepEqual(failures.get(`${docs}/guide`), [`${docs}/guide`, 'robots_unavailable', false]);
  assert.deepEqual(failures.get(`${start}moved`), [`${docs}/new`, 'robots_unavailable', false]);
  assert.deepEqual(second.verdict, { state: 'done' });

  // What was never had has nothing to keep.
  const other = new Memory();
  await crawl(start, other, newUuid(), settings);
  assert.deepEqual([Object.keys(other.changes()), other.failures], [['/'], []]);
});

test('a page that cannot be handed over ends the crawl only after the others that were read are handed over', async () => {
  const names = ['/a', '/broken', '/c', '/d', '/e'];
  const site = await siteOf({
    '/': htmlPage('Home', names),
    ...Object.fromEntries(names.map((name) => [name, htmlPage(name)])),
  });
  const sink = new Memory();
  const waiting: number[] = [];
  const commit = sink.commit.bind(sink);
  sink.commit = (tx, crawl, batch) => {
    waiting.push(batch.progress.waiting);
    return commit(tx, crawl, batch);
  };
  const prepare = sink.prepare.bind(sink);
  sink.prepare = async (...given) => {
    if (given[1].url.endsWith('/broken')) throw new Error('Out of space');
    return prepare(...given);
  };
  const settings = { ...settingsFor(`${site.origin}/`) };
  const id = newUuid();
  const place = { appId: app.app.uuid, sandboxId: app.sandboxUuid };
  await insertCrawl(server.db, { ...place, id, consumer: 'memory', collectionId: null, settings });
  await assert.rejects(turn(id, sink, { isLastAttempt: true }), /Out of space/);
  assert.deepEqual(Object.keys(sink.changes()).sort(), ['/', '/a', '/c', '/d', '/e']);
  assert.equal(sink.verdict?.state, 'failed');
  assert.equal(Math.max(...waiting), names.length, 'pages that were read count while they wait');
});

test('a crawl that another worker has taken over commits nothing more', async () => {
  const site = await siteOf({
    '/': htmlPage('Home', ['/hold']),
    '/hold': (_request, response) => void held.resolve(response),
  });
  const held = Promise.withResolvers<Parameters<SiteResponse>[1]>();
  const sink = new Memory();
  const id = newUuid();
  await insertCrawl(server.db, {
    appId: app.app.uuid,
    sandboxId: app.sandboxUuid,
    id,
    consumer: 'memory',
    collectionId: null,
    settings: settingsFor(`${site.origin}/`),
  });
  const working = turn(id, sink);
  const response = await held.promise;
  await takeCrawl(server.db, app.app.uuid, id);
  response.setHeader('content-type', 'text/html').end(htmlPage('Held'));
  assert.deepEqual(await working, { over: true });
  assert.deepEqual(
    sink.pages.map((page) => page.title),
    ['Home'],
  );
  assert.equal(sink.verdict, undefined);
});

test('a crawl whose consumer is deleted ends, and its prepared pages are discarded', async () => {
  const site = await siteOf({ '/': htmlPage('Home') });
  const sink = new Memory();
  sink.wanted = false;
  const id = await crawl(`${site.origin}/`, sink);
  assert.deepEqual(sink.discarded, [`${site.origin}/`]);
  assert.equal(await takeCrawl(server.db, app.app.uuid, id), undefined);
});

test('a link of one tenant does not wait for the endless site of another, even with a single worker', async () => {
  const endless = await siteOf({}, responses.calendar);
  const big = await server.api<TestExtraction>('POST', '/api/v1/extractions', {
    key: app.secretKey,
    body: {
      destination_kind: 'storage',
      url: `${endless.origin}/calendar`,
      mode: 'site',
      max_pages: 100_000,
      sitemap: 'skip',
    },
  });
  await endless.waitForRequest('/calendar?day=4');
  const small = await siteOf({ '/': htmlPage('Small') });
  const other = await server.provision.app();
  const link = await extractUrl(server, other.secretKey, { url: `${small.origin}/`, mode: 'link' });
  assert.equal(link.state, 'done');
  const path = `/api/v1/extractions/${big.body.id}`;
  const meanwhile = await server.api<TestExtraction>('GET', path, { key: app.secretKey });
  assert.equal(meanwhile.body.state, 'running');
  assert.equal(meanwhile.body.outputs.length, meanwhile.body.progress.done + meanwhile.body.progress.failed);
  await endless.waitForRequest(`/calendar?day=${meanwhile.body.progress.done + 20}`);
  await server.api('DELETE', path, { key: app.secretKey });
});

test('an extraction that waits for its turn is running, and ends when its turn comes', async () => {
  const site = await siteOf({ '/': htmlPage('Home') });
  const ids = await Promise.all(
    Array.from({ length: 5 }, async () => {
      const body = { destination_kind: 'storage', url: `${site.origin}/`, mode: 'link' };
      return (await server.api<TestExtraction>('POST', '/api/v1/extractions', { key: app.secretKey, body })).body.id;
    }),
  );
  for (const id of ids) assert.equal((await waitForExtraction(server.baseUrl, app.secretKey, id)).state, 'done');
});
