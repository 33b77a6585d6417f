import type { Db } from '../db/database.ts';
import { readWithTotal } from '../db/pages.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { Scope } from '../tenancy/caller.ts';
import { inScope } from '../tenancy/visible.ts';

export type GroupRow = Scope & {
  id: string;
  namespace: string;
  externalId: string;
  name: string | null;
  createdAt: Date;
  updatedAt: Date;
};

export type MemberRow = { userId: string; email: string | null; name: string | null; createdAt: Date };

type GroupFilter = {
  namespace?: string | undefined;
  externalId?: string | undefined;
  userId?: string | undefined;
  search?: string | undefined;
};

export async function insertGroup(
  db: Db,
  { appId, sandboxId }: Scope,
  group: Pick<GroupRow, 'id' | 'namespace' | 'externalId' | 'name'>,
): Promise<GroupRow> {
  return db<[GroupRow]>`
    insert into groups (app_id, sandbox_id, id, namespace, external_id, name)
    values (${appId}, ${sandboxId}, ${group.id}, ${group.namespace}, ${group.externalId}, ${group.name}) returning *`.first();
}

export async function countGroups(db: Db, scope: Scope): Promise<number> {
  const [row] = await db<[{ total: number }]>`
    select count(*) as total from groups g where ${inScope(db, scope, 'g')}`;
  return row.total;
}

export async function findGroup(db: Db, scope: Scope, id: string): Promise<GroupRow | undefined> {
  return db<GroupRow[]>`select g.* from groups g where ${inScope(db, scope, 'g')} and g.id = ${id}`.first();
}

export async function listGroups(
  db: Db,
  scope: Scope,
  filter: GroupFilter,
  page: PageRequest,
): Promise<[GroupRow[], number]> {
  const conditions = [inScope(db, scope, 'g')];
  if (filter.namespace !== undefined) conditions.push(db`g.namespace = ${filter.namespace}`);
  if (filter.externalId !== undefined) conditions.push(db`g.external_id = ${filter.externalId}`);
  if (filter.userId !== undefined)
    conditions.push(db`exists (select from group_members m
      where m.app_id = ${scope.appId} and m.group_id = g.id and m.user_id = ${filter.userId})`);
  if (filter.search !== undefined)
    conditions.push(db`position(lower(${filter.search}) in lower(coalesce(g.name, '') || ' ' || g.external_id)) > 0`);
  const where = conditions.reduce((all, one) => db`${all} and ${one}`);
  return readWithTotal(
    db<GroupRow[]>`
      select g.* from groups g where ${where}
      order by g.created_at desc, g.id desc limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from groups g where ${where}`,
  );
}

export async function renameGroup(db: Db, scope: Scope, id: string, name: string | null): Promise<void> {
  await db`update groups g set name = ${name}, updated_at = now() where ${inScope(db, scope, 'g')} and g.id = ${id}`;
}

export async function deleteGroup(db: Db, scope: Scope, id: string): Promise<boolean> {
  return db`delete from groups g where ${inScope(db, scope, 'g')} and g.id = ${id}`.any();
}

export async function countMembers(db: Db, appId: string, groupId: string): Promise<number> {
  const [row] = await db<[{ total: number }]>`
    select count(*) as total from group_members where app_id = ${appId} and group_id = ${groupId}`;
  return row.total;
}

export async function listMembers(
  db: Db,
  appId: string,
  groupId: string,
  page: PageRequest,
): Promise<[MemberRow[], number]> {
  const rows = await db<MemberRow[]>`
    select m.user_id, u.email, u.name, m.created_at from group_members m
    join users u on u.app_id = m.app_id and u.id = m.user_id
    where m.app_id = ${appId} and m.group_id = ${groupId}
    order by m.created_at desc, m.user_id desc limit ${page.pageSize} offset ${page.offset}`;
  return [rows, await countMembers(db, appId, groupId)];
}

