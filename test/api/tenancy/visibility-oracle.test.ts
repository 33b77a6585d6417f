import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type Database, production } from '../../../src/db/database.ts';
import { formatId, newUuid } from '../../../src/lib/ids.ts';
import type { AgentCaller, Caller, OrgRole, Scope, TeamRole } from '../../../src/tenancy/caller.ts';
import { loadUserCaller } from '../../../src/tenancy/callers.ts';
import { agentVisible, fileGranted, inScope, ownedVisible } from '../../../src/tenancy/visible.ts';
import { createTestDatabase } from '../../support/database.ts';
import fc from '../../support/fast-check.ts';
import { modelRuns, modelTimes } from '../../support/rounds.ts';
import { type Agent, type Grant, isGranted, type Row, sees, seesAgent } from '../../support/visibility-model.ts';

/*
 * Over random tenants, each caller sees the same by the SQL conditions of src/tenancy/visible.ts and by the model of
 * test/support/visibility-model.ts, which shares no code with it.
 */

const database = await createTestDatabase();
after(() => database.drop());
const { db } = database;

const scopesCount = 3;
const orgsCount = 2;
const teamsCount = 3;
const usersCount = 5;
const agentsCount = 6;
const filesCount = 40;

/** An index into what there is, or none. */
const maybe = (count: number) => fc.option(fc.nat(count - 1), { nil: undefined, freq: 2 });
const principalTypes = ['user', 'team', 'org', 'org_role', 'agent', 'everyone'] as const;
const roles = ['admin', 'member', 'viewer'] as const;

const tenant = fc.record({
  users: fc.array(fc.record({ org: maybe(orgsCount), role: fc.constantFrom(...roles) }), arrayOfLength(usersCount)),
  teamOrgs: fc.array(maybe(orgsCount), arrayOfLength(teamsCount)),
  memberships: fc.uniqueArray(
    fc.record({
      team: fc.nat(teamsCount - 1),
      member: fc.nat(usersCount + agentsCount - 1),
      role: fc.constantFrom<TeamRole>('owner', 'admin', 'member'),
    }),
    { maxLength: 8, selector: ({ team, member }) => `${team}/${member}` },
  ),
  agents: fc.array(
    fc.record({ owner: fc.constantFrom('user', 'team', 'none'), at: fc.nat(14), org: maybe(orgsCount) }),
    arrayOfLength(agentsCount),
  ),
  files: fc.array(
    fc.record({
      org: maybe(orgsCount),
      team: maybe(teamsCount),
      user: maybe(usersCount),
      agent: maybe(agentsCount),
      grants: fc.array(
        fc.record({
          type: fc.constantFrom(...principalTypes),
          at: fc.nat(29),
          actions: fc.constantFrom(['read'], ['write'], ['read', 'write'], ['comment']),
        }),
        { maxLength: 2 },
      ),
    }),
    arrayOfLength(filesCount),
  ),
});

function arrayOfLength(length: number) {
  return { minLength: length, maxLength: length };
}

type Tenant = typeof tenant extends fc.Arbitrary<infer T> ? T : never;
type FileRow = Scope & Row & { id: string; grants: Grant[] };
type AgentRow = Scope & Agent;
type World = { callers: Caller[]; agents: AgentRow[]; files: FileRow[] };

test('the model and the SQL conditions agree on who sees what', { timeout: 600_000 * modelTimes }, async () => {
  const seen = { owned: 0, agents: 0, read: 0, write: 0, checked: 0 };
  await fc.assert(
    fc.asyncProperty(fc.array(tenant, arrayOfLength(scopesCount)), async (tenants) => {
      const world = await build(db, tenants);
      const byId = new Map(world.agents.map((agent) => [agent.id, agent]));
      const agentOf = (row: Row) => (row.agentId === null ? undefined : byId.get(row.agentId));
      for (const caller of world.callers) {
        const here = (row: Scope) => row.appId === caller.appId && row.sandboxId === caller.sandboxId;
        const compare = async (
          what: keyof typeof seen,
          rows: { id: string }[],
          rule: (row: never) => boolean,
          found: PromiseLike<{ id: string }[]>,
        ) => {
          const expected = rows.filter((row) => rule(row as never)).map(({ id }) => id);
          assert.deepEqual(
            (await found).map(({ id }) => id).sort(),
            expected.sort(),
            `${what} ${JSON.stringify(caller)}`,
          );
          seen[what] += expected.length;
          seen.checked += rows.length;
        };
        await compare(
          'agents',
          world.agents,
          (agent: AgentRow) => here(agent) && seesAgent(caller, agent),
          db<{ id: string }[]>`select a.id from agents a where ${agentVisible(db, caller, 'a')}`,
        );
        await compare(
          'owned',
          world.files,
          (file: FileRow) => here(file) && sees(caller, file, agentOf(file)),
          db<{ id: string }[]>`select f.id from files f where ${ownedVisible(db, caller, 'f')}`,
        );
        for (const action of ['read', 'write'] as const)
          await compare(
            action,
            world.files,
            (file: FileRow) => here(file) && isGranted(caller, action, file.grants, file.orgId),
            db<{ id: string }[]>`select f.id from files f
              where ${inScope(db, caller, 'f')} and ${fileGranted(db, caller, 'f', action)}`,
          );
      }
    }),
    { ...modelRuns(12), endOnFailure: true },
  );
  // A world in which nobody sees anything would agree as well.
  for (const [what, count] of Object.entries(seen)) assert.ok(count > 100, `${what}: ${count}`);
});

