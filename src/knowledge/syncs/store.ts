import type { Db, Transaction } from '../../db/database.ts';
import { sweepRows } from '../../db/delete-batch.ts';
import { readWithTotal } from '../../db/pages.ts';
import type { PageRequest } from '../../http/route/pages.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { sourceWhollyVisible } from '../../tenancy/document-readers.ts';
import type { SourceKey } from '../index/store.ts';
import type { ItemContent } from '../ingestion/store.ts';
import { jsonOrNull, sourceVisible } from '../sources/store.ts';

export type SyncStats = {
  written: number;
  unchanged: number;
  outdated: number;
  deleted: number;
  failed: number;
  errors: { external_id: string; code: string; message: string }[];
};

export type SyncRow = {
  appId: string;
  id: string;
  sourceId: string;
  mode: 'full' | 'changes';
  status: 'active' | 'completing' | 'succeeded' | 'aborted';
  fence: number;
  isResumed: boolean;
  cursor: string | null;
  batches: number;
  upserts: number;
  /** The documents that the source had when the sync began, as far as connectors had sent them. */
  documentsBefore: number;
  stats: Partial<SyncStats>;
  ttlSeconds: number;
  expiresAt: Date;
  createdAt: Date;
  updatedAt: Date;
  completedAt: Date | null;
};

/** A sync with the number of its items that are not in the index yet. */
export type SyncView = SyncRow & { pending: number };

export type SyncItem = ItemContent & {
  appId: string;
  sourceId: string;
  position: number;
  syncId: string;
  externalId: string;
  externalOrder: number | null;
  isDeletion: boolean;
  sourceUrl: string | null;
  /** The bytes of its content; null for a file. */
  size: number | null;
};

export type NewSyncItem = Omit<SyncItem, 'appId' | 'sourceId' | 'position' | 'syncId' | 'size'>;

export type SyncState = { fence: number; cursor: string | null; nextPosition: number };

/** The document of an external id, as far as a sync must know it. */
export type ExternalDocument = {
  id: string;
  externalOrder: number | null;
  bytesHash: Buffer;
  title: string | null;
  metadata: Record<string, unknown>;
  sourceUrl: string | null;
};

/** Locks what the syncs of a source share, and creates it if necessary. Lock the source first. */
export async function lockState(tx: Transaction, { appId, sourceId }: SourceKey): Promise<SyncState> {
  await tx`
    insert into knowledge_sync_states (app_id, source_id) values (${appId}, ${sourceId}) on conflict do nothing`;
  return tx<[SyncState]>`
    select fence, cursor, next_position from knowledge_sync_states
    where app_id = ${appId} and source_id = ${sourceId} for update`.first();
}

export async function updateState(tx: Db, { appId, sourceId }: SourceKey, state: SyncState): Promise<void> {
  await tx`
    update knowledge_sync_states set fence = ${state.fence}, cursor = ${state.cursor},
      next_position = ${state.nextPosition}
    where app_id = ${appId} and source_id = ${sourceId}`;
}

/** Gives the items of a source to one process. Returns false if another one has them, or there was never a sync. */
export async function claimItems(db: Db, { appId, sourceId }: SourceKey, holder: string, seconds: number) {
  return db`
    update knowledge_sync_states set lease_holder = ${holder},
      lease_until = now() + make_interval(secs => ${seconds})
    where app_id = ${appId} and source_id = ${sourceId} and (lease_until is null or lease_until < now())`.any();
}

export async function renewItems(db: Db, { appId, sourceId }: SourceKey, holder: string, seconds: number) {
  return db`
    update knowledge_sync_states set lease_until = now() + make_interval(secs => ${seconds})
    where app_id = ${appId} and source_id = ${sourceId} and lease_holder = ${holder}`.any();
}

export async function releaseItems(db: Db, { appId, sourceId }: SourceKey, holder: string): Promise<void> {
  await db`
    update knowledge_sync_states set lease_holder = null, lease_until = null
    where app_id = ${appId} and source_id = ${sourceId} and lease_holder = ${holder}`;
}

