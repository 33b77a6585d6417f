import type { StemLanguage } from '../../content/terms.ts';
import type { Db, Statement } from '../../db/database.ts';
import { analysisVersion, type SourceKey } from './store.ts';

export function pageIndexes(db: Db, after: SourceKey | undefined, count: number) {
  return db<SourceKey[]>`
    select app_id, source_id from knowledge_indexes
    where ${after === undefined ? db`true` : db`(app_id, source_id) > (${after.appId}, ${after.sourceId})`}
    order by app_id, source_id limit ${count}`;
}

type Counters = { chunkCount: number; wordCount: number; restrictedChunks: number };

/** The counters of the index, and the counts of its actual documents. */
export async function compareCounters(db: Db, { appId, sourceId }: SourceKey) {
  return db<{ isCurrent: boolean; counted: Counters; actual: Counters }[]>`
    select i.analysis = ${analysisVersion} as is_current,
      jsonb_build_object('chunkCount', i.chunk_count, 'wordCount', i.word_count,
        'restrictedChunks', i.restricted_chunks) as counted,
      jsonb_build_object('chunkCount', d.chunks, 'wordCount', d.words,
        'restrictedChunks', d.restricted) as actual
    from knowledge_indexes i, lateral (
      select coalesce(sum(chunk_count), 0) as chunks, coalesce(sum(word_count), 0) as words,
        coalesce(sum(chunk_count) filter (where acl_id is not null), 0) as restricted from knowledge_documents
      where app_id = i.app_id and source_id = i.source_id) d
    where i.app_id = ${appId} and i.source_id = ${sourceId}`.first();
}

export type CheckedDocument = {
  id: string;
  title: string | null;
  language: StemLanguage;
  firstOrdinal: number;
  chunkCount: number;
  content: Buffer | null;
  isWhole: boolean;
  vectorsMissing: number;
};

/** A document's place in the order of checks. `createdAt` is text, because a `Date` has no microseconds. */
export type DocumentPlace = { id: string; createdAt: string };

/** The next older document with its text. Returns one at a time, because texts are long. */
export async function findNextDocument(db: Db, { appId, sourceId }: SourceKey, after: DocumentPlace | undefined) {
  // An index has this order, so each call reads one row instead of all that are left.
  const beyond: Statement = after
    ? db`(d.created_at, d.id) < (${after.createdAt}::text::timestamptz, ${after.id})`
    : db`true`;
  return db<(CheckedDocument & DocumentPlace)[]>`
    select d.id, d.created_at::text as created_at, d.title, d.language, d.first_ordinal, d.chunk_count, t.content,
      coalesce(sha256(t.content) = d.content_hash, false) as is_whole,
      case when d.embedding_model is null then 0 else d.chunk_count - (
        select count(*)::int from knowledge_vectors v
        where v.app_id = ${appId} and v.source_id = d.source_id and v.model = d.embedding_model
          and v.ordinal >= d.first_ordinal and v.ordinal < d.first_ordinal + d.chunk_count) end as vectors_missing
    from knowledge_documents d left join knowledge_texts t on t.app_id = d.app_id and t.document_id = d.id
    where d.app_id = ${appId} and d.source_id = ${sourceId} and d.chunk_count > 0 and ${beyond}
    order by d.created_at desc, d.id desc limit 1`.first();
}

export function listCheckedChunks(db: Db, { appId, sourceId }: SourceKey, document: CheckedDocument) {
  return db<{ ordinal: number; startByte: number; endByte: number; headingPath: string[]; hash: Buffer }[]>`
    select ordinal, start_byte, end_byte, heading_path, hash from knowledge_chunks
    where app_id = ${appId} and source_id = ${sourceId} and document_id = ${document.id}
      and ordinal >= ${document.firstOrdinal} and ordinal < ${document.firstOrdinal + document.chunkCount}
    order by ordinal`;
}

export function listBundles(db: Db, { appId, sourceId }: SourceKey) {
  return db<{ content: Buffer }[]>`
    select content from knowledge_bundles where app_id = ${appId} and source_id = ${sourceId} order by first_ordinal`;
}

export function listSegments(db: Db, { appId, sourceId }: SourceKey) {
  return db<{ segment: number }[]>`
    select segment from knowledge_segments where app_id = ${appId} and source_id = ${sourceId} order by segment`;
}

export function pagePostings(db: Db, appId: string, segment: number, after: string | undefined, count: number) {
  const beyond: Statement = after === undefined ? db`true` : db`term > ${after} collate "C"`;
  return db<{ term: string; postings: Buffer; positions: Buffer }[]>`
    select term, postings, positions from knowledge_postings
    where app_id = ${appId} and segment = ${segment} and ${beyond} order by term limit ${count}`;
}

/** Corrects the counters, and marks the index so that a job reads the words of all texts again. */
export async function markForReading(db: Db, { appId, sourceId }: SourceKey): Promise<void> {
  await db`
    update knowledge_indexes i set analysis = -1, chunk_count = d.chunks, word_count = d.words,
      restricted_chunks = d.restricted
    from (select coalesce(sum(chunk_count), 0) as chunks, coalesce(sum(word_count), 0) as words,
        coalesce(sum(chunk_count) filter (where acl_id is not null), 0) as restricted
      from knowledge_documents where app_id = ${appId} and source_id = ${sourceId}) d
    where i.app_id = ${appId} and i.source_id = ${sourceId}`;
}
