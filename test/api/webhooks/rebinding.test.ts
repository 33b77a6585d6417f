import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import { startTestServer } from '../../support/server.ts';
import { WebhooksClient } from '../../support/webhooks.ts';

/* A receiver of webhooks whose name changes to an address inside, between and during deliveries. */

/** A service of the operator's machine: nothing may connect to it. */
let connections = 0;
const canary = createServer((_request, response) => response.end('inside')).on('connection', () => {
  connections += 1;
});
const port = await listen(canary, '127.0.0.1', 0);
let received = 0;
/** Where each request is sent on to. */
let redirect: string | undefined;
const outside = createServer((request, response) => {
  received += 1;
  request.resume();
  if (redirect === undefined) response.end();
  else response.writeHead(307, { location: redirect }).end();
});
await listen(outside, '127.0.0.2', port);

/** The addresses that each name has, one after the other; the last one stays. Failed deliveries are repeated. */
const answers = new Map<string, string[][]>();
const server = await startTestServer({
  env: { QUARRY_FETCH_ALLOW: '127.0.0.2' },
  async resolve(host) {
    const left = answers.get(host) ?? [];
    return (left.length > 1 ? left.shift() : left[0]) ?? [];
  },
});
after(async () => {
  await server.close();
  for (const each of [canary, outside]) {
    each.closeAllConnections();
    await new Promise((resolve) => each.close(resolve));
  }
});

function listen(at: Server, host: string, wanted: number): Promise<number> {
  return new Promise((resolve) => at.listen(wanted, host, () => resolve((at.address() as AddressInfo).port)));
}

const inside = ['127.0.0.1'];
const publicly = ['127.0.0.2'];

/** Delivers one event to a new webhook at a name with these addresses, and returns its first attempt. */
async function deliverOnce(...addresses: string[][]) {
  const host = `name-${answers.size}.test`;
  answers.set(host, addresses);
  const app = await server.provision.app();
  const client = new WebhooksClient(server, app.secretKey);
  const webhook = await client.create(`http://${host}:${port}/hook`, ['order.paid']);
  await client.emit('order.paid');
  const delivery = await client.waitForDelivery(webhook.id, ({ log }) => log.length > 0);
  return { client, webhook, delivery };
}

test('a name that resolves to an address inside after the webhook was created is not delivered to', async () => {
  const { delivery } = await deliverOnce(inside);
  assert.notEqual(delivery.state, 'delivered');
  assert.deepEqual({ connections, received }, { connections: 0, received: 0 });
});

test('an answer with one address inside among others is not delivered to, whatever their order', async () => {
  for (const addresses of [
    [...publicly, ...inside],
    [...inside, ...publicly],
    ['::ffff:127.0.0.1'],
    [...publicly, '::1'],
  ]) {
    const { delivery } = await deliverOnce(addresses);
    assert.notEqual(delivery.state, 'delivered', addresses.join());
  }
  assert.equal(connections, 0);
});

test('a name that changes between check and connection is connected to where it was checked', async () => {
  received = 0;
  const { client, webhook, delivery } = await deliverOnce(publicly, inside);
  assert.deepEqual([delivery.state, received, connections], ['delivered', 1, 0], JSON.stringify(delivery));
  // The next delivery may use the open connection, which leads where it was checked, and nothing else.
  await client.emit('order.paid');
  const next = await client.waitForDelivery(webhook.id, ({ id, log }) => id !== delivery.id && log.length > 0);
  assert.deepEqual([received, connections], [next.state === 'delivered' ? 2 : 1, 0]);
});

test('a redirect to a name that changes, or to an address inside, is not followed there', async () => {
  for (const location of [`http://HOST:${port}/again`, `http://127.0.0.1:${port}/`, `http://[::1]:${port}/`]) {
    redirect = location.replace('HOST', `name-${answers.size}.test`);
    const { delivery } = await deliverOnce(publicly, inside);
    assert.notEqual(delivery.state, 'delivered', location);
  }
  assert.equal(connections, 0);
  // The canary counts: an allowed request to it is seen.
  await (await fetch(`http://127.0.0.1:${port}/`)).text();
  assert.equal(connections, 1);
});