/** Whether the process still has the items of the source; if so, it keeps them until the transaction ends. */
export async function lockItems(tx: Transaction, { appId, sourceId }: SourceKey, holder: string): Promise<boolean> {
  return tx`
    select 1 from knowledge_sync_states
    where app_id = ${appId} and source_id = ${sourceId} and lease_holder = ${holder} for update`.any();
}

export async function insertSync(
  db: Db,
  sync: Pick<SyncRow, 'appId' | 'id' | 'sourceId' | 'mode' | 'fence' | 'cursor' | 'ttlSeconds' | 'expiresAt'>,
): Promise<SyncRow> {
  return db<[SyncRow]>`
    insert into knowledge_syncs (app_id, id, source_id, mode, fence, cursor, documents_before, ttl_seconds, expires_at)
    values (${sync.appId}, ${sync.id}, ${sync.sourceId}, ${sync.mode}, ${sync.fence}, ${sync.cursor},
      (select count(*) from knowledge_documents where app_id = ${sync.appId} and source_id = ${sync.sourceId}
        and external_id is not null), ${sync.ttlSeconds}, ${sync.expiresAt})
    returning *`.first();
}

export async function findLive(db: Db, { appId, sourceId }: SourceKey): Promise<SyncRow | undefined> {
  return db<SyncRow[]>`
    select * from knowledge_syncs
    where app_id = ${appId} and source_id = ${sourceId} and status in ('active', 'completing')`.first();
}

export async function lockSync(tx: Transaction, appId: string, id: string): Promise<SyncRow | undefined> {
  return tx<SyncRow[]>`select * from knowledge_syncs where app_id = ${appId} and id = ${id} for update`.first();
}

export async function updateSync(
  db: Db,
  { appId, id }: Pick<SyncRow, 'appId' | 'id'>,
  change: Pick<
    SyncRow,
    'status' | 'fence' | 'isResumed' | 'cursor' | 'batches' | 'upserts' | 'ttlSeconds' | 'expiresAt'
  >,
): Promise<void> {
  await db`
    update knowledge_syncs set status = ${change.status}, fence = ${change.fence}, is_resumed = ${change.isResumed},
      cursor = ${change.cursor}, batches = ${change.batches}, upserts = ${change.upserts},
      ttl_seconds = ${change.ttlSeconds}, expires_at = ${change.expiresAt}, updated_at = now()
    where app_id = ${appId} and id = ${id}`;
}

/** Ends a sync and forgets the digests of its batches. */
export async function endSync(db: Db, appId: string, id: string, status: 'succeeded' | 'aborted'): Promise<void> {
  await db`
    update knowledge_syncs set status = ${status}, completed_at = now(), updated_at = now()
    where app_id = ${appId} and id = ${id}`;
  await db`delete from knowledge_sync_batches where app_id = ${appId} and sync_id = ${id}`;
}

/** Deletes the oldest ended syncs of a source, so that this many are left. Those with pending items stay. */
export async function deleteOldSyncs(db: Db, { appId, sourceId }: SourceKey, kept: number): Promise<void> {
  await db`
    delete from knowledge_syncs s where s.app_id = ${appId} and s.id in (
      select id from knowledge_syncs where app_id = ${appId} and source_id = ${sourceId}
      order by created_at desc, id desc offset ${kept})
      and s.status in ('succeeded', 'aborted')
      and not exists (select from knowledge_sync_items i where i.app_id = ${appId} and i.sync_id = s.id)`;
}

/** SQL: the columns of a SyncView `y`. */
function viewColumns(db: Db, appId: string) {
  return db`y.*, (select count(*) from knowledge_sync_items i where i.app_id = ${appId} and i.sync_id = y.id) as pending`;
}

