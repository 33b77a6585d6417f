/*
 * Triggers of teams: teams_grants deletes the grants to the team.
 * Triggers of team_memberships: team_memberships_changed notifies every process of changed rights.
 */
import type { Db } from '../db/database.ts';
import { readWithTotal } from '../db/pages.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { Caller, Scope, TeamRole } from '../tenancy/caller.ts';
import { inScope, teamVisible } from '../tenancy/visible.ts';

export type TeamRow = {
  appId: string;
  id: string;
  sandboxId: string;
  name: string;
  description: string | null;
  orgId: string | null;
  metadata: Record<string, unknown>;
  createdAt: Date;
  updatedAt: Date;
};

export type MembershipRow = {
  appId: string;
  id: string;
  teamId: string;
  userId: string | null;
  userEmail: string | null;
  userName: string | null;
  agentId: string | null;
  agentName: string | null;
  agentLookupKey: string | null;
  role: TeamRole;
  createdAt: Date;
  updatedAt: Date;
};

type NewTeam = {
  id: string;
  name: string;
  description: string | null;
  orgId: string | null;
  metadata: Record<string, unknown>;
};

export async function insertTeam(db: Db, scope: Scope, team: NewTeam): Promise<TeamRow> {
  return db<[TeamRow]>`
    insert into teams (app_id, sandbox_id, id, name, description, org_id, metadata)
    values (${scope.appId}, ${scope.sandboxId}, ${team.id}, ${team.name}, ${team.description}, ${team.orgId},
      ${db.json(team.metadata as never)}) returning *`.first();
}

export async function findTeam(db: Db, caller: Caller, id: string): Promise<TeamRow | undefined> {
  return db<TeamRow[]>`select t.* from teams t where t.id = ${id} and ${teamVisible(db, caller, 't')}`.first();
}

export async function listTeams(
  db: Db,
  caller: Caller,
  page: PageRequest,
  filter: { search?: string | undefined; joinedOnly: boolean },
): Promise<[TeamRow[], number]> {
  const search = filter.search ?? null;
  const joined = filter.joinedOnly && caller.kind === 'user' ? [...caller.teams.keys()] : null;
  const where = db`${teamVisible(db, caller, 't')}
    and (${search}::text is null or position(lower(${search}) in lower(t.name || ' ' || coalesce(t.description, ''))) > 0)
    and (${joined}::uuid[] is null or t.id = any(${joined}::uuid[]))`;
  return readWithTotal(
    db<TeamRow[]>`select t.* from teams t where ${where}
      order by t.created_at desc, t.id desc limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from teams t where ${where}`,
  );
}

export async function updateTeam(
  db: Db,
  scope: Scope,
  id: string,
  change: {
    name?: string | undefined;
    description?: string | undefined;
    metadata?: Record<string, unknown> | undefined;
  },
): Promise<TeamRow | undefined> {
  return db<TeamRow[]>`
    update teams t set name = coalesce(${change.name ?? null}, t.name),
      description = coalesce(${change.description ?? null}, t.description),
      metadata = coalesce(${change.metadata ? db.json(change.metadata as never) : null}::jsonb, t.metadata),
      updated_at = now()
    where ${inScope(db, scope, 't')} and t.id = ${id} returning t.*`.first();
}

const withMember = (db: Db) => db`
  select m.*, u.email as user_email, u.name as user_name, a.name as agent_name, a.lookup_key as agent_lookup_key
  from team_memberships m
  left join users u on u.app_id = m.app_id and u.id = m.user_id
  left join agents a on a.app_id = m.app_id and a.id = m.agent_id`;

export async function insertMembership(
  db: Db,
  appId: string,
  member: { id: string; teamId: string; userId: string | null; agentId: string | null; role: TeamRole },
): Promise<void> {
  await db`insert into team_memberships (app_id, id, team_id, user_id, agent_id, role)
    values (${appId}, ${member.id}, ${member.teamId}, ${member.userId}, ${member.agentId}, ${member.role})`;
}

/** Finds a membership of the team by its own id, its user or its agent. */
export async function findMembership(db: Db, appId: string, teamId: string, anyId: string) {
  return db<MembershipRow[]>`${withMember(db)}
    where m.app_id = ${appId} and m.team_id = ${teamId}
      and (m.id = ${anyId} or m.user_id = ${anyId} or m.agent_id = ${anyId})`.first();
}

export async function listMemberships(
  db: Db,
  appId: string,
  teamId: string,
  page: PageRequest,
): Promise<[MembershipRow[], number]> {
  return readWithTotal(
    db<MembershipRow[]>`${withMember(db)} where m.app_id = ${appId} and m.team_id = ${teamId}
      order by m.created_at desc, m.id desc limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from team_memberships where app_id = ${appId} and team_id = ${teamId}`,
  );
}

export async function updateMembership(db: Db, appId: string, id: string, role: TeamRole): Promise<void> {
  await db`update team_memberships set role = ${role}, updated_at = now() where app_id = ${appId} and id = ${id}`;
}

export async function deleteMembership(db: Db, appId: string, id: string): Promise<void> {
  await db`delete from team_memberships where app_id = ${appId} and id = ${id}`;
}
