import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
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
  // Calls that do not wait are not part of it.
  assert.equal((await call(app, [extract('/slow', 0)])).status, 200);
  assert.equal((await call(app, [{ name: 'kv_list', args: {} }])).status, 200);

  const served = await call(other, [extract('/a', 300)]);
  assert.equal(served.status, 200);
  assert.match(await served.text(), /Page A/);

  gone.abort();
  await until(async () => (await call(app, [extract('/a', 1)])).status === 200);
});

test('a run that waits for people is returned immediately with the address where they answer, to old clients, too', async () => {
  const app = await server.provision.app();
  const boss = await server.provision.user(app);
  const automations = new AutomationsClient(server, app);
  await automations.createAutomation({
    lookup_key: 'book',
    workflow: graphOf(
      { id: 'ask', kind: 'approve', question: 'Book it?', users: [boss.id], on_success: 'done' },
      { id: 'done', kind: 'complete', result: 'booked' },
    ),
  });
  const requestInit = { headers: { 'x-api-key': app.secretKey } };
  for (const options of [
    { supportedProtocolVersions: ['2025-06-18'] },
    { versionNegotiation: { mode: 'auto' } },
  ] as const) {
    const mcp = new Client({ name: 'test', version: '1' }, { ...options } as never);
    await mcp.connect(new StreamableHTTPClientTransport(new URL(`${server.baseUrl}/mcp`), { requestInit }));
    const use = async (name: string, args: Record<string, unknown>) =>
      (await mcp.callTool({ name, arguments: args })).structuredContent as Record<string, unknown>;
    const asked = await use('invoke_automation', { automation: 'book', wait_seconds: 300 });
    const { approval, ...wait } = asked.waiting_for as Record<string, string>;
    assert.deepEqual(
      [asked.status, wait],
      ['running', { kind: 'approval', node: 'ask', url: `${server.baseUrl}/console/approvals?approval=${approval}` }],
    );
    const ended = use('read_run', { run: asked.run, wait_seconds: 300 });
    const answer = { token: boss.token, body: { data: { ok: true } } };
    const { status, text } = await server.api('POST', `/api/v1/approvals/${approval}/answer`, answer);
    assert.equal(status, 200, text);
    const run = await ended;
    assert.deepEqual([run.status, run.result, run.waiting_for], ['completed', 'booked', undefined]);
    await mcp.close();
  }
});
