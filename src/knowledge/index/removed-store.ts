import type { Db, Transaction } from '../../db/database.ts';
import { isInUse } from '../../db/fences.ts';
import { deleteModel } from '../learning/store.ts';
import type { SourceKey } from './store.ts';

/** Sources that were deleted, and whose index was not yet. */
export function listRemovedSources(db: Db, count: number) {
  return db<SourceKey[]>`
    select app_id, source_id from removed_knowledge_sources s where ${isInUse(db, 's.app_id')} limit ${count}`;
}

/** Deletes the index of a deleted source. */
export async function deleteRemovedIndex(tx: Transaction, { appId, sourceId }: SourceKey): Promise<void> {
  const of = tx`app_id = ${appId} and source_id = ${sourceId}`;
  await tx`delete from knowledge_postings where app_id = ${appId} and segment in (
    select segment from knowledge_segments where ${of})`;
  await tx`delete from knowledge_segments where ${of}`;
  await tx`delete from knowledge_bundles where ${of}`;
  await tx`delete from knowledge_dead_ranges where ${of}`;
  await tx`delete from knowledge_vectors where ${of}`;
  await tx`delete from knowledge_codes where ${of}`;
  await deleteModel(tx, { appId, sourceId });
  await tx`delete from knowledge_chunks where ${of}`;
  await tx`delete from crawled_pages where app_id = ${appId} and collection_id = ${sourceId}`;
  await tx`delete from crawls where app_id = ${appId} and collection_id = ${sourceId}`;
  await tx`delete from removed_knowledge_sources where ${of}`;
}
