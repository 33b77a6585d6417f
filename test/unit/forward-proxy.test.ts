import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { ForwardProxy, type Passage } from '../../src/content/browser/forward-proxy.ts';
import { createFetcher } from '../../src/content/fetch/guarded-fetch.ts';
import { type FixtureSite, responses, startSite } from '../support/fixture-site.ts';

const fetcher = createFetcher({ allow: ['site.test'], resolve: async () => ['127.0.0.1'] });
const bounds = { bytesMax: 1024 * 1024, connectionsMax: 50 };
let site: FixtureSite;
let port: string;
let proxy: ForwardProxy;

before(async () => {
  site = await startSite({
    '/plain': 'hello',
    '/endless': responses.endless,
    '/echo': async (asked, response) => response.end(`${asked.headers.host} ${await text(asked)}`),
    '/headers': (asked, response) =>
      response.setHeader('set-cookie', ['a=1', 'b=2']).end(JSON.stringify(Object.keys(asked.headers).sort())),
  });
  port = new URL(site.origin).port;
  proxy = await ForwardProxy.start(fetcher, '127.0.0.1');
});
after(async () => {
  await proxy.close();
  await fetcher.close();
  await site.close();
});

function headerOf({ username, password }: Passage): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

function ask(path: string, credential: string, body?: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(proxy.url);
    const headers = { 'proxy-authorization': credential };
    const method = body === undefined ? 'GET' : 'POST';
    request({ host: hostname, port, path, method, headers, agent: false }, resolve).on('error', reject).end(body);
  });
}

/** What the proxy says to a CONNECT, and the tunnel. */
function tunnel(authority: string, credential: string): Promise<{ status: string; socket: Socket }> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(proxy.url).port) });
    socket.on('error', reject);
    socket.once('data', (answer: Buffer) => resolve({ status: answer.toString().split(' ')[1] ?? '', socket }));
    socket.write(`CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\nproxy-authorization: ${credential}\r\n\r\n`);
  });
}

test('only a page that is being drawn may use the proxy', async () => {
  const before = site.requests.length;
  const passage = proxy.open('app', bounds);
  const wrong = headerOf({ ...passage, password: 'wrong' });
  for (const credential of ['', wrong]) {
    assert.equal((await ask(`http://site.test:${port}/plain`, credential)).statusCode, 407);
    assert.equal((await tunnel(`site.test:${port}`, credential)).status, '407');
  }
  assert.equal(site.requests.length, before);
  assert.equal(await text(await ask(`http://site.test:${port}/plain`, headerOf(passage))), 'hello');
  passage.close();
  assert.equal((await ask(`http://site.test:${port}/plain`, headerOf(passage))).statusCode, 407);
});

test('the proxy connects to no address that the fetcher refuses', async () => {
  const before = site.requests.length;
  const passage = proxy.open('app', bounds);
  for (const host of ['127.0.0.1', 'localhost', 'inside.test', '[::ffff:127.0.0.1]', '0x7f000001', '127.1']) {
    assert.equal((await ask(`http://${host}:${port}/plain`, headerOf(passage))).statusCode, 502, host);
    assert.equal((await tunnel(`${host}:${port}`, headerOf(passage))).status, '502', host);
  }
  for (const authority of ['site.test:25', '', '/', 'site.test:99999', 'user@site.test:443'])
    assert.match((await tunnel(authority, headerOf(passage))).status, /^(400|502)$/, authority);
  assert.equal((await ask('/plain', headerOf(passage))).statusCode, 400);
  assert.equal((await ask('ftp://site.test/plain', headerOf(passage))).statusCode, 400);
  assert.equal(site.requests.length, before);
  passage.close();
});

test('requests pass with their bodies and without the credential of the proxy', async () => {
  const passage = proxy.open('app', bounds);
  const echo = await ask(`http://site.test:${port}/echo`, headerOf(passage), 'a body');
  assert.equal(await text(echo), `site.test:${port} a body`);
  const answer = await ask(`http://site.test:${port}/headers`, headerOf(passage));
  assert.deepEqual(answer.headers['set-cookie'], ['a=1', 'b=2']);
  assert.deepEqual(JSON.parse(await text(answer)), ['connection', 'host']);
  const { status, socket } = await tunnel(`site.test:${port}`, headerOf(passage));
  assert.equal(status, '200');
  socket.end('GET /plain HTTP/1.0\r\n\r\n');
  assert.match(await text(socket), /hello$/);
  assert.equal(passage.isExceeded(), false);
  passage.close();
});

