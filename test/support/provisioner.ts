import { randomBytes } from 'node:crypto';
import { type Database, production } from '../../src/db/database.ts';
import type { Clock } from '../../src/lib/clock.ts';
import { formatId, newUuid } from '../../src/lib/ids.ts';
import { mintAccessToken } from '../../src/tenancy/access-tokens.ts';
import type { OrgRole, TeamRole } from '../../src/tenancy/caller.ts';
import { digest, generateCredential, type Secrets } from '../../src/tenancy/secrets.ts';

/** `id` as clients see it, `uuid` as the row has it. */
export type TestResource = { id: string; uuid: string };

/** Production of one app, or one of its sandboxes: the scope of everything created below. */
export type TestScope = {
  app: TestResource;
  /** The nil uuid in production. */
  sandboxUuid: string;
  secretKey: string;
  publishableKey: string;
};

export type TestApp = TestScope & { developerToken: string; developerUuid: string };
type TestSandbox = TestScope & { sandbox: TestResource };
export type TestUser = TestResource & { email: string; token: string };

/** Two orgs of one app with users of every role, a user without an org, and a stranger in another app. */
export type TestTenants = {
  app: TestApp;
  org: TestResource;
  admin: TestUser;
  member: TestUser;
  viewer: TestUser;
  otherOrg: TestResource;
  otherUser: TestUser;
  loner: TestUser;
  otherApp: TestApp;
  stranger: TestUser;
};

/** Creates tenants directly in the database, with working credentials, for tests that are not about provisioning. */
export class Provisioner {
  readonly #directory: { db: Database; cell: string } | undefined;
  readonly #db: Database;
  readonly #secrets: Secrets;
  readonly #clock: Clock;

  /** @param directory the database of developers, if the apps are in a cell */
  constructor(db: Database, secrets: Secrets, clock: Clock, directory?: { db: Database; cell: string }) {
    this.#directory = directory;
    this.#db = db;
    this.#secrets = secrets;
    this.#clock = clock;
  }

  async world(): Promise<TestTenants> {
    const app = await this.app();
    const org = await this.org(app);
    const otherOrg = await this.org(app);
    const otherApp = await this.app();
    return {
      app,
      org,
      admin: await this.user(app, { org, role: 'admin' }),
      member: await this.user(app, { org, role: 'member' }),
      viewer: await this.user(app, { org, role: 'viewer' }),
      otherOrg,
      otherUser: await this.user(app, { org: otherOrg, role: 'admin' }),
      loner: await this.user(app),
      otherApp,
      stranger: await this.user(otherApp),
    };
  }

  /** A new developer with an app, and one key of each type. */
  async app(): Promise<TestApp> {
    const db = this.#db;
    const developerUuid = newUuid();
    const developerToken = generateCredential('dvt');
    const app = resource('app');
    await db`insert into developers (id, name) values (${developerUuid}, 'Test developer')`;
    const directory = this.#directory?.db ?? db;
    if (directory !== db)
      await directory`insert into developers (id, name) values (${developerUuid}, 'Test developer')`;
    await directory`insert into developer_tokens (digest, id, developer_id)
      values (${digest(developerToken)}, ${newUuid()}, ${developerUuid})`;
    await db`insert into apps (id, developer_id, name, capability_key)
      values (${app.uuid}, ${developerUuid}, 'Test app', ${this.#secrets.wrap(randomBytes(32))})`;
    await db`insert into sandboxes (app_id, id, name) values (${app.uuid}, ${production}, 'Production')`;
    if (this.#directory !== undefined)
      await directory`insert into cell_apps (app_id, cell, developer_id, name, created_at, updated_at)
        values (${app.uuid}, ${this.#directory.cell}, ${developerUuid}, 'Test app', now(), now())`;
    return { ...(await this.#scope(app, production)), developerToken, developerUuid };
  }

  async sandbox(app: TestApp): Promise<TestSandbox> {
    const sandbox = resource('sandbox');
    await this.#db`insert into sandboxes (app_id, id, name) values (${app.app.uuid}, ${sandbox.uuid}, 'Test sandbox')`;
    return { ...(await this.#scope(app.app, sandbox.uuid)), sandbox };
  }

  async org(scope: TestScope): Promise<TestResource> {
    const org = resource('org');
    await this.#db`insert into orgs (app_id, id, sandbox_id, name)
      values (${scope.app.uuid}, ${org.uuid}, ${scope.sandboxUuid}, 'Test org')`;
    return org;
  }

  /** A user who is signed in. `token` is an access token that is valid for an hour. */
  async user(scope: TestScope, options: { org?: TestResource; role?: OrgRole } = {}): Promise<TestUser> {
    const user = resource('user');
    const email = `${user.uuid}@example.test`;
    await this.#db`insert into users (app_id, id, sandbox_id, email, name, org_id, org_role)
      values (${scope.app.uuid}, ${user.uuid}, ${scope.sandboxUuid}, ${email}, 'Test user',
        ${options.org?.uuid ?? null}, ${options.org ? (options.role ?? 'member') : null})`;
    const claims = { appId: scope.app.uuid, sandboxId: scope.sandboxUuid, userId: user.uuid };
    return { ...user, email, token: await mintAccessToken(this.#secrets, claims, this.#clock.now()) };
  }

  async team(
    scope: TestScope,
    options: { org?: TestResource; members?: [TestUser, TeamRole][] } = {},
  ): Promise<TestResource> {
    const team = resource('team');
    await this.#db`insert into teams (app_id, id, sandbox_id, name, org_id)
      values (${scope.app.uuid}, ${team.uuid}, ${scope.sandboxUuid}, 'Test team', ${options.org?.uuid ?? null})`;
    for (const [user, role] of options.members ?? [])
      await this.#db`insert into team_memberships (app_id, id, team_id, user_id, role)
        values (${scope.app.uuid}, ${newUuid()}, ${team.uuid}, ${user.uuid}, ${role})`;
    return team;
  }

  async agent(
    scope: TestScope,
    owner: { org?: TestResource; team?: TestResource; user?: TestResource } = {},
  ): Promise<TestResource> {
    const agent = resource('agent');
    await this.#db`insert into agents (app_id, id, sandbox_id, name, org_id, team_id, user_id)
      values (${scope.app.uuid}, ${agent.uuid}, ${scope.sandboxUuid}, 'Test agent',
        ${owner.org?.uuid ?? null}, ${owner.team?.uuid ?? null}, ${owner.user?.uuid ?? null})`;
    return agent;
  }

  async #scope(app: TestResource, sandboxUuid: string): Promise<TestScope> {
    return {
      app,
      sandboxUuid,
      secretKey: await this.#key(app, sandboxUuid, 'secret'),
      publishableKey: await this.#key(app, sandboxUuid, 'publishable'),
    };
  }

  async #key(app: TestResource, sandboxUuid: string, type: 'secret' | 'publishable'): Promise<string> {
    const key = generateCredential(type === 'secret' ? 'sk' : 'pk');
    await this.#db`insert into api_keys (app_id, id, sandbox_id, type, digest, hint)
      values (${app.uuid}, ${newUuid()}, ${sandboxUuid}, ${type}, ${digest(key)}, ${key.slice(0, 8)})`;
    return key;
  }
}

function resource(kind: 'app' | 'sandbox' | 'org' | 'user' | 'team' | 'agent'): TestResource {
  const uuid = newUuid();
  return { id: formatId(kind, uuid), uuid };
}
