import type { Database, Transaction } from '../../db/database.ts';
import { removeDocument } from '../index/indexing.ts';
import { lockIndex, type SourceKey } from '../index/store.ts';
import { insertPullRemoval } from '../ingestion/store.ts';
import { discardModel } from '../learning/store.ts';
import { deleteItemsOfDocument } from '../syncs/store.ts';
import { findLastVersion } from '../versions/store.ts';
import { type DocumentRow, findDocumentById } from './store.ts';

/** What erasing a document needs of the index. */
export type ErasedDocuments = {
  /** Removes every word that was indexed before `boundary`, and is no longer in a document, from the index. */
  compact(key: SourceKey, boundary: number, signal: AbortSignal): Promise<void>;
};

const compactionsMax = 20;

export function createErasedDocuments(
  db: Database,
  compactSource: (key: SourceKey, signal?: AbortSignal) => Promise<void>,
): ErasedDocuments {
  /** Whether the index has no word from before the boundary. */
  async function isCompacted({ appId, sourceId }: SourceKey, boundary: number): Promise<boolean> {
    const rows = await db`
      select from knowledge_indexes where app_id = ${appId} and source_id = ${sourceId} and first_ordinal < ${boundary}`;
    return rows.length === 0;
  }

  return {
    async compact(key, boundary, signal) {
      // A merge of segments in the middle of a compaction makes it keep them, so it may take more than one.
      for (let time = 0; time < compactionsMax; time += 1) {
        if (await isCompacted(key, boundary)) return;
        await compactSource(key, signal);
        signal.throwIfAborted();
      }
      throw new Error('The search index is still being merged.');
    },
  };
}

/**
 * Deletes a document with its versions and all that was made of it and can be told apart. Its words stay in the index
 * until that is compacted beyond `boundary`. Returns undefined if nothing of it is left.
 */
export async function eraseDocumentRows(tx: Transaction, appId: string, id: string) {
  const sourceId =
    (await findDocumentById(tx, appId, id))?.sourceId ?? (await findLastVersion(tx, appId, id))?.sourceId;
  if (sourceId === undefined) return undefined;
  const key = { appId, sourceId };
  const index = await lockIndex(tx, key);
  if (index === undefined) return undefined;
  const document = await findDocumentById(tx, appId, id);
  const versions = await deleteVersions(tx, appId, id);
  const counts = document === undefined ? {} : await eraseLive(tx, key, document);
  // The deletion of the document may have added one.
  await deleteVersions(tx, appId, id);
  await tx`delete from knowledge_ingestion_items where app_id = ${appId} and document_id = ${id}`;
  const ingestions = await tx`
    delete from knowledge_ingestions where app_id = ${appId} and source_id = ${key.sourceId}
      and metadata ->> 'document' = ${id}`;
  const events = await tx`delete from events where app_id = ${appId} and subject_id = ${id}`;
  const answers = await tx`delete from openai_responses where app_id = ${appId} and ${id}::uuid = any(document_ids)`;
  return {
    sourceId,
    boundary: index.nextOrdinal,
    fileIds: [...new Set([document?.fileId ?? [], ...versions.map(({ fileId }) => fileId ?? [])].flat())],
    counts: {
      ...counts,
      versions: versions.length,
      ingestions: ingestions.count,
      events: events.count,
      answers: answers.count,
    },
  };
}

function deleteVersions(tx: Transaction, appId: string, id: string) {
  return tx<{ fileId: string | null }[]>`
    delete from knowledge_versions where app_id = ${appId} and document_id = ${id} returning file_id`;
}

async function eraseLive(tx: Transaction, key: SourceKey, document: DocumentRow) {
  const { appId, id } = document;
  const end = document.firstOrdinal + document.chunkCount;
  const [vectors] = await tx<[{ total: number }]>`
    select count(*)::integer as total from knowledge_vectors where app_id = ${appId} and source_id = ${key.sourceId}
      and ordinal >= ${document.firstOrdinal} and ordinal < ${end}`;
  const models = await tx`
    select from knowledge_models where app_id = ${appId} and source_id = ${key.sourceId}
      and (dimensions > 0 or lease_holder is not null)`;
  await insertPullRemoval(tx, appId, key.sourceId, document.externalId ?? document.sourceUrl);
  await deleteItemsOfDocument(tx, key, id);
  await removeDocument(tx, key, id);
  await discardModel(tx, key);
  return {
    documents: 1,
    texts: 1,
    chunks: document.chunkCount,
    postings: document.wordCount,
    vectors: vectors.total,
    learned_models: models.length,
  };
}
