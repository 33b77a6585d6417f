/*
 * Triggers of knowledge_documents: knowledge_documents_placed sets the sandbox; knowledge_documents_counted and
 * knowledge_documents_given_back keep the quota of documents; knowledge_documents_changed and
 * knowledge_documents_deleted count versions and keep old ones (versions/).
 */
import type { HeadingFragments } from '../../content/fragments.ts';
import type { StemLanguage } from '../../content/terms.ts';
import { joinBytes } from '../../db/bytes.ts';
import type { Db, Statement } from '../../db/database.ts';
import { isInUse } from '../../db/fences.ts';
import { readWithTotal } from '../../db/pages.ts';
import type { PageRequest } from '../../http/route/pages.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { documentVisible } from '../../tenancy/document-readers.ts';
import { type AgentOwners, matchesSeen, type Owned } from '../../tenancy/visible.ts';
import { jsonOrNull, sourceVisible } from '../sources/store.ts';

export type DocumentRow = {
  appId: string;
  id: string;
  sourceId: string;
  title: string | null;
  fileId: string | null;
  metadata: Record<string, unknown>;
  contentType: string | null;
  bytesHash: Buffer;
  contentHash: Buffer;
  totalLines: number;
  totalSize: number;
  sourceUrl: string | null;
  seenBy: string | null;
  externalId: string | null;
  firstOrdinal: number;
  chunkCount: number;
  wordCount: number;
  language: StemLanguage;
  embeddingModel: string | null;
  /** The list of grants that restricts it; null if every reader of its source sees it. */
  aclId: string | null;
  /** The version of its index when its readers or its place last changed; 0 if it was never restricted. */
  aclVersion: number;
  /** The number of its current version, and when that began; null for the time at which the document was created. */
  version: number;
  versionAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
};

/** A document with the owner columns of its source and of the agent that owns it. */
export type DocumentView = DocumentRow & Owned & { agent: AgentOwners | null; keepsVersions: boolean };

export type DocumentWrite = Omit<DocumentRow, 'externalId' | 'version' | 'versionAt' | 'createdAt' | 'updatedAt'>;

/** A text with the fragments that lead to its headings, from which its chunks are cut. */
type StoredText = { text: Buffer; fragments: HeadingFragments | undefined };

/** Inserts the documents, or replaces those with the same ids, in this order. No id may occur twice. */
export async function upsertDocuments(
  db: Db,
  appId: string,
  entries: readonly (StoredText & { document: DocumentWrite })[],
): Promise<void> {
  const documents = entries.map(({ document }) => document);
  const ids = documents.map(({ id }) => id);
  const rows = db`
    insert into knowledge_documents (app_id, id, source_id, title, file_id, metadata, content_type, bytes_hash,
      content_hash, total_lines, total_size, source_url, seen_by, first_ordinal, chunk_count, word_count, language,
      embedding_model, acl_id, acl_version)
    select ${appId}::uuid, d.*
    from unnest(${ids}::uuid[], ${documents.map((one) => one.sourceId)}::uuid[],
      ${documents.map((one) => one.title)}::text[], ${documents.map((one) => one.fileId)}::uuid[],
      ${documents.map((one) => JSON.stringify(one.metadata))}::text[]::jsonb[],
      ${documents.map((one) => one.contentType)}::text[], ${documents.map((one) => one.bytesHash)}::bytea[],
      ${documents.map((one) => one.contentHash)}::bytea[], ${documents.map((one) => one.totalLines)}::int[],
      ${documents.map((one) => one.totalSize)}::int[], ${documents.map((one) => one.sourceUrl)}::text[],
      ${documents.map((one) => one.seenBy)}::uuid[], ${documents.map((one) => one.firstOrdinal)}::int[],
      ${documents.map((one) => one.chunkCount)}::int[], ${documents.map((one) => one.wordCount)}::int[],
      ${documents.map((one) => one.language)}::text[], ${documents.map((one) => one.embeddingModel)}::text[],
      ${documents.map((one) => one.aclId)}::uuid[], ${documents.map((one) => one.aclVersion)}::bigint[]) d
    on conflict (app_id, id) do update set title = excluded.title, file_id = excluded.file_id,
      metadata = excluded.metadata, content_type = excluded.content_type, bytes_hash = excluded.bytes_hash,
      content_hash = excluded.content_hash, total_lines = excluded.total_lines, total_size = excluded.total_size,
      source_url = excluded.source_url, seen_by = excluded.seen_by, first_ordinal = excluded.first_ordinal,
      chunk_count = excluded.chunk_count, word_count = excluded.word_count, language = excluded.language,
      embedding_model = excluded.embedding_model, acl_id = excluded.acl_id, acl_version = excluded.acl_version,
      indexed_at = excluded.indexed_at, updated_at = excluded.updated_at`;
  const refusals = db`
    delete from knowledge_embedding_refusals where app_id = ${appId} and document_id = any(${ids}::uuid[])`;
  const { all, starts, sizes } = joinBytes(entries.map(({ text }) => text));
  const texts = db`
    insert into knowledge_texts (app_id, document_id, content, fragments)
    select ${appId}::uuid, t.id, substring(${all}::bytea from t.start for t.size), t.fragments
    from unnest(${ids}::uuid[], ${starts}::int[], ${sizes}::int[],
      ${entries.map(({ fragments = [] }) => (fragments.length === 0 ? null : JSON.stringify(fragments)))}::text[]::jsonb[])
      t (id, start, size, fragments)
    on conflict (app_id, document_id) do update set content = excluded.content, fragments = excluded.fragments`;
  await Promise.all([rows, refusals, texts]);
}

