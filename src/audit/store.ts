import type { Db } from '../db/database.ts';
import type { PageRequest } from '../http/pages.ts';
import type { AuditEntry, CredentialKind } from '../tenancy/audit.ts';
import type { Scope } from '../tenancy/caller.ts';

export type AuditFilter = {
  actorId?: string | undefined;
  action?: string | undefined;
  resource?: string | undefined;
  since?: Date | undefined;
  until?: Date | undefined;
};

/** Newest first, and how many there are. */
export async function listEntries(
  db: Db,
  { appId, sandboxId }: Scope,
  filter: AuditFilter,
  page: PageRequest,
): Promise<[AuditEntry[], number]> {
  const { actorId, action, resource, since, until } = filter;
  const where = db`app_id = ${appId} and sandbox_id = ${sandboxId}
    ${actorId === undefined ? db`` : db`and actor_id = ${actorId}`}
    ${action === undefined ? db`` : db`and action = ${action}`}
    ${resource === undefined ? db`` : db`and resource = ${resource}`}
    ${since === undefined ? db`` : db`and at >= ${since}`}
    ${until === undefined ? db`` : db`and at < ${until}`}`;
  const rows = await db<AuditEntry[]>`
    select * from audit_entries where ${where} order by at desc, id desc limit ${page.pageSize} offset ${page.offset}`;
  const [count] = await db<[{ total: number }]>`select count(*) as total from audit_entries where ${where}`;
  return [rows, count.total];
}

export type CredentialUseRow = {
  kind: CredentialKind;
  credentialId: string;
  day: Date;
  firstAt: Date;
  lastAt: Date;
  requests: number;
  refused: number;
};

/** The newest day first. */
export async function listUses(
  db: Db,
  { appId, sandboxId }: Scope,
  credentialId: string | undefined,
  page: PageRequest,
): Promise<[CredentialUseRow[], number]> {
  const where = db`app_id = ${appId} and sandbox_id = ${sandboxId}
    ${credentialId === undefined ? db`` : db`and credential_id = ${credentialId}`}`;
  const rows = await db<CredentialUseRow[]>`
    select kind, credential_id, day, first_at, last_at, requests, refused from credential_uses where ${where}
    order by day desc, last_at desc, credential_id limit ${page.pageSize} offset ${page.offset}`;
  const [count] = await db<[{ total: number }]>`select count(*) as total from credential_uses where ${where}`;
  return [rows, count.total];
}

const deletedAtOnce = 10_000;

/** Removes what is older. Answers how many rows went. */
export async function deleteOlder(db: Db, before: Date): Promise<number> {
  const uses = await db`delete from credential_uses where day < (${before}::timestamptz at time zone 'UTC')::date`;
  let gone = uses.count;
  for (;;) {
    const entries = await db`
      delete from audit_entries where (app_id, id) in (
        select app_id, id from audit_entries where at < ${before} order by at limit ${deletedAtOnce})`;
    gone += entries.count;
    if (entries.count < deletedAtOnce) return gone;
  }
}
