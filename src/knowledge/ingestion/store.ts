/*
 * Triggers of knowledge_ingestions: ingestions_ended emits an event when an ingestion has ended; ingestions_changed
 * counts its versions and announces each to streams, and ingestions_removed that an unfinished one was deleted.
 * ingestions_admit refuses a lease to processes of older releases if they do not know this kind of work.
 */
import { hashUrl } from '../../crawls/store.ts';
import { joinBytes } from '../../db/bytes.ts';
import type { Db, Statement, Transaction } from '../../db/database.ts';
import { readWithTotal } from '../../db/pages.ts';
import type { PageRequest } from '../../http/route/pages.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { ingestionVisible } from '../../tenancy/document-readers.ts';
import { type Owned, sandboxIsThere } from '../../tenancy/visible.ts';
import { lockIndex, lockSource } from '../index/store.ts';
import { aclsOfRestore, aclsOfSource } from '../permissions/store.ts';
import { type IngestionStatus, jsonOrNull, sourceVisible } from '../sources/store.ts';

export type IngestionError = { code: string; message: string };

export type IngestionRow = {
  appId: string;
  id: string;
  sourceId: string;
  status: IngestionStatus;
  queued: boolean;
  kind: 'push' | 'pull' | 'replace' | 'batch' | 'restore';
  metadata: Record<string, unknown>;
  stats: Record<string, unknown>;
  error: IngestionError | null;
  leaseUntil: Date | null;
  version: number;
  /** Its readers see the documents of all of these lists of grants; null for every reader of the source. */
  aclIds: string[] | null;
  startedAt: Date | null;
  completedAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
};

/** An ingestion with the owner columns of its source, which responses contain. */
export type IngestionView = IngestionRow & Owned;

/** What an item of an ingestion or of a sync says about its document. */
export type ItemContent = {
  fileId: string | null;
  content: Buffer | null;
  isText: boolean;
  contentType: string | null;
  filename: string | null;
  title: string | null;
  metadata: Record<string, unknown> | null;
};

export type ItemRow = ItemContent & {
  appId: string;
  ingestionId: string;
  ordinal: number;
  state: 'pending' | 'done' | 'failed';
  documentId: string | null;
  dedupe: boolean;
  /** With `hasAcl`, the list of grants of the document, or null for every reader. */
  aclId: string | null;
  hasAcl: boolean;
  /** The bytes of its content; null for a file. */
  size: number | null;
  result: Record<string, unknown> | null;
};

export type NewItem = ItemContent & Pick<ItemRow, 'documentId' | 'dedupe'> & Partial<Pick<ItemRow, 'aclId' | 'hasAcl'>>;

type NewIngestionRow = Pick<IngestionRow, 'id' | 'kind' | 'metadata'> & { items: readonly NewItem[] };

/**
 * Inserts ingestions of one source with their items, and returns them in this order. An active one is not inserted if
 * another one of the source is active.
 * @param isLast whether nothing else follows in the transaction, which then commits with it; only for those that queue
 */
export async function insertIngestions(
  db: Db,
  { appId, sourceId, queued }: Pick<IngestionRow, 'appId' | 'sourceId' | 'queued'>,
  ingestions: readonly NewIngestionRow[],
  isLast: boolean,
): Promise<IngestionRow[]> {
  const statement = db<IngestionRow[]>`
    with made as (
      insert into knowledge_ingestions (app_id, id, source_id, kind, queued, metadata, acl_ids)
      select ${appId}, n.id, ${sourceId}, n.kind, ${queued}, n.metadata, ${aclsOf(db, { appId, sourceId }, ingestions)}
      from unnest(${ingestions.map(({ id }) => id)}::uuid[], ${ingestions.map(({ kind }) => kind)}::text[],
        ${ingestions.map(({ metadata }) => JSON.stringify(metadata))}::text[]::jsonb[],
        ${ingestions.map(({ items }) => arrayOf(items.flatMap(({ hasAcl, aclId }) => (hasAcl ? (aclId ?? []) : []))))}::text[],
        ${ingestions.map(({ items }) => arrayOf(items.flatMap(({ documentId }) => documentId ?? [])))}::text[])
        n (id, kind, metadata, given_acls, replaced)
      on conflict (app_id, source_id)
        where status in ('pending', 'running', 'awaiting_callback') and not queued do nothing
      returning *),
    items as (${insertItems(db, ingestions)})
    select * from made order by id`;
  return isLast ? db.runLast(statement) : statement;
}

