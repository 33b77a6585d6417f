import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { extractUrl, outputText } from '../support/extractions.ts';
import { type FixtureSite, htmlPage, type SiteResponse, startSite } from '../support/fixture-site.ts';
import { knowledgeOf } from '../support/knowledge.ts';
import type { TestApp } from '../support/provisioner.ts';
import { startChromium, type TestChromium } from '../support/renderer.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

let chromium: TestChromium;
let server: TestServer;
let app: TestApp;
let site: FixtureSite;
let price = 5;

/** A page that is empty until its script has fetched its text. */
function shell(script: string): string {
  return `<html><head><title>Shop</title></head><body><div id="root"></div><script src="${script}"></script></body></html>`;
}

/** Sends the shell with a validator: it never changes, whatever the script makes of it. */
const taggedShell: SiteResponse = (request, response) => {
  response.writeHead(request.headers['if-none-match'] === '"one"' ? 304 : 200, {
    ...{ 'content-type': 'text/html', etag: '"one"' },
  });
  response.end(response.statusCode === 304 ? undefined : shell('/app.js'));
};

before(async () => {
  chromium = await startChromium();
  const renderer = { QUARRY_RENDERER: chromium.address, QUARRY_RENDERER_SECONDS: '10' };
  server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.0/8', ...renderer } });
  app = await server.provision.app();
  site = await startSite({
    '/robots.txt': 'User-agent: *\nDisallow: /closed',
    '/': htmlPage('Home', ['/plain', '/app']),
    '/plain': htmlPage('Plain'),
    '/app': taggedShell,
    '/app.js': `fetch('/data.json').then((answer) => answer.json()).then(({ price }) => {
      document.getElementById('root').innerHTML = '<main><h1>Rope</h1><p>A rope of hemp, three strands, costs '
        + price + ' euros a metre and floats.</p><p><a href="/found">More ropes of the same maker</a></p></main>'; });`,
    '/data.json': (_request, response) => response.end(JSON.stringify({ price })),
    '/found': htmlPage('Found'),
    '/forbidden': shell('/closed/app.js'),
    '/closed/app.js': 'document.body.textContent = "This text comes from a script that robots do not read.";',
    '/empty': shell('/nothing.js'),
    '/nothing.js': '',
    '/leaves': shell('/leaves.js'),
    '/leaves.js': 'location.href = "/closed/page";',
    '/closed/page': htmlPage('Closed'),
  });
});
after(async () => {
  await server.close();
  await site.close();
  await chromium.close();
});

function extract(path: string, mode = 'link') {
  return extractUrl(server, app.secretKey, { url: `${site.origin}${path}`, mode });
}

test('a page without text of its own is rendered, and its text and links are those that its scripts made', async () => {
  const { state, outputs } = await extract('/', 'site');
  assert.equal(state, 'done', JSON.stringify(outputs));
  const paths = outputs.map((output) => new URL(output.source_url ?? '').pathname).sort();
  assert.deepEqual(paths, ['/', '/app', '/found', '/plain']);
  const rendered = outputs.find((output) => output.source_url?.endsWith('/app'));
  assert.match(await outputText(rendered), /A rope of hemp, three strands, costs 5 euros/);
  assert.equal(site.requestCount('/plain'), 1, 'a page with text is only fetched');
});

test('a rendered page is rendered again although its own bytes have not changed', async () => {
  const world = await server.provision.world();
  const knowledge = knowledgeOf(server, { key: world.app.secretKey });
  const org = world.org.id;
  const payload = { url: `${site.origin}/app`, max_pages: 1 };
  const source = await knowledge.createSource({ org, type: 'scrape/site', payload });
  const pull = async () => (await knowledge.ingest(source, { pull: true })).stats;
  assert.equal((await pull()).documents, 1);
  price = 6;
  const { documents, unchanged } = await pull();
  assert.deepEqual({ documents, unchanged }, { documents: 1, unchanged: 0 });
});

test('a rendered page requests nothing that robots.txt closes', async () => {
  for (const path of ['/forbidden', '/leaves']) {
    const { state, error, failure_reason } = await extract(path);
    assert.deepEqual([state, failure_reason, error?.code], ['failed', 'extraction_failed', 'needs_browser'], path);
  }
  assert.equal(site.requests.filter((path) => path.startsWith('/closed')).length, 0);
});

test('a page that stays empty fails as needs_browser and says that its scripts have run', async () => {
  const { state, error } = await extract('/empty');
  assert.equal(state, 'failed');
  assert.equal(error?.code, 'needs_browser');
  assert.match(error?.message ?? '', /even after its scripts have run/);
});
