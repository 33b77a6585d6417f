import packageFile from '../package.json' with { type: 'json' };
import { createAgentService } from './agents/service.ts';
import { createAppService } from './apps/service.ts';
import { createAuditService } from './audit/service.ts';
import { auditSweepJob, createAuditSweepTask } from './audit/sweep.ts';
import { createAuthService } from './auth/service.ts';
import { authSweepJob, createAuthSweepTask } from './auth/sweep.ts';
import { createAutomations } from './automations/automations.ts';
import { createConfigService } from './configs/service.ts';
import { consoleSweepJob, createConsoleService, createConsoleSweepTask } from './console/service.ts';
import { openEmbedder } from './content/embed/open.ts';
import { HostGate } from './crawls/host-gate.ts';
import { crawlJob, crawlTask } from './crawls/jobs.ts';
import type { CrawlSink } from './crawls/types.ts';
import { createExtractionService } from './extractions/service.ts';
import { extractionStream } from './extractions/stream.ts';
import { extractionConsumer, extractionSink, extractionTopic } from './extractions/workflow.ts';
import { createFileService } from './files/service.ts';
import { createSweepTask, sweepJob } from './files/sweep.ts';
import type { AuditLog } from './http/audit.ts';
import { createInstallationService } from './installations/service.ts';
import { knowledgeConsumer } from './knowledge/ingestion/crawl-sink.ts';
import { createKnowledge } from './knowledge/knowledge.ts';
import { createKvService } from './kv/service.ts';
import { limits } from './limits.ts';
import { createNodeDomains } from './node-domains.ts';
import { createOrgService } from './orgs/service.ts';
import type { Services } from './services.ts';
import { createTeamService } from './teams/service.ts';
import { Capabilities, SignedLinks } from './tenancy/capability.ts';
import { createThreadService } from './threads/service.ts';
import { createUsageService } from './usage/service.ts';
import { createUsageSweepTask, usageSweepJob } from './usage/sweep.ts';
import { createUserService } from './users/service.ts';

const { version } = packageFile;

export type Domains = ReturnType<typeof createDomains>;

/** Each domain's service, given what it needs of what the server stands on. Routes and background work share them. */
export function createDomains(services: Services, audit?: AuditLog) {
  const { db, secrets, clock, log, blobs, baseUrl, config, parser, fetcher, streams, credentials, sessions } = services;
  const signedLinks = new SignedLinks(secrets);
  const capabilities = new Capabilities({ db, secrets });
  const base = { db, secrets, clock, blobs, baseUrl, signedLinks, capabilities, streams, credentials };
  const fileDeps = {
    ...base,
    log,
    uploadBytesMax: config.uploadBytesMax,
    imageSize: (bytes: Uint8Array) =>
      parser.imageSize(bytes, { lane: 'images', signal: AbortSignal.timeout(limits.imageSizeTimeoutMs) }),
  };
  const files = createFileService(fileDeps);
  services.tasks[sweepJob.task] = createSweepTask({ db, blobs });
  services.tasks[authSweepJob.task] = createAuthSweepTask({ db, clock });
  services.tasks[auditSweepJob.task] = createAuditSweepTask({ db, clock, daysKept: config.auditDays });
  services.tasks[usageSweepJob.task] = createUsageSweepTask({ db });
  services.tasks[consoleSweepJob.task] = createConsoleSweepTask({ db, clock });
  services.recurring.push(sweepJob, authSweepJob, usageSweepJob, auditSweepJob, consoleSweepJob);
  const kvLimits = {
    keyBytesMax: config.kvKeyBytesMax,
    valueBytesMax: config.kvValueBytesMax,
    userBytesMax: config.kvUserBytesMax,
  };
  const users = createUserService(base);
  const auth = createAuthService({ ...base, users });
  streams.register(extractionTopic, extractionStream(base));
  const knowledge = createKnowledge({
    ...base,
    log,
    parser,
    embedder: openEmbedder(config),
    language: config.searchLanguage,
    fetcher,
    cacheBytesMax: config.searchCacheMb * 1024 * 1024,
    bodyBytesMax: config.bodyBytesMax,
  });
  registerCrawls(services, [knowledgeConsumer, knowledge.work.sink as CrawlSink]);
  Object.assign(services.tasks, knowledge.tasks);
  services.recurring.push(...knowledge.recurring);
  return {
    ...base,
    apps: createAppService(base),
    usage: createUsageService(base),
    auditing: createAuditService({ db, audit }),
    users,
    auth,
    consoleSessions: createConsoleService({ ...base, auth, users, sessions }),
    orgs: createOrgService({ db, files }),
    teams: createTeamService(base),
    agents: createAgentService({ db, files }),
    threads: createThreadService(base),
    installations: createInstallationService({ ...base, onInstalled: knowledge.inbound.install }),
    knowledge,
    inboundUrl: (row: { appId: string; id: string }) => knowledge.inbound.urlOfInstallation(row.appId, row.id),
    files,
    configs: createConfigService(base),
    extractions: createExtractionService({ db, blobs, parser, files, fetcher }),
    kv: createKvService({ db, limits: kvLimits }),
    ...createAutomations(
      { ...services, version },
      createNodeDomains({ ...fileDeps, parser, fetcher }, { kvLimits, knowledge }),
    ),
  };
}

/** The job that crawls, for everything that crawls work for. */
function registerCrawls(services: Services, ...others: [consumer: string, sink: CrawlSink][]): void {
  const { tasks, config, log, db, clock, blobs, parser, fetcher } = services;
  const gate = new HostGate({ concurrencyMax: config.crawlHostConcurrency, delayMs: config.crawlHostDelayMs });
  const sinks = new Map<string, CrawlSink>([[extractionConsumer, extractionSink({ blobs }) as CrawlSink], ...others]);
  const concurrency = config.crawlConcurrency;
  tasks[crawlTask] = crawlJob({ db, log, clock, parser, fetcher, gate, sinks, concurrency });
}
