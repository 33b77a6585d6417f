import assert from 'node:assert/strict';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { after, test } from 'node:test';
import { sendRaw } from '../../support/raw-request.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

const server = await startTestServer();
after(() => server.close());

const ready = 'GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n';
const health = 'GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n';

test('a connection that sends 20,000 requests has 16 in progress, is not read further, and delays nobody', async () => {
  const { secretKey } = await server.provision.app();
  const accepted = once(server.server.fastify.server, 'connection') as Promise<[Socket]>;
  const flood = open(server);
  // The first response never ends.
  flood.write(
    `GET /api/v1/events/stream HTTP/1.1\r\nhost: a\r\nx-api-key: ${secretKey}\r\n\r\n${ready.repeat(20_000)}`,
  );
  const [socket] = await accepted;
  await once(flood, 'data');
  assert.equal(await inProgress(server), 16 + 1);
  assert.ok(socket.bytesRead <= 2 * 65_536, `the server read ${socket.bytesRead} bytes`);
  socket.destroy();
  await until(async () => (await inProgress(server)) === 1);
});

test('a flood of requests is served in turns with the requests of others, and ends after 1,000', async () => {
  const flood = open(server);
  let responses = 0;
  flood.on('data', (chunk: Buffer) => {
    responses += chunk.toString().split('"status":"ready"').length - 1;
  });
  flood.write(ready.repeat(20_000));
  await once(flood, 'data');
  await server.api('GET', '/healthz');
  assert.ok(responses < 500, `${responses} responses came before that of the other client`);
  if (!flood.closed) await once(flood, 'close');
  assert.ok(responses <= 1_000);
});

test('a connection is read no faster than its requests are answered, and what follows the thousandth is dropped', async () => {
  const long = ready.replace('\r\n\r\n', `\r\nx-long: ${'x'.repeat(8_000)}\r\n\r\n`);
  const { fastify } = server.server;
  const held = holdReadiness(server);
  const mayBeRead = (responses: number) => (responses + 16) * long.length + 4 * 65_536;
  let answered = 0;
  let furthest = 0;
  const observe = ({ socket: from }: { socket: Socket }, response: ServerResponse) => {
    response.once('close', () => {
      if (from !== socket) return;
      answered += 1;
      furthest = Math.max(furthest, socket.bytesRead - mayBeRead(answered));
    });
  };
  fastify.server.on('request', observe);
  const accepted = once(fastify.server, 'connection') as Promise<[Socket]>;
  const slow = open(server).resume();
  slow.write(long.repeat(900));
  const [socket] = await accepted;
  await until(async () => (await inProgress(server)) === 16 + 1);
  // Enough turns of the event loop to read everything.
  for (let request = 0; request < 200; request++) await server.api('GET', '/healthz');
  assert.ok(socket.bytesRead <= mayBeRead(0), `the server read ${socket.bytesRead} bytes before any response`);
  held.release();
  await until(() => socket.bytesRead === 900 * long.length);
  fastify.server.off('request', observe);
  assert.ok(furthest <= 0, `the server read ${furthest} bytes too far ahead of its responses`);
  slow.destroy();

  const dropped = once(fastify.server, 'dropRequest').then(() => 'dropped');
  const flood = open(server).resume();
  const closed = once(flood, 'close').then(() => 'closed');
  flood.write(health.repeat(2_000));
  assert.equal(await Promise.race([dropped, closed]), 'dropped');
  flood.destroy();
});

test('requests for readiness share one check', async () => {
  const held = holdReadiness(server);
  const responses = Array.from({ length: 50 }, () => server.api('GET', '/readyz'));
  await until(async () => (await inProgress(server)) === 51);
  held.release();
  for (const { status } of await Promise.all(responses)) assert.equal(status, 200);
  assert.equal(held.count(), 1);
});

test('requests beyond those in progress wait, and are answered completely and in order', async () => {
  const ids = Array.from({ length: 500 }, (_, index) => `r${index}`);
  const requests = ids.map((id) => health.replace('\r\n\r\n', `\r\nx-request-id: ${id}\r\n\r\n`));
  const last = health.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n');
  const text = await sendRaw(server.baseUrl, requests.join('') + last);
  assert.deepEqual(
    [...text.matchAll(/x-request-id: (r\d+)/g)].map(([, id]) => id),
    ids,
  );
  assert.equal(text.split('HTTP/1.1 200').length - 1, 501);
});

test('bodies of pipelined requests arrive complete, also those that wait', async () => {
  const { secretKey } = await server.provision.app();
  const names = Array.from({ length: 40 }, (_, index) => `${index} ${'x'.repeat(400)}`);
  const post = (name: string, extra = '') => {
    const body = JSON.stringify({ name });
    return `POST /api/v1/orgs HTTP/1.1\r\nhost: a\r\nx-api-key: ${secretKey}\r\ncontent-type: application/json\r\n${extra}content-length: ${body.length}\r\n\r\n${body}`;
  };
  const requests = names.map((name, index) => post(name, index === names.length - 1 ? 'connection: close\r\n' : ''));
  const text = await sendRaw(server.baseUrl, requests.join(''));
  assert.deepEqual(
    [...text.matchAll(/"name":"(\d+ x+)"/g)].map(([, name]) => name),
    names,
  );
});

