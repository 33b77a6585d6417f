import type { FastifyInstance } from 'fastify';
import type { Api } from './http/route.ts';
import { createHttpServer } from './http/server.ts';
import { limits } from './limits.ts';
import { type Services, urlHost } from './services.ts';

export type QuarryServer = {
  fastify: FastifyInstance;
  api: Api;
  /** Takes connections. Answers the URL that it listens on. */
  listen(): Promise<string>;
  /** Takes no more, finishes the requests under way within the drain time, and ends what streams are left. */
  close(): Promise<void>;
};

/** The HTTP server with every route, not listening yet. */
export async function createServer(services: Services): Promise<QuarryServer> {
  const { config, log, credentials, metrics } = services;
  const { fastify, api } = await createHttpServer({
    log,
    credentials,
    metrics,
    bodyBytesMax: config.bodyBytesMax,
    corsOrigins: config.corsOrigins,
    trustProxy: config.trustProxy,
  });
  registerRoutes(api, services);

  let closing: Promise<void> | undefined;
  return {
    fastify,
    api,
    async listen() {
      await fastify.listen({ host: config.host, port: config.port });
      const address = fastify.server.address();
      const port = typeof address === 'object' && address !== null ? address.port : config.port;
      const url = `http://${urlHost(config.host)}:${port}`;
      services.setListeningUrl(url);
      return url;
    },
    close() {
      closing ??= drain(fastify);
      return closing;
    },
  };
}

/** Every route of the API, one line per domain. */
function registerRoutes(_api: Api, _services: Services): void {}

async function drain(fastify: FastifyInstance): Promise<void> {
  // A connection that is kept alive falls idle when its last answer is out, and Node would then wait for its timeout.
  const idle = setInterval(() => fastify.server.closeIdleConnections(), idleSweepMs);
  const late = setTimeout(() => fastify.server.closeAllConnections(), limits.drainTimeoutMs);
  try {
    await fastify.close();
  } finally {
    clearInterval(idle);
    clearTimeout(late);
  }
}

const idleSweepMs = 25;
