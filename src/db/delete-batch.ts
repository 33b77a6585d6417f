import { isInUse } from './fences.ts';
import type { Statement } from './sql.ts';
import type { Db } from './types.ts';

type Rows = {
  /** No partitioned table: its rows do not have a place of their own. */
  table: string;
  /** Which rows `t` of the table. */
  where: Statement;
};
type Batch = Rows & { appId: string; limit: number };

/**
 * Deletes up to `limit` rows of an app. They are locked first: of a row that another transaction is changing, the
 * condition is looked at again. Repeat it while `found` is not 0: a row that was changed since the statement began is
 * found, but only the next statement deletes it.
 */
export function deleteBatch(
  db: Db,
  { appId, table, where, limit }: Batch,
): Promise<{ found: number; deleted: number }> {
  return changeBatch(db, limit, async (next) => {
    const [row] = await db<[{ found: number; deleted: number }]>`
      with next as materialized (
        select t.ctid as place from ${db(table)} t where t.app_id = ${appId} and ${where} ${next}),
      gone as (
        delete from ${db(table)} where app_id = ${appId} and ctid = any(array(select place from next)) returning 1)
      select (select count(*) from next) as found, (select count(*) from gone) as deleted`;
    return row;
  });
}

/**
 * Changes or deletes up to `limit` rows that no other transaction has locked, and if there are none, one that it waits
 * for. A statement that held the locks of some rows while it waits for others would end in a deadlock with one that
 * locks them in another order.
 * @param change runs the statement. `next` limits and locks the rows of its table `t`. `found`: how many those were.
 */
export async function changeBatch<Result extends { found: number }>(
  db: Db,
  limit: number,
  change: (next: Statement) => Promise<Result>,
): Promise<Result> {
  const changed = await change(db`limit ${limit} for update of t skip locked`);
  return changed.found > 0 ? changed : change(db`limit 1 for update of t`);
}

const sweptRows = 1_000;

type Swept = Rows & {
  /** An indexed column: the rows with the smallest values are chosen first, without reading the others. */
  order?: string;
};

/**
 * Deletes rows of all apps, in batches of 1,000, each in a transaction of its own: new event streams of all apps and
 * vacuum wait for long ones. Rows that another transaction is changing, and those of apps that are being moved, are
 * left to the next sweep. Any number of processes may do so. Returns how many rows were deleted.
 */
export function sweepRows(db: Db, { where, ...rows }: Swept): Promise<number> {
  return sweep(db, { ...rows, where: db`${where} and ${isInUse(db, 't.app_id')}` });
}

/** The same for a table whose rows belong to no app. */
export function sweepRowsOfNoApp(db: Db, rows: Swept): Promise<number> {
  return sweep(db, rows);
}

async function sweep(db: Db, { table, where, order }: Swept): Promise<number> {
  const ordered = order === undefined ? db`` : db`order by ${db(`t.${order}`)}`;
  for (let swept = 0; ; ) {
    const [{ found, deleted }] = await db<[{ found: number; deleted: number }]>`
      with next as materialized (
        select t.ctid as place from ${db(table)} t where ${where} ${ordered} limit ${sweptRows}
        for update of t skip locked),
      gone as (delete from ${db(table)} where ctid = any(array(select place from next)) returning 1)
      select (select count(*) from next) as found, (select count(*) from gone) as deleted`;
    swept += deleted;
    if (found < sweptRows) return swept;
  }
}
