import { hash } from 'node:crypto';
import { type Db, nobody, type Statement, type Transaction } from '../../db/database.ts';
import { isInUse } from '../../db/fences.ts';
import { newUuid } from '../../lib/ids.ts';
import { type Caller, canSeeWholeApp, type Scope } from '../../tenancy/caller.ts';
import { admittingAcls } from '../../tenancy/document-readers.ts';
import type { Grant } from '../../tenancy/visible.ts';

/** Whom a grant names: an id, a role in an organisation, or everyone. */
export type Principal = Pick<Grant, 'principalType' | 'principalId' | 'principalRole'>;

/** The id of this list of grants, which is stored if it is new. Documents refer to it within a day. */
export async function internAcl(tx: Transaction, scope: Scope, principals: readonly Principal[]): Promise<string> {
  const { appId, sandboxId } = scope;
  const sorted = principals.map(nameOf).sort();
  const digest = hash('sha256', JSON.stringify(sorted), 'buffer');
  const [row] = await tx<[{ id: string; isNew: boolean }]>`
    insert into knowledge_acls (app_id, sandbox_id, id, digest)
    values (${appId}, ${sandboxId}, ${newUuid()}, ${digest})
    on conflict (app_id, sandbox_id, digest) do update set created_at = excluded.created_at
    returning id, xmax = 0 as is_new`;
  if (row.isNew && principals.length > 0)
    await tx`
      insert into knowledge_acl_principals (app_id, acl_id, principal_type, principal_id, principal_role)
      select ${appId}::uuid, ${row.id}::uuid, p.* from unnest(${principals.map((one) => one.principalType)}::text[],
        ${principals.map((one) => one.principalId)}::uuid[], ${principals.map((one) => one.principalRole)}::text[]) p`;
  return row.id;
}

function nameOf({ principalType, principalId, principalRole }: Principal): string {
  return `${principalType}/${principalId}/${principalRole}`;
}

/** The principals of each of these lists. */
export async function listPrincipals(
  db: Db,
  appId: string,
  aclIds: readonly string[],
): Promise<Map<string, Principal[]>> {
  const lists = new Map<string, Principal[]>(aclIds.map((id) => [id, []]));
  if (aclIds.length === 0) return lists;
  const rows = await db<(Principal & { aclId: string })[]>`
    select acl_id, principal_type, principal_id, principal_role from knowledge_acl_principals
    where app_id = ${appId} and acl_id = any(${[...aclIds]}::uuid[])
    order by principal_type, principal_role, principal_id`;
  for (const { aclId, ...principal } of rows) lists.get(aclId)?.push(principal);
  return lists;
}

export async function isAdmitted(db: Db, caller: Caller, aclId: string): Promise<boolean> {
  if (canSeeWholeApp(caller)) return true;
  return db`select 1 where ${aclId}::uuid in (${admittingAcls(db, caller)})`.any();
}

/**
 * Makes the readers of a document those of all ingestions that name it, and adds them to those of its source's pulls,
 * which name none. An ingestion with several documents keeps the readers that it requires already.
 */
export async function changeIngestionReaders(
  tx: Transaction,
  document: { appId: string; sourceId: string; id: string },
  aclId: string | null,
): Promise<void> {
  const { appId, sourceId, id } = document;
  const acl = aclId === null ? null : [aclId];
  await tx`
    update knowledge_ingestions set acl_ids = ${acl}::uuid[]
    where app_id = ${appId} and metadata ? 'document' and metadata ->> 'document' = ${id}`;
  if (aclId === null) return;
  const lacks = tx`not coalesce(acl_ids, '{}') @> ${acl}::uuid[]`;
  const added = tx`acl_ids = coalesce(acl_ids, '{}') || ${acl}::uuid[]`;
  await tx`
    update knowledge_ingestions set ${added} where app_id = ${appId} and kind = 'batch'
      and metadata -> 'items' @> ${JSON.stringify([{ document: id }])}::text::jsonb and ${lacks}`;
  await tx`
    update knowledge_ingestions set ${added} where app_id = ${appId} and ${lacks} and id in (
      select ingestion_id from knowledge_ingestion_items where app_id = ${appId} and document_id = ${id})`;
  await tx`
    update knowledge_ingestions set ${added}
    where app_id = ${appId} and source_id = ${sourceId} and ${lacks}
      and (kind = 'pull' or kind = 'restore' and not metadata ? 'document')`;
}

/** A pull with more lists than this is visible only to those who see the whole app. */
const pullAclsMax = 100;

/** SQL: the readers of a pull, which may concern any document of its source. */
export function aclsOfSource(db: Db, appId: string, sourceId: Statement): Statement {
  return db`(
    select case when count(*) = 0 then null when count(*) > ${pullAclsMax} then array[${nobody}::uuid]
      else array_agg(a.acl_id) end
    from (select distinct acl_id from knowledge_documents
      where app_id = ${appId} and source_id = ${sourceId} and acl_id is not null limit ${pullAclsMax + 1}) a)`;
}

/** SQL: the readers of a restore: of one document, or of those with these lists of grants, or of any in the source. */
export function aclsOfRestore(
  db: Db,
  appId: string,
  sourceId: string,
  { document, acls }: Record<string, unknown>,
): Statement {
  if (Array.isArray(acls)) return db`${acls.length === 0 ? null : (acls as string[])}::uuid[]`;
  const chosen = (column: string) => (typeof document === 'string' ? db`${db(column)} = ${document}` : db`true`);
  return db`(
    select case when count(*) = 0 then null when count(*) > ${pullAclsMax} then array[${nobody}::uuid]
      else array_agg(a.acl_id) end
    from (
      select acl_id from knowledge_documents
      where app_id = ${appId} and source_id = ${sourceId} and acl_id is not null and ${chosen('id')}
      union select v.acl_id from knowledge_versions v
      where v.app_id = ${appId} and v.source_id = ${sourceId} and v.acl_id is not null and ${chosen('v.document_id')}
        and not exists (select from knowledge_documents d where d.app_id = ${appId} and d.id = v.document_id)
        and not exists (select from knowledge_versions w
          where w.app_id = ${appId} and w.document_id = v.document_id and w.number > v.number)
      limit ${pullAclsMax + 1}) a)`;
}

/** Deletes lists that no document has had for a day, `count` at most. Returns their number. */
export async function deleteUnusedAcls(db: Db, count: number): Promise<number> {
  const { count: deleted } = await db`
    delete from knowledge_acls where (app_id, id) in (
      select a.app_id, a.id from knowledge_acls a
      where a.created_at < now() - interval '1 day' and ${isInUse(db, 'a.app_id')}
        and not exists (select from knowledge_documents d where d.app_id = a.app_id and d.acl_id = a.id)
        and not exists (select from knowledge_ingestion_items i where i.app_id = a.app_id and i.acl_id = a.id)
        and not exists (select from knowledge_versions v where v.app_id = a.app_id and v.acl_id = a.id)
      limit ${count} for update skip locked)`;
  return deleted;
}
