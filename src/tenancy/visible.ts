import { type Db, type Identifier, nobody, type Statement } from '../db/database.ts';
import { type AgentCaller, type Caller, canSeeWholeApp, type UserCaller } from './caller.ts';

/*
 * The rules of visibility as SQL conditions, which are part of every query, and the rules of change as functions of a
 * row that the caller sees. test/support/visibility-model.ts states the same independently.
 */

/** The owner columns of every tenant resource. An individual owner (team, user, agent) takes precedence over the org. */
export type Owned = {
  orgId: string | null;
  teamId: string | null;
  userId: string | null;
  agentId: string | null;
};

/** The owners of the agent that owns a row, if one does. */
export type AgentOwners = { id: string; orgId: string | null; teamId: string | null; userId: string | null };

export type Grant = {
  principalType: 'user' | 'team' | 'org' | 'org_role' | 'agent' | 'everyone' | 'group';
  principalId: string;
  principalRole: string;
  actions: readonly string[];
};

/** The kind of change. `delete` requires a higher team or org role than `update` and create. */
export type Change = 'update' | 'delete';

/** An org admin may see and delete every source of their organisation. */
export function administersOrgOf(caller: Caller, row: { orgId: string | null }): boolean {
  return caller.kind === 'user' && caller.orgRole === 'admin' && row.orgId !== null && row.orgId === caller.orgId;
}

/** Whether the caller may make this change. `agent` are the owners of the agent that owns the row, if one does. */
export function mayChangeOwned(caller: Caller, row: Owned, change: Change, agent?: AgentOwners): boolean {
  if (canSeeWholeApp(caller)) return true;
  if (caller.kind === 'agent') return isInReach(caller, row, agent);
  if (row.userId === caller.userId) return true;
  const teamRole = row.teamId === null ? undefined : caller.teams.get(row.teamId);
  if (teamRole !== undefined && (change === 'update' || teamRole !== 'member')) return true;
  if (row.agentId !== null && agent !== undefined) return mayChangeOwned(caller, { ...agent, agentId: null }, change);
  if (!isOrgLevel(row) || row.orgId !== caller.orgId) return false;
  return caller.orgRole === 'admin' || (caller.orgRole === 'member' && change === 'update');
}

/** An agent may change what it sees. */
function isInReach(caller: AgentCaller, row: Owned, agent: AgentOwners | undefined): boolean {
  if (row.agentId === caller.agentId || (row.teamId !== null && caller.teams.has(row.teamId))) return true;
  if (row.agentId !== null && agent !== undefined) return isInReach(caller, { ...agent, agentId: null }, undefined);
  return isOrgLevel(row) && row.orgId === caller.orgId;
}

function isOrgLevel(row: Owned): boolean {
  return row.orgId !== null && row.teamId === null && row.userId === null && row.agentId === null;
}

type Fragment = Statement;

/** SQL: the sandbox that these columns name was not deleted. Its rows may still be there. */
export function sandboxIsThere(db: Db, appColumn: string, sandboxColumn: string): Fragment {
  return db`exists (select from sandboxes b where b.app_id = ${db(appColumn)} and b.id = ${db(sandboxColumn)} and b.removed_at is null)`;
}

/** SQL: the row is in the caller's app and sandbox. Every tenant query includes this. */
export function inScope(db: Db, caller: { appId: string; sandboxId: string }, alias: string): Fragment {
  return db`${db(`${alias}.app_id`)} = ${caller.appId} and ${db(`${alias}.sandbox_id`)} = ${caller.sandboxId}`;
}

/** Returns the ids of those rows that exist. The rows belong to any apps. */
export async function filterExisting(
  db: Db,
  table: 'extractions' | 'automation_runs',
  rows: readonly { appId: string; id: string }[],
): Promise<string[]> {
  const found = await db<{ id: string }[]>`
    select r.id from unnest(${rows.map(({ appId }) => appId)}::uuid[], ${rows.map(({ id }) => id)}::uuid[]) as given (app_id, id)
      join ${db(table)} r on r.app_id = given.app_id and r.id = given.id`;
  return found.map(({ id }) => id);
}

