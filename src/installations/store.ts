import type { Db } from '../db/database.ts';
import { readWithTotal } from '../db/pages.ts';
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
  return db<[InstallationRow]>`
    insert into installations (app_id, sandbox_id, id, agent_id, kind)
    values (${scope.appId}, ${scope.sandboxId}, ${installation.id}, ${installation.agentId}, ${installation.kind})
    returning *`.first();
}

export async function findInstallation(db: Db, scope: Scope, id: string): Promise<InstallationRow | undefined> {
  return db<InstallationRow[]>`
    select i.* from installations i where ${inScope(db, scope, 'i')} and i.id = ${id}`.first();
}

export async function listInstallations(db: Db, scope: Scope, page: PageRequest): Promise<[InstallationRow[], number]> {
  return readWithTotal(
    db<InstallationRow[]>`select i.* from installations i where ${inScope(db, scope, 'i')}
      order by i.created_at desc, i.id desc limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from installations i where ${inScope(db, scope, 'i')}`,
  );
}
