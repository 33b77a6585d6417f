import assert from 'node:assert/strict';
import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, createServer as createSocketServer, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { FetchError } from '../../src/content/fetch/errors.ts';
import { createFetcher, type Fetcher, type FetcherOptions } from '../../src/content/fetch/guarded-fetch.ts';

let server: Server;
let base: string;
let port: number;
const seen: { url: string; headers: Record<string, unknown> }[] = [];
const fetchers: Fetcher[] = [];

const routes: Record<string, RequestListener> = {
  '/plain': (_request, response) => response.end('hello'),
  '/big': (_request, response) => response.setHeader('content-length', '90000000').write('x'),
  '/endless': (_request, response) => {
    const piece = Buffer.alloc(64 * 1024, 'x');
    const more = (): void => {
      while (!response.destroyed && response.write(piece));
      if (!response.destroyed) response.once('drain', more);
    };
    more();
  },
  '/silent': () => {},
  '/half': (_request, response) => {
    response.write('half');
  },
  '/cut': (_request, response) => {
    response.setHeader('content-length', '100').write('half', () => response.destroy());
  },
  '/loop': (_request, response) => response.writeHead(302, { location: '/loop' }).end(),
  '/inside': (_request, response) => response.writeHead(302, { location: 'http://169.254.169.254/latest' }).end(),
  '/named-inside': (_request, response) =>
    response.writeHead(302, { location: `http://inside.test:${port}/plain` }).end(),
  '/elsewhere': (_request, response) => response.writeHead(302, { location: `http://other.test:${port}/plain` }).end(),
  '/elsewhere-307': (_request, response) =>
    response.writeHead(307, { location: `http://other.test:${port}/plain` }).end(),
  '/there-and-back': (_request, response) =>
    response.writeHead(308, { location: `http://other.test:${port}/back` }).end(),
  '/back': (_request, response) => response.writeHead(308, { location: `${base}/plain` }).end(),
  '/file': (_request, response) => response.writeHead(302, { location: 'file:///etc/passwd' }).end(),
  '/nowhere': (_request, response) => response.writeHead(302, { location: 'http://[bad' }).end(),
  '/login': (_request, response) => response.writeHead(302, { location: 'http://u:p@site.test/' }).end(),
  '/endless-inside': (_request, response) =>
    response.writeHead(302, { location: 'http://169.254.169.254/latest' }).write('more to come'),
  '/endless-nowhere': (_request, response) =>
    response.writeHead(302, { location: 'http://[bad' }).write('more to come'),
  '/endless-elsewhere': (_request, response) =>
    response.writeHead(302, { location: `http://other.test:${port}/plain` }).write('more to come'),
  '/post': (_request, response) => response.writeHead(303, { location: '/plain' }).end(),
};

