import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { basicEnvironment, runQuarry } from '../support/command.ts';
import { responses, startSite } from '../support/fixture-site.ts';
import { startTestServer } from '../support/server.ts';

/* `quarry mcp`, by the official client. A proxy stands between the command and the server, and fails when it should. */

const server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.1' } });
const { app, member } = await server.provision.world();
const site = await startSite({ '/slow': responses.silent });
const directory = mkdtempSync(join(tmpdir(), 'quarry-mcp-'));
const profile = join(directory, 'profile.json');

type Fault = (incoming: IncomingMessage, outgoing: ServerResponse) => void;
const faults: Fault[] = [];
const proxy = createServer((incoming, outgoing) => {
  const fault = faults.shift();
  if (fault) return fault(incoming, outgoing);
  forward(incoming, outgoing);
});
function forward(incoming: IncomingMessage, outgoing: ServerResponse): void {
  const { method, headers, url = '' } = incoming;
  const onward = request(new URL(url, server.baseUrl), { method: method ?? 'GET', headers }, (response) => {
    outgoing.writeHead(response.statusCode ?? 500, response.headers);
    response.pipe(outgoing);
  });
  outgoing.once('close', () => onward.destroy());
  onward.once('error', () => outgoing.destroy());
  incoming.pipe(onward);
}
proxy.listen(0, '127.0.0.1');
await once(proxy, 'listening');
const proxyUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
writeFileSync(profile, JSON.stringify({ url: proxyUrl, token: member.token }));

const env = { QUARRY_DATA_DIR: join(directory, 'no-data'), QUARRY_PROFILE: profile };
const clients: Client[] = [];
after(async () => {
  for (const client of clients) await client.close();
  proxy.closeAllConnections();
  proxy.close();
  await site.close();
  await server.close();
  rmSync(directory, { recursive: true, force: true });
});

async function connect(versions: 'modern' | 'legacy' = 'modern'): Promise<Client> {
  const client = new Client(
    { name: 'test', version: '1' },
    versions === 'legacy' ? { supportedProtocolVersions: ['2025-06-18'] } : { versionNegotiation: { mode: 'auto' } },
  );
  const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
  const environment = { ...basicEnvironment(), ...env } as Record<string, string>;
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args: [main, 'mcp'], env: environment, stderr: 'inherit' }),
  );
  clients.push(client);
  return client;
}

const initialize = (id: number) => ({
  jsonrpc: '2.0',
  id,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
});
const readLines = (stdout: string) => stdout.trim().split('\n').filter(Boolean);

test('an editor speaks either kind of the protocol through the command, with the stored credential', async () => {
  for (const versions of ['modern', 'legacy'] as const) {
    const client = await connect(versions);
    const expected = versions === 'modern' ? '2026-07-28' : '2025-06-18';
    assert.equal(client.getNegotiatedProtocolVersion(), expected);
    const { tools } = await client.listTools();
    assert.ok(tools.some(({ name }) => name === 'kv_put'));
    await client.callTool({ name: 'kv_put', arguments: { key: 'where', value: versions } });
    const { body } = await server.api<{ value: string }>('GET', '/api/v1/kv/where', { token: member.token });
    assert.equal(body.value, versions);
    const prompt = await client.getPrompt({ name: 'answer_from_knowledge', arguments: { question: 'Où?' } });
    assert.match(JSON.stringify(prompt.messages), /Où\?/);
    // A header cannot carry this name as it is.
    await assert.rejects(client.readResource({ uri: 'quarry://files/fil_ö' }), /does not exist/);
  }
});

test('a server that restarts or drops a connection is asked again, unless the call may have taken effect', async () => {
  const client = await connect();
  const refuse: Fault = (_incoming, outgoing) => outgoing.writeHead(503, { 'retry-after': '1' }).end();
  const drop: Fault = (incoming) => incoming.socket.destroy();
  faults.push(refuse);
  const put = await client.callTool({ name: 'kv_put', arguments: { key: 'kept', value: '1' } });
  assert.equal(put.isError, undefined);
  faults.push(drop, drop);
  assert.ok((await client.listTools()).tools.length > 0);
  faults.push(drop);
  await assert.rejects(
    client.callTool({ name: 'kv_increment', arguments: { key: 'kept' } }),
    /-32000|connection to .* was lost/i,
  );
  assert.deepEqual(faults, []);
});

test('a cancelled call closes its request', async () => {
  const client = await connect();
  const closed = Promise.withResolvers<void>();
  const started = Promise.withResolvers<void>();
  faults.push((incoming, outgoing) => {
    outgoing.once('close', closed.resolve);
    forward(incoming, outgoing);
    started.resolve();
  });
  const stop = new AbortController();
  const call = client.callTool(
    { name: 'extract_url', arguments: { url: `${site.origin}/slow`, wait_seconds: 300 } },
    { signal: stop.signal },
  );
  await started.promise;
  stop.abort();
  await assert.rejects(call);
  await closed.promise;
});

test('standard output holds nothing but responses, and the command ends with its input', async () => {
  const lines = [initialize(1), { jsonrpc: '2.0', method: 'notifications/initialized' }].map((each) =>
    JSON.stringify(each),
  );
  const ran = await runQuarry(['mcp'], { env, input: `${lines.join('\n')}\nnot JSON\n[]\n` });
  assert.equal(ran.code, 0, ran.stderr);
  assert.equal(ran.stderr, '');
  const messages = readLines(ran.stdout).map((line) => JSON.parse(line) as { id: unknown; error?: { code: number } });
  assert.deepEqual(
    messages.map(({ id, error }) => [id, error?.code]).toSorted((a, b) => Number(a[0]) - Number(b[0])),
    [
      [null, -32_700],
      [null, -32_700],
      [1, undefined],
    ],
  );
});

test('a refused credential is an error of the call, and a missing one a message on standard error', async () => {
  const input = `${JSON.stringify(initialize(7))}\n`;
  const refused = await runQuarry(['mcp', '--token', 'sat_wrong_and_long_enough'], { env, input });
  assert.equal(refused.code, 0, refused.stderr);
  const [message] = readLines(refused.stdout).map((line) => JSON.parse(line));
  assert.equal(message.id, 7);
  assert.match(message.error.message, /^401: .*\nCheck --key/);
  assert.doesNotMatch(refused.stdout, new RegExp(app.secretKey));
  const missing = await runQuarry(['mcp'], { env: { ...env, QUARRY_PROFILE: join(directory, 'none.json') }, input });
  assert.deepEqual([missing.code, missing.stdout], [2, '']);
  assert.match(missing.stderr, /quarry login URL/);
});
