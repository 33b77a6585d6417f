import type { TestResource, TestScope, TestUser } from '../provisioner.ts';
import type { ApiOptions, TestServer } from '../server.ts';

/** Every caller, by its name in the authorisation matrix. */
export type CallerName = (typeof users)[number] | (typeof keys)[number];

const users = ['owner', 'admin', 'member', 'viewer', 'teammate', 'outsider', 'stranger', 'sandboxed'] as const;
const keys = ['key', 'sandboxKey', 'otherKey'] as const;
export const callerNames: readonly CallerName[] = [...users, ...keys];

/** The ownership of a resource. */
export const ownerships = ['mine', 'org', 'team', 'agent', 'other-org', 'other-app', 'sandbox'] as const;
export type Ownership = (typeof ownerships)[number];

export type Tenants = Awaited<ReturnType<typeof createTenants>>;

/**
 * People and resources on both sides of every boundary:
 *
 * - `owner` (org member) owns a team and an agent; `admin`, `member`, `viewer` have these roles in the same org;
 *   `teammate` has no org and is a plain member of the owner's team; `outsider` is admin of another org of the app;
 * - `stranger` belongs to another app, `sandboxed` to a sandbox of this one;
 * - `key`, `sandboxKey`, `otherKey` are the secret keys of the app's production, of its sandbox and of the other app.
 */
export async function createTenants({ provision }: TestServer) {
  const app = await provision.app();
  const otherApp = await provision.app();
  const sandbox = await provision.sandbox(app);
  const org = await provision.org(app);
  const otherOrg = await provision.org(app);
  const people = {
    owner: await provision.user(app, { org, role: 'member' }),
    admin: await provision.user(app, { org, role: 'admin' }),
    member: await provision.user(app, { org, role: 'member' }),
    viewer: await provision.user(app, { org, role: 'viewer' }),
    teammate: await provision.user(app),
    outsider: await provision.user(app, { org: otherOrg, role: 'admin' }),
    stranger: await provision.user(otherApp),
    sandboxed: await provision.user(sandbox),
  } satisfies Record<(typeof users)[number], TestUser>;
  const team = await provision.team(app, {
    org,
    members: [
      [people.owner, 'owner'],
      [people.teammate, 'member'],
    ],
  });
  const agent = await provision.agent(app, { user: people.owner, org });

  const scopes: Record<Ownership, TestScope> = {
    ...{ mine: app, org: app, team: app, agent: app, 'other-org': app },
    ...{ 'other-app': otherApp, sandbox },
  };
  /** The owner members of a request body that creates a resource of this ownership. */
  const owners: Record<Ownership, Partial<Record<'user' | 'org' | 'team' | 'agent', TestResource>>> = {
    mine: { user: people.owner, org },
    org: { org },
    team: { team },
    agent: { agent },
    'other-org': { org: otherOrg },
    'other-app': { user: people.stranger },
    sandbox: { user: people.sandboxed },
  };
  const callers = {
    ...Object.fromEntries(users.map((name) => [name, { token: people[name].token }])),
    key: { key: app.secretKey },
    sandboxKey: { key: sandbox.secretKey },
    otherKey: { key: otherApp.secretKey },
  } as Record<CallerName, ApiOptions>;
  return { app, otherApp, sandbox, org, otherOrg, people, team, agent, scopes, owners, callers };
}