/** Production of an app, a sandbox of it, and another app, each with a tenant. */
async function build(sql: Database, tenants: Tenant[]): Promise<World> {
  const [first, second] = [await insertApp(sql), await insertApp(sql)];
  const sandboxId = newUuid();
  await sql`insert into sandboxes (app_id, id, name) values (${first}, ${sandboxId}, 'S')`;
  const scopes: Scope[] = [
    { appId: first, sandboxId: production },
    { appId: first, sandboxId },
    { appId: second, sandboxId: production },
  ];
  const worlds = await Promise.all(scopes.map((scope, at) => buildTenant(sql, scope, tenants[at] as Tenant)));
  return {
    callers: worlds.flatMap(({ callers }) => callers),
    agents: worlds.flatMap(({ agents }) => agents),
    files: worlds.flatMap(({ files }) => files),
  };
}

async function insertApp(sql: Database): Promise<string> {
  const [id, developerId] = [newUuid(), newUuid()];
  await sql`insert into developers (id, name) values (${developerId}, 'D')`;
  await sql`insert into apps (id, developer_id, name, capability_key)
    values (${id}, ${developerId}, 'A', ${Buffer.alloc(0)})`;
  await sql`insert into sandboxes (app_id, id, name) values (${id}, ${production}, 'P')`;
  return id;
}

async function buildTenant(sql: Database, scope: Scope, shape: Tenant): Promise<World> {
  const ids = (count: number) => Array.from({ length: count }, newUuid);
  const orgs = ids(orgsCount);
  const teams = ids(teamsCount);
  const users = ids(usersCount);
  const agentIds = ids(agentsCount);
  const { appId, sandboxId } = scope;
  const at = (list: string[], index: number | undefined) => (index === undefined ? null : (list[index] ?? null));

  await sql`insert into orgs ${sql(orgs.map((id) => ({ appId, id, sandboxId, name: 'O' })))}`;
  await sql`insert into users ${sql(
    shape.users.map(({ org, role }, index) => ({
      ...{ appId, sandboxId, id: at(users, index), orgId: at(orgs, org) },
      orgRole: org === undefined ? null : (role satisfies OrgRole),
    })),
  )}`;
  await sql`insert into teams ${sql(
    shape.teamOrgs.map((org, index) => ({
      ...{ appId, sandboxId, id: at(teams, index), name: 'T', orgId: at(orgs, org) },
    })),
  )}`;
  const agents = shape.agents.map((agent, index) => ({
    ...scope,
    id: agentIds[index] ?? '',
    orgId: at(orgs, agent.org),
    teamId: agent.owner === 'team' ? at(teams, agent.at % teamsCount) : null,
    userId: agent.owner === 'user' ? at(users, agent.at % usersCount) : null,
  }));
  await sql`insert into agents ${sql(agents.map((agent) => ({ ...agent, name: 'A' })))}`;
  const memberships = shape.memberships.map(({ team, member, role }) => ({
    ...{ appId, id: newUuid(), teamId: teams[team] ?? '', role },
    userId: member < usersCount ? at(users, member) : null,
    agentId: member < usersCount ? null : at(agentIds, member - usersCount),
  }));
  if (memberships.length > 0) await sql`insert into team_memberships ${sql(memberships)}`;
  const files = shape.files.map((file) => ({
    ...{ ...scope, id: newUuid(), orgId: at(orgs, file.org), teamId: at(teams, file.team) },
    ...{ userId: at(users, file.user), agentId: at(agentIds, file.agent) },
    grants: file.grants.map((grant) => principal(grant)).filter(isFirst),
  }));
  await sql`insert into files ${sql(
    files.map(({ grants: _grants, ...file }) => ({
      ...file,
      ...{
        filename: 'f',
        contentType: 'text/plain',
        size: 0,
        checksum: Buffer.alloc(32),
        blobKey: formatId('file', file.id),
      },
    })),
  )}`;
  const grants = files.flatMap((file) =>
    file.grants.map((grant) => ({ ...grant, actions: [...grant.actions], appId, fileId: file.id })),
  );
  for (const { actions, ...grant } of grants) await sql`insert into file_grants ${sql({ ...grant, actions })}`;

  const callers: Caller[] = [{ kind: 'server', ...scope, keyId: newUuid() }];
  for (const userId of users) {
    const caller = await loadUserCaller(sql, { ...scope, userId });
    if (caller) callers.push(caller);
  }
  for (const agent of agents) callers.push(agentCaller(scope, agent, memberships));
  return { callers, agents, files };

  function principal({ type, at: index, actions }: Tenant['files'][number]['grants'][number]): Grant {
    const lists = { user: users, team: teams, org: orgs, agent: agentIds };
    const list = type === 'org_role' || type === 'everyone' ? undefined : lists[type];
    return {
      principalType: type,
      principalId: list?.[index % list.length] ?? production,
      principalRole: type === 'org_role' ? (roles[index % 3] ?? '') : '',
      actions,
    };
  }
}

/** A file has one grant for a principal. */
function isFirst(grant: Grant, index: number, all: Grant[]): boolean {
  const key = ({ principalType, principalId, principalRole }: Grant) =>
    `${principalType}/${principalId}/${principalRole}`;
  return all.findIndex((other) => key(other) === key(grant)) === index;
}

/** An agent acts for the team that owns it and for the teams that it is a member of. */
function agentCaller(
  scope: Scope,
  agent: AgentRow,
  memberships: { teamId: string; agentId: string | null; role: TeamRole }[],
): AgentCaller {
  const teams = new Map<string, TeamRole>();
  if (agent.teamId !== null) teams.set(agent.teamId, 'owner');
  for (const { teamId, agentId, role } of memberships) if (agentId === agent.id) teams.set(teamId, role);
  return { kind: 'agent', ...scope, agentId: agent.id, orgId: agent.orgId ?? undefined, teams };
}
