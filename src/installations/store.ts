import type { Db } from '../db/database.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { Scope } from '../tenancy/caller.ts';
import { inScope } from '../tenancy/visible.ts';

export type InstallationRow = {
  appId: string;
  id: string;
  sandboxId: string;
  agentId: string;
  kind: string;
  createdAt: Date;
  updatedAt: Date;
};

export async function insertInstallation(
  db: Db,
  scope: Scope,
  installation: { id: string; agentId: string; kind: string },
): Promise<InstallationRow> {
  const [row] = await db<[InstallationRow]>`
    insert into installations (app_id, sandbox_id, id, agent_id, kind)
    values (${scope.appId}, ${scope.sandboxId}, ${installation.id}, ${installation.agentId}, ${installation.kind})
    returning *`;
  return row;
}

export async function findInstallation(db: Db, scope: Scope, id: string): Promise<InstallationRow | undefined> {
  const [row] = await db<InstallationRow[]>`
    select i.* from installations i where ${inScope(db, scope, 'i')} and i.id = ${id}`;
  return row;
}

export async function listInstallations(db: Db, scope: Scope, page: PageRequest): Promise<[InstallationRow[], number]> {
  const rows = await db<InstallationRow[]>`select i.* from installations i where ${inScope(db, scope, 'i')}
    order by i.created_at desc, i.id desc limit ${page.pageSize} offset ${page.offset}`;
  const [count] = await db<[{ total: number }]>`
    select count(*) as total from installations i where ${inScope(db, scope, 'i')}`;
  return [rows, count.total];
}

export async function deleteInstallation(db: Db, scope: Scope, id: string): Promise<boolean> {
  const gone = await db`delete from installations i where ${inScope(db, scope, 'i')} and i.id = ${id}`;
  return gone.count > 0;
}
