import type { Db, Statement } from '../../db/database.ts';
import { type Keyset, type KeysetPage, readKeyset } from '../../db/pages.ts';
import { isSetAside } from '../../jobs/set-aside.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { documentVisible, ingestionVisible } from '../../tenancy/document-readers.ts';
import type { SourceKey } from '../index/store.ts';
import type { IngestionError } from '../ingestion/store.ts';
import { sourceVisible } from '../sources/store.ts';

export type AttachmentStatus = 'completed' | 'in_progress' | 'failed' | 'cancelled';

/** A file of a source: the document created from it, or the state of the attempt. */
export type Attachment = {
  /** The id of the file, or of a document without a file. */
  id: string;
  hasFile: boolean;
  documentId: string | null;
  status: AttachmentStatus;
  error: IngestionError | null;
  bytes: number;
  metadata: Record<string, unknown>;
  createdAt: Date;
};

/** The error of an ingestion whose job is no longer retried. */
const setAside: IngestionError = {
  code: 'internal_error',
  message: 'Processing was interrupted too often and is not repeated.',
};

/** SQL: the job of the ingestion `i` is set aside. */
const isStuck = (db: Db) => isSetAside(db, db`i.app_id`, db`'ingest/' || i.id`);

/**
 * SQL: the attachments of sources, each once. A document takes precedence over an attempt, and a later one over an
 * earlier one. Documents and ingestions that are hidden from the caller do not count. `file` restricts them to one id.
 */
function attachments(db: Db, caller: Caller, sourceIds: readonly string[], file?: string): Statement {
  const { appId } = caller;
  const sources = db`any(${[...sourceIds]}::uuid[])`;
  return db`
    (select d.source_id, coalesce(d.file_id, d.id) as id, d.file_id is not null as has_file, d.id as document_id,
      'completed' as status, null::jsonb as error, d.total_size as bytes, d.metadata, d.created_at
    from knowledge_documents d
    where d.app_id = ${appId} and d.source_id = ${sources}
      and ${file === undefined ? db`true` : db`(d.file_id = ${file} or (d.id = ${file} and d.file_id is null))`}
      and ${documentVisible(db, caller, 'd')}
      and not exists (select from knowledge_documents t where t.app_id = ${appId} and t.source_id = d.source_id
        and t.file_id = d.file_id and t.id > d.id and ${documentVisible(db, caller, 't')})
    union all
    select i.source_id, a.file_id, true, null, case when a.state = 'pending' and not stuck then 'in_progress'
        when a.result -> 'error' ->> 'code' = 'cancelled' then 'cancelled' else 'failed' end,
      case when a.state = 'pending' and stuck then ${JSON.stringify(setAside)}::text::jsonb else a.result -> 'error' end,
      0, coalesce(a.metadata, '{}'), i.created_at
    from knowledge_ingestion_items a
      join knowledge_ingestions i on i.app_id = a.app_id and i.id = a.ingestion_id
      cross join lateral (select a.state = 'pending' and ${isStuck(db)} as stuck) s
    where a.app_id = ${appId} and i.source_id = ${sources} and a.state <> 'done' and a.file_id is not null
      and ${ingestionVisible(db, caller, 'i')} and ${file === undefined ? db`true` : db`a.file_id = ${file}`}
      and not exists (select from knowledge_documents d where d.app_id = ${appId} and d.source_id = i.source_id
        and d.file_id = a.file_id and ${documentVisible(db, caller, 'd')})
      and not exists (select from knowledge_ingestion_items b
        join knowledge_ingestions j on j.app_id = b.app_id and j.id = b.ingestion_id
        where b.app_id = ${appId} and b.file_id = a.file_id and j.source_id = i.source_id and b.state <> 'done'
          and ${ingestionVisible(db, caller, 'j')} and (b.ingestion_id, b.ordinal) > (a.ingestion_id, a.ordinal)))`;
}

export async function findAttachment(
  db: Db,
  caller: Caller,
  { sourceId }: SourceKey,
  file: string,
): Promise<Attachment | undefined> {
  return db<Attachment[]>`select f.* from ${attachments(db, caller, [sourceId], file)} f`.first();
}

type AttachmentFilter = { status?: AttachmentStatus | undefined; files?: readonly string[] | undefined };

export function listAttachments(
  db: Db,
  caller: Caller,
  { sourceId }: SourceKey,
  keyset: Keyset,
  { status, files }: AttachmentFilter,
): Promise<KeysetPage<Attachment>> {
  return readKeyset(
    db,
    db`f.id`,
    keyset,
    ({ where, order, limit }) => db<Attachment[]>`
      select f.* from ${attachments(db, caller, [sourceId])} f
      where ${where} and ${status === undefined ? db`true` : db`f.status = ${status}`}
        and ${files === undefined ? db`true` : db`f.id = any(${[...files]}::uuid[])`}
      order by ${order} limit ${limit}`,
  );
}

