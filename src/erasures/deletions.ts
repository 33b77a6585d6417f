import type { Db, Statement } from '../db/database.ts';
import { changeBatch, deleteBatch as deleteRows } from '../db/delete-batch.ts';
import { addCount, type ErasureRow } from './store.ts';

/** Rows to delete. `count` is their name in the certificate; without it, they are only part of something counted. */
export type Deletion = { table: string; where: (db: Db) => Statement; count?: string };

/** The rows that one transaction deletes. Rows of these tables may be a megabyte each. */
const batchRows = 500;

/** Deletes one batch. Returns whether there may be more. */
export async function deleteBatch(tx: Db, erasure: ErasureRow, { table, where, count }: Deletion): Promise<boolean> {
  const { found, deleted } = await deleteRows(tx, { appId: erasure.appId, table, where: where(tx), limit: batchRows });
  if (count !== undefined) await addCount(tx, erasure, count, deleted);
  return found > 0;
}

/** Deletes a batch of files. Their contents are deleted before the erasure is done, not when the next sweep comes. */
export async function deleteFiles(tx: Db, erasure: ErasureRow, where: (db: Db) => Statement): Promise<boolean> {
  const { gone } = await changeBatch(tx, batchRows, async (next) => {
    const gone = await tx<{ blobKey: string }[]>`
      delete from files where app_id = ${erasure.appId} and id = any(array(
        select t.id from files t where t.app_id = ${erasure.appId} and ${where(tx)} ${next}))
      returning blob_key`;
    return { gone, found: gone.length };
  });
  await tx`
    update doomed_blobs set erasure_id = ${erasure.id} where app_id = ${erasure.appId}
      and blob_key = any(${gone.map(({ blobKey }) => blobKey)}::text[])`;
  await addCount(tx, erasure, 'files', gone.length);
  return gone.length > 0;
}
