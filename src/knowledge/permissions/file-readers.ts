import type { Db } from '../../db/database.ts';
import type { Principal } from './store.ts';

/**
 * Whether somebody may read the file who is not among the readers of a document with this list of grants. A user or an
 * agent is compared by what they are now; a team, an organisation or a role must be granted as such, because people join
 * it later.
 */
export async function hasMoreReaders(db: Db, appId: string, fileId: string, aclId: string): Promise<boolean> {
  const granted = await db<Principal[]>`
    select principal_type, principal_id, principal_role from knowledge_acl_principals
    where app_id = ${appId} and acl_id = ${aclId}`;
  const names = new Set(granted.map(nameOf));
  const readers = await listFileReaders(db, appId, fileId);
  // Anyone who has the link reads a shared file.
  if (readers.some(({ principalType }) => principalType === ('anyone' as string))) return true;
  if (granted.some(({ principalType }) => principalType === 'everyone')) return false;
  const others = readers.filter(
    (reader) =>
      !names.has(nameOf(reader)) && !(reader.principalType === 'org_role' && names.has(`org/${reader.principalId}/`)),
  );
  if (others.some(({ principalType }) => principalType !== 'user' && principalType !== 'agent')) return true;
  const ids = others.map(({ principalId }) => principalId);
  return ids.length > 0 && (await countUngranted(db, appId, ids, aclId)) > 0;
}

function nameOf({ principalType, principalId, principalRole }: Principal): string {
  return `${principalType}/${principalId}/${principalRole}`;
}

/** The owners of a file and the principals of its grants. */
function listFileReaders(db: Db, appId: string, fileId: string) {
  return db<Principal[]>`
    with file as (
      select f.*, a.org_id as agent_org_id, a.team_id as agent_team_id, a.user_id as agent_user_id
      from files f left join agents a on a.app_id = f.app_id and a.id = f.agent_id
      where f.app_id = ${appId} and f.id = ${fileId}),
    readers (principal_type, principal_id, principal_role) as (
      select 'anyone', id, '' from file where shared
      union select 'user', user_id, '' from file
      union select 'team', team_id, '' from file
      union select 'agent', agent_id, '' from file
      union select 'user', agent_user_id, '' from file
      union select 'team', agent_team_id, '' from file
      union select 'org', org_id, '' from file where num_nonnulls(user_id, team_id, agent_id) = 0
      union select 'org', agent_org_id, '' from file where agent_id is not null
        and num_nonnulls(agent_user_id, agent_team_id) = 0
      union select g.principal_type, case g.principal_type when 'org_role' then f.org_id else g.principal_id end,
        g.principal_role from file_grants g cross join file f
        where g.app_id = ${appId} and g.file_id = ${fileId} and g.actions && '{read,write}'::text[])
    select * from readers where principal_id is not null`;
}

/** How many of these users and agents have no grant by a team, a group, an organisation or a role. */
async function countUngranted(db: Db, appId: string, ids: readonly string[], aclId: string): Promise<number> {
  const [row] = await db<[{ total: number }]>`
    select count(*) as total from unnest(${[...ids]}::uuid[]) i (id)
    where not exists (
      select from knowledge_acl_principals p
        left join users u on u.app_id = p.app_id and u.id = i.id
        left join agents a on a.app_id = p.app_id and a.id = i.id
      where p.app_id = ${appId} and p.acl_id = ${aclId} and (
        (p.principal_type = 'org' and p.principal_id in (u.org_id, a.org_id))
        or (p.principal_type = 'org_role' and p.principal_id = u.org_id
          and p.principal_role = coalesce(u.org_role, 'member'))
        or (p.principal_type = 'team' and (p.principal_id = a.team_id or exists (select from team_memberships m
          where m.app_id = ${appId} and m.team_id = p.principal_id and i.id in (m.user_id, m.agent_id))))
        or (p.principal_type = 'group' and exists (select from group_members m
          where m.app_id = ${appId} and m.group_id = p.principal_id and m.user_id = i.id))))`;
  return row.total;
}