/** Ids as one element of an array: PostgreSQL has no arrays of arrays of different lengths. */
function arrayOf(ids: readonly string[]): string {
  return `{${ids.join(',')}}`;
}

/** SQL: the lists of grants of the documents that the ingestion `n` concerns. Only contents come several together. */
function aclsOf(
  db: Db,
  { appId, sourceId }: Pick<IngestionRow, 'appId' | 'sourceId'>,
  [first]: readonly NewIngestionRow[],
) {
  if (first?.kind === 'restore') return aclsOfRestore(db, appId, sourceId, first.metadata);
  if (first?.kind === 'pull') return aclsOfSource(db, appId, db`${sourceId}::uuid`);
  return db`(
    select array_agg(distinct a.id) from (
      select unnest(n.given_acls::uuid[]) as id
      union all select acl_id from knowledge_documents
        where app_id = ${appId} and id = any(n.replaced::uuid[]) and acl_id is not null) a)`;
}

/** SQL: inserts the items of those ingestions that are in `made`. */
function insertItems(db: Db, ingestions: readonly NewIngestionRow[]): Statement {
  const items = ingestions.flatMap(({ id, items: own }) => own.map((item, ordinal) => ({ ...item, id, ordinal })));
  const { all, starts, sizes } = joinBytes(items.map(({ content }) => content ?? Buffer.alloc(0)));
  return db`
    insert into knowledge_ingestion_items (app_id, ingestion_id, ordinal, document_id, file_id, content, is_text,
      content_type, filename, title, metadata, dedupe, acl_id, has_acl)
    select made.app_id, made.id, i.ordinal, i.document_id, i.file_id,
      case when i.has_content then substring(${all}::bytea from i.start for i.size) end, i.is_text, i.content_type,
      i.filename, i.title, i.metadata, i.dedupe, i.acl_id, i.has_acl
    from made, unnest(${items.map((item) => item.id)}::uuid[], ${items.map((item) => item.ordinal)}::int[],
      ${items.map((item) => item.documentId)}::uuid[],
      ${items.map((item) => item.fileId)}::uuid[], ${items.map((item) => item.content !== null)}::boolean[],
      ${starts}::int[], ${sizes}::int[], ${items.map((item) => item.isText)}::boolean[],
      ${items.map((item) => item.contentType)}::text[], ${items.map((item) => item.filename)}::text[],
      ${items.map((item) => item.title)}::text[], ${items.map((item) => jsonOrNull(item.metadata))}::text[]::jsonb[],
      ${items.map((item) => item.dedupe)}::boolean[], ${items.map((item) => item.aclId ?? null)}::uuid[],
      ${items.map((item) => item.hasAcl ?? false)}::boolean[])
      i (ingestion_id, ordinal, document_id, file_id, has_content, start, size, is_text, content_type, filename, title,
        metadata, dedupe, acl_id, has_acl)
    where made.id = i.ingestion_id`;
}

/** The active ingestion of a source, if there is one, and whether the caller may see it. */
export async function findActiveIngestion(db: Db, appId: string, sourceId: string, caller: Caller | undefined) {
  const visible = caller === undefined ? db`true` : ingestionVisible(db, caller, 'i');
  return db<(IngestionRow & { isVisible: boolean })[]>`
    select i.*, ${visible} as is_visible from knowledge_ingestions i
    where i.app_id = ${appId} and i.source_id = ${sourceId}
      and i.status in ('pending', 'running', 'awaiting_callback') and not i.queued`.first();
}

/** Sets the list of grants of the only document of an ingestion. */
export async function setIngestionAcl(db: Db, appId: string, id: string, aclId: string | null): Promise<void> {
  const acls = aclId === null ? null : [aclId];
  await db`update knowledge_ingestions set acl_ids = ${acls}::uuid[] where app_id = ${appId} and id = ${id}`;
}

/**
 * Keeps the active ingestion of a source active until the transaction ends: the process that ends it waits, and then
 * finds the ingestion that this transaction queued. Returns false if none is active.
 */