/** SQL: the owners of the agent that owns the source `s`, as JSON. */
const agentOwners = (db: Db, { appId }: Caller) => db`(
  select jsonb_build_object('id', a.id, 'orgId', a.org_id, 'teamId', a.team_id, 'userId', a.user_id)
  from agents a where a.app_id = ${appId} and a.id = s.agent_id) as agent`;

/** SQL: whether the source `s` keeps old versions of its documents. */
const keepsVersions = (db: Db) => db`s.version_retention_days is not null as keeps_versions`;

export async function findDocument(db: Db, caller: Caller, id: string): Promise<DocumentView | undefined> {
  return db<DocumentView[]>`
    select d.*, s.org_id, s.team_id, s.user_id, s.agent_id, ${agentOwners(db, caller)}, ${keepsVersions(db)}
    from knowledge_documents d join knowledge_sources s on s.app_id = d.app_id and s.id = d.source_id
    where d.id = ${id} and ${sourceVisible(db, caller, 's')} and ${documentVisible(db, caller, 'd')}`.first();
}

/** A document's text, with what names it. */
export type DocumentText = Pick<DocumentRow, 'id' | 'sourceId' | 'title' | 'contentHash' | 'sourceUrl'> & {
  content: Buffer;
  /** The number of its version; null if its source keeps none. */
  version: number | null;
};

/** The text of a document that the caller may read; undefined if it has more bytes. */
export async function findVisibleText(
  db: Db,
  caller: Caller,
  id: string,
  bytesMax: number,
): Promise<DocumentText | undefined> {
  return db<DocumentText[]>`
    select d.id, d.source_id, d.title, d.content_hash, d.source_url, t.content,
      case when s.version_retention_days is not null then d.version end as version
    from knowledge_documents d join knowledge_sources s on s.app_id = d.app_id and s.id = d.source_id
    join knowledge_texts t on t.app_id = d.app_id and t.document_id = d.id
    where d.id = ${id} and d.total_size <= ${bytesMax} and ${sourceVisible(db, caller, 's')}
      and ${documentVisible(db, caller, 'd')}`.first();
}

/** How many of these documents the caller may read. */
export async function countVisible(db: Db, caller: Caller, ids: readonly string[]): Promise<number> {
  const [row] = await db<{ count: number }[]>`
    select count(*)::int as count
    from knowledge_documents d join knowledge_sources s on s.app_id = d.app_id and s.id = d.source_id
    where d.app_id = ${caller.appId} and d.id = any(${ids}::uuid[]) and ${sourceVisible(db, caller, 's')}
      and ${documentVisible(db, caller, 'd')}`;
  return row?.count ?? 0;
}

export async function findDocumentById(db: Db, appId: string, id: string): Promise<DocumentRow | undefined> {
  return db<DocumentRow[]>`select * from knowledge_documents where app_id = ${appId} and id = ${id}`.first();
}

/** Where these documents are in the index of their source. */
export function listPlaces(db: Db, appId: string, ids: readonly string[]) {
  return db<Pick<DocumentRow, 'id' | 'firstOrdinal'>[]>`
    select id, first_ordinal from knowledge_documents where app_id = ${appId} and id = any(${[...ids]}::uuid[])`;
}

type DocumentFilter = {
  title?: string | undefined;
  sources?: string[] | undefined;
  installations?: string[] | undefined;
  agents?: string[] | undefined;
};