/** SQL: the caller sees the row by its owner columns (`org_id`, `team_id`, `user_id`, `agent_id`). */
export function ownedVisible(db: Db, caller: Caller, alias: string): Fragment {
  if (canSeeWholeApp(caller)) return inScope(db, caller, alias);
  const column = (name: string) => db(`${alias}.${name}`);
  return db`${inScope(db, caller, alias)} and (
    ${directlyOwned(db, caller, column)}
    or ${column('agent_id')} in (select seen.id from agents seen where ${agentVisible(db, caller, 'seen')})
    or (${column('org_id')} = ${caller.orgId ?? null}
      and ${column('team_id')} is null and ${column('user_id')} is null and ${column('agent_id')} is null))`;
}

/** SQL: the caller sees the agent. */
export function agentVisible(db: Db, caller: Caller, alias: string): Fragment {
  if (canSeeWholeApp(caller)) return inScope(db, caller, alias);
  const column = (name: string) => db(`${alias}.${name}`);
  const self =
    caller.kind === 'agent' ? db`${column('id')} = ${caller.agentId}` : db`${column('user_id')} = ${caller.userId}`;
  return db`${inScope(db, caller, alias)} and (${self}
    or ${column('team_id')} = any(${[...caller.teams.keys()]}::uuid[])
    or (${column('org_id')} = ${caller.orgId ?? null} and ${column('team_id')} is null and ${column('user_id')} is null))`;
}

/** SQL: the caller sees the run, as its invoker or through its automation's owner. `alias` is the automation_runs row. */
export function runVisible(db: Db, caller: Caller, alias: string): Fragment {
  const invoked = caller.kind === 'user' ? db`${db(`${alias}.invoked_by_user_id`)} = ${caller.userId}` : db`false`;
  return db`${inScope(db, caller, alias)} and (${invoked} or ${ownedVisible(db, caller, alias)})`;
}

/** SQL: a grant on the file allows the caller this action; `write` implies `read`. `alias` is the files row. */
export function fileGranted(db: Db, caller: Caller, alias: string, action: 'read' | 'write'): Fragment {
  if (canSeeWholeApp(caller)) return db`true`;
  const actions = action === 'read' ? ['read', 'write'] : ['write'];
  const self = caller.kind === 'user' ? caller.userId : caller.agentId;
  const role = caller.kind === 'user' && caller.orgId !== undefined ? (caller.orgRole ?? null) : null;
  return db`exists (select 1 from file_grants g
    where g.app_id = ${db(`${alias}.app_id`)} and g.file_id = ${db(`${alias}.id`)} and g.actions && ${actions}::text[] and (
      g.principal_type = 'everyone'
      or (g.principal_type = ${caller.kind} and g.principal_id = ${self})
      or (g.principal_type = 'team' and g.principal_id = any(${[...caller.teams.keys()]}::uuid[]))
      or (g.principal_type = 'org' and g.principal_id = ${caller.orgId ?? null})
      or (g.principal_type = 'org_role' and g.principal_role = ${role} and ${db(`${alias}.org_id`)} = ${caller.orgId ?? null})))`;
}

/**
 * SQL: the caller may answer the approval, or sees it because they see the whole app. Memberships are read from their
 * tables, not from the caller, which is cached: they count at this moment.
 */
export function approvalVisible(db: Db, caller: Caller, alias: string): Fragment {
  if (canSeeWholeApp(caller)) return inScope(db, caller, alias);
  if (caller.kind !== 'user') return db`false`;
  const { appId, userId } = caller;
  const column = (name: string) => db(`${alias}.${name}`);
  return db`${inScope(db, caller, alias)} and ${column('excluded_user_id')} is distinct from ${userId}
    and ${userId} <> all(${column('excluded_users')}) and (
    ${userId} = any(${column('users')})
    or exists (select 1 from team_memberships m
      where m.app_id = ${appId} and m.user_id = ${userId} and m.team_id = any(${column('teams')}))
    or exists (select 1 from users u where u.app_id = ${appId} and u.id = ${userId} and u.org_id = ${column('org_id')}
      and u.org_role = any(${column('roles')})))`;
}