export async function lockActive(tx: Transaction, appId: string, sourceId: string): Promise<boolean> {
  const source = lockSource(tx, { appId, sourceId });
  const active = tx`
    select 1 from knowledge_ingestions where app_id = ${appId} and source_id = ${sourceId}
      and status in ('pending', 'running', 'awaiting_callback') and not queued for share`;
  // Sent together. The connection runs them in this order.
  const [{ count }] = await Promise.all([active, source]);
  return count > 0;
}

export async function findKind(db: Db, appId: string, id: string): Promise<IngestionRow['kind'] | undefined> {
  const [row] = await db<Pick<IngestionRow, 'kind'>[]>`
    select kind from knowledge_ingestions where app_id = ${appId} and id = ${id}`;
  return row?.kind;
}

export async function findIngestion(db: Db, caller: Caller, id: string): Promise<IngestionView | undefined> {
  return db<IngestionView[]>`
    select i.*, s.org_id, s.team_id, s.user_id, s.agent_id
    from knowledge_ingestions i join knowledge_sources s on s.app_id = i.app_id and s.id = i.source_id
    where i.id = ${id} and ${sourceVisible(db, caller, 's')} and ${ingestionVisible(db, caller, 'i')}`.first();
}

/** The ids of the ingestions that the caller may see. */
export async function filterVisibleIngestions(db: Db, caller: Caller, ids: readonly string[]): Promise<string[]> {
  const rows = await db<{ id: string }[]>`
    select i.id from knowledge_ingestions i join knowledge_sources s on s.app_id = i.app_id and s.id = i.source_id
    where i.id = any(${[...ids]}::uuid[]) and ${sourceVisible(db, caller, 's')}
      and ${ingestionVisible(db, caller, 'i')}`;
  return rows.map(({ id }) => id);
}

/** These ingestions of one app, without a visibility check: for streams that were authorized when they were opened. */
export function listIngestionsById(db: Db, appId: string, ids: readonly string[]): Promise<IngestionView[]> {
  return db<IngestionView[]>`
    select i.*, s.org_id, s.team_id, s.user_id, s.agent_id
    from knowledge_ingestions i join knowledge_sources s on s.app_id = i.app_id and s.id = i.source_id
    where i.app_id = ${appId} and i.id = any(${[...ids]}::uuid[])`;
}

export async function listIngestions(
  db: Db,
  caller: Caller,
  sourceId: string,
  page: PageRequest,
): Promise<[IngestionView[], number]> {
  const where = db`i.app_id = ${caller.appId} and i.source_id = ${sourceId} and ${ingestionVisible(db, caller, 'i')}`;
  return readWithTotal(
    db<IngestionView[]>`
      select i.*, s.org_id, s.team_id, s.user_id, s.agent_id
      from knowledge_ingestions i join knowledge_sources s on s.app_id = i.app_id and s.id = i.source_id
      where ${where}
      order by i.created_at desc, i.id desc limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from knowledge_ingestions i where ${where}`,
  );
}

/** Claims an unfinished ingestion that no process works on. Undefined if it has ended or is deleted, queued or held. */
export async function claimIngestion(
  db: Db,
  appId: string,
  id: string,
  holder: string,
  leaseSeconds: number,
): Promise<IngestionRow | undefined> {
  return db<IngestionRow[]>`
    update knowledge_ingestions i set status = 'running', started_at = coalesce(started_at, now()), updated_at = now(),
      lease_holder = ${holder}, known_to = ${holder}, lease_until = now() + make_interval(secs => ${leaseSeconds})
    where app_id = ${appId} and id = ${id} and status in ('pending', 'running') and not queued
      and (lease_until is null or lease_until < now()) and ${sourceIsThere(db, appId)}
    returning *`.first();
}

/** Whether an ingestion has ended, was deleted, or waits for another one. */
export async function isFinished(db: Db, appId: string, id: string): Promise<boolean> {
  const [row] = await db<{ status: string; queued: boolean }[]>`
    select status, queued from knowledge_ingestions i
    where app_id = ${appId} and id = ${id} and ${sourceIsThere(db, appId)}`;
  return row === undefined || row.queued || row.status === 'succeeded' || row.status === 'failed';
}

/** Extends the lease. Returns false if it was lost. */
export async function renewLease(db: Db, appId: string, id: string, holder: string, leaseSeconds: number) {
  return db`
    update knowledge_ingestions i set lease_until = now() + make_interval(secs => ${leaseSeconds})
    where app_id = ${appId} and id = ${id} and lease_holder = ${holder} and status = 'running' and ${sourceIsThere(db, appId)}`.any();
}

