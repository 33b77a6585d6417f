import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import type { DatabaseTarget } from '../../src/db/address.ts';
import { socketPath } from '../../src/db/address.ts';

type Link = { client: Socket; upstream: Socket; isForgotten: boolean };

/**
 * A network in front of a database that can fall silent: it accepts connections and delivers nothing, without
 * closing.
 */
export class SilentProxy {
  readonly url: string;
  readonly #server: ReturnType<typeof createServer>;
  readonly #links: Set<Link>;
  #silences = { requests: false, responses: false };

  private constructor(url: string, server: ReturnType<typeof createServer>, links: Set<Link>) {
    this.url = url;
    this.#server = server;
    this.#links = links;
  }

  static async open(target: DatabaseTarget): Promise<SilentProxy> {
    const links = new Set<Link>();
    const server = createServer((client) => {
      const upstream = typeof target === 'string' ? connectTo(target) : connect(socketPath(target));
      const link = { client, upstream, isForgotten: false };
      links.add(link);
      const end = (): void => {
        links.delete(link);
        client.destroy();
        upstream.destroy();
      };
      for (const socket of [client, upstream]) socket.on('error', end);
      client.on('close', end);
      proxy.#apply(link);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const name = typeof target === 'string' ? new URL(target) : undefined;
    const user = typeof target === 'string' ? `${name?.username}:${name?.password}` : target.username;
    const database = typeof target === 'string' ? name?.pathname.slice(1) : target.database;
    const proxy = new SilentProxy(`postgres://${user}@127.0.0.1:${port}/${database}`, server, links);
    return proxy;
  }

  /** Delivers nothing, in one direction or both, until `speak` is called. New connections are accepted. */
  silence({ requests = true, responses = true } = {}): void {
    this.#silences = { requests, responses };
    for (const link of this.#links) this.#apply(link);
  }

  /** Delivers what was held back, and everything after it. */
  speak(): void {
    this.silence({ requests: false, responses: false });
  }

  /** Silences the existing connections forever. */
  forget(): void {
    for (const link of this.#links) {
      link.isForgotten = true;
      this.#apply(link);
    }
  }

  /** Breaks all connections. */
  break(): void {
    for (const { client } of this.#links) client.destroy();
  }

  async close(): Promise<void> {
    this.break();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #apply({ client, upstream, isForgotten }: Link): void {
    client.unpipe().pause();
    upstream.unpipe().pause();
    if (isForgotten) return;
    if (!this.#silences.requests) client.pipe(upstream);
    if (!this.#silences.responses) upstream.pipe(client);
  }
}

function connectTo(url: string): Socket {
  const { hostname, port } = new URL(url);
  return connect(Number(port || 5432), hostname);
}