/** SQL: the caller sees the user: themselves, users in their org, users in their teams. */
export function userVisible(db: Db, caller: Caller, alias: string): Fragment {
  if (canSeeWholeApp(caller)) return inScope(db, caller, alias);
  const id = db(`${alias}.id`);
  const self = caller.kind === 'user' ? db`${id} = ${caller.userId}` : db`false`;
  return db`${inScope(db, caller, alias)} and (${self} or ${db(`${alias}.org_id`)} = ${caller.orgId ?? null}
    or ${id} in (select m.user_id from team_memberships m
      where m.app_id = ${caller.appId} and m.team_id = any(${[...caller.teams.keys()]}::uuid[])))`;
}

/** SQL: the caller sees the team: its members, and the admins of its org. */
export function teamVisible(db: Db, caller: Caller, alias: string): Fragment {
  if (canSeeWholeApp(caller)) return inScope(db, caller, alias);
  const adminOf = caller.kind === 'user' && caller.orgRole === 'admin' ? (caller.orgId ?? null) : null;
  return db`${inScope(db, caller, alias)} and (${db(`${alias}.id`)} = any(${[...caller.teams.keys()]}::uuid[])
    or ${db(`${alias}.org_id`)} = ${adminOf})`;
}

/** SQL: the caller sees the group: a user those that they are in. */
export function groupVisible(db: Db, caller: Caller, alias: string): Fragment {
  if (canSeeWholeApp(caller)) return inScope(db, caller, alias);
  const self = caller.kind === 'user' ? caller.userId : nobody;
  return db`${inScope(db, caller, alias)} and ${db(`${alias}.id`)} in (
    select m.group_id from group_members m where m.app_id = ${caller.appId} and m.user_id = ${self})`;
}

/** SQL: the caller sees the org: their own. */
export function orgVisible(db: Db, caller: Caller, alias: string): Fragment {
  if (canSeeWholeApp(caller)) return inScope(db, caller, alias);
  return db`${inScope(db, caller, alias)} and ${db(`${alias}.id`)} = ${caller.orgId ?? null}`;
}

/** SQL: the column of the row holds one of these ids of a list filter, and the caller sees what it names. */
export function matchesSeen(db: Db, caller: Caller, kind: FilterKind, column: string, ids: string[]): Fragment {
  const matches = db`${db(column)} = any(${ids}::uuid[])`;
  if (canSeeWholeApp(caller)) return matches;
  const { table, visible } = filterKinds[kind];
  return db`${matches} and exists (
    select 1 from ${db(table)} named where named.id = ${db(column)} and ${visible(db, caller, 'named')})`;
}

type FilterKind = keyof typeof filterKinds;

const filterKinds = {
  org: { table: 'orgs', visible: orgVisible },
  team: { table: 'teams', visible: teamVisible },
  user: { table: 'users', visible: userVisible },
  agent: { table: 'agents', visible: agentVisible },
  thread: { table: 'threads', visible: ownedVisible },
  installation: { table: 'installations', visible: installationVisible },
} as const;

/** SQL: the caller sees the agent of the installation. */
function installationVisible(db: Db, caller: Caller, alias: string): Fragment {
  return db`${inScope(db, caller, alias)} and ${db(`${alias}.agent_id`)} in (
    select seen.id from agents seen where ${agentVisible(db, caller, 'seen')})`;
}

function directlyOwned(db: Db, caller: UserCaller | AgentCaller, column: (name: string) => Identifier) {
  const self =
    caller.kind === 'user'
      ? db`${column('user_id')} = ${caller.userId}`
      : db`${column('agent_id')} = ${caller.agentId}`;
  return db`(${self} or ${column('team_id')} = any(${[...caller.teams.keys()]}::uuid[]))`;
}
