import { type Db, nobody } from '../db/database.ts';
import { readWithTotal } from '../db/pages.ts';
import type { PageRequest } from '../http/route/pages.ts';
import { AppError } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import type { Scope } from '../tenancy/caller.ts';
import type { Owned } from '../tenancy/visible.ts';

export type ConfigRow = Owned & {
  appId: string;
  id: string;
  sandboxId: string;
  virtualPath: string;
  /** The number of the newest version. */
  latest: number;
  versionId: string;
  version: number;
  contentType: string;
  contentHash: Buffer;
  fileId: string;
  versionCreatedAt: Date;
  createdAt: Date;
  updatedAt: Date;
};

/** The owner of a path: the agent, otherwise the user or team, otherwise the org, otherwise the app. */
export function configOwnerId(owned: Owned): string {
  return owned.agentId ?? owned.userId ?? owned.teamId ?? owned.orgId ?? nobody;
}

/**
 * Writes the next version of a path, creating the path if needed. Returns the version number. 412 if `ifVersion` is not
 * the current version.
 */
export async function writeConfigVersion(
  db: Db,
  scope: Scope,
  entry: { owned: Owned; virtualPath: string; contentType: string; contentHash: Buffer; fileId: string },
  ifVersion?: number,
): Promise<number> {
  const { owned } = entry;
  const [config] = await db<{ id: string; version: number }[]>`
    insert into configs (app_id, sandbox_id, id, owner_id, virtual_path, org_id, team_id, user_id, agent_id, version)
    values (${scope.appId}, ${scope.sandboxId}, ${newUuid()}, ${configOwnerId(owned)}, ${entry.virtualPath},
      ${owned.orgId}, ${owned.teamId}, ${owned.userId}, ${owned.agentId}, 1)
    on conflict (app_id, sandbox_id, owner_id, virtual_path)
      do update set version = configs.version + 1, updated_at = excluded.updated_at
        where configs.version = coalesce(${ifVersion ?? null}::integer, configs.version)
    returning id, version`;
  if (!config || (ifVersion !== undefined && config.version !== ifVersion + 1)) throw anotherVersion();
  await db`
    insert into config_versions (app_id, id, config_id, version, content_type, content_hash, file_id)
    values (${scope.appId}, ${newUuid()}, ${config.id}, ${config.version}, ${entry.contentType}, ${entry.contentHash},
      ${entry.fileId})`;
  return config.version;
}

export function anotherVersion(): AppError {
  return new AppError('precondition_failed', 'The current version of the entry is not `if_version`.');
}

const columns = (db: Db) => db`
  c.app_id, c.id, c.sandbox_id, c.virtual_path, c.org_id, c.team_id, c.user_id, c.agent_id, c.version as latest,
  v.id as version_id, v.version, v.content_type, v.content_hash, v.file_id, v.created_at as version_created_at,
  c.created_at, c.updated_at
  from configs c join config_versions v on v.app_id = c.app_id and v.config_id = c.id`;

export async function countConfigs(db: Db, scope: Scope): Promise<number> {
  const [count] = await db<[{ total: number }]>`
    select count(*) as total from configs where app_id = ${scope.appId} and sandbox_id = ${scope.sandboxId}`;
  return count.total;
}

/** Deletes a path with its versions and their files. The sweep deletes the blobs. */
export async function deleteConfig(db: Db, scope: Scope, id: string): Promise<void> {
  await db`
    delete from files f using config_versions v
    where f.app_id = ${scope.appId} and v.app_id = f.app_id and v.file_id = f.id and v.config_id = ${id}`;
  await db`delete from configs where app_id = ${scope.appId} and id = ${id}`;
}

/** A version of the owner's path; by default the newest. */
export async function findConfig(
  db: Db,
  scope: Scope,
  ownerId: string,
  virtualPath: string,
  version: number | undefined,
): Promise<ConfigRow | undefined> {
  return db<ConfigRow[]>`
    select ${columns(db)}
    where c.app_id = ${scope.appId} and c.sandbox_id = ${scope.sandboxId} and c.owner_id = ${ownerId}
      and c.virtual_path = ${virtualPath} and v.version = coalesce(${version ?? null}::integer, c.version)`.first();
}

/** The owner's paths with a prefix, each with its newest version, newest first. */
export async function listConfigs(
  db: Db,
  scope: Scope,
  ownerId: string,
  prefix: string,
  page: PageRequest,
): Promise<[ConfigRow[], number]> {
  const where = db`c.app_id = ${scope.appId} and c.sandbox_id = ${scope.sandboxId} and c.owner_id = ${ownerId}
    and starts_with(c.virtual_path, ${prefix})`;
  return readWithTotal(
    db<ConfigRow[]>`select ${columns(db)} and v.version = c.version where ${where}
      order by c.created_at desc, c.id desc limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from configs c where ${where}`,
  );
}
