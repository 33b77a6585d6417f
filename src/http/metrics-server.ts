import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { lazyPackage } from '../lib/lazy-package.ts';
import type { Logger } from '../lib/log.ts';
import { mayReadMetrics } from './health.ts';
import type { Connections } from './limits/connections.ts';
import type { Metrics } from './metrics.ts';

const http = lazyPackage<typeof import('node:http')>('node:http');

type MetricsServerOptions = {
  metrics: Metrics;
  connections: Connections;
  token: string | undefined;
  log: Logger;
};

/** Serves `/metrics` on a separate port, for a network that clients cannot reach. Every other path is 404. */
export class MetricsServer {
  readonly #server: Server;

  constructor({ metrics, connections, token, log }: MetricsServerOptions) {
    this.#server = http().createServer({ requestTimeout: 10_000 }, async (request, response) => {
      response.setHeader('x-content-type-options', 'nosniff').setHeader('cache-control', 'no-store');
      if (request.method !== 'GET' || request.url?.split('?', 1)[0] !== '/metrics') {
        response.writeHead(404).end('Only /metrics is served here.\n');
        return;
      }
      if (!mayReadMetrics(token, request.headers.authorization)) {
        response.writeHead(401).end('Send the bearer token from QUARRY_METRICS_TOKEN.\n');
        return;
      }
      try {
        const text = await metrics.text();
        response.writeHead(200, { 'content-type': metrics.registry.contentType }).end(text);
      } catch (error) {
        log.error({ err: error }, 'The metrics could not be collected');
        response.writeHead(500).end();
      }
    });
    connections.guard(this.#server);
  }

  async listen(host: string, port: number): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject).listen(port, host, resolve);
    });
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