export async function listDocuments(
  db: Db,
  caller: Caller,
  filter: DocumentFilter,
  page: PageRequest,
): Promise<[DocumentView[], number]> {
  const conditions = [sourceVisible(db, caller, 's')];
  if (filter.sources) conditions.push(db`s.id = any(${filter.sources}::uuid[])`);
  if (filter.installations)
    conditions.push(matchesSeen(db, caller, 'installation', 's.installation_id', filter.installations));
  if (filter.agents) conditions.push(matchesSeen(db, caller, 'agent', 's.agent_id', filter.agents));
  const sources = db`
    (select id, org_id, team_id, user_id, agent_id, ${agentOwners(db, caller)}, ${keepsVersions(db)} from knowledge_sources s
      where ${conditions.reduce((all, one) => db`${all} and ${one}`)}) s`;
  const ofSource = db`d.app_id = ${caller.appId} and d.source_id = s.id
    and ${filter.title === undefined ? db`true` : db`starts_with(lower(d.title), lower(${filter.title}))`}
    and ${documentVisible(db, caller, 'd')}`;
  // An index finds the newest documents of each source; those of all sources together would have to be sorted.
  return readWithTotal(
    db<DocumentView[]>`
      select d.*, s.org_id, s.team_id, s.user_id, s.agent_id, s.agent, s.keeps_versions from ${sources} cross join lateral (
        select * from knowledge_documents d where ${ofSource}
        order by d.created_at desc, d.id desc limit ${page.offset + page.pageSize}) d
      order by d.created_at desc, d.id desc limit ${page.pageSize} offset ${page.offset}`,
    db`
      select coalesce(sum(c.documents), 0)::bigint as total from ${sources} cross join lateral (
        select count(*) as documents from knowledge_documents d where ${ofSource}) c`,
  );
}

export type ChunkRow = {
  id: string;
  startByte: number;
  endByte: number;
  startLine: number;
  endLine: number;
  headingPath: string[];
  fragment: string | null;
  content: Buffer;
};

/** One page of a document's chunks with their text, in its order. */
export async function listChunkTexts(db: Db, document: DocumentRow, page: PageRequest): Promise<ChunkRow[]> {
  const { appId, sourceId, firstOrdinal, chunkCount } = document;
  return db<ChunkRow[]>`
    select c.id, c.start_byte, c.end_byte, c.start_line, c.end_line, c.heading_path, c.fragment,
      substring(t.content from c.start_byte + 1 for c.end_byte - c.start_byte) as content
    from knowledge_chunks c join knowledge_texts t on t.app_id = c.app_id and t.document_id = c.document_id
    where c.app_id = ${appId} and c.source_id = ${sourceId} and c.document_id = ${document.id}
      and c.ordinal >= ${firstOrdinal} and c.ordinal < ${firstOrdinal + chunkCount}
    order by c.ordinal limit ${page.pageSize} offset ${page.offset}`;
}

/** The newest live document of the source with exactly these bytes and these readers. */
export async function findDocumentByBytes(db: Db, appId: string, sourceId: string, hash: Buffer, aclId: string | null) {
  const [row] = await db<{ id: string }[]>`
    select id from knowledge_documents where app_id = ${appId} and source_id = ${sourceId} and bytes_hash = ${hash}
      and acl_id is not distinct from ${aclId}::uuid
    order by created_at desc, id desc limit 1`;
  return row?.id;
}

/** The only document of a source, for kinds with one document. */
export async function findFirstDocument(db: Db, appId: string, sourceId: string): Promise<DocumentRow | undefined> {
  return db<DocumentRow[]>`
    select * from knowledge_documents where app_id = ${appId} and source_id = ${sourceId} order by created_at, id limit 1`.first();
}

/** The source's document for a page. */
export async function findDocumentByUrl(db: Db, appId: string, sourceId: string, url: string) {
  return db<DocumentRow[]>`
    select * from knowledge_documents
    where app_id = ${appId} and source_id = ${sourceId} and md5(source_url) = md5(${url}) and source_url = ${url}
    order by created_at, id limit 1`.first();
}

/** Returns those pages for which the source has a document. */
export async function listHeldUrls(db: Db, appId: string, sourceId: string, urls: string[]): Promise<Set<string>> {
  const rows = await db<{ sourceUrl: string }[]>`
    select source_url from knowledge_documents
    where app_id = ${appId} and source_id = ${sourceId}
      and md5(source_url) in (select md5(url) from unnest(${urls}::text[]) url) and source_url = any(${urls}::text[])`;
  return new Set(rows.map((row) => row.sourceUrl));
}

