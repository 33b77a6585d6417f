import type { Db } from '../db/database.ts';
import { readWithTotal } from '../db/pages.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { Caller, Scope } from '../tenancy/caller.ts';
import { inScope, type Owned, ownedVisible } from '../tenancy/visible.ts';

export type ThreadRow = Owned & {
  appId: string;
  id: string;
  sandboxId: string;
  title: string | null;
  createdAt: Date;
  updatedAt: Date;
};

export async function insertThread(db: Db, scope: Scope, thread: Owned & { id: string; title: string | null }) {
  return db<[ThreadRow]>`
    insert into threads (app_id, sandbox_id, id, title, org_id, team_id, user_id, agent_id)
    values (${scope.appId}, ${scope.sandboxId}, ${thread.id}, ${thread.title}, ${thread.orgId}, ${thread.teamId},
      ${thread.userId}, ${thread.agentId}) returning *`.first();
}

export async function findThread(db: Db, caller: Caller, id: string): Promise<ThreadRow | undefined> {
  return db<ThreadRow[]>`select t.* from threads t where t.id = ${id} and ${ownedVisible(db, caller, 't')}`.first();
}

export async function listThreads(db: Db, caller: Caller, page: PageRequest): Promise<[ThreadRow[], number]> {
  const where = ownedVisible(db, caller, 't');
  return readWithTotal(
    db<ThreadRow[]>`select t.* from threads t where ${where}
      order by t.created_at desc, t.id desc limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from threads t where ${where}`,
  );
}

export async function updateThread(db: Db, scope: Scope, id: string, title: string | undefined) {
  return db<ThreadRow[]>`
    update threads t set title = coalesce(${title ?? null}, t.title), updated_at = now()
    where ${inScope(db, scope, 't')} and t.id = ${id} returning t.*`.first();
}

export async function deleteThread(db: Db, scope: Scope, id: string): Promise<boolean> {
  return db`delete from threads t where ${inScope(db, scope, 't')} and t.id = ${id}`.any();
}
