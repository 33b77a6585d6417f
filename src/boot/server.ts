import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { createServer as createNetServer, type Server as NetServer } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { registerAgentRoutes } from '../agents/routes.ts';
import { registerAnswerRoutes } from '../answers/routes.ts';
import { registerAppRoutes } from '../apps/routes.ts';
import { AuditLog } from '../audit/log.ts';
import { registerAuditRoutes } from '../audit/routes.ts';
import { registerApprovalRoutes } from '../automations/approvals/routes.ts';
import { registerAutomationRoutes } from '../automations/routes.ts';
import type { CellMembership } from '../cells/placement.ts';
import { runsJobs } from '../config/config.ts';
import { registerConfigRoutes } from '../configs/routes.ts';
import { registerConsoleRoutes } from '../console/routes.ts';
import type { SignInLink } from '../console/sign-in-links.ts';
import { registerConsole } from '../console/static.ts';
import { registerErasureRoutes } from '../erasures/routes.ts';
import { registerEventRoutes } from '../events/routes.ts';
import { webhookMessages } from '../events/schema.ts';
import { registerExtractionRoutes } from '../extractions/routes.ts';
import { registerFileRoutes } from '../files/routes.ts';
import { registerGroupRoutes } from '../groups/routes.ts';
import type { Front } from '../http/front.ts';
import { registerHealthRoutes } from '../http/health.ts';
import { RateLimiter } from '../http/limits/rate-limits.ts';
import { MetricsServer } from '../http/metrics-server.ts';
import { registerDocs } from '../http/openapi/docs.ts';
import { collectOpenApi, registerOpenApiRoute } from '../http/openapi/openapi.ts';
import { findSite } from '../http/openapi/site.ts';
import type { Api } from '../http/route/route.ts';
import { allowedMethods, createHttpServer } from '../http/server.ts';
import { createIdempotency } from '../idempotency/service.ts';
import { registerIdentityRoutes } from '../identity/routes.ts';
import { registerInstallationRoutes } from '../installations/routes.ts';
import { registerKnowledgeRoutes } from '../knowledge/routes.ts';
import { registerKvCollectionRoutes } from '../kv/collection-routes.ts';
import { rewriteKvUrl } from '../kv/paths.ts';
import { registerKvRoutes } from '../kv/routes.ts';
import { registerLedgerRoutes } from '../ledger/routes.ts';
import { limits } from '../lib/limits.ts';
import { registerMcpRoutes } from '../mcp/routes.ts';
import { registerBudgetRoutes } from '../models/budget-routes.ts';
import { registerModelRoutes } from '../models/routes.ts';
import { registerMonitoring, registerParserMetrics } from '../monitoring/register.ts';
import { registerSetAsideJobRoutes } from '../monitoring/routes.ts';
import { oauthErrors } from '../oauth/protocol.ts';
import { registerOauthRoutes } from '../oauth/routes.ts';
import { openAiErrors } from '../openai/errors.ts';
import { registerOpenAiRoutes } from '../openai/routes.ts';
import { registerOrgRoutes } from '../orgs/routes.ts';
import { registerAuthRoutes } from '../sign-in/routes.ts';
import { registerTeamRoutes } from '../teams/routes.ts';
import { registerThreadRoutes } from '../threads/routes.ts';
import { registerUploadRoutes } from '../uploads/routes.ts';
import { registerUsageRoutes } from '../usage/routes.ts';
import { registerUserRoutes } from '../users/routes.ts';
import { registerWebhookRoutes } from '../webhooks/routes.ts';
import { type BackgroundWork, createDomains, type Domains } from './domains.ts';
import type { ProcessParts } from './process-parts.ts';
import { type Services, urlHost } from './services.ts';

export type QuarryServer = {
  fastify: FastifyInstance;
  api: Api;
  /** What the job workers of the process run. */
  work: BackgroundWork;
  /** Creates a code that signs the holder of a developer token in to the console, once. */
  createSignInLink(developerToken: string): Promise<SignInLink | undefined>;
  /** Starts to accept connections. Returns the server's URL. */
  listen(): Promise<string>;
  /** Ends what requests wait for: streams, and tools, which respond with what there is. */
  stopWork(): Promise<void>;
  /**
   * Stops accepting connections, finishes requests in progress within the drain time, and ends the remaining streams.
   */
  close(): Promise<void>;
};

type ServerOptions = {
  /** The folder of the built documentation. */
  site?: string | undefined;
  /** Hands requests to the cells of their apps. */
  front?: Front | undefined;
  /** Undefined: every app is in this database. */
  cells?: CellMembership | undefined;
};

