import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { createAgentService } from '../agents/service.ts';
import { createAppService } from '../apps/service.ts';
import { createAudit } from '../audit/domain.ts';
import type { AuditLog } from '../audit/log.ts';
import { createAutomations } from '../automations/domain.ts';
import { ExpressionError } from '../automations/engine/expressions.ts';
import type { CellMembership } from '../cells/placement.ts';
import { createConfigService } from '../configs/service.ts';
import { createConsole } from '../console/domain.ts';
import { parseAllowList } from '../content/fetch/allow-list.ts';
import type { PictureRequest } from '../content/picture/picture.ts';
import { createCrawls } from '../crawls/domain.ts';
import type { Domain, Tasks } from '../domain.ts';
import { createErasures } from '../erasures/domain.ts';
import { openRegister, registerDirectory } from '../erasures/register.ts';
import { createEvents } from '../events/domain.ts';
import { emitEvent } from '../events/emit.ts';
import { createExtractions } from '../extractions/domain.ts';
import { deleteEndedExtractions } from '../extractions/store.ts';
import { createFiles } from '../files/domain.ts';
import { createGroupService } from '../groups/service.ts';
import { createIdempotencySweep } from '../idempotency/sweep.ts';
import { createIdentityService } from '../identity/service.ts';
import { createExternalSignIn } from '../identity/sign-in.ts';
import { createInstallationService } from '../installations/service.ts';
import type { Recurring } from '../jobs/workers.ts';
import { createKnowledge } from '../knowledge/domain.ts';
import type { OpenCache } from '../knowledge/index/cache.ts';
import { createKv } from '../kv/domain.ts';
import { createLedgers } from '../ledger/domain.ts';
import { createLedgerService } from '../ledger/service.ts';
import { newUuid } from '../lib/ids.ts';
import { limits } from '../lib/limits.ts';
import { version } from '../lib/version.ts';
import { createLlm } from '../llm/service.ts';
import { createRunTools } from '../mcp/run-tools.ts';
import { createModels } from '../models/domain.ts';
import { observeModelCalls } from '../monitoring/model-calls.ts';
import { createSetAsideJobService } from '../monitoring/service.ts';
import { observeDeliveries, observeSearches } from '../monitoring/traffic.ts';
import { createOauth } from '../oauth/domain.ts';
import { createResponseSweep } from '../openai/responses/domain.ts';
import { createOrgService } from '../orgs/service.ts';
import { createAuth } from '../sign-in/domain.ts';
import { createTeamService } from '../teams/service.ts';
import { Capabilities, SignedLinks } from '../tenancy/capability.ts';
import { createThreadService } from '../threads/service.ts';
import { createUploads } from '../uploads/domain.ts';
import { createUsage } from '../usage/domain.ts';
import { createUserService } from '../users/service.ts';
import { createWebhooks } from '../webhooks/domain.ts';
import { programHosts } from '../webhooks/hosts.ts';
import { createNodeDomains } from './node-domains.ts';
import type { Services } from './services.ts';

export type Domains = ReturnType<typeof createDomains>;

/** Background work: the jobs of every domain, and recurring jobs. */
export type BackgroundWork = {
  tasks: Tasks;
  recurring: Recurring[];
  ticker: ReturnType<typeof createAutomations>['ticker'];
  urgentWork: () => Promise<void> | undefined;
};

/**
 * Creates every domain with its dependencies. Routes and background work share the services.
 * @param openApi the API of this process, for tools that runs call
 * @param cells undefined: every app is in this database
 */
