import type { Statement } from './sql.ts';
import type { Db } from './types.ts';

type Batch = {
  appId: string;
  table: string;
  /** Which rows `t` of the table. */
  where: Statement;
  limit: number;
};

/**
 * Deletes up to `limit` rows of an app. They are locked first: of a row that another transaction is changing, the
 * condition is looked at again. Repeat it while `found` is not 0: a row that was changed since the statement began is
 * found, but only the next statement deletes it.
 */
export async function deleteBatch(
  db: Db,
  { appId, table, where, limit }: Batch,
): Promise<{ found: number; deleted: number }> {
  const [row] = await db<[{ found: number; deleted: number }]>`
    with next as materialized (
      select t.ctid as place from ${db(table)} t where t.app_id = ${appId} and ${where} limit ${limit} for update of t),
    gone as (
      delete from ${db(table)} where app_id = ${appId} and ctid = any(array(select place from next)) returning 1)
    select (select count(*) from next) as found, (select count(*) from gone) as deleted`;
  return row;
}
