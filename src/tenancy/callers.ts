import { type Db, nobody, type Statement } from '../db/database.ts';
import type { AgentCaller, Caller, OrgRole, Scope, TeamRole, UserCaller } from './caller.ts';
import { type Owned, sandboxIsThere } from './visible.ts';

/** Loads users, agents and owners as callers, with their current rights. Nothing else loads them. */

export async function loadUserCaller(db: Db, scope: Scope & { userId: string }): Promise<UserCaller | undefined> {
  return (await loadUserRights(db, scope))?.caller;
}

/** The user, and the session epoch that their credentials must have. */
export async function loadUserRights(
  db: Db,
  scope: Scope & { userId: string },
): Promise<{ caller: UserCaller; sessionEpoch: number } | undefined> {
  const [row] = await db<RightsRow[]>`
    select ${rightsColumns(db, db`${scope.appId}`)} from users u
    where u.app_id = ${scope.appId} and u.sandbox_id = ${scope.sandboxId} and u.id = ${scope.userId}
      and ${sandboxIsThere(db, 'u.app_id', 'u.sandbox_id')}`;
  return row && { caller: userCaller(scope, row), sessionEpoch: row.sessionEpoch };
}

/** Many users with one query, in their order; undefined where there is none. */
export async function loadUserCallers(
  db: Db,
  users: readonly (Scope & { userId: string })[],
): Promise<(UserCaller | undefined)[]> {
  const callers: (UserCaller | undefined)[] = users.map(() => undefined);
  const rows = await db<(RightsRow & { place: number })[]>`
    select g.place, ${rightsColumns(db, db`g.app_id`)} from
      unnest(${users.map((user) => user.appId)}::uuid[], ${users.map((user) => user.sandboxId)}::uuid[],
        ${users.map((user) => user.userId)}::uuid[]) with ordinality g (app_id, sandbox_id, user_id, place)
      join users u on u.app_id = g.app_id and u.sandbox_id = g.sandbox_id and u.id = g.user_id
    where ${sandboxIsThere(db, 'u.app_id', 'u.sandbox_id')}`;
  for (const row of rows) {
    const user = users[row.place - 1];
    if (user) callers[row.place - 1] = userCaller(user, row);
  }
  return callers;
}

type RightsRow = {
  orgId: string | null;
  orgRole: OrgRole | null;
  sessionEpoch: number;
  teams: Record<string, TeamRole> | null;
};

/** SQL: the columns of a RightsRow of a user `u` of the app. */
const rightsColumns = (db: Db, app: Statement) => db`
  u.org_id, u.org_role, u.session_epoch, (select jsonb_object_agg(m.team_id, m.role) from team_memberships m
    where m.app_id = ${app} and m.user_id = u.id) as teams`;

function userCaller({ appId, sandboxId, userId }: Scope & { userId: string }, row: RightsRow): UserCaller {
  return {
    kind: 'user',
    appId,
    sandboxId,
    userId,
    orgId: row.orgId ?? undefined,
    orgRole: row.orgId === null ? undefined : (row.orgRole ?? 'member'),
    teams: new Map(Object.entries(row.teams ?? {})),
  };
}

/** The agent with its teams; undefined if it does not exist. */
export async function loadAgentCaller(db: Db, scope: Scope & { agentId: string }): Promise<AgentCaller | undefined> {
  const { appId, sandboxId, agentId } = scope;
  const [row] = await db<{ orgId: string | null; teamId: string | null; teams: Record<string, TeamRole> | null }[]>`
    select a.org_id, a.team_id,
      (select jsonb_object_agg(m.team_id, m.role) from team_memberships m
        where m.app_id = ${appId} and m.agent_id = a.id) as teams
    from agents a where a.app_id = ${appId} and a.sandbox_id = ${sandboxId} and a.id = ${agentId}
      and ${sandboxIsThere(db, 'a.app_id', 'a.sandbox_id')}`;
  if (!row) return undefined;
  const teams = new Map(Object.entries(row.teams ?? {}));
  if (row.teamId !== null) teams.set(row.teamId, 'owner');
  return { kind: 'agent', appId, sandboxId, agentId, orgId: row.orgId ?? undefined, teams };
}

/** An owner as a caller: a user or agent as itself; a team or an org as an agent with no other memberships. */
export async function loadOwnerCaller(db: Db, owned: Scope & Owned): Promise<Caller | undefined> {
  const { appId, sandboxId, orgId, teamId, userId, agentId } = owned;
  if (userId !== null) return loadUserCaller(db, { appId, sandboxId, userId });
  if (agentId !== null) return loadAgentCaller(db, { appId, sandboxId, agentId });
  const nothingElse = { kind: 'agent', appId, sandboxId, agentId: nobody, orgId: undefined, teams: new Map() } as const;
  if (teamId !== null) return { ...nothingElse, teams: new Map([[teamId, 'member']]) };
  return { ...nothingElse, orgId: orgId ?? undefined };
}
