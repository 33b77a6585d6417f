import type { Db, Statement } from '../../db/database.ts';

/** SQL for the secrets that runs read. */

/**
 * SQL: a text that changes with every change of the secrets of the row `alias`; null if there are none. A row's `xmin` is
 * the transaction that wrote it, which, unlike a time, cannot repeat when transactions overlap.
 */
export function secretsVersion(db: Db, alias: string): Statement {
  return db`(select md5(string_agg(s.name || '/' || s.xmin, ' ' order by s.name)) from app_secrets s
    where s.app_id = ${db(`${alias}.app_id`)} and s.sandbox_id = ${db(`${alias}.sandbox_id`)})`;
}

/** The secrets of an app or a sandbox by name, encrypted and in base64, with their version. */
export async function findSecrets(
  db: Db,
  scope: { appId: string; sandboxId: string },
): Promise<{ secrets: Record<string, string> | null; version: string | null }> {
  const [row] = await db<[{ secrets: Record<string, string> | null; version: string | null }]>`
    select json_object_agg(s.name, encode(s.value, 'base64')) as secrets, ${secretsVersion(db, 'of')} as version
    from (select ${scope.appId}::uuid as app_id, ${scope.sandboxId}::uuid as sandbox_id) of
    left join app_secrets s on s.app_id = of.app_id and s.sandbox_id = of.sandbox_id
    where s.name is not null group by of.app_id, of.sandbox_id`;
  return row ?? { secrets: null, version: null };
}