export async function findSync(db: Db, caller: Caller, id: string): Promise<SyncView | undefined> {
  return db<SyncView[]>`
    select ${viewColumns(db, caller.appId)} from knowledge_syncs y
    join knowledge_sources s on s.app_id = y.app_id and s.id = y.source_id
    where y.id = ${id} and ${sourceVisible(db, caller, 's')} and ${sourceWhollyVisible(db, caller, 's')}`.first();
}

/** Whether the caller, who sees the source, sees all of its documents. Others do not see its syncs, which count them. */
export async function seesAllDocuments(db: Db, caller: Caller, { appId, sourceId }: SourceKey): Promise<boolean> {
  return db`
    select 1 from knowledge_sources s
    where s.app_id = ${appId} and s.id = ${sourceId} and ${sourceWhollyVisible(db, caller, 's')}`.any();
}

export async function listSyncs(
  db: Db,
  { appId, sourceId }: SourceKey,
  page: PageRequest,
): Promise<[SyncView[], number]> {
  return readWithTotal(
    db<SyncView[]>`
      select ${viewColumns(db, appId)} from knowledge_syncs y where y.app_id = ${appId} and y.source_id = ${sourceId}
      order by y.created_at desc, y.id desc limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from knowledge_syncs where app_id = ${appId} and source_id = ${sourceId}`,
  );
}

export async function findBatchDigest(db: Db, appId: string, syncId: string, number: number) {
  const [row] = await db<{ digest: Buffer }[]>`
    select digest from knowledge_sync_batches where app_id = ${appId} and sync_id = ${syncId} and number = ${number}`;
  return row?.digest;
}

/** Stores a batch: its digest, its changes after those before, and which documents it shows to exist. */
export async function insertBatch(
  tx: Transaction,
  sync: SyncRow,
  { number, digest, items, position }: { number: number; digest: Buffer; items: NewSyncItem[]; position: number },
): Promise<void> {
  const { appId, sourceId, id } = sync;
  await tx`
    insert into knowledge_sync_batches (app_id, sync_id, number, digest) values (${appId}, ${id}, ${number}, ${digest})`;
  for (const [i, item] of items.entries())
    await tx`
      insert into knowledge_sync_items (app_id, source_id, position, sync_id, external_id, external_order, is_deletion,
        file_id, content, is_text, content_type, filename, title, metadata, source_url)
      values (${appId}, ${sourceId}, ${position + i}, ${id}, ${item.externalId}, ${item.externalOrder},
        ${item.isDeletion}, ${item.fileId}, ${item.content}, ${item.isText}, ${item.contentType}, ${item.filename},
        ${item.title}, ${jsonOrNull(item.metadata)}::text::jsonb, ${item.sourceUrl})`;
  await tx`
    update knowledge_documents set external_seen_by = ${id}
    where app_id = ${appId} and source_id = ${sourceId}
      and external_id = any(${items.map(({ externalId }) => externalId)}::text[])`;
}

/** What waits to be indexed in a source. */
export async function measurePending(
  db: Db,
  { appId, sourceId }: SourceKey,
): Promise<{ items: number; bytes: number }> {
  return db<[{ items: number; bytes: number }]>`
    select count(*) as items, coalesce(sum(octet_length(content)), 0)::bigint as bytes
    from knowledge_sync_items where app_id = ${appId} and source_id = ${sourceId}`.first();
}

/** The next items of a source in order, without their contents. */
export function listItems(db: Db, { appId, sourceId }: SourceKey, count: number) {
  return db<SyncItem[]>`
    select app_id, source_id, position, sync_id, external_id, external_order, is_deletion, file_id,
      null::bytea as content, octet_length(content) as size, is_text, content_type, filename, title, metadata,
      source_url
    from knowledge_sync_items where app_id = ${appId} and source_id = ${sourceId} order by position limit ${count}`;
}

export async function readItemContent(db: Db, { appId, sourceId, position }: SyncItem): Promise<Buffer> {
  const [row] = await db<{ content: Buffer | null }[]>`
    select content from knowledge_sync_items
    where app_id = ${appId} and source_id = ${sourceId} and position = ${position}`;
  return row?.content ?? Buffer.alloc(0);
}