/** SQL: the sandbox of the ingestion `i` was not deleted. */
function sourceIsThere(db: Db, appId: string): Statement {
  return db`exists (select from knowledge_sources s where s.app_id = ${appId} and s.id = i.source_id
    and ${sandboxIsThere(db, 's.app_id', 's.sandbox_id')})`;
}

/** Releases the ingestion unfinished. */
export async function releaseLease(db: Db, appId: string, id: string, holder: string): Promise<void> {
  await db`update knowledge_ingestions set lease_until = null, lease_holder = null
    where app_id = ${appId} and id = ${id} and lease_holder = ${holder}`;
}

/**
 * Returns whether the holder has the ingestion, whose index is locked; if so, it keeps it until the transaction ends.
 */
export async function lockLease(tx: Transaction, appId: string, id: string, holder: string): Promise<boolean> {
  return tx`
    select 1 from knowledge_ingestions
    where app_id = ${appId} and id = ${id} and lease_holder = ${holder} and status = 'running' for update`.any();
}

export function listItems(db: Db, appId: string, ingestionId: string) {
  return db<ItemRow[]>`
    select app_id, ingestion_id, ordinal, state, document_id, file_id, null::bytea as content,
      octet_length(content) as size, is_text, content_type, filename, title, metadata, dedupe, acl_id, has_acl, result
    from knowledge_ingestion_items where app_id = ${appId} and ingestion_id = ${ingestionId} order by ordinal`;
}

/** An item of a queued ingestion. */
export type QueuedItem = ItemRow & Pick<IngestionRow, 'kind'>;

/** The items of the ingestions that run next after the active one of a source, in their order, without their contents. */
export function listFollowers(db: Db, appId: string, sourceId: string, count: number) {
  return db<QueuedItem[]>`
    select q.kind, i.app_id, i.ingestion_id, i.ordinal, i.state, i.document_id, i.file_id, null::bytea as content,
      octet_length(i.content) as size, i.is_text, i.content_type, i.filename, i.title, i.metadata, i.dedupe, i.acl_id,
      i.has_acl, i.result
    from (
      select id, kind, created_at from knowledge_ingestions
      where app_id = ${appId} and source_id = ${sourceId} and queued and status = 'pending'
      order by created_at, id limit ${count}) q
    left join knowledge_ingestion_items i on i.app_id = ${appId} and i.ingestion_id = q.id
    order by q.created_at, q.id, i.ordinal limit ${count}`;
}

/** Locks queued ingestions until the transaction ends. Returns false if one of them is no longer queued. */
export async function lockFollowers(tx: Transaction, appId: string, ids: readonly string[]): Promise<boolean> {
  const { count } = await tx`
    select 1 from knowledge_ingestions where app_id = ${appId} and id = any(${ids}::uuid[])
      and queued and status = 'pending' order by id for update`;
  return count === ids.length;
}

/** Ends pushes that have succeeded, in this order, and deletes their items. */
export async function endPushes(
  tx: Transaction,
  appId: string,
  ended: readonly { id: string; metadata: Record<string, unknown>; stats: Record<string, unknown> }[],
): Promise<void> {
  const ids = ended.map(({ id }) => id);
  await Promise.all([
    tx`
    update knowledge_ingestions i set status = 'succeeded', queued = false, metadata = i.metadata || e.metadata,
      stats = e.stats, started_at = coalesce(i.started_at, now()), completed_at = now(), updated_at = now(),
      lease_holder = null, lease_until = null
    from unnest(${ids}::uuid[], ${ended.map(({ metadata }) => JSON.stringify(metadata))}::text[]::jsonb[],
      ${ended.map(({ stats }) => JSON.stringify(stats))}::text[]::jsonb[]) e (id, metadata, stats)
    where i.app_id = ${appId} and i.id = e.id`,
    tx`
    delete from knowledge_ingestion_items where app_id = ${appId} and ingestion_id = any(${ids}::uuid[])`,
  ]);
}