before(async () => {
  server = createServer((request, response) => {
    seen.push({ url: `${request.method} ${request.url}`, headers: request.headers });
    const numbered = /^\/hop\/(\d+)$/.exec(request.url ?? '');
    if (numbered) {
      const left = Number(numbered[1]);
      response.writeHead(302, { location: left > 1 ? `/hop/${left - 1}` : '/plain' }).end();
    } else (routes[request.url ?? ''] ?? ((_request, answer) => answer.writeHead(404).end()))(request, response);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  port = (server.address() as AddressInfo).port;
  base = `http://site.test:${port}`;
});

after(async () => {
  for (const fetcher of fetchers) await fetcher.close();
  server.closeAllConnections();
  server.close();
});

/** site.test and other.test are opened by name; everything else goes by its address. */
function fetcherWith(options: FetcherOptions = {}): Fetcher {
  const fetcher = createFetcher({
    allow: ['site.test', 'other.test'],
    resolve: async () => ['127.0.0.1'],
    ...options,
  });
  fetchers.push(fetcher);
  return fetcher;
}

async function text(fetcher: Fetcher, path: string, options = {}): Promise<string> {
  const response = await fetcher.fetch(path.startsWith('/') ? base + path : path, options);
  return Buffer.from(await response.bytes()).toString();
}

function failsWith(code: string) {
  return (error: unknown) => {
    assert.ok(error instanceof FetchError, String(error));
    assert.equal(error.code, code);
    assert.doesNotMatch(error.message, /\d+\.\d+\.\d+\.\d+|::/, 'the message tells an address');
    return true;
  };
}

test('a name that resolves to a private address is never connected to', async () => {
  const before = seen.length;
  for (const address of ['127.0.0.1', '10.0.0.1', '::1', '::ffff:127.0.0.1', '64:ff9b::7f00:1', '2002:7f00:1::'])
    await assert.rejects(
      text(fetcherWith({ resolve: async () => [address] }), `http://inside.test:${port}/plain`),
      failsWith('unsafe_address'),
    );
  await assert.rejects(
    text(fetcherWith({ resolve: async () => ['1.1.1.1', '127.0.0.1'] }), `http://inside.test:${port}/plain`),
    failsWith('unsafe_address'),
  );
  assert.equal(seen.length, before);
});

test('a name that rebinds between check and connection has no effect: it is resolved once and the address is pinned', async () => {
  let asked = 0;
  const fetcher = fetcherWith({
    resolve: async () => (asked++ === 0 ? ['127.0.0.2'] : ['127.0.0.1']),
    allow: ['127.0.0.2'],
  });
  const before = seen.length;
  await text(fetcher, `http://rebind.test:${port}/plain`).catch((error) => failsWith('connect_failed')(error));
  assert.equal(asked, 1);
  assert.equal(seen.length, before);
  await assert.rejects(text(fetcher, `http://rebind.test:${port}/plain`), failsWith('unsafe_address'));
});

test('an address in the URL is judged without asking a resolver', async () => {
  const fetcher = fetcherWith({ resolve: () => Promise.reject(new Error('asked')) });
  for (const url of [`http://127.0.0.1:${port}/plain`, `http://2130706433:${port}/plain`, `http://[::1]:${port}/plain`])
    await assert.rejects(text(fetcher, url), failsWith('unsafe_url'));
});

test('each redirect is checked again', async () => {
  const fetcher = fetcherWith();
  await assert.rejects(text(fetcher, '/inside'), failsWith('unsafe_url'));
  await assert.rejects(text(fetcher, '/named-inside'), failsWith('unsafe_address'));
  await assert.rejects(text(fetcher, '/file'), failsWith('unsafe_url'));
  await assert.rejects(text(fetcher, '/login'), failsWith('unsafe_url'));
  await assert.rejects(text(fetcher, '/nowhere'), failsWith('bad_response'));
  assert.equal(await text(fetcher, '/elsewhere'), 'hello');
});

test('ten redirects are followed and not one more', async () => {
  const fetcher = fetcherWith();
  const response = await fetcher.fetch(`${base}/hop/10`);
  assert.equal(response.redirects, 10);
  assert.equal(response.url, `${base}/plain`);
  response.discard();
  await assert.rejects(text(fetcher, '/hop/11'), failsWith('too_many_redirects'));
  await assert.rejects(text(fetcher, '/loop'), failsWith('too_many_redirects'));
});

test('a redirect can be handed back or refused by the caller', async () => {
  const fetcher = fetcherWith();
  const manual = await fetcher.fetch(`${base}/elsewhere`, { redirect: 'manual' });
  assert.equal(manual.status, 302);
  manual.discard();
  const refused = await fetcher.fetch(`${base}/elsewhere`, { mayFollow: (url) => url.hostname === 'site.test' });
  assert.equal(refused.stopped, `http://other.test:${port}/plain`);
  refused.discard();
});

test('a redirect to another origin carries neither the body nor a header of the caller, nor does a redirect back', async () => {
  const fetcher = fetcherWith();
  const headers = { Authorization: 'Bearer x', 'X-Api-Key': 'secret', cookie: 'a=b', 'x-mine': 'y', accept: 'text/x' };
  for (const path of ['/elsewhere', '/elsewhere-307', '/there-and-back']) {
    await text(fetcher, path, { method: 'POST', body: 'a=secret', headers: { ...headers, 'content-type': 'text/x' } });
    const last = seen.at(-1);
    assert.match(last?.url ?? '', / \/plain$/, path);
    assert.doesNotMatch(JSON.stringify(last), /secret|Bearer|a=b|x-mine|text\/x/, path);
    assert.ok([undefined, '0'].includes(last?.headers['content-length'] as string | undefined), `${path}: no body`);
  }
  await text(fetcher, '/hop/2', { headers });
  assert.equal(seen.at(-1)?.headers['x-api-key'], 'secret', 'the same origin gets them');
});

test('303 turns POST into GET', async () => {
  const fetcher = fetcherWith();
  await text(fetcher, '/post', { method: 'POST', body: 'a=b', headers: { 'content-type': 'text/plain' } });
  assert.equal(seen.at(-1)?.url, 'GET /plain');
  assert.equal(seen.at(-1)?.headers['content-type'], undefined);
});

test('the body is bounded as it comes, declared or not', async () => {
  const fetcher = fetcherWith();
  const options = { bytesMax: 1024 * 1024 };
  for (const path of ['/big', '/endless']) await assert.rejects(text(fetcher, path, options), failsWith('too_large'));
});

test('silence is bounded by the deadline, before and inside the body', async () => {
  const fetcher = fetcherWith();
  for (const path of ['/silent', '/half'])
    await assert.rejects(text(fetcher, path, { timeoutMs: 60 }), failsWith('timeout'));
  const hung = fetcherWith({ resolve: () => new Promise(() => {}), connectTimeoutMs: 200 });
  await assert.rejects(text(hung, '/plain', { timeoutMs: 60 }), failsWith('timeout'));
});

test('a truncated response, a closed port and an unknown name are distinguished', async () => {
  await assert.rejects(text(fetcherWith(), '/cut'), failsWith('bad_response'));
  await assert.rejects(text(fetcherWith(), 'http://site.test:9/'), failsWith('unsafe_url'));
  await assert.rejects(text(fetcherWith(), 'http://site.test:2/'), failsWith('connect_failed'));
  const unknown = fetcherWith({ resolve: () => Promise.reject(new Error('ENOTFOUND')) });
  await assert.rejects(text(unknown, '/plain'), failsWith('dns_failed'));
});

test('a proxy named by the environment is not used', async () => {
  process.env.HTTP_PROXY = 'http://127.0.0.1:1';
  process.env.http_proxy = 'http://127.0.0.1:1';
  try {
    assert.equal(await text(fetcherWith(), '/plain'), 'hello');
  } finally {
    delete process.env.HTTP_PROXY;
    delete process.env.http_proxy;
  }
});

test('the User-Agent is honest and names the contact', async () => {
  await text(fetcherWith({ contact: 'ops@example.com' }), '/plain');
  assert.match(String(seen.at(-1)?.headers['user-agent']), /^Quarry\/[\d.]+ \(\+ops@example\.com\)$/);
});

test('a caller can give up', async () => {
  const stop = new AbortController();
  const waiting = text(fetcherWith(), '/silent', { signal: stop.signal });
  stop.abort();
  await assert.rejects(waiting, failsWith('aborted'));
});

test('a Location in raw UTF-8 leads to the page that it names, one in Latin-1 too', async () => {
  const fetcher = fetcherWith();
  for (const [location, path] of [
    ['/caf\u00c3\u00a9', '/caf%C3%A9'],
    ['/caf\u00e9', '/caf%C3%A9'],
  ] as const) {
    routes['/accent'] = (_request, response) =>
      response.socket?.end(`HTTP/1.1 302 Found\r\nLocation: ${location}\r\nContent-Length: 0\r\n\r\n`, 'latin1');
    routes[path] = (_request, response) => response.end('accented');
    const answer = await fetcher.fetch(`${base}/accent`);
    assert.deepEqual([new URL(answer.url).pathname, Buffer.from(await answer.bytes()).toString()], [path, 'accented']);
  }
});

test('an unasked 100 Continue before a response is skipped, whole or in pieces, on a connection that is used again', async () => {
  const interim = 'HTTP/1.1 100 Continue\r\nX: y\r\n\r\n';
  const whole = `${interim}${interim}HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello`;
  const sockets: Socket[] = [];
  const odd = createSocketServer((socket) => {
    sockets.push(socket);
    socket.setNoDelay(true);
    socket.on('error', () => {});
    socket.on('data', (request) => {
      if (request.toString().startsWith('GET /whole')) socket.write(whole);
      else void drip(socket, whole);
    });
  });
  const drip = async (socket: Socket, text: string): Promise<void> => {
    for (const at of text) {
      await new Promise<void>((resolve) => socket.write(at, () => resolve()));
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  await new Promise<void>((resolve) => odd.listen(0, '127.0.0.1', resolve));
  try {
    const fetcher = fetcherWith();
    const origin = `http://site.test:${(odd.address() as AddressInfo).port}`;
    for (const path of ['/whole', '/pieces', '/whole']) {
      const answer = await fetcher.fetch(origin + path);
      assert.deepEqual([answer.status, Buffer.from(await answer.bytes()).toString()], [200, 'hello']);
    }
    assert.ok(sockets.length < 3);
  } finally {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => odd.close(resolve));
  }
});

test('a redirect that is not followed keeps no connection, although its body has not ended', async () => {
  const fetcher = fetcherWith();
  const refuse = () => {
    throw new FetchError('aborted', 'refused');
  };
  for (const [path, options] of [
    ['/endless-inside', { mayFollow: () => true }],
    ['/endless-inside', {}],
    ['/endless-nowhere', {}],
    ['/endless-elsewhere', { mayFollow: refuse }],
  ] as const) {
    const closed = new Promise((resolve) =>
      server.once('connection', (socket: Socket) => socket.once('close', resolve)),
    );
    await assert.rejects(text(fetcher, path, options), FetchError);
    await closed;
  }
});
