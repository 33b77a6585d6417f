import type { Db, Statement } from '../../db/database.ts';
import { deleteBatch } from '../../db/delete-batch.ts';
import { isInUse } from '../../db/fences.ts';
import type { SourceKey } from './store.ts';

/** Sources that were deleted, and whose index was not yet. */
export function listRemovedSources(db: Db, count: number) {
  return db<SourceKey[]>`
    select app_id, source_id from removed_knowledge_sources s where ${isInUse(db, 's.app_id')} limit ${count}`;
}

/** Rows that one statement deletes. */
const batchRows = 2_000;

/** What a deleted source leaves behind, by the column with its id. The last row says that there is something left. */
const columnOf = {
  knowledge_segments: 'source_id',
  knowledge_bundles: 'source_id',
  knowledge_dead_ranges: 'source_id',
  knowledge_vectors: 'source_id',
  knowledge_codes: 'source_id',
  knowledge_models: 'source_id',
  knowledge_model_terms: 'source_id',
  knowledge_model_codes: 'source_id',
  knowledge_chunks: 'source_id',
  crawled_pages: 'collection_id',
  crawls: 'collection_id',
  removed_knowledge_sources: 'source_id',
};

/**
 * Deletes the index of a deleted source. It may have millions of rows, so each batch has a transaction of its own: new event
 * streams of all apps and vacuum wait for long ones. May be repeated.
 */
export async function purgeSource(db: Db, { appId, sourceId }: SourceKey): Promise<void> {
  const segments = db`select segment from knowledge_segments where app_id = ${appId} and source_id = ${sourceId}`;
  await deleteAll(db, appId, 'knowledge_postings', db`segment in (${segments})`);
  for (const [table, column] of Object.entries(columnOf))
    await deleteAll(db, appId, table, db`${db(column)} = ${sourceId}`);
}

async function deleteAll(db: Db, appId: string, table: string, where: Statement): Promise<void> {
  while ((await deleteBatch(db, { appId, table, where, limit: batchRows })).found > 0);
}