test('a page that moves more bytes than its share has no network any more', async () => {
  const passage = proxy.open('app', bounds);
  const other = proxy.open('app', bounds);
  await assert.rejects(async () => text(await ask(`http://site.test:${port}/endless`, headerOf(passage))));
  assert.equal(passage.isExceeded(), true);
  assert.equal((await ask(`http://site.test:${port}/plain`, headerOf(passage))).statusCode, 502);
  assert.equal(await text(await ask(`http://site.test:${port}/plain`, headerOf(other))), 'hello');
  passage.close();
  other.close();
});

test('the end of a page ends its connections', async () => {
  const passage = proxy.open('app', bounds);
  const { socket } = await tunnel(`site.test:${port}`, headerOf(passage));
  const closed = new Promise((resolve) => socket.once('close', resolve));
  passage.close();
  await closed;
});

/** A host whose connections the test controls. */
async function startSilentHost() {
  const sockets: Socket[] = [];
  const server = createServer((socket) => sockets.push(socket.on('error', () => {})));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const accept = async () => {
    if (sockets.length === 0) await once(server, 'connection');
    return sockets.shift() as Socket;
  };
  return { authority: `site.test:${(server.address() as AddressInfo).port}`, accept, close: () => server.close() };
}

/** A connection of a page to a proxy; `leave` closes it and waits until the proxy has noticed. */
async function enter(through: ForwardProxy, request: string) {
  const accepted = new Map<number | undefined, Socket>();
  const note = (message: unknown) => {
    const { socket } = message as { socket: Socket };
    accepted.set(socket.remotePort, socket);
  };
  subscribe('net.server.socket', note);
  const page = connect({ host: '127.0.0.1', port: Number(new URL(through.url).port) });
  await once(page, 'connect');
  page.write(request);
  const leave = async () => {
    const atProxy = accepted.get(page.localPort);
    unsubscribe('net.server.socket', note);
    assert.ok(atProxy);
    // Not once(): the reset that closes the connection is an error.
    const closed = new Promise((resolve) => atProxy.once('close', resolve));
    page.resetAndDestroy();
    await closed;
  };
  return { leave };
}

test('a response for a page that has closed its connection ends only that request', async () => {
  const host = await startSilentHost();
  const passage = proxy.open('app', bounds);
  const { leave } = await enter(
    proxy,
    `GET http://${host.authority}/ HTTP/1.1\r\nhost: ${host.authority}\r\nproxy-authorization: ${headerOf(passage)}\r\n\r\n`,
  );
  const atHost = await host.accept();
  await once(atHost, 'data');
  await leave();
  atHost.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n');
  await once(atHost, 'close');
  assert.equal(await text(await ask(`http://site.test:${port}/plain`, headerOf(passage))), 'hello');
  passage.close();
  host.close();
});

test('a page that leaves while its connection opens leaves none open', async () => {
  const host = await startSilentHost();
  for (const method of ['GET', 'CONNECT']) {
    const [resolving, resolved] = [Promise.withResolvers<void>(), Promise.withResolvers<string[]>()];
    const slow = createFetcher({
      allow: ['site.test'],
      resolve: () => {
        resolving.resolve();
        return resolved.promise;
      },
    });
    const through = await ForwardProxy.start(slow, '127.0.0.1');
    const passage = through.open('app', bounds);
    const target = method === 'CONNECT' ? host.authority : `http://${host.authority}/`;
    const { leave } = await enter(
      through,
      `${method} ${target} HTTP/1.1\r\nhost: ${host.authority}\r\nproxy-authorization: ${headerOf(passage)}\r\n\r\n`,
    );
    await resolving.promise;
    await leave();
    resolved.resolve(['127.0.0.1']);
    const atHost = await host.accept();
    await once(atHost.resume(), 'close');
    passage.close();
    await through.close();
    await slow.close();
  }
  host.close();
});

test('a response that HTTP does not allow fails one request, and nothing else of the process', async () => {
  const heads = ['000 Nothing', '099 Less', '101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other'];
  const strange = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', (head) => {
      const at = Number(/^GET \/(\d)/.exec(head.toString())?.[1]);
      socket.write(`HTTP/1.1 ${heads[at]}\r\ncontent-length: 0\r\n\r\n`);
    });
  });
  await new Promise<void>((resolve) => strange.listen(0, '127.0.0.1', resolve));
  const { port: strangePort } = strange.address() as AddressInfo;
  const passage = proxy.open('app', bounds);
  try {
    for (const [at, head] of heads.entries()) {
      const answer = await ask(`http://site.test:${strangePort}/${at}`, headerOf(passage));
      assert.equal(answer.statusCode, 502, head);
    }
    assert.equal(await text(await ask(`http://site.test:${port}/plain`, headerOf(passage))), 'hello');
  } finally {
    passage.close();
    strange.close();
  }
});