type Tally = { sourceId: string; status: AttachmentStatus; count: number; bytes: number };

/** Counts the attachments of sources by status, and their bytes of text. */
export function tallyAttachments(db: Db, caller: Caller, sourceIds: readonly string[]): Promise<Tally[]> {
  if (sourceIds.length === 0) return Promise.resolve([]);
  return db<Tally[]>`
    select f.source_id, f.status, count(*)::int as count, sum(f.bytes)::bigint as bytes
    from ${attachments(db, caller, sourceIds)} f group by f.source_id, f.status`;
}

export async function isIngestionStuck(db: Db, appId: string, id: string): Promise<boolean> {
  const [row] = await db<[{ stuck: boolean }?]>`
    select ${isStuck(db)} as stuck from knowledge_ingestions i
    where i.app_id = ${appId} and i.id = ${id} and i.status in ('pending', 'running')`;
  return row?.stuck === true;
}

/** The ingestions of files whose jobs are set aside. */
export async function listStuckIngestions(
  db: Db,
  { appId, sourceId }: SourceKey,
  files: readonly string[],
): Promise<string[]> {
  const rows = await db<{ id: string }[]>`
    select distinct i.id from knowledge_ingestion_items a
      join knowledge_ingestions i on i.app_id = a.app_id and i.id = a.ingestion_id
    where a.app_id = ${appId} and a.file_id = any(${[...files]}::uuid[]) and a.state = 'pending'
      and i.source_id = ${sourceId} and ${isStuck(db)}`;
  return rows.map((row) => row.id);
}

/** Deletes the attempts that did not succeed. */
export async function deleteFailedItems(
  db: Db,
  { appId, sourceId }: SourceKey,
  files: readonly string[],
): Promise<number> {
  const { count } = await db`
    delete from knowledge_ingestion_items a using knowledge_ingestions i
    where a.app_id = ${appId} and a.file_id = any(${[...files]}::uuid[]) and a.state = 'failed'
      and i.app_id = a.app_id and i.id = a.ingestion_id and i.source_id = ${sourceId}
      and i.status in ('succeeded', 'failed')`;
  return count;
}

export async function updateFailedItem(
  db: Db,
  { appId, sourceId }: SourceKey,
  file: string,
  metadata: Record<string, unknown>,
): Promise<void> {
  await db`
    update knowledge_ingestion_items a set metadata = ${JSON.stringify(metadata)}::text::jsonb
    from knowledge_ingestions i
    where a.app_id = ${appId} and a.file_id = ${file} and a.state = 'failed'
      and i.app_id = a.app_id and i.id = a.ingestion_id and i.source_id = ${sourceId}`;
}

/** The documents of a source that were created from a file, or the one with this id that has no file. */
export async function listAttachedDocuments(
  db: Db,
  caller: Caller,
  { appId, sourceId }: SourceKey,
  file: string,
): Promise<string[]> {
  const rows = await db<{ id: string }[]>`
    select d.id from knowledge_documents d where d.app_id = ${appId} and d.source_id = ${sourceId}
      and (d.file_id = ${file} or (d.id = ${file} and d.file_id is null)) and ${documentVisible(db, caller, 'd')}`;
  return rows.map((row) => row.id);
}

/** A page of the visible sources that contain a file, starting after one of them. */
export async function listSourcesOfFile(db: Db, caller: Caller, file: string, after: string, count: number) {
  const rows = await db<{ id: string }[]>`
    select s.id from knowledge_sources s where ${sourceVisible(db, caller, 's')} and s.id > ${after}::uuid
      and (exists (select from knowledge_documents d
          where d.app_id = ${caller.appId} and d.source_id = s.id and d.file_id = ${file}
            and ${documentVisible(db, caller, 'd')})
        or exists (select from knowledge_ingestion_items a
          join knowledge_ingestions i on i.app_id = a.app_id and i.id = a.ingestion_id
          where a.app_id = ${caller.appId} and a.file_id = ${file} and i.source_id = s.id))
    order by s.id limit ${count}`;
  return rows.map((row) => row.id);
}

/** The file of each document, with its name. Documents without a file are absent. */
export function listFilesOfDocuments(db: Db, appId: string, documents: readonly string[]) {
  return db<{ documentId: string; fileId: string; filename: string }[]>`
    select d.id as document_id, f.id as file_id, f.filename
    from knowledge_documents d join files f on f.app_id = d.app_id and f.id = d.file_id
    where d.app_id = ${appId} and d.id = any(${[...documents]}::uuid[])`;
}
