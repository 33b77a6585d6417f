import type { Db, Statement } from './database.ts';

/** A page of rows ordered by id, which is the order of their creation. Cursors are ids. */
export type Keyset = {
  limit: number;
  ascending: boolean;
  after?: string | undefined;
  before?: string | undefined;
};

export type KeysetPage<T> = { rows: T[]; hasMore: boolean };

/** The condition, order and limit of a query for the rows of a page. */
type PagePart = { where: Statement; order: Statement; limit: number };

/**
 * Reads a page ordered by the column `id`. A cursor is a position, so its row may have been deleted meanwhile.
 * `before` alone returns the rows nearest to it. `hasMore` says whether more rows follow in the direction of reading.
 */
export async function readKeyset<T>(
  db: Db,
  id: Statement,
  { limit, ascending, after, before }: Keyset,
  read: (part: PagePart) => Promise<T[]>,
): Promise<KeysetPage<T>> {
  const isBackward = before !== undefined && after === undefined;
  const lower = ascending ? after : before;
  const upper = ascending ? before : after;
  const rows = await read({
    where: db`${lower === undefined ? db`true` : db`${id} > ${lower}::uuid`}
      and ${upper === undefined ? db`true` : db`${id} < ${upper}::uuid`}`,
    order: ascending === isBackward ? db`${id} desc` : db`${id}`,
    limit: limit + 1,
  });
  const taken = rows.slice(0, limit);
  return { rows: isBackward ? taken.reverse() : taken, hasMore: rows.length > limit };
}

/** Reads a page of rows, and the number of rows on all pages, which the second statement returns as `total`. */
export async function readWithTotal<T>(page: Statement<T[]>, count: Statement): Promise<[T[], number]> {
  return [await page, (await count.first())?.total];
}
