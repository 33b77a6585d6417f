import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { extractUrl, outputText } from '../../support/extractions.ts';
import { type FixtureSite, htmlPage, startSite } from '../../support/fixture-site.ts';
import type { TestApp } from '../../support/provisioner.ts';
import { type ErrorBody, startTestServer, type TestServer } from '../../support/server.ts';

const product = {
  '@type': 'Product',
  name: 'Sea anchor',
  description: 'A sea anchor of sail cloth, which holds the bow of a small boat into the wind in heavy weather.',
  offers: { price: '49.50', priceCurrency: 'EUR' },
};
const shell =
  '<html><head><title>App</title></head><body><div id="root"></div><script src="/app.js"></script></body></html>';

let server: TestServer;
let app: TestApp;
let site: FixtureSite;

before(async () => {
  server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.0/8' } });
  app = await server.provision.app();
  site = await startSite({
    '/': htmlPage('Home', ['/app']),
    '/app': shell,
    '/products/sea-anchor': `<html><head><title>Sea anchor</title><meta property="og:type" content="product">
      <script type="application/ld+json">${JSON.stringify(product)}</script></head>
      <body><main><h1>Sea anchor</h1><button>Add to cart</button></main></body></html>`,
    '/many': htmlPage(
      'Many',
      Array.from({ length: 5_001 }, (_unused, at) => `/page-${at}`),
    ),
    '/huge': hugePage(),
  });
});
after(async () => {
  await server.close();
  await site.close();
});

function extract(path: string, mode = 'link') {
  return extractUrl(server, app.secretKey, { url: `${site.origin}${path}`, mode });
}

/** 5 MB of text. */
function hugePage(): string {
  const paragraph = (at: number) => `<p>Paragraph ${at}. ${'Words of one syllable each. '.repeat(160)}</p>`;
  const paragraphs = Array.from({ length: 1_000 }, (_unused, at) => paragraph(at));
  return `<html><head><title>Huge</title></head><body><main><h1>Huge</h1>${paragraphs.join('')}</main></body></html>`;
}

test('a page of 5 MB is read whole and not called damaged', async () => {
  const { state, outputs } = await extract('/huge');
  assert.equal(state, 'done', JSON.stringify(outputs));
  assert.equal(outputs[0]?.truncated, false);
  assert.match(await outputText(outputs[0]), /Paragraph 999\./);
});

test('an output of a page has its type and the facts in its metadata', async () => {
  const { outputs } = await extract('/products/sea-anchor');
  assert.equal(outputs[0]?.page_type, 'product');
  assert.equal(outputs[0]?.truncated, false);
  const { type, price, currency } = outputs[0]?.structured ?? {};
  assert.deepEqual({ type, price, currency }, { type: 'Product', price: '49.50', currency: 'EUR' });
  assert.match(await outputText(outputs[0]), /holds the bow of a small boat/);
  assert.equal(outputs[0]?.metadata.page_type, undefined, 'metadata stays what it was');
});

test('a page with more links than are read says that it is truncated', async () => {
  const { outputs } = await extract('/many');
  assert.equal(outputs[0]?.truncated, true);
});

test('a page that only a browser can draw fails as needs_browser, and the rest of its site is read', async () => {
  const link = await extract('/app');
  assert.equal(link.state, 'failed');
  assert.equal(link.failure_reason, 'extraction_failed');
  assert.equal(link.error?.code, 'needs_browser');
  const whole = await extract('/', 'site');
  assert.equal(whole.state, 'done');
  assert.deepEqual(
    whole.outputs.map(({ state, error }) => [state, error?.code]),
    [
      ['done', undefined],
      ['failed', 'needs_browser'],
    ],
  );
});

test('an uploaded page that only a browser can draw is refused as needs_browser', async () => {
  const file = await server.api<{ id: string }>('POST', '/api/v1/files', {
    key: app.secretKey,
    body: { filename: 'app.html', content_type: 'text/html', data: Buffer.from(shell).toString('base64') },
  });
  const refused = await server.api<ErrorBody>('POST', '/api/v1/extractions', {
    key: app.secretKey,
    body: { file: file.body.id, destination_kind: 'storage' },
  });
  assert.equal(refused.status, 422);
  assert.equal(refused.body.error.code, 'needs_browser');
});
