import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { ConfigError, readConfig } from '../../../src/config/config.ts';
import { findFreePort } from '../../support/free-port.ts';
import { sendRaw } from '../../support/raw-request.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';

const publicUrl = 'http://app.example.test';
const contentOrigin = 'http://files.example.test:8443';
const server = await startTestServer({
  env: { QUARRY_PUBLIC_URL: publicUrl, QUARRY_CONTENT_ORIGIN: contentOrigin, QUARRY_CORS_ORIGINS: 'http://x.test' },
});
after(() => server.close());
const app = await server.provision.app();

type File = { id: string; url: string; share_url: string; image_source: { url: string; refresh_url: string } };

/** A GET of a URL whose host leads to this server. */
function get(url: string, headers: Record<string, string> = {}): Promise<string> {
  const { host, pathname, search } = new URL(url);
  const lines = Object.entries({ host, connection: 'close', ...headers }).map((pair) => pair.join(': '));
  return sendRaw(server.baseUrl, `GET ${pathname}${search} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
}

async function upload(contentType: string, share: boolean): Promise<File> {
  const body = { filename: 'a', content_type: contentType, data: 'YWJj', share };
  const made = await server.api<File>('POST', '/api/v1/files', { key: app.secretKey, body });
  assert.equal(made.status, 201, made.text);
  return made.body;
}

test('URLs of stored content use the second origin, and work there', async () => {
  const file = await upload('image/png', true);
  for (const url of [file.url, file.share_url, file.image_source.url]) {
    assert.ok(url.startsWith(`${contentOrigin}/`), url);
    const response = await get(url, { origin: publicUrl });
    assert.match(response, /^HTTP\/1\.1 200 /);
    assert.match(response, /abc$/);
    assert.match(response, /access-control-allow-origin: http:\/\/app\.example\.test/, 'the console may show it');
  }
  assert.ok(file.image_source.refresh_url.startsWith(`${publicUrl}/`));
  const logo = { data: 'YWJj', filename: 'a', mime_type: 'image/png' };
  const org = await server.api<{ logo: { url: string } }>('POST', '/api/v1/orgs', {
    key: app.secretKey,
    body: { name: 'Org', logo },
  });
  assert.ok(org.body.logo.url.startsWith(`${contentOrigin}/`));
  assert.match(await get(org.body.logo.url), /^HTTP\/1\.1 200 /);
});

test('the second origin serves nothing else, with any credential', async () => {
  const headers = { 'x-api-key': app.secretKey };
  for (const path of [
    '/',
    '/console',
    '/console/',
    '/docs',
    '/healthz',
    '/metrics',
    '/openapi.json',
    '/api/v1/files',
  ]) {
    const response = await get(`${contentOrigin}${path}`, headers);
    assert.match(response, /^HTTP\/1\.1 404 /, path);
    assert.match(response, /x-request-id: /i, path);
  }
});

test('the first origin redirects to the second, so that earlier URLs stay valid', async () => {
  const file = await upload('text/html', false);
  const earlier = file.url.replace(contentOrigin, publicUrl);
  const response = await get(earlier);
  assert.match(response, /^HTTP\/1\.1 307 /);
  assert.ok(response.includes(`location: ${file.url}\r\n`), response);
  assert.doesNotMatch(response, /abc/);
});

test('an invalid content origin, or the server’s own, is refused at startup', () => {
  const read = (contentOriginGiven: string, publicUrlGiven?: string) => () =>
    readConfig({
      QUARRY_CONTENT_ORIGIN: contentOriginGiven,
      ...(publicUrlGiven === undefined ? {} : { QUARRY_PUBLIC_URL: publicUrlGiven }),
    });
  assert.throws(read('https://files.example.test/path', 'https://app.example.test'), ConfigError);
  assert.throws(read('https://files.example.test'), ConfigError);
  assert.throws(read('https://app.example.test', 'https://app.example.test/base'), ConfigError);
  assert.equal(
    read('https://files.example.test', 'https://app.example.test')().contentOrigin,
    'https://files.example.test',
  );
});

test('the console loads scripts only from its own assets, and files from their origin', async () => {
  const response = await get(`${publicUrl}/console`);
  const policy = /content-security-policy: (.*)\r\n/i.exec(response)?.[1] ?? '';
  assert.match(policy, /script-src app\.example\.test\/console\/assets\/;/);
  assert.match(policy, /style-src app\.example\.test\/console\/assets\/ 'nonce-[\w+/=]+';/);
  assert.match(policy, /img-src [^;]*http:\/\/files\.example\.test:8443/);
  for (const odd of ['[::1]:8080', 'a b', 'evil;script-src *']) {
    const other = await sendRaw(server.baseUrl, `GET /console HTTP/1.1\r\nHost: ${odd}\r\nConnection: close\r\n\r\n`);
    if (/^HTTP\/1\.1 200 /.test(other)) assert.match(other, /script-src 'self';/, odd);
    else assert.match(other, /^HTTP\/1\.1 4/);
  }
});

test('/metrics can have its own port, which serves nothing else; the usual port then has no metrics', async () => {
  const port = await findFreePort();
  const token = 'metrics-token-of-this-test';
  const apart = await startTestServer({
    env: { QUARRY_METRICS_PORT: String(port), QUARRY_METRICS_TOKEN: token },
    beside: server,
  });
  try {
    const ask = (path: string, bearer?: string) =>
      fetch(`http://127.0.0.1:${port}${path}`, { headers: bearer ? { authorization: `Bearer ${bearer}` } : {} });
    assert.equal((await apart.api<ErrorBody>('GET', '/metrics', { token })).status, 404);
    assert.equal((await ask('/metrics')).status, 401);
    assert.equal((await ask('/healthz', token)).status, 404);
    const shown = await ask('/metrics', token);
    assert.equal(shown.status, 200);
    assert.match(await shown.text(), /quarry_http_request_duration_seconds/);
  } finally {
    await apart.close();
  }
  await assert.rejects(fetch(`http://127.0.0.1:${port}/metrics`), 'it closes with the server');
});

test('/metrics does not grow with the requested paths', async () => {
  const shown = () => get(`${publicUrl}/metrics`);
  const ask = async () => {
    for (let count = 0; count < 50; count++) await get(`${publicUrl}/nowhere/${Math.random()}?a=${Math.random()}`);
  };
  await ask();
  await shown();
  // Other metrics come and go with jobs.
  const linesOfRequests = async () =>
    (await shown()).split('\n').filter((line) => line.includes('quarry_http_')).length;
  const before = await linesOfRequests();
  assert.ok(before > 0);
  await ask();
  assert.equal(await linesOfRequests(), before);
});
