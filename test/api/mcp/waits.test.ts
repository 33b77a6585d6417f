import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type FixtureSite, htmlPage, responses, startSite } from '../../support/fixture-site.ts';
import type { TestApp } from '../../support/provisioner.ts';
import { type ErrorBody, startTestServer, type TestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

let server: TestServer;
let site: FixtureSite;

before(async () => {
  site = await startSite({ '/a': htmlPage('Page A'), '/slow': responses.silent });
  server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.1', QUARRY_MCP_WAITS_MAX: '4' } });
});
after(async () => {
  await server.close();
  await site.close();
});

function call({ secretKey }: TestApp, calls: { name: string; args: object }[], signal?: AbortSignal) {
  const messages = calls.map(({ name, args }, at) => ({
    ...{ jsonrpc: '2.0', id: at + 1, method: 'tools/call', params: { name, arguments: args } },
  }));
  return fetch(`${server.baseUrl}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'x-api-key': secretKey,
    },
    body: JSON.stringify(messages.length === 1 ? messages[0] : messages),
    ...(signal ? { signal } : {}),
  });
}

const extract = (path: string, seconds: number) => ({
  name: 'extract_url',
  args: { url: `${site.origin}${path}`, wait_seconds: seconds },
});

test('an app whose tool calls wait in its share gets 429, and another app is served', async () => {
  const [app, other] = [await server.provision.app(), await server.provision.app()];
  const gone = new AbortController();
  const started = async () =>
    (await server.api<{ total_entries: number }>('GET', '/api/v1/extractions', { key: app.secretKey })).body
      .total_entries;
  const waitInBackground = () => void call(app, [extract('/slow', 300)], gone.signal).catch(() => {});
  waitInBackground();
  await until(async () => (await started()) === 1);
  // Each message of a request takes a place.
  assert.equal((await call(app, [extract('/a', 45), extract('/a', 45), extract('/a', 45)])).status, 429);
  waitInBackground();
  await until(async () => (await started()) === 2);

  const refused = await call(app, [extract('/a', 45)]);
  assert.equal(refused.status, 429);
  assert.ok(Number(refused.headers.get('retry-after')) > 0);
  assert.equal(((await refused.json()) as ErrorBody).error.code, 'rate_limited');
  // Calls that do not wait are no part of it.
  assert.equal((await call(app, [extract('/slow', 0)])).status, 200);
  assert.equal((await call(app, [{ name: 'kv_list', args: {} }])).status, 200);

  const served = await call(other, [extract('/a', 300)]);
  assert.equal(served.status, 200);
  assert.match(await served.text(), /Page A/);

  gone.abort();
  await until(async () => (await call(app, [extract('/a', 1)])).status === 200);
});