test('a connection serves 1,000 requests, and announces its end with the last one', async () => {
  const text = await sendRaw(server.baseUrl, health.repeat(1_000));
  assert.equal(text.split('HTTP/1.1 200').length - 1, 1_000);
  assert.match(text.slice(text.lastIndexOf('HTTP/1.1')), /\r\nconnection: close\r\n/i);
});

test('the last response announces the end of the connection, whatever kind of response it is', async () => {
  const { secretKey } = await server.provision.app();
  const listTools = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} });
  const lasts = {
    stream: 'GET /api/v1/events/stream HTTP/1.1\r\nhost: a\r\n',
    mcp: `POST /mcp HTTP/1.1\r\nhost: a\r\naccept: application/json, text/event-stream\r\ncontent-type: application/json\r\ncontent-length: ${listTools.length}\r\n`,
  };
  for (const [kind, last] of Object.entries(lasts)) {
    const socket = open(server);
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    socket.write(`${health.repeat(999)}${last}x-api-key: ${secretKey}\r\n\r\n${kind === 'mcp' ? listTools : ''}`);
    // The heads of responses stand between empty lines.
    const head = () =>
      text
        .split('\r\n\r\n')
        .slice(0, -1)
        .find((part) => part.includes('text/event-stream'));
    await until(() => head() !== undefined);
    socket.destroy();
    assert.match(head() ?? '', /\r\nconnection: close(?:\r\n|$)/i, kind);
  }
});

test('on localhost, the connections of each address are served and limited alike', async () => {
  const local = await startTestServer({ env: { HOST: 'localhost' } });
  try {
    for (const { address, family } of await lookup('localhost', { all: true })) {
      const host = family === 6 ? `[${address}]` : address;
      const text = await sendRaw(local.baseUrl.replace('localhost', host), health.repeat(1_100));
      assert.equal(text.split('HTTP/1.1 200').length - 1, 1_000, host);
    }
  } finally {
    await local.close();
  }
});

test('one address has at most half of the connections and requests, and the next address finds room', async () => {
  const small = await startTestServer({ env: { QUARRY_STREAMS_MAX: '2', QUARRY_TRUST_PROXY: '127.0.0.2' } });
  const { secretKey } = await small.provision.app();
  const sockets: Socket[] = [];
  const keep = (socket: Socket) => {
    sockets.push(socket);
    return socket;
  };
  const statusOf = async (socket: Socket) => /^HTTP\/1.1 (\d+)/.exec(String((await once(socket, 'data'))[0]))?.[1];
  try {
    // 2 streams and 1,000 other requests for each address.
    const own = Array.from({ length: 1_002 }, () => keep(open(small)));
    await Promise.all(own.map((socket) => once(socket, 'connect')));
    const late = open(small).resume();
    if (!late.closed) await once(late, 'close');
    const next = keep(open(small, '127.0.0.3'));
    next.write(health);
    assert.equal(await statusOf(next), '200');
    for (const socket of own) socket.destroy();

    // A trusted proxy is not counted; the addresses that it forwards are.
    const through = (address: string, request: string) => {
      const socket = keep(open(small, '127.0.0.2'));
      socket.write(request.replace('host: a', `host: a\r\nx-forwarded-for: ${address}`));
      return socket;
    };
    const unfinished = `POST /api/v1/orgs HTTP/1.1\r\nhost: a\r\nx-api-key: ${secretKey}\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n`;
    for (let index = 0; index < 1_002; index++) through('198.51.100.1', unfinished);
    await until(async () => (await inProgress(small)) === 1_002 + 1);
    assert.equal(await statusOf(through('198.51.100.1', health)), '429');
    assert.equal(await statusOf(through('198.51.100.2', health)), '200');
  } finally {
    for (const socket of sockets) socket.destroy();
    await small.close();
  }
});

/** Makes the blob store silent, so that readiness checks wait. */
function holdReadiness({ services }: TestServer): { count(): number; release(): void } {
  const gate = Promise.withResolvers<void>();
  const { blobs } = services;
  const original = blobs.stat;
  let calls = 0;
  blobs.stat = async (...args) => {
    calls += 1;
    await gate.promise;
    return original.apply(blobs, args);
  };
  return {
    count: () => calls,
    release() {
      blobs.stat = original;
      gate.resolve();
    },
  };
}

function open({ baseUrl }: TestServer, localAddress?: string): Socket {
  const { hostname, port } = new URL(baseUrl);
  const socket = connect({
    host: hostname,
    port: Number(port),
    ...(localAddress === undefined ? {} : { localAddress }),
  });
  return socket.on('error', () => {});
}

/** The requests in progress, including the one that asks. */
async function inProgress({ api }: Pick<TestServer, 'api'>): Promise<number> {
  const { text } = await api('GET', '/metrics');
  return Number(/^quarry_http_requests_in_progress (\d+)$/m.exec(text)?.[1]);
}
