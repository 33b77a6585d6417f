import { randomBytes } from 'node:crypto';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { type Duplex, pipeline } from 'node:stream';
import { lazyPackage } from '../../lib/lazy-package.ts';
import type { Fetcher } from '../fetch/guarded-fetch.ts';

const http = lazyPackage<typeof import('node:http')>('node:http');

/** The maximum number of connections from all pages to the proxy itself. */
const socketsMax = 1_024;
const headersTimeoutMs = 10_000;

/** The limits of one page: bytes in both directions, and connections to hosts. */
type PassageBounds = { bytesMax: number; connectionsMax: number };

/** One page's access to the network: a credential that ends with the page, and what the page has used. */
export type Passage = {
  username: string;
  password: string;
  /** Whether the page was refused more bytes or connections. */
  isExceeded(): boolean;
  /** Ends every connection of the page. */
  close(): void;
};

type Visit = PassageBounds & {
  lane: string;
  bytes: number;
  connections: number;
  isExceeded: boolean;
  end: AbortController;
};

/**
 * The renderer's only route to the network. Each connection of a page goes through the guarded fetcher: its host is
 * resolved here, its address is checked and pinned, and the app waits for its turn.
 */
export class ForwardProxy {
  readonly #fetcher: Fetcher;
  readonly #server: Server;
  readonly #visits = new Map<string, Visit>();

  private constructor(fetcher: Fetcher) {
    this.#fetcher = fetcher;
    this.#server = http().createServer({ headersTimeout: headersTimeoutMs });
    this.#server.maxConnections = socketsMax;
    this.#server.on('connect', (request: IncomingMessage, client: Duplex, head: Buffer) => {
      client.on('error', () => {});
      this.#tunnel(request, client, head).catch(() => refuse(client, '502 Bad Gateway'));
    });
    this.#server.on('request', (request, response) => {
      this.#forward(request, response).catch(() => refuseRequest(response, 502));
    });
  }

  /** @param host an address of this machine that the renderer can reach */
  static async start(fetcher: Fetcher, host: string): Promise<ForwardProxy> {
    const proxy = new ForwardProxy(fetcher);
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once('error', reject);
      proxy.#server.listen(0, host, resolve);
    });
    return proxy;
  }

  get url(): string {
    const { address, family, port } = this.#server.address() as AddressInfo;
    return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
  }

  /** Admits one page of an app. */
  open(lane: string, bounds: PassageBounds): Passage {
    const [username, password] = [randomBytes(8).toString('hex'), randomBytes(24).toString('hex')];
    const credential = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
    const { bytesMax, connectionsMax } = bounds;
    const used = { bytes: 0, connections: 0, isExceeded: false };
    const visit: Visit = { lane, bytesMax, connectionsMax, ...used, end: new AbortController() };
    this.#visits.set(credential, visit);
    return {
      username,
      password,
      isExceeded: () => visit.isExceeded,
      close: () => {
        this.#visits.delete(credential);
        visit.end.abort();
      },
    };
  }

  async close(): Promise<void> {
    for (const { end } of this.#visits.values()) end.abort();
    this.#visits.clear();
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  #visitOf({ headers }: IncomingMessage): Visit | undefined {
    return this.#visits.get(headers['proxy-authorization'] ?? '');
  }

  /** Tunnels HTTPS and WebSockets: bytes are passed on unread. */
  async #tunnel(request: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    const visit = this.#visitOf(request);
    if (visit === undefined) return refuse(client, '407 Proxy Authentication Required', challenge);
    const socket = await this.#connect(visit, request.url ?? '');
    if (client.destroyed) return void socket.destroy();
    client.on('data', (chunk: Buffer) => count(visit, chunk.length));
    pipeline(client, socket, client, () => client.destroy());
    client.write('HTTP/1.1 200 Connection established\r\n\r\n');
    if (head.length > 0) socket.write(head);
  }

  /** Forwards plain HTTP: one request on a separate connection. */
  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const visit = this.#visitOf(request);
    if (visit === undefined) return refuseRequest(response, 407);
    const url = URL.parse(request.url ?? '');
    if (url?.protocol !== 'http:') return refuseRequest(response, 400);
    const socket = await this.#connect(visit, `${url.hostname}:${url.port || 80}`);
    if (response.destroyed) return void socket.destroy();
    const upstream = http().request({
      createConnection: () => socket,
      method: request.method,
      path: url.pathname + url.search,
      headers: { ...endToEndHeaders(request.headers), host: url.host, connection: 'close' },
    });
    // A response cannot be passed to a page that has closed its connection: the pipeline would throw.
    response.once('close', () => upstream.destroy());
    const answered = new Promise<void>((resolve, reject) => {
      // A 101 response has no other event. Once there is a response, the connection may close before the page has
      // read it.
      const fail = () => reject(new Error('The host closed the connection.'));
      upstream.once('close', fail);
      upstream.on('error', reject);
      upstream.once('response', (answer) => {
        upstream.off('close', fail);
        try {
          response.writeHead(answer.statusCode ?? 502, endToEndHeaders(answer.headers));
          pipeline(answer, response, () => resolve());
        } catch (error) {
          // A status that HTTP does not define, such as 000.
          upstream.destroy();
          reject(error);
        }
      });
    });
    pipeline(request, upstream, () => {});
    await answered;
  }

  async #connect(visit: Visit, authority: string): Promise<Socket> {
    visit.connections += 1;
    if (visit.connections > visit.connectionsMax) visit.isExceeded = true;
    if (visit.isExceeded) throw new Error('The page exceeded its limit of network traffic.');
    const socket = await this.#fetcher.connect(authority, { lane: visit.lane, signal: visit.end.signal });
    return socket.on('data', (chunk: Buffer) => count(visit, chunk.length));
  }
}

function count(visit: Visit, bytes: number): void {
  visit.bytes += bytes;
  if (visit.bytes <= visit.bytesMax) return;
  visit.isExceeded = true;
  visit.end.abort();
}

const challenge = { 'proxy-authenticate': 'Basic realm="Quarry"' };
const hopHeaders = ['connection', 'keep-alive', 'proxy-authorization', 'proxy-connection', 'te', 'trailer', 'upgrade'];

/** Removes the hop-by-hop headers. */
function endToEndHeaders(headers: IncomingMessage['headers']): IncomingMessage['headers'] {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => name !== 'transfer-encoding' && !hopHeaders.includes(name)),
  );
}

function refuse(client: Duplex, status: string, headers: Record<string, string> = {}): void {
  const lines = Object.entries({ connection: 'close', 'content-length': '0', ...headers });
  client.end(`HTTP/1.1 ${status}\r\n${lines.map((line) => `${line.join(': ')}\r\n`).join('')}\r\n`);
}

function refuseRequest(response: ServerResponse, status: number): void {
  if (response.headersSent) response.destroy();
  else response.writeHead(status, { connection: 'close', ...(status === 407 ? challenge : {}) }).end();
}