/** Creates the HTTP server with the routes for the process's role. It does not listen yet. */
export async function createServer(
  services: Services,
  { site, front, cells }: ServerOptions = { site: findSite() },
): Promise<QuarryServer> {
  const { config, log } = services;
  // The routes of a further cell get their requests from the server of the process.
  const isHome = services.db === services.directory;
  const { connections, metrics: metricsOfProcess } = services.process;
  const http = createHttpParts(services, cells);
  const { audit, rateLimiter } = http;
  const { fastify, api } = await createHttpServer({ ...http, connections, front, hasMoved: cells?.hasMoved });
  // A worker serves only health and metrics.
  const servesApi = config.role !== 'worker';
  if (servesApi && isHome) collectOpenApi(fastify, api, webhookMessages);
  registerHealthRoutes(api, {
    ...services,
    metrics: metricsOfProcess,
    metricsToken: config.metricsToken,
    metricsElsewhere: config.metricsPort !== undefined,
  });
  registerMonitoring({ ...services, databasePoolSize: config.databasePoolSize });
  if (isHome) registerProcessMetrics(services.process, fastify);
  const inner = createInnerApi(http, (innerApi) => registerRoutes(innerApi, domains));
  const domains: Domains = createDomains(services, servesApi ? async () => fastify : inner.open, audit, cells);
  const mcp = servesApi
    ? await registerServed(services, { fastify, api }, domains, isHome ? { site } : undefined)
    : undefined;
  const metricsServer =
    config.metricsPort === undefined || !isHome
      ? undefined
      : new MetricsServer({ metrics: metricsOfProcess, connections, token: config.metricsToken, log });
  let closing: Promise<void> | undefined;
  let others: NetServer[] = [];
  const stopWork = async () => {
    for (const other of others) other.close();
    mcp?.stopWaiting();
    await services.streams.close();
    await domains.work.ticker.stopTicking();
  };
  return {
    fastify,
    api,
    work: domains.work,
    stopWork,
    createSignInLink: domains.consoleSessions.createSignInLink,
    async listen() {
      const wanted = servesApi ? config.port : config.workerPort;
      others = await listenOn(fastify, config.host, wanted);
      const port = portOf(fastify, wanted);
      const url = `http://${urlHost(config.host)}:${port}`;
      if (config.metricsPort !== undefined)
        log.info(
          { port: await metricsServer?.listen(config.host, config.metricsPort) },
          'metrics listen on a separate port',
        );
      services.setListeningUrl(url);
      if (runsJobs(config)) domains.work.ticker.startTicking();
      return url;
    },
    close() {
      closing ??= stopWork()
        .then(() => front?.settled())
        .then(() => Promise.all([drain(fastify), inner.close()]))
        .then(() => Promise.all([rateLimiter.close(), audit.close(), metricsServer?.close()]))
        .then(() => {});
      return closing;
    },
  };
}

/**
 * Registers what a server of the API serves: the routes, the MCP endpoint and, unless they are of a further cell, the
 * reference, the documentation and the console. Returns how the waits of tools are ended.
 */
async function registerServed(
  services: Services,
  { fastify, api }: Pick<QuarryServer, 'fastify' | 'api'>,
  domains: Domains,
  home: { site: string | undefined } | undefined,
): Promise<{ stopWaiting(): void }> {
  if (home !== undefined) registerOpenApiRoute(api, fastify);
  registerRoutes(api, domains);
  const mcp = registerMcpRoutes(api, {
    fastify,
    baseUrl: services.baseUrl,
    corsOrigins: services.config.corsOrigins,
    readFile: domains.files.readRange,
    waits: services.process.mcpWaits,
  });
  if (home !== undefined) {
    await registerDocs(fastify, home.site);
    const isRoute = (url: string) => allowedMethods(api, url).length > 0;
    await registerConsole(fastify, { ...services, isRoute });
  }
  return mcp;
}

/** A worker serves no API. The tools that its runs call reach one without a listener, created when first needed. */
function createInnerApi(http: ReturnType<typeof createHttpParts>, register: (api: Api) => void) {
  let opened: Promise<FastifyInstance> | undefined;
  return {
    open(): Promise<FastifyInstance> {
      opened ??= createHttpServer(http).then(async ({ fastify, api }) => {
        register(api);
        await fastify.ready();
        return fastify;
      });
      return opened;
    },
    close: async () => (await opened)?.close(),
  };
}

/** What the HTTP server consists of, apart from its connections and routes. */
function createHttpParts(services: Services, cells: CellMembership | undefined) {
  const { config, log, credentials, sessions, metrics, process } = services;
  const rateLimiter = createRateLimiter(services);
  const audit = createAuditLog(services, cells);
  const idempotency = createIdempotency({
    ...services,
    recordsMax: config.idempotencyRecordsMax,
    bytesMax: config.idempotencyMb * 1024 * 1024,
    uploadBytesMax: config.uploadBytesMax,
  });
  return {
    ...{ log, credentials, sessions, metrics, rateLimiter, audit, idempotency, intake: process.intake },
    bodyBytesMax: config.bodyBytesMax,
    // The console shows files from the content origin.
    corsOrigins:
      config.contentOrigin === undefined
        ? config.corsOrigins
        : [...config.corsOrigins, new URL(services.baseUrl()).origin],
    contentOrigin: config.contentOrigin,
    trustProxy: config.trustProxy,
    errorDialects: [openAiErrors, oauthErrors],
    rewriteUrl: rewriteKvUrl,
  };
}