/** The contents of items of one app. */
export function readItemContents(db: Db, appId: string, items: readonly Pick<ItemRow, 'ingestionId' | 'ordinal'>[]) {
  return db<(Pick<ItemRow, 'ingestionId' | 'ordinal'> & { content: Buffer | null })[]>`
    select i.ingestion_id, i.ordinal, i.content
    from unnest(${items.map(({ ingestionId }) => ingestionId)}::uuid[], ${items.map(({ ordinal }) => ordinal)}::int[])
      k (ingestion_id, ordinal)
    join knowledge_ingestion_items i on i.app_id = ${appId} and i.ingestion_id = k.ingestion_id and i.ordinal = k.ordinal`;
}

export async function finishItem(
  db: Db,
  item: Pick<ItemRow, 'appId' | 'ingestionId' | 'ordinal'>,
  state: 'done' | 'failed',
  result: Record<string, unknown>,
): Promise<void> {
  await db`
    update knowledge_ingestion_items set state = ${state}, result = ${JSON.stringify(result)}::text::jsonb
    where app_id = ${item.appId} and ingestion_id = ${item.ingestionId} and ordinal = ${item.ordinal}`;
}

/** Records that these items of an ingestion are done. */
export async function finishItems(
  db: Db,
  appId: string,
  ingestionId: string,
  items: readonly { ordinal: number; result: Record<string, unknown> }[],
): Promise<void> {
  await db`
    update knowledge_ingestion_items i set state = 'done', result = d.result
    from unnest(${items.map(({ ordinal }) => ordinal)}::int[],
      ${items.map(({ result }) => JSON.stringify(result))}::text[]::jsonb[]) d (ordinal, result)
    where i.app_id = ${appId} and i.ingestion_id = ${ingestionId} and i.ordinal = d.ordinal`;
}

/** Marks the ingestion as running without a lease holder. */
export async function startIngestion(db: Db, appId: string, id: string): Promise<void> {
  await db`
    update knowledge_ingestions set status = 'running', started_at = now(), updated_at = now()
    where app_id = ${appId} and id = ${id}`;
}

/** Locks and returns the ingestion, whose index is locked, if it is running. */
export async function lockRunning(
  tx: Transaction,
  appId: string,
  id: string,
): Promise<(IngestionRow & { namesEmbedder: boolean }) | undefined> {
  return tx<(IngestionRow & { namesEmbedder: boolean })[]>`
    select i.*, exists (select from knowledge_embedders e where e.app_id = ${appId} and e.source_id = i.source_id
      and e.serving_name is not null) as names_embedder
    from knowledge_ingestions i where app_id = ${appId} and id = ${id} and status = 'running' for update of i`.first();
}

/** Locks the index of an ingestion's source, and the ingestion, which is returned unless it has ended. */
export async function lockUnfinished(tx: Transaction, appId: string, id: string): Promise<IngestionRow | undefined> {
  const [found] = await tx<{ sourceId: string }[]>`
    select source_id from knowledge_ingestions where app_id = ${appId} and id = ${id}`;
  if (found === undefined || !(await lockIndex(tx, { appId, sourceId: found.sourceId }))) return undefined;
  return tx<IngestionRow[]>`
    select * from knowledge_ingestions where app_id = ${appId} and id = ${id}
      and status in ('pending', 'running', 'awaiting_callback') for update`.first();
}

export async function setStats(db: Db, appId: string, id: string, stats: Record<string, unknown>): Promise<void> {
  await db`update knowledge_ingestions set stats = ${JSON.stringify(stats)}::text::jsonb, updated_at = now()
    where app_id = ${appId} and id = ${id}`;
}

/** Tells the active pull, if any, to skip a page that was deleted, or with null the source's file. */
export async function insertPullRemoval(db: Db, appId: string, sourceId: string, url: string | null): Promise<void> {
  await db`
    insert into knowledge_pull_removals (app_id, ingestion_id, url_hash)
    select app_id, id, ${hashUrl(url ?? '')} from knowledge_ingestions where app_id = ${appId} and source_id = ${sourceId}
      and kind = 'pull' and status in ('pending', 'running') and not queued
    on conflict do nothing`;
}

/** Returns those pages whose documents were deleted since the pull began. */
export async function listPullRemovals(db: Db, appId: string, id: string, urls: string[]): Promise<Set<string>> {
  if (urls.length === 0) return new Set();
  const rows = await db<{ urlHash: Buffer }[]>`
    select url_hash from knowledge_pull_removals where app_id = ${appId} and ingestion_id = ${id}`;
  const removed = new Set(rows.map((row) => row.urlHash.toString('hex')));
  return new Set(urls.filter((url) => removed.has(hashUrl(url).toString('hex'))));
}