export function createDomains(
  services: Services,
  openApi: () => Promise<FastifyInstance>,
  audit?: AuditLog,
  cells?: CellMembership,
) {
  const {
    db,
    directory,
    secrets,
    clock,
    log,
    blobs,
    baseUrl,
    contentUrl,
    config,
    parser,
    fetcher,
    resolve,
    streams,
    credentials,
    sessions,
  } = services;
  const signedLinks = new SignedLinks(secrets);
  const capabilities = new Capabilities({ db, secrets });
  const ledger = createLedgers({ db, secrets, clock });
  const base = {
    db,
    directory,
    secrets,
    clock,
    blobs,
    baseUrl,
    contentUrl,
    signedLinks,
    capabilities,
    streams,
    credentials,
    ledger: ledger.service,
  };
  const fileDeps = {
    ...base,
    log,
    uploadBytesMax: config.uploadBytesMax,
    deletedBlobDays: config.deletedBlobDays,
    ...(cells === undefined ? {} : { ownsApp: cells.ownsApp }),
    pictureCacheBytesMax: config.pictureCacheMb * 1024 * 1024,
    makePicture: (bytes: Uint8Array, request: PictureRequest, lane: string) => parser.picture(bytes, request, { lane }),
    imageSize: (bytes: Uint8Array, lane: string) => parser.imageSize(bytes, limits.imageSizeTimeoutMs, { lane }),
  };
  const kvLimits = {
    keyBytesMax: config.kvKeyBytesMax,
    valueBytesMax: config.kvValueBytesMax,
    userBytesMax: config.kvUserBytesMax,
  };

  const { expressions, timeouts } = services.process;
  const llm = createLlm({
    ...{ db, secrets, clock, config, log, resolve, checkSchema: expressions.checkSchema },
    slots: services.process.llmSlots,
    vectorSlots: services.process.vectorSlots,
    settlements: services.settlements,
    allow: parseAllowList(config.fetchAllow),
    observe: observeModelCalls(services.metrics),
    emitReached: (tx, { payload, ...scope }) => emitEvent(tx, { ...scope, name: 'model_budget.reached', payload }),
  });
  const files = createFiles(fileDeps);
  const uploads = createUploads({
    ...fileDeps,
    session: services.session,
    resumableBytesMax: config.resumableBytesMax,
    unfinishedUploadsMax: config.unfinishedUploadsMax,
    uploadHours: config.uploadHours,
  });
  const users = createUserService(base);
  const auth = createAuth({ ...base, users });
  const oauth = createOauth({ ...base, fetcher, mcpOauth: config.mcpOauth, takeTurn: auth.service.takeTurn });
  const extractions = createExtractions({
    db,
    blobs,
    parser,
    files: files.service,
    fetcher,
    log,
    llm,
    schemaChecker: {
      check: expressions.checkSchema,
      isRefusal: (error) => error instanceof ExpressionError,
    },
    contextTokens: config.llmContextTokens,
    requestMsMax: config.llmRequestSeconds * 1000,
    tokensMax: config.llmRunTokens,
  });
  const knowledge = createKnowledge({
    ...base,
    log,
    parser,
    embedder: services.process.embedder,
    openEmbedder: llm.openEmbedder,
    openReranker: llm.openReranker,
    language: config.searchLanguage,
    fetcher,
    scratchDirectory: join(config.dataDir, 'repositories'),
    dataDir: config.dataDir,
    openCache: openCacheOf(services),
    learnMemoryMb: config.learnMemoryMb,
    queryEmbeddingMs: config.embedQueryMs,
    reranker: services.process.reranker,
    rerankPassages: config.rerankPassages,
    observeSearch: observeSearches(services.metrics),
    bodyBytesMax: config.bodyBytesMax,
  });
  const { inbound } = knowledge.service;
  const crawls = createCrawls({
    db,
    directory,
    workSlots: services.process.crawlSlots,
    bodies: services.process.crawlBodies,
    log,
    clock,
    parser,
    fetcher,
    renderer: services.renderer,
    concurrency: config.crawlConcurrency,
    hostConcurrency: config.crawlHostConcurrency,
    hostDelayMs: config.crawlHostDelayMs,
    sinks: new Map(Object.entries({ ...extractions.crawlSinks, ...knowledge.crawlSinks })),
  });
  const auditing = createAudit({ db, clock, audit, ledger: ledger.service, daysKept: config.auditDays });
  const usage = createUsage(base);
  const consoleSessions = createConsole({
    ...{ ...base, auth: auth.service, users, sessions },
    placement: cells?.placement,
  });
  const kv = createKv({ db, limits: kvLimits, streamSecondsMax: config.streamSeconds });
  const nodeDomains = createNodeDomains({
    ...fileDeps,
    kv: kv.service,
    files: files.service,
    extractions: extractions.service,
    knowledge: knowledge.service,
    runTools: createRunTools({ openApi, baseUrl, readFile: files.service.readRange }),
    parser,
    fetcher,
  });
  const automations = createAutomations(
    {
      ...{ ...services, ledger: ledger.service, version, expressions, llm, runTokensMax: config.llmRunTokens },
      deleteExtractions: deleteEndedExtractions,
      hosts: programHosts,
    },
    nodeDomains,
  );

  const models = createModels({
    ...{ ...base, fetcher, operator: llm.operator, daysKept: config.modelCallDays },
    onChanged: knowledge.service.embedding.recheck,
    tryModel: llm.tryModel,
  });
  const { wakes } = automations.service;
  const webhooks = createWebhooks({
    ...{ ...base, fetcher, timeouts, observe: observeDeliveries(services.metrics) },
    ...{ offerRun: wakes.offer, programs: wakes },
  });
  const events = createEvents({ ...base, streamSecondsMax: config.streamSeconds, onLogged: webhooks.onLogged });
  const erasures = createErasures({
    ...base,
    documents: knowledge.service.erased,
    services: {
      embedderUrl: config.embedder === 'openai' ? config.embedUrl : undefined,
      tracesUrl: config.otlpEndpoint,
    },
    retention: config,
    register: openRegister(registerDirectory(config), secrets),
  });
  const sweep = createIdempotencySweep(base);
  const responses = createResponseSweep(base);
  const all: Domain[] = [
    sweep,
    files,
    uploads,
    auth,
    oauth,
    extractions,
    knowledge,
    crawls,
    auditing,
    ledger,
    usage,
    consoleSessions,
    automations,
    kv,
    events,
    webhooks,
    models,
    erasures,
    responses,
  ];
  for (const domain of all)
    for (const [kind, source] of Object.entries(domain.streams ?? {})) streams.register(kind, source);
  const work: BackgroundWork = {
    tasks: Object.assign({}, ...all.map((domain) => domain.tasks)),
    recurring: all.flatMap((domain) => domain.recurring ?? []),
    ticker: automations.ticker,
    urgentWork: automations.ticker.waking,
  };
  return {
    ...base,
    work,
    llm,
    contextTokens: config.llmContextTokens,
    requestMsMax: config.llmRequestSeconds * 1000,
    apps: createAppService({
      ...base,
      placement: cells?.placement,
      disconnectAssistants: oauth.service.disconnectAll,
    }),
    usage: usage.service,
    setAsideJobs: createSetAsideJobService(base),
    auditing: auditing.service,
    ledgers: createLedgerService({ db, secrets, ledger: ledger.service, audit }),
    users,
    identity: createIdentityService({ ...base, fetcher }),
    externalSignIn: createExternalSignIn({ ...base, fetcher, keys: services.issuerKeys }),
    auth: auth.service,
    oauth: oauth.service,
    signsInAssistants: oauth.service.isOn,
    consoleSessions: consoleSessions.service,
    orgs: createOrgService({ db, files: files.service }),
    teams: createTeamService(base),
    groups: createGroupService(base),
    agents: createAgentService({ db, files: files.service }),
    threads: createThreadService({ ...base, onMessage: inbound.takeMessage }),
    installations: createInstallationService({ ...base, onInstalled: inbound.install }),
    knowledge: knowledge.service,
    inboundUrl: (row: { appId: string; id: string }) => inbound.urlOfInstallation(row.appId, row.id),
    files: files.service,
    uploads: uploads.service,
    erasures: erasures.service,
    resumableBytesMax: config.resumableBytesMax,
    configs: createConfigService({ ...base, files: files.service }),
    extractions: extractions.service,
    kv: kv.service,
    kvWatch: kv.watch,
    webhooks: webhooks.service,
    ...models.service,
    events: events.service,
    ...automations.service,
  };
}

/** The cache of search. Its keys are numbers of one database, so each cell has names of its own. */
function openCacheOf({ process, db, directory }: Services): OpenCache {
  if (db === directory) return process.openCache;
  const cell = newUuid();
  return <V>(name: string) => process.openCache<V>(`${cell}/${name}`);
}
