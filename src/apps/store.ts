/*
 * Triggers of sandboxes: sandboxes_counted, sandboxes_removed and sandboxes_given_back update the quota of sandboxes;
 * sandboxes_changed notifies every process of changed rights; sandboxes_kv_counters_gone deletes the counters of entries.
 * Triggers of api_keys: api_keys_added and api_keys_removed keep `credentials`, where a key's app is looked up;
 * api_keys_changed notifies every process of changed rights.
 * Triggers of developer_tokens: developer_tokens_changed also notifies every process of changed rights.
 */
import { type Db, production } from '../db/database.ts';
import { readWithTotal } from '../db/pages.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { Scope } from '../tenancy/caller.ts';
import type { KeyScope } from '../tenancy/key-scopes.ts';
import type { RunRetention } from '../tenancy/run-retention.ts';

export type AppRow = {
  id: string;
  developerId: string;
  name: string;
  runRetention: RunRetention | null;
  assistants: boolean;
  createdAt: Date;
  updatedAt: Date;
};
export type SandboxRow = { appId: string; id: string; name: string; createdAt: Date; updatedAt: Date };
export type KeyRow = {
  appId: string;
  id: string;
  sandboxId: string;
  type: 'secret' | 'publishable';
  name: string | null;
  hint: string;
  createdAt: Date;
  lastUsedAt: Date | null;
  revokedAt: Date | null;
  expiresAt: Date | null;
  scopes: KeyScope[] | null;
};

/** Inserts the app and its production, a row of `sandboxes` that lists never show. */
export async function insertApp(
  db: Db,
  app: { id: string; developerId: string; name: string; capabilityKey: Buffer },
): Promise<AppRow> {
  const [row] = await db<[AppRow]>`
    insert into apps (id, developer_id, name, capability_key)
    values (${app.id}, ${app.developerId}, ${app.name}, ${app.capabilityKey})
    returning id, developer_id, name, run_retention, assistants, created_at, updated_at`;
  await db`insert into sandboxes (app_id, id, name) values (${app.id}, ${production}, 'production')`;
  return row;
}

export async function listApps(db: Db, developerId: string, page: PageRequest): Promise<[AppRow[], number]> {
  return readWithTotal(
    db<AppRow[]>`
      select id, developer_id, name, run_retention, assistants, created_at, updated_at from apps where developer_id = ${developerId}
      order by created_at desc, id desc limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from apps where developer_id = ${developerId}`,
  );
}

export async function findApp(db: Db, id: string): Promise<AppRow | undefined> {
  return db<AppRow[]>`
    select id, developer_id, name, run_retention, assistants, created_at, updated_at from apps where id = ${id}`.first();
}

/** Changes the members that are given. */
export async function updateApp(
  db: Db,
  id: string,
  { name, retention, assistants }: { name?: string; retention?: RunRetention | null; assistants?: boolean },
): Promise<AppRow | undefined> {
  return db<AppRow[]>`
    update apps set name = coalesce(${name ?? null}, name), updated_at = now(),
      assistants = coalesce(${assistants ?? null}, assistants),
      run_retention = case when ${retention === undefined} then run_retention
        else ${retention ? JSON.stringify(retention) : null}::text::jsonb end
    where id = ${id}
    returning id, developer_id, name, run_retention, assistants, created_at, updated_at`.first();
}

export async function insertSandbox(db: Db, appId: string, id: string, name: string): Promise<SandboxRow> {
  return db<[SandboxRow]>`
    insert into sandboxes (app_id, id, name) values (${appId}, ${id}, ${name}) returning *`.first();
}

export async function listSandboxes(db: Db, appId: string, page: PageRequest): Promise<[SandboxRow[], number]> {
  return readWithTotal(
    db<SandboxRow[]>`
      select * from sandboxes where app_id = ${appId} and id <> ${production} and removed_at is null
      order by created_at desc, id desc limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from sandboxes where app_id = ${appId} and id <> ${production} and removed_at is null`,
  );
}

export async function findSandbox(db: Db, appId: string, id: string): Promise<SandboxRow | undefined> {
  return db<SandboxRow[]>`
    select * from sandboxes where app_id = ${appId} and id = ${id} and id <> ${production} and removed_at is null`.first();
}

export async function updateSandbox(db: Db, appId: string, id: string, name: string | undefined) {
  return db<SandboxRow[]>`
    update sandboxes set name = coalesce(${name ?? null}, name), updated_at = now()
    where app_id = ${appId} and id = ${id} and id <> ${production} and removed_at is null returning *`.first();
}

/** From the commit on, the sandbox does not exist for any caller. Its rows are deleted by a job (`purge.ts`). */
export async function removeSandbox(tx: Db, appId: string, id: string, now: Date): Promise<boolean> {
  const gone = await tx`
    update sandboxes set removed_at = ${now}
    where app_id = ${appId} and id = ${id} and id <> ${production} and removed_at is null`;
  if (gone.count === 0) return false;
  await tx`delete from api_keys where app_id = ${appId} and sandbox_id = ${id}`;
  return true;
}

export async function insertKey(
  db: Db,
  key: Pick<KeyRow, 'appId' | 'id' | 'sandboxId' | 'type' | 'hint' | 'name' | 'expiresAt' | 'scopes'> & {
    digest: Buffer;
  },
): Promise<KeyRow> {
  return db<[KeyRow]>`
    insert into api_keys (app_id, id, sandbox_id, type, name, digest, hint, expires_at, scopes)
    values (${key.appId}, ${key.id}, ${key.sandboxId}, ${key.type}, ${key.name}, ${key.digest}, ${key.hint},
      ${key.expiresAt}, ${key.scopes}::text[])
    returning app_id, id, sandbox_id, type, name, hint, created_at, last_used_at, revoked_at, expires_at, scopes`.first();
}

/** Lists the app's keys: in production those of all sandboxes, inside a sandbox only its own. */
export async function listKeys(db: Db, scope: Scope, page: PageRequest): Promise<[KeyRow[], number]> {
  const where = keysInScope(db, scope);
  return readWithTotal(
    db<KeyRow[]>`
      select app_id, id, sandbox_id, type, name, hint, created_at, last_used_at, revoked_at, expires_at, scopes from api_keys
      where ${where} order by created_at desc, id desc limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from api_keys where ${where}`,
  );
}

export async function findKey(db: Db, scope: Scope, id: string): Promise<KeyRow | undefined> {
  return db<KeyRow[]>`
    select app_id, id, sandbox_id, type, name, hint, created_at, last_used_at, revoked_at, expires_at, scopes from api_keys
    where ${keysInScope(db, scope)} and id = ${id}`.first();
}

export async function revokeKey(db: Db, scope: Scope, id: string): Promise<boolean> {
  return db`
    update api_keys set revoked_at = now() where ${keysInScope(db, scope)} and id = ${id} and revoked_at is null`.any();
}

function keysInScope(db: Db, scope: Scope) {
  return scope.sandboxId === production
    ? db`app_id = ${scope.appId}`
    : db`app_id = ${scope.appId} and sandbox_id = ${scope.sandboxId}`;
}
