/*
 * Triggers of orgs: delete_agents, delete_automations, delete_configs, delete_extractions, delete_files,
 * delete_knowledge_sources and delete_threads delete the org-level rows; orgs_grants deletes the grants to the org;
 * orgs_logo_replaced and orgs_logo_removed delete the file of its logo.
 */
import type { Db } from '../db/database.ts';
import { readWithTotal } from '../db/pages.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { Caller, Scope } from '../tenancy/caller.ts';
import { orgVisible } from '../tenancy/visible.ts';

export type OrgRow = {
  appId: string;
  id: string;
  sandboxId: string;
  name: string;
  slug: string | null;
  logoFileId: string | null;
  logoContentType: string | null;
  logoWidth: number | null;
  logoHeight: number | null;
  createdAt: Date;
  updatedAt: Date;
};

const withLogo = (db: Db) => db`
  select o.*, f.content_type as logo_content_type, f.width as logo_width, f.height as logo_height
  from orgs o left join files f on f.app_id = o.app_id and f.id = o.logo_file_id`;

export async function insertOrg(db: Db, scope: Scope, org: { id: string; name: string; slug: string | null }) {
  await db`insert into orgs (app_id, sandbox_id, id, name, slug)
    values (${scope.appId}, ${scope.sandboxId}, ${org.id}, ${org.name}, ${org.slug})`;
}

export async function findOrg(db: Db, caller: Caller, id: string): Promise<OrgRow | undefined> {
  return db<OrgRow[]>`${withLogo(db)} where o.id = ${id} and ${orgVisible(db, caller, 'o')}`.first();
}

export async function listOrgs(
  db: Db,
  caller: Caller,
  page: PageRequest,
  search: string | undefined,
): Promise<[OrgRow[], number]> {
  const where = db`${orgVisible(db, caller, 'o')}
    and (${search ?? null}::text is null or position(lower(${search ?? null}) in lower(o.name)) > 0)`;
  return readWithTotal(
    db<OrgRow[]>`${withLogo(db)} where ${where}
      order by o.created_at desc, o.id desc limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from orgs o where ${where}`,
  );
}

export async function updateOrg(
  db: Db,
  scope: Scope,
  id: string,
  change: { name?: string | undefined; slug?: string | undefined },
): Promise<boolean> {
  return db`
    update orgs set name = coalesce(${change.name ?? null}, name), slug = coalesce(${change.slug ?? null}, slug),
      updated_at = now()
    where app_id = ${scope.appId} and sandbox_id = ${scope.sandboxId} and id = ${id}`.any();
}

export async function setLogo(db: Db, scope: Scope, id: string, fileId: string | null): Promise<void> {
  await db`update orgs set logo_file_id = ${fileId}, updated_at = now() where app_id = ${scope.appId} and id = ${id}`;
}