export async function findMember(
  db: Db,
  appId: string,
  groupId: string,
  userId: string,
): Promise<MemberRow | undefined> {
  return db<MemberRow[]>`
    select m.user_id, u.email, u.name, m.created_at from group_members m
    join users u on u.app_id = m.app_id and u.id = m.user_id
    where m.app_id = ${appId} and m.group_id = ${groupId} and m.user_id = ${userId}`.first();
}

/** Returns the number of those that were not members. */
export async function insertMembers(
  db: Db,
  appId: string,
  groupId: string,
  userIds: readonly string[],
): Promise<number> {
  const { count } = await db`
    insert into group_members (app_id, group_id, user_id)
    select ${appId}::uuid, ${groupId}::uuid, u.id from unnest(${[...userIds].sort()}::uuid[]) u (id)
    on conflict do nothing`;
  return count;
}

export async function deleteMember(db: Db, appId: string, groupId: string, userId: string): Promise<boolean> {
  const { count } = await db`
    delete from group_members where app_id = ${appId} and group_id = ${groupId} and user_id = ${userId}`;
  return count > 0;
}

export async function deleteOtherMembers(
  db: Db,
  appId: string,
  groupId: string,
  kept: readonly string[],
): Promise<void> {
  await db`delete from group_members
    where app_id = ${appId} and group_id = ${groupId} and user_id <> all(${[...kept]}::uuid[])`;
}

/** Those of the ids that are users of the app. */
export async function filterUsers(db: Db, scope: Scope, ids: readonly string[]): Promise<Set<string>> {
  const rows = await db<{ id: string }[]>`
    select u.id from users u where ${inScope(db, scope, 'u')} and u.id = any(${[...ids]}::uuid[])`;
  return new Set(rows.map(({ id }) => id));
}

/** Counts those of the groups of a namespace that exist. */
export async function countNamedGroups(
  db: Db,
  scope: Scope,
  namespace: string,
  externalIds: readonly string[],
): Promise<number> {
  const [row] = await db<[{ total: number }]>`
    select count(*) as total from groups g where ${inScope(db, scope, 'g')}
      and g.namespace = ${namespace} and g.external_id = any(${[...externalIds]}::text[])`;
  return row.total;
}

/** Creates the groups that are missing, at most `most` of them. */
export async function insertMissingGroups(
  db: Db,
  { appId, sandboxId }: Scope,
  namespace: string,
  externalIds: readonly string[],
  most: number,
): Promise<void> {
  await db`
    insert into groups (app_id, sandbox_id, id, namespace, external_id)
    select ${appId}::uuid, ${sandboxId}::uuid, gen_random_uuid(), ${namespace}, e.id
    from unnest(${[...externalIds].sort()}::text[]) e (id)
    where not exists (select from groups g where g.app_id = ${appId} and g.sandbox_id = ${sandboxId}
      and g.namespace = ${namespace} and g.external_id = e.id)
    limit ${most}
    on conflict do nothing`;
}

/** Makes a user a member of exactly these groups of a namespace. */
export async function replaceGroupsOfUser(
  db: Db,
  { appId, sandboxId }: Scope,
  namespace: string,
  userId: string,
  externalIds: readonly string[],
): Promise<void> {
  await db`
    delete from group_members m using groups g
    where m.app_id = ${appId} and m.user_id = ${userId} and g.app_id = m.app_id and g.id = m.group_id
      and g.sandbox_id = ${sandboxId} and g.namespace = ${namespace}
      and g.external_id <> all(${[...externalIds]}::text[])`;
  await db`
    insert into group_members (app_id, group_id, user_id)
    select g.app_id, g.id, ${userId}::uuid from groups g
    where g.app_id = ${appId} and g.sandbox_id = ${sandboxId} and g.namespace = ${namespace}
      and g.external_id = any(${[...externalIds]}::text[])
    on conflict do nothing`;
}
