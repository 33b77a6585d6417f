import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from 'node:net';
import { after, before, test } from 'node:test';
import { createSystemResolver } from '../../../src/content/fetch/resolver.ts';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { type DnsBehaviour, DnsServer } from '../../support/dns-server.ts';
import { startEmbeddingService } from '../../support/embedding-service.ts';
import { extractUrl, outputText } from '../../support/extractions.ts';
import { htmlPage } from '../../support/fixture-site.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import { startLanguageModel } from '../../support/language-model.ts';
import type { TestTenants } from '../../support/provisioner.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { WebhookReceiver } from '../../support/webhook-receiver.ts';
import { WebhooksClient } from '../../support/webhooks.ts';

/*
 * A name server of the tests, which fails in every way. 127.0.0.2 stands for the public internet; on 127.0.0.1 listens
 * a service of the operator's machine, to which nothing may connect.
 */

const publicAddress = '127.0.0.2';
let aheadMs = 0;
let dns: DnsServer;
let site: Server;
let canary: TcpServer;
let connections = 0;
let port: number;
let services: {
  embedder: Awaited<ReturnType<typeof startEmbeddingService>>;
  model: Awaited<ReturnType<typeof startLanguageModel>>;
  receiver: WebhookReceiver;
};
let server: TestServer;
let world: TestTenants;
/** Names for which the system was asked, on one of its few threads. */
const askedOfSystem: string[] = [];
/** Called when the lookup of a name has failed. */
let onFailure = (_host: string): void => {};

before(async () => {
  dns = await DnsServer.start();
  canary = createTcpServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  canary.listen(0, '127.0.0.1');
  await once(canary, 'listening');
  ({ port } = canary.address() as AddressInfo);
  site = createServer((request, response) => {
    response.setHeader('connection', 'close');
    if (request.url === '/leave') response.writeHead(302, { location: `http://leave.test:${port}/next` }).end();
    else if (request.url === '/robots.txt') response.writeHead(404).end();
    else response.setHeader('content-type', 'text/html').end(htmlPage('Public'));
  });
  site.listen(port, publicAddress);
  await once(site, 'listening');
  services = {
    embedder: await startEmbeddingService(),
    model: await startLanguageModel(),
    receiver: await WebhookReceiver.start(),
  };
  const resolve = createSystemResolver({
    servers: [dns.address],
    hostsFile: '/nonexistent',
    lookupMs: 900,
    lookup: (host) => {
      askedOfSystem.push(host);
      return Promise.reject(Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), { code: 'ENOTFOUND' }));
    },
  });
  const named = (name: string, url: string) => url.replace('127.0.0.1', name);
  server = await startTestServer({
    clock: { now: () => new Date(Date.now() + aheadMs) },
    resolve: (host, signal) =>
      resolve(host, signal).catch((error: unknown) => {
        onFailure(host);
        throw error;
      }),
    logLevel: 'silent',
    env: {
      QUARRY_FETCH_ALLOW: `${publicAddress},hook.test`,
      QUARRY_EMBEDDER: 'openai',
      QUARRY_EMBED_URL: named('embedder.test', services.embedder.url),
      QUARRY_EMBED_MODEL: 'test',
      QUARRY_EMBED_DIMENSIONS: '64',
      QUARRY_LLM_URL: named('model.test', services.model.url),
      QUARRY_LLM_MODEL: 'small',
    },
  });
  world = await server.provision.world();
});
after(async () => {
  await server.close();
  await dns.close();
  for (const service of Object.values(services)) await service.close();
  for (const each of [site, canary]) each.close();
});

function extract(name: string, path = '/') {
  return extractUrl(server, world.app.secretKey, { url: `http://${name}:${port}${path}`, mode: 'link' });
}

const failures: Record<string, DnsBehaviour> = {
  'format-error': { code: 1 },
  'server-failure': { code: 2 },
  'no-such-name': { code: 3 },
  refused: { code: 5 },
  silent: { silent: true },
  garbage: { bytes: randomBytes(200), keepsId: true },
  'garbage-without-id': { bytes: randomBytes(200), keepsId: false },
  short: { bytes: Buffer.from([0x81]), keepsId: true },
  // A name that is compressed as a pointer to itself.
  endless: {
    bytes: Buffer.from('81800001000100000000c00c00010001c00c00010001000000000004' + '7f000002', 'hex'),
    keepsId: true,
  },
  'other-name': { addresses: [publicAddress], ofName: 'unasked.test' },
  'no-address': { addresses: [] },
  alias: { alias: 'alias.test' },
};

test('a name server that fails in any way causes an error, and the name resolves once it recovers', async () => {
  const names = Object.keys(failures).map((name) => [name, `${name}.test`] as const);
  for (const [kind, name] of names) dns.set(name, failures[kind] as DnsBehaviour);
  const ended = await Promise.all(names.map(([, name]) => extract(name)));
  for (const [i, { state, failure_reason, error }] of ended.entries())
    assert.deepEqual([state, failure_reason, error?.code], ['failed', 'fetch_failed', 'dns_failed'], names[i]?.[0]);
  assert.ok(
    !askedOfSystem.some((name) => /^(silent|server-failure)\./.test(name)),
    'The same servers again, on a thread.',
  );
  for (const [, name] of names) dns.set(name, { addresses: [publicAddress] });
  const read = await Promise.all(names.map(([, name]) => extract(name)));
  assert.deepEqual(
    read.map(({ state }) => state),
    names.map(() => 'done'),
  );
  assert.match(await outputText(read[0]?.outputs[0]), /the page called Public/);
});

