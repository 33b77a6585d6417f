import packageFile from '../package.json' with { type: 'json' };
import { createAgentService } from './agents/service.ts';
import { createAppService } from './apps/service.ts';
import { createAuthService } from './auth/service.ts';
import { createAutomations } from './automations/automations.ts';
import { createConfigService } from './configs/service.ts';
import { createExtractionService } from './extractions/service.ts';
import { createFileService } from './files/service.ts';
import { createSweepTask, sweepJob } from './files/sweep.ts';
import { createInstallationService } from './installations/service.ts';
import { createKvService } from './kv/service.ts';
import { createNodeDomains } from './node-domains.ts';
import { createOrgService } from './orgs/service.ts';
import type { Services } from './services.ts';
import { createTeamService } from './teams/service.ts';
import { Capabilities, SignedLinks } from './tenancy/capability.ts';
import { createThreadService } from './threads/service.ts';
import { createUserService } from './users/service.ts';

const { version } = packageFile;

export type Domains = ReturnType<typeof createDomains>;

/** Each domain's service, given what it needs of what the server stands on. Routes and background work share them. */
export function createDomains(services: Services) {
  const { db, secrets, clock, log, blobs, baseUrl, config, parser } = services;
  const signedLinks = new SignedLinks(secrets);
  const capabilities = new Capabilities({ db, secrets });
  const base = { db, secrets, clock, blobs, baseUrl, signedLinks, capabilities };
  const fileDeps = {
    ...base,
    log,
    uploadBytesMax: config.uploadBytesMax,
    imageSize: (bytes: Uint8Array) => parser.imageSize(bytes),
  };
  const files = createFileService(fileDeps);
  const kvLimits = {
    keyBytesMax: config.kvKeyBytesMax,
    valueBytesMax: config.kvValueBytesMax,
    userBytesMax: config.kvUserBytesMax,
  };
  services.tasks[sweepJob.task] = createSweepTask({ db, blobs });
  services.recurring.push(sweepJob);
  const users = createUserService(base);
  return {
    ...base,
    apps: createAppService(base),
    users,
    auth: createAuthService({ ...base, users }),
    orgs: createOrgService({ db, files }),
    teams: createTeamService(base),
    agents: createAgentService({ db, files }),
    threads: createThreadService(base),
    installations: createInstallationService(base),
    files,
    configs: createConfigService(base),
    extractions: createExtractionService({ db, blobs, parser, files }),
    kv: createKvService({ db, limits: kvLimits }),
    ...createAutomations({ ...services, version }, createNodeDomains({ ...fileDeps, parser }, { kvLimits })),
  };
}