/**
 * Listens on every address of a host: `localhost` usually has one of IPv4 and one of IPv6. Returns the servers of the
 * further addresses, whose connections belong to the one HTTP server, which limits and drains them.
 */
async function listenOn(fastify: FastifyInstance, host: string, port: number): Promise<NetServer[]> {
  const named = host === 'localhost' ? await lookup(host, { all: true }) : [];
  const [first = host, ...others] = new Set(named.map(({ address }) => address));
  await fastify.listen({ host: first, port });
  return Promise.all(
    others.map(async (address) => {
      const server = createNetServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
        fastify.server.emit('connection', socket),
      );
      // An address that cannot be used here is no reason to serve none.
      await once(server.listen(portOf(fastify, port), address), 'listening').catch(() => {});
      return server;
    }),
  );
}

function portOf({ server }: FastifyInstance, wanted: number): number {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : wanted;
}

function registerProcessMetrics({ metrics, intake, connections, parser }: ProcessParts, fastify: FastifyInstance) {
  metrics.gauge('quarry_http_body_bytes', 'Bytes of request bodies in progress', () => intake.heldBytes);
  metrics.gauge('quarry_http_requests_in_progress', 'Requests in progress', () => connections.requestsInProgress);
  metrics.gauge('quarry_http_connections', 'Open client connections', () => countConnections(fastify));
  registerParserMetrics(metrics, parser);
}

function countConnections(fastify: FastifyInstance): Promise<number> {
  return new Promise((resolve) => {
    fastify.server.getConnections((error, count) => resolve(error ? Number.NaN : count));
  });
}

function createAuditLog(
  { config, db, directory, clock, log, metrics }: Services,
  cells: CellMembership | undefined,
): AuditLog {
  const dropped = metrics.counter('quarry_audit_dropped_total', 'Audit entries dropped because the queue was full');
  const audit = new AuditLog({
    db,
    directory,
    databaseElsewhere: cells?.databaseElsewhere,
    clock,
    log,
    keep: config.audit,
    onDropped: (count) => dropped.inc(count),
  });
  metrics.gauge('quarry_audit_waiting', 'Audit entries not yet written', () => audit.waitingCount);
  return audit;
}

function createRateLimiter({ config, db, clock, log, metrics }: Services): RateLimiter {
  const refused = metrics.counter('quarry_rate_limited_total', 'Requests rejected by rate limits', ['group']);
  return new RateLimiter({
    db,
    clock,
    log,
    ratesPerMinute: {
      reads: config.rateReads,
      writes: config.rateWrites,
      uploads: config.rateUploads,
      extractions: config.rateExtractions,
      search: config.rateSearch,
      invocations: config.rateInvocations,
    },
    onRefused: (group) => refused.inc({ group }),
  });
}

/** Registers every route of the API, one line per domain. */
function registerRoutes(api: Api, domains: Domains): void {
  registerAppRoutes(api, domains);
  registerUsageRoutes(api, domains);
  registerSetAsideJobRoutes(api, domains);
  registerAuditRoutes(api, domains);
  registerLedgerRoutes(api, domains);
  registerAuthRoutes(api, domains);
  registerIdentityRoutes(api, domains);
  registerOauthRoutes(api, domains);
  registerOrgRoutes(api, domains);
  registerUserRoutes(api, domains);
  registerTeamRoutes(api, domains);
  registerGroupRoutes(api, domains);
  registerErasureRoutes(api, domains);
  registerAgentRoutes(api, domains);
  registerThreadRoutes(api, domains);
  registerInstallationRoutes(api, domains);
  registerFileRoutes(api, domains);
  registerUploadRoutes(api, domains);
  registerConfigRoutes(api, domains);
  registerExtractionRoutes(api, domains);
  registerKvRoutes(api, domains);
  registerKvCollectionRoutes(api, domains);
  registerWebhookRoutes(api, domains);
  registerModelRoutes(api, domains);
  registerBudgetRoutes(api, domains);
  registerKnowledgeRoutes(api, domains);
  registerAutomationRoutes(api, domains);
  registerApprovalRoutes(api, domains);
  registerEventRoutes(api, domains);
  registerAnswerRoutes(api, domains);
  registerOpenAiRoutes(api, domains);
  registerConsoleRoutes(api, domains);
}

async function drain(fastify: FastifyInstance): Promise<void> {
  // A keep-alive connection becomes idle after its last response, and Node would wait until it times out.
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