/** Returns false if it no longer exists: a person deleted its document meanwhile. */
export async function deleteItem(tx: Transaction, { appId, sourceId, position }: SyncItem): Promise<boolean> {
  return tx`
    delete from knowledge_sync_items
    where app_id = ${appId} and source_id = ${sourceId} and position = ${position}`.any();
}

/** Drops what waits for a document that is being deleted: the deletion wins. */
export async function deleteItemsOfDocument(db: Db, { appId, sourceId }: SourceKey, documentId: string): Promise<void> {
  await db`
    delete from knowledge_sync_items i using knowledge_documents d
    where d.app_id = ${appId} and d.id = ${documentId} and i.app_id = ${appId} and i.source_id = ${sourceId}
      and i.external_id = d.external_id`;
}

export async function findByExternalId(
  db: Db,
  { appId, sourceId }: SourceKey,
  externalId: string,
): Promise<ExternalDocument | undefined> {
  return db<ExternalDocument[]>`
    select id, external_order, bytes_hash, title, metadata, source_url from knowledge_documents
    where app_id = ${appId} and source_id = ${sourceId} and external_id = ${externalId}`.first();
}

export async function setExternal(
  db: Db,
  appId: string,
  documentId: string,
  external: { id: string; order: number | null; seenBy: string },
): Promise<void> {
  await db`
    update knowledge_documents set external_id = ${external.id}, external_order = ${external.order},
      external_seen_by = ${external.seenBy}
    where app_id = ${appId} and id = ${documentId}`;
}

export async function setStats(db: Db, appId: string, id: string, stats: SyncStats): Promise<void> {
  await db`
    update knowledge_syncs set stats = ${JSON.stringify(stats)}::text::jsonb, updated_at = now()
    where app_id = ${appId} and id = ${id}`;
}

export async function countUnseen(db: Db, { appId, sourceId }: SourceKey, syncId: string): Promise<number> {
  const [row] = await db<[{ unseen: number }]>`
    select count(*) as unseen from knowledge_documents
    where app_id = ${appId} and source_id = ${sourceId} and external_id is not null
      and external_seen_by is distinct from ${syncId}`;
  return row.unseen;
}

export async function listUnseen(db: Db, { appId, sourceId }: SourceKey, syncId: string, count: number) {
  const rows = await db<{ id: string }[]>`
    select id from knowledge_documents
    where app_id = ${appId} and source_id = ${sourceId} and external_id is not null
      and external_seen_by is distinct from ${syncId} limit ${count}`;
  return rows.map(({ id }) => id);
}

export async function findTombstone(db: Db, { appId, sourceId }: SourceKey, externalId: string) {
  const [row] = await db<{ externalOrder: number }[]>`
    select external_order from knowledge_tombstones
    where app_id = ${appId} and source_id = ${sourceId} and external_id = ${externalId}`;
  return row?.externalOrder;
}

export async function insertTombstone(db: Db, { appId, sourceId }: SourceKey, externalId: string, order: number) {
  await db`
    insert into knowledge_tombstones (app_id, source_id, external_id, external_order)
    values (${appId}, ${sourceId}, ${externalId}, ${order})
    on conflict (app_id, source_id, external_id) do update
      set external_order = excluded.external_order, deleted_at = excluded.deleted_at`;
}

export async function deleteTombstone(db: Db, { appId, sourceId }: SourceKey, externalId: string): Promise<void> {
  await db`
    delete from knowledge_tombstones
    where app_id = ${appId} and source_id = ${sourceId} and external_id = ${externalId}`;
}

export async function deleteOldTombstones(db: Db, before: Date): Promise<void> {
  await sweepRows(db, { table: 'knowledge_tombstones', order: 'deleted_at', where: db`t.deleted_at < ${before}` });
}