/** Marks the documents of these pages as still present. */
export async function markDocumentsSeen(
  db: Db,
  appId: string,
  sourceId: string,
  urls: string[],
  seenBy: string,
): Promise<void> {
  if (urls.length === 0) return;
  await db`
    update knowledge_documents set seen_by = ${seenBy}
    where app_id = ${appId} and source_id = ${sourceId}
      and md5(source_url) in (select md5(url) from unnest(${urls}::text[]) url) and source_url = any(${urls}::text[])`;
}

/** The ids of documents that this pull did not find. */
export async function listUnseenDocuments(db: Db, appId: string, sourceId: string, seenBy: string): Promise<string[]> {
  const rows = await db<{ id: string }[]>`
    select id from knowledge_documents
    where app_id = ${appId} and source_id = ${sourceId} and seen_by is distinct from ${seenBy}`;
  return rows.map((row) => row.id);
}

/** @param aclId the readers that the document must have; false if it has others. */
export async function updateDocumentMetadata(
  db: Db,
  appId: string,
  id: string,
  change: { title?: string | undefined; metadata?: Record<string, unknown> | undefined },
  aclId?: string | null,
): Promise<boolean> {
  const readers = aclId === undefined ? db`true` : db`acl_id is not distinct from ${aclId}::uuid`;
  const { count } = await db`
    update knowledge_documents set title = coalesce(${change.title ?? null}, title),
      metadata = coalesce(${jsonOrNull(change.metadata)}::text::jsonb, metadata), updated_at = now()
    where app_id = ${appId} and id = ${id} and ${readers}`;
  return count > 0;
}

/** The ids of documents whose chunks are before an ordinal. */
export async function listDocumentsBelow(db: Db, appId: string, sourceId: string, ordinal: number, count: number) {
  const rows = await db<{ id: string }[]>`
    select id from knowledge_documents
    where app_id = ${appId} and source_id = ${sourceId} and first_ordinal < ${ordinal}
    order by first_ordinal limit ${count}`;
  return rows.map((row) => row.id);
}

/** Updates the position of a document's chunks, and nothing else. */
export async function moveDocument(
  db: Db,
  appId: string,
  id: string,
  place: Pick<DocumentRow, 'firstOrdinal' | 'chunkCount' | 'wordCount' | 'language' | 'embeddingModel' | 'aclVersion'>,
): Promise<void> {
  await db`
    update knowledge_documents set first_ordinal = ${place.firstOrdinal}, chunk_count = ${place.chunkCount},
      acl_version = ${place.aclVersion}, word_count = ${place.wordCount}, language = ${place.language}, embedding_model = ${place.embeddingModel}
    where app_id = ${appId} and id = ${id}`;
}

/** Changes the readers of a document. */
export async function updateDocumentAcl(
  db: Db,
  appId: string,
  id: string,
  aclId: string | null,
  aclVersion: number,
): Promise<void> {
  await db`
    update knowledge_documents set acl_id = ${aclId}, acl_version = ${aclVersion}, updated_at = now()
    where app_id = ${appId} and id = ${id}`;
}

/** Deletes the row and its text. Returns the position of its chunks. */
export async function deleteDocument(db: Db, appId: string, id: string) {
  return db<Pick<DocumentRow, 'firstOrdinal' | 'chunkCount' | 'wordCount' | 'aclId'>[]>`
    delete from knowledge_documents where app_id = ${appId} and id = ${id}
    returning first_ordinal, chunk_count, word_count, acl_id`.first();
}

export async function readText(db: Db, appId: string, documentId: string): Promise<Buffer | undefined> {
  const [row] = await db<{ content: Buffer }[]>`
    select content from knowledge_texts where app_id = ${appId} and document_id = ${documentId}`;
  return row?.content;
}

/** The text with the fragments that lead to its headings, to cut its chunks again. */
export async function readTextWithFragments(db: Db, appId: string, documentId: string) {
  return db<{ content: Buffer; fragments: HeadingFragments | null }[]>`
    select content, fragments from knowledge_texts where app_id = ${appId} and document_id = ${documentId}`.first();
}

/** A range of bytes of the text. */
export async function readTextSlice(db: Db, appId: string, documentId: string, start: number, length: number) {
  const [row] = await db<{ content: Buffer }[]>`
    select substring(content from ${start + 1}::int for ${length}::int) as content from knowledge_texts
    where app_id = ${appId} and document_id = ${documentId}`;
  return row?.content ?? Buffer.alloc(0);
}

type StoredChunk = { ordinal: number; headingPath: string[]; startByte: number; endByte: number; hash: Buffer };

