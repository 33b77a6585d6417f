import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { brotliCompressSync, brotliDecompressSync, gunzipSync } from 'node:zlib';
import { sendExactPath } from '../../support/request.ts';
import { startTestServer } from '../../support/server.ts';

const script = 'document.documentElement.dataset.ready = "yes";';
const files: Record<string, string> = {
  'index.html': '<h1>Home</h1>',
  'knowledge.html': `<h1>Knowledge</h1><script>${script}</script><script src="/docs/assets/a.js"></script>`,
  'knowledge.md': '# Knowledge\n',
  'llms.txt': '# Quarry\n',
  'api.html': '<div id="reference"></div>',
  'decisions/index.html': '<h1>Decisions</h1>',
  '404.html': '<h1>Nothing here</h1>',
  'assets/app.Dk2c8Ox8.js': 'export {};\n',
  'secret.key': 'not served',
};
const decoders: Record<string, (bytes: Buffer) => Buffer> = {
  br: brotliDecompressSync,
  gzip: gunzipSync,
  identity: (bytes) => bytes,
};

const directory = mkdtempSync(join(tmpdir(), 'quarry-site-test-'));
/** As in a clone, and as in the package. */
const built = { plain: join(directory, 'plain'), compressed: join(directory, 'compressed') };
for (const [name, text] of Object.entries(files)) {
  for (const place of Object.values(built)) mkdirSync(dirname(join(place, name)), { recursive: true });
  writeFileSync(join(built.plain, name), text);
  writeFileSync(join(built.compressed, `${name}.br`), brotliCompressSync(text));
}
writeFileSync(join(directory, 'outside.html'), 'outside');

const plain = await startTestServer({ site: built.plain });
const compressed = await startTestServer({ site: built.compressed });
const without = await startTestServer();
after(async () => {
  for (const server of [plain, compressed, without]) await server.close();
  rmSync(directory, { recursive: true });
});

for (const [kind, server] of Object.entries({ plain, compressed }))
  test(`a site whose files are ${kind} is served by page, as Markdown and as text, in every encoding`, async () => {
    const types: Record<string, [string, string]> = {
      '/docs/': ['index.html', 'text/html; charset=utf-8'],
      '/docs/knowledge': ['knowledge.html', 'text/html; charset=utf-8'],
      '/docs/knowledge.md': ['knowledge.md', 'text/markdown; charset=utf-8'],
      '/docs/llms.txt': ['llms.txt', 'text/plain; charset=utf-8'],
      '/docs/api': ['api.html', 'text/html; charset=utf-8'],
      '/docs/decisions/': ['decisions/index.html', 'text/html; charset=utf-8'],
    };
    for (const [path, [name, type]] of Object.entries(types))
      for (const encoding of ['identity', 'gzip', 'br', 'gzip, deflate, br']) {
        const response = await server.api('GET', path, { headers: { 'accept-encoding': encoding } });
        const sent = response.headers.get('content-encoding') ?? 'identity';
        const text = decoders[sent]?.(response.bytes).toString();
        assert.deepEqual([response.status, text], [200, files[name]], `${path} ${encoding}`);
        assert.ok(sent === 'identity' ? !encoding.includes('gzip') : encoding.includes(sent), `${sent} of ${encoding}`);
        assert.equal(response.headers.get('content-type'), type);
      }
    const asset = await server.api('GET', '/docs/assets/app.Dk2c8Ox8.js');
    assert.match(asset.headers.get('cache-control') ?? '', /immutable/);
    const page = await server.api('GET', '/docs/knowledge');
    assert.equal(page.headers.get('cache-control'), 'no-cache');
    const headers = { 'if-none-match': page.headers.get('etag') ?? '' };
    assert.equal((await server.api('GET', '/docs/knowledge', { headers })).status, 304);
  });

test('a page may run its own scripts by their digests, those of the server, and nothing else', async () => {
  const { headers } = await plain.api('GET', '/docs/knowledge');
  const policy = headers.get('content-security-policy') ?? '';
  const digest = createHash('sha256').update(script).digest('base64');
  assert.match(policy, /default-src 'none'/);
  assert.ok(policy.includes(`script-src 'self' 'sha256-${digest}';`), policy);
  assert.match((await plain.api('GET', '/docs/')).headers.get('content-security-policy') ?? '', /script-src 'self';/);
});

test('earlier addresses redirect, and the site says 404 for what it does not have', async () => {
  const redirects = { '/docs': '/docs/', '/docs/decisions': '/docs/decisions/', '/docs/openapi.json': '/openapi.json' };
  for (const [from, to] of Object.entries(redirects)) {
    const response = await fetch(plain.baseUrl + from, { redirect: 'manual' });
    assert.deepEqual([response.status, response.headers.get('location')], [302, to]);
  }
  const missing = await plain.api('GET', '/docs/gone');
  assert.deepEqual([missing.status, missing.text], [404, files['404.html']]);
  for (const path of ['/docs/secret.key', '/docs/..%2foutside', '/docs/../outside.html', '/docs/%2e%2e/outside.html']) {
    const response = await sendExactPath(plain.baseUrl, 'GET', path);
    assert.equal(response.status, 404, path);
  }
});

test('without a built site, /docs leads to the reference, served completely by this server, without inline scripts', async () => {
  for (const path of ['/docs', '/docs/'])
    assert.equal((await fetch(without.baseUrl + path)).url, `${without.baseUrl}/docs/api`);
  const page = await without.api('GET', '/docs/api');
  assert.equal(page.status, 200);
  const policy = page.headers.get('content-security-policy') ?? '';
  assert.match(policy, /script-src 'self'(;|$)/);
  assert.match(policy, /default-src 'none'/);
  const sources = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] ?? '');
  assert.ok(sources.length >= 4);
  for (const source of sources) {
    const { origin, pathname } = new URL(source, `${without.baseUrl}/docs/api`);
    assert.equal(origin, without.baseUrl);
    const file = await without.api('GET', pathname);
    assert.equal(file.status, 200, pathname);
    const headers = { 'if-none-match': file.headers.get('etag') ?? '' };
    assert.equal((await without.api('GET', pathname, { headers })).status, 304, pathname);
  }
  for (const path of ['/docs/static/swagger-ui.js', '/docs/static/..%2f..%2fpackage.json'])
    assert.equal((await without.api('GET', path)).status, 404, path);
  assert.doesNotMatch(page.text, /<script(?![^>]*\bsrc=)[^>]*>\s*\S/);
  const guide = await without.api('GET', '/docs/knowledge');
  assert.equal(guide.status, 404);
  assert.match(guide.text, /npm run site/);
});
