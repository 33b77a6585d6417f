import { type Db, nobody, type Statement } from '../db/database.ts';
import { type Caller, canSeeWholeApp } from './caller.ts';

/* Which documents of a source a caller sees who sees the source, as conditions of SQL. */

type Narrowed = Exclude<Caller, { kind: 'server' | 'developer' }>;

/**
 * SQL: the ids of the lists of grants that admit the caller. Memberships are read here, in the snapshot of the query,
 * and not taken from the caller, who may be cached.
 */
export function admittingAcls(db: Db, caller: Narrowed): Statement {
  return db`
    select p.acl_id from (${principalsOf(db, caller)}) c
    join knowledge_acl_principals p on p.app_id = ${caller.appId} and p.principal_type = c.type and p.principal_id = c.id
      and p.principal_role = c.role`;
}

/** SQL: the principals (type, id, role) that the caller is, and those of which it is a member. */
function principalsOf(db: Db, caller: Narrowed): Statement {
  if (caller.kind !== 'user') return fewPrincipalsOf(db, caller);
  return db`${fewPrincipalsOf(db, caller)} union all select 'group', g.id, '' from (${groupsOf(db, caller)}) g`;
}

/** SQL: the principals of the caller without groups, of which there may be thousands. */
export function fewPrincipalsOf(db: Db, caller: Narrowed): Statement {
  const { appId } = caller;
  return db`
    select 'everyone' as type, ${nobody}::uuid as id, '' as role
    union all ${caller.kind === 'user' ? principalsOfUser(db, appId, caller.userId) : principalsOfAgent(db, caller)}`;
}

/** SQL: the ids of the groups of which the user is a member. */
export function groupsOf(db: Db, { appId, userId }: Extract<Caller, { kind: 'user' }>): Statement {
  return db`select m.group_id as id from group_members m where m.app_id = ${appId} and m.user_id = ${userId}`;
}

function principalsOfUser(db: Db, appId: string, userId: string): Statement {
  return db`
    select 'user', ${userId}::uuid, ''
    union all select 'team', m.team_id, '' from team_memberships m where m.app_id = ${appId} and m.user_id = ${userId}
    union all select k.type, u.org_id, case k.type when 'org' then '' else coalesce(u.org_role, 'member') end
      from users u cross join (values ('org'), ('org_role')) k (type)
      where u.app_id = ${appId} and u.id = ${userId} and u.org_id is not null`;
}

function principalsOfAgent(db: Db, caller: Extract<Caller, { kind: 'agent' }>): Statement {
  const { appId, agentId } = caller;
  // A team or an organisation that acts for itself; it was loaded for this call.
  if (agentId === nobody)
    return db`
      select 'team', t.id, '' from unnest(${[...caller.teams.keys()]}::uuid[]) t (id)
      union all select 'org', ${caller.orgId ?? nobody}::uuid, ''`;
  return db`
    select 'agent', ${agentId}::uuid, ''
    union all select 'team', m.team_id, '' from team_memberships m where m.app_id = ${appId} and m.agent_id = ${agentId}
    union all select 'team', a.team_id, '' from agents a
      where a.app_id = ${appId} and a.id = ${agentId} and a.team_id is not null
    union all select 'org', a.org_id, '' from agents a
      where a.app_id = ${appId} and a.id = ${agentId} and a.org_id is not null`;
}

/** SQL: the caller, who sees the source, also sees its document `alias`. */
export function documentVisible(db: Db, caller: Caller, alias: string): Statement {
  if (canSeeWholeApp(caller)) return db`true`;
  const acl = db(`${alias}.acl_id`);
  return db`(${acl} is null or ${acl} in (${admittingAcls(db, caller)}))`;
}

/** SQL: the caller, who sees the source, sees every document of its ingestion `alias`. */
export function ingestionVisible(db: Db, caller: Caller, alias: string): Statement {
  if (canSeeWholeApp(caller)) return db`true`;
  const acls = db(`${alias}.acl_ids`);
  return db`(${acls} is null or ${acls} <@ array(${admittingAcls(db, caller)}))`;
}

/** SQL: the caller, who sees the source `alias`, sees all of its documents. */
export function sourceWhollyVisible(db: Db, caller: Caller, alias: string): Statement {
  if (canSeeWholeApp(caller)) return db`true`;
  return db`not exists (
    select from knowledge_documents d where d.app_id = ${db(`${alias}.app_id`)} and d.source_id = ${db(`${alias}.id`)}
      and d.acl_id is not null and d.acl_id not in (${admittingAcls(db, caller)}))`;
}