export function listChunks(db: Db, appId: string, sourceId: string, from: number, to: number) {
  return db<StoredChunk[]>`
    select ordinal, heading_path, start_byte, end_byte, hash from knowledge_chunks
    where app_id = ${appId} and source_id = ${sourceId} and ordinal >= ${from} and ordinal < ${to} order by ordinal`;
}

/** Documents that lack vectors of the installation's embedder, except in sources with their own, and those that the embedder refused and whose retry is not due. */
export function listUnembeddedDocuments(db: Db, appId: string, model: string, count: number) {
  return db<Pick<DocumentRow, 'appId' | 'id' | 'sourceId'>[]>`
    (select app_id, id, source_id from knowledge_documents d where app_id = ${appId} and embedding_model is null
      and ${isEmbeddable(db, model, db`${appId}`)} order by created_at limit ${count})
    union all
    (select app_id, id, source_id from knowledge_documents d where app_id = ${appId} and embedding_model < ${model}
      and ${isEmbeddable(db, model, db`${appId}`)} limit ${count})
    union all
    (select app_id, id, source_id from knowledge_documents d where app_id = ${appId} and embedding_model > ${model}
      and ${isEmbeddable(db, model, db`${appId}`)} limit ${count})
    limit ${count}`;
}

/** Apps with documents that `listUnembeddedDocuments` returns. */
export async function listAppsToEmbed(db: Db, model: string): Promise<string[]> {
  const of = db`d.app_id = a.id and ${isEmbeddable(db, model, db`a.id`)}`;
  const rows = await db<{ appId: string }[]>`
    select a.id as app_id from apps a where ${isInUse(db, 'a.id')} and (
      exists (select from knowledge_documents d where ${of} and d.embedding_model is null)
      or exists (select from knowledge_documents d where ${of} and d.embedding_model < ${model})
      or exists (select from knowledge_documents d where ${of} and d.embedding_model > ${model})
      or exists (select from knowledge_embedders e where e.app_id = a.id and e.pending
        and (e.retry_at is null or e.retry_at <= now()))
      or exists (select from knowledge_ingestions i where i.app_id = a.id and i.metadata ? 'embedding'
        and i.metadata ->> 'embedding' = 'pending'))`;
  return rows.map(({ appId }) => appId);
}

/** Whether the document `d` of the app may be sent to the installation's embedder now. */
function isEmbeddable(db: Db, model: string, app: Statement) {
  return db`not exists (
    select from knowledge_embedding_refusals r where r.app_id = ${app} and r.document_id = d.id
      and r.model = ${model} and (r.retry_at is null or r.retry_at > now()))
    and not exists (
      select from knowledge_embedders e where e.app_id = ${app} and e.source_id = d.source_id)`;
}

/** After these attempts, the last about 6 hours after the first, a document stays without vectors. */
const refusals = { triesMax: 6, firstDelaySeconds: 60, delayFactor: 4 };

/** Counts a document's refusal by the embedder, and sets the time of the next attempt. */
export async function noteRefusal(db: Db, appId: string, id: string, model: string, reason: string): Promise<void> {
  const { triesMax, firstDelaySeconds, delayFactor } = refusals;
  await db`
    insert into knowledge_embedding_refusals as r (app_id, document_id, model, tries, retry_at, reason)
    select app_id, id, ${model}, 1, now() + make_interval(secs => ${firstDelaySeconds}), ${reason.slice(0, 500)}
    from knowledge_documents where app_id = ${appId} and id = ${id}
    on conflict (app_id, document_id) do update set model = excluded.model, reason = excluded.reason,
      tries = case when r.model = excluded.model then r.tries + 1 else 1 end,
      retry_at = case when r.model <> excluded.model then excluded.retry_at
        when r.tries + 1 < ${triesMax}
        then excluded.refused_at
          + make_interval(secs => ${firstDelaySeconds}::float8 * power(${delayFactor}::float8, r.tries)) end,
      refused_at = excluded.refused_at`;
}

function deleteRefusal(db: Db, appId: string, id: string) {
  return db`delete from knowledge_embedding_refusals where app_id = ${appId} and document_id = ${id}`;
}

/** Marks the document's vectors as complete, unless its chunks were replaced meanwhile. */
export async function setEmbedded(db: Db, appId: string, id: string, firstOrdinal: number, model: string) {
  const rows = await db`
    update knowledge_documents set embedding_model = ${model}
    where app_id = ${appId} and id = ${id} and first_ordinal = ${firstOrdinal}`;
  if (rows.count > 0) await deleteRefusal(db, appId, id);
  return rows.count > 0;
}
