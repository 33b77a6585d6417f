import { createAgentService } from '../../agents/service.ts';
import { createApps } from '../../apps/domain.ts';
import type { AppPlacement } from '../../apps/service.ts';
import { createConfigService } from '../../configs/service.ts';
import { createConsole } from '../../console/domain.ts';
import type { FileService } from '../../files/service.ts';
import { createGroupService } from '../../groups/service.ts';
import { createIdentityService } from '../../identity/service.ts';
import { createExternalSignIn } from '../../identity/sign-in.ts';
import { createOauth } from '../../oauth/domain.ts';
import { createOrgService } from '../../orgs/service.ts';
import { createAuth } from '../../sign-in/domain.ts';
import { createTeamService } from '../../teams/service.ts';
import { createUserService } from '../../users/service.ts';
import type { Services } from '../services.ts';
import type { Base, DomainGroup } from './base.ts';

/** Who calls: users and their sign-in, assistants, organisations, teams, groups and agents, and the apps themselves. */
export function createPeople(services: Services, base: Base, files: FileService, placement: AppPlacement | undefined) {
  const { db, sessions, fetcher, config } = services;
  const users = createUserService(base);
  const auth = createAuth({ ...base, users });
  const oauth = createOauth({ ...base, fetcher, mcpOauth: config.mcpOauth, takeTurn: auth.service.takeTurn });
  const consoleSessions = createConsole({ ...base, auth: auth.service, users, sessions, placement });
  const apps = createApps({ ...base, placement, disconnectAssistants: oauth.service.disconnectAll });
  return {
    domains: [auth, oauth, consoleSessions, apps],
    services: {
      users,
      auth: auth.service,
      oauth: oauth.service,
      signsInAssistants: oauth.service.isOn,
      consoleSessions: consoleSessions.service,
      identity: createIdentityService({ ...base, fetcher }),
      externalSignIn: createExternalSignIn({ ...base, fetcher, keys: services.issuerKeys }),
      apps: apps.service,
      orgs: createOrgService({ db, files }),
      teams: createTeamService(base),
      groups: createGroupService(base),
      agents: createAgentService({ db, files }),
      configs: createConfigService({ ...base, files }),
    },
  } satisfies DomainGroup;
}
