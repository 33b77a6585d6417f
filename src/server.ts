import type { FastifyInstance } from 'fastify';
import { registerAgentRoutes } from './agents/routes.ts';
import { registerAppRoutes } from './apps/routes.ts';
import { registerAuthRoutes } from './auth/routes.ts';
import { registerAutomationRoutes } from './automations/routes.ts';
import { registerConfigRoutes } from './configs/routes.ts';
import { createDomains, type Domains } from './domains.ts';
import { registerExtractionRoutes } from './extractions/routes.ts';
import { registerFileRoutes } from './files/routes.ts';
import { registerDocs } from './http/docs.ts';
import { registerHealthRoutes } from './http/health.ts';
import { collectOpenApi, registerOpenApiRoute } from './http/openapi.ts';
import type { Api } from './http/route.ts';
import { createHttpServer } from './http/server.ts';
import { registerInstallationRoutes } from './installations/routes.ts';
import { registerKnowledgeRoutes } from './knowledge/routes.ts';
import { rewriteKvUrl } from './kv/paths.ts';
import { registerKvRoutes } from './kv/routes.ts';
import { limits } from './limits.ts';
import { registerMcpRoutes } from './mcp/routes.ts';
import { registerOrgRoutes } from './orgs/routes.ts';
import { type Services, urlHost } from './services.ts';
import { registerTeamRoutes } from './teams/routes.ts';
import { registerThreadRoutes } from './threads/routes.ts';
import { registerUserRoutes } from './users/routes.ts';

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
    rewriteUrl: rewriteKvUrl,
  });
  await collectOpenApi(fastify);
  registerHealthRoutes(api, services);
  registerOpenApiRoute(api, fastify);
  const domains = createDomains(services);
  registerRoutes(api, domains);
  const mcp = registerMcpRoutes(api, {
    fastify,
    baseUrl: services.baseUrl,
    corsOrigins: config.corsOrigins,
    readFile: domains.files.readRange,
  });
  await registerDocs(fastify);
  const { automationWork } = domains;
  Object.assign(services.tasks, automationWork.tasks);

  let closing: Promise<void> | undefined;
  const stopWork = async () => {
    mcp.stopWaiting();
    await services.streams.close();
    await automationWork.stopTicking();
  };
  return {
    fastify,
    api,
    async listen() {
      await fastify.listen({ host: config.host, port: config.port });
      const address = fastify.server.address();
      const port = typeof address === 'object' && address !== null ? address.port : config.port;
      const url = `http://${urlHost(config.host)}:${port}`;
      services.setListeningUrl(url);
      if (config.jobWorkers > 0) automationWork.startTicking();
      return url;
    },
    close() {
      closing ??= stopWork().then(() => drain(fastify));
      return closing;
    },
  };
}

/** Every route of the API, one line per domain. */
function registerRoutes(api: Api, domains: Domains): void {
  registerAppRoutes(api, domains);
  registerAuthRoutes(api, domains);
  registerOrgRoutes(api, domains);
  registerUserRoutes(api, domains);
  registerTeamRoutes(api, domains);
  registerAgentRoutes(api, domains);
  registerThreadRoutes(api, domains);
  registerInstallationRoutes(api, domains);
  registerFileRoutes(api, domains);
  registerConfigRoutes(api, domains);
  registerExtractionRoutes(api, domains);
  registerKvRoutes(api, domains);
  registerKnowledgeRoutes(api, domains);
  registerAutomationRoutes(api, domains);
}

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