/** Ends the ingestion and deletes its items, except those of files that failed, which have no other record. */
export async function finishIngestion(
  db: Db,
  appId: string,
  id: string,
  outcome: {
    status: 'succeeded' | 'failed';
    error: IngestionError | null;
    metadata: Record<string, unknown>;
    stats: Record<string, unknown>;
  },
): Promise<void> {
  await db`
    update knowledge_ingestions set status = ${outcome.status}, error = ${jsonOrNull(outcome.error)}::text::jsonb,
      metadata = metadata || ${JSON.stringify(outcome.metadata)}::text::jsonb,
      acl_ids = case when kind = 'pull' then ${aclsOfSource(db, appId, db`knowledge_ingestions.source_id`)} else acl_ids end,
      stats = ${JSON.stringify(outcome.stats)}::text::jsonb, completed_at = now(), updated_at = now(),
      lease_holder = null, lease_until = null
    where app_id = ${appId} and id = ${id}`;
  if (outcome.error !== null)
    await db`
      update knowledge_ingestion_items set state = 'failed', result = ${JSON.stringify({ error: outcome.error })}::text::jsonb
      where app_id = ${appId} and ingestion_id = ${id} and state = 'pending' and file_id is not null`;
  await db`
    delete from knowledge_ingestion_items
    where app_id = ${appId} and ingestion_id = ${id} and not (state = 'failed' and file_id is not null)`;
  await db`delete from knowledge_pull_removals where app_id = ${appId} and ingestion_id = ${id}`;
}

/** Makes the oldest queued ingestion of the source active. Returns its id. */
export async function promoteQueued(db: Db, appId: string, sourceId: string): Promise<string | undefined> {
  const [row] = await db<{ id: string }[]>`
    update knowledge_ingestions set queued = false, updated_at = now()
    where app_id = ${appId} and id = (
      select id from knowledge_ingestions where app_id = ${appId} and source_id = ${sourceId} and queued
        and status = 'pending' order by created_at, id limit 1)
      and not exists (select 1 from knowledge_ingestions where app_id = ${appId} and source_id = ${sourceId}
        and status in ('pending', 'running', 'awaiting_callback') and not queued)
    returning id`;
  return row?.id;
}

/** The app's sources that have an ingestion with `embedding: pending`. */
export async function listSourcesMarkedPending(db: Db, appId: string): Promise<string[]> {
  const rows = await db<{ sourceId: string }[]>`
    select distinct source_id from knowledge_ingestions
    where app_id = ${appId} and metadata ? 'embedding' and metadata ->> 'embedding' = 'pending'`;
  return rows.map(({ sourceId }) => sourceId);
}

/**
 * Removes `embedding: pending` from a source's ingestions whose documents no longer wait for vectors. If the embedder
 * has rejected one of them permanently, the mark says so instead.
 */
export async function settleEmbedding(db: Db, appId: string, sourceId: string, model: string): Promise<void> {
  await db.begin(async (tx) => {
    if (!(await lockIndex(tx, { appId, sourceId }))) return;
    await tx`
      update knowledge_ingestions i set updated_at = now(),
        metadata = i.metadata - 'embedding' - 'embedding_error' || case when e.reason is null then '{}'::jsonb
          else jsonb_build_object('embedding', 'failed', 'embedding_error', e.reason) end
      from (
        select p.id, min(r.reason) as reason,
          count(d.id) filter (where r.document_id is null or r.retry_at is not null) as waiting
        from knowledge_ingestions p
        left join knowledge_documents d on d.app_id = p.app_id and d.source_id = p.source_id and d.embedding_model is null
          and (not p.metadata ? 'document' or d.id::text = p.metadata ->> 'document')
        left join knowledge_embedding_refusals r on r.app_id = d.app_id and r.document_id = d.id and r.model = ${model}
        where p.app_id = ${appId} and p.source_id = ${sourceId} and p.metadata ? 'embedding'
        group by p.id) e
      where i.app_id = ${appId} and i.id = e.id and e.waiting = 0`;
  });
}