test('a page whose name server fails temporarily is requested again', async () => {
  dns.set('moment.test', { code: 2 });
  let failures = 0;
  onFailure = (host) => {
    if (host !== 'moment.test') return;
    failures += 1;
    dns.set(host, { addresses: [publicAddress] });
  };
  assert.equal((await extract('moment.test')).state, 'done');
  assert.equal(failures, 1);
});

test('a truncated response is requested again by TCP', async () => {
  dns.set('truncated.test', { addresses: [publicAddress], truncated: true });
  assert.equal((await extract('truncated.test')).state, 'done');
  const asked = dns.asked.filter(({ name }) => name === 'truncated.test').map(({ by }) => by);
  assert.ok(asked.includes('udp') && asked.includes('tcp'));
});

test('a name that changes to a private address between two queries reaches nothing private', async () => {
  // Each connection asks once, and goes to the address that was checked: one for robots.txt, one for the page.
  dns.set('rebind.test', { addresses: [[publicAddress], [publicAddress], ['127.0.0.1']] });
  assert.equal((await extract('rebind.test')).state, 'done');
  const refused = [await extract('rebind.test')];
  // A redirect to a name whose address has changed by then.
  dns.set('leave.test', { addresses: ['127.0.0.1'] });
  dns.set('public.test', { addresses: [publicAddress] });
  refused.push(await extract('public.test', '/leave'));
  // One private address among public ones, and the same one in the clothes of IPv6.
  const mixtures = {
    'both.test': [publicAddress, '127.0.0.1'],
    'loopback6.test': [publicAddress, '0:0:0:0:0:0:0:1'],
    'mapped.test': [publicAddress, '0:0:0:0:0:ffff:7f00:1'],
    'metadata.test': ['169.254.169.254'],
    'any.test': ['0.0.0.0'],
    'nat64.test': ['64:ff9b:0:0:0:0:7f00:1'],
  };
  for (const [name, addresses] of Object.entries(mixtures)) {
    dns.set(name, { addresses });
    refused.push(await extract(name));
  }
  for (const [i, { state, error }] of refused.entries()) {
    assert.deepEqual([state, error?.code], ['failed', 'unsafe_address'], `number ${i}`);
    assert.doesNotMatch(JSON.stringify(error), /127\.0\.0\.1|::1|169\.254/);
  }
  assert.equal(connections, 0);
});

test('configured services fail and recover with their names, and block no thread of the process', async () => {
  const knowledge = knowledgeOf(server, { key: world.app.secretKey });
  const automations = new AutomationsClient(server, world.app);
  const source = await knowledge.createSource({ org: world.org.id });
  const findsBy = async (mode: string) => {
    while ((await knowledge.search(source, { query: 'white gannet', mode })).length === 0)
      await new Promise((resolve) => setTimeout(resolve, 100));
  };
  const workflow = graphOf({
    ...{ id: 'g', kind: 'generate', timeout_seconds: 30 },
    messages: [{ role: 'user', content: 'Greet.' }],
  });
  const automation = await automations.createAutomation({ workflow });
  for (const name of ['embedder.test', 'model.test']) dns.set(name, { code: 2 });
  const content = { data: 'The gannet is white.' };
  const pushed = await knowledge.send<{ id: string }>('POST', `/knowledge_sources/${source}/ingest`, { content });
  assert.equal(pushed.status, 201);
  await findsBy('fulltext');
  const run = await automations.waitForEnd((await automations.invoke(automation.id)).id);
  assert.deepEqual([run.status, run.error?.code], ['failed', 'llm_unreachable']);
  assert.ok(dns.count('embedder.test') > 0 && dns.count('model.test') > 0);

  for (const name of ['embedder.test', 'model.test']) dns.set(name, { addresses: ['127.0.0.1'] });
  const retried = await automations.call<{ id: string }>('POST', `/automation_runs/${run.id}/retry`);
  const again = await automations.waitForEnd(retried.body.id);
  assert.equal(again.status, 'completed', JSON.stringify(again.error));
  // The embedder is asked again by itself.
  await findsBy('vector');
  assert.equal((await knowledge.waitForIngestion(pushed.body.id)).status, 'succeeded');
  assert.deepEqual(
    askedOfSystem.filter((name) => /^(embedder|model)\./.test(name)),
    [],
  );
});

test('a delivery waits for the name of its receiver, and arrives', async () => {
  const webhooks = new WebhooksClient(server, world.app.secretKey);
  dns.set('hook.test', { code: 2 });
  const hook = await webhooks.create(services.receiver.origin.replace('127.0.0.1', 'hook.test'), ['told']);
  await webhooks.emit('told');
  const failed = await webhooks.waitForDelivery(hook.id, ({ log }) => log.length > 0);
  assert.equal(failed.log[0]?.error?.code, 'dns_failed');
  dns.set('hook.test', { addresses: ['127.0.0.1'] });
  aheadMs = Math.max(0, Date.parse(failed.next_attempt_at ?? '') - Date.now());
  await webhooks.deliverDue();
  await webhooks.waitForDelivery(hook.id, ({ state }) => state === 'delivered');
  assert.equal(services.receiver.messages.length, 1);
});
