/*
 * Triggers of knowledge_versions: knowledge_versions_deleted deletes texts that no other version has. Its rows and their
 * texts are written by triggers of knowledge_documents.
 */
import type { HeadingFragments } from '../../content/fragments.ts';
import type { Db, Statement } from '../../db/database.ts';
import { isInUse } from '../../db/fences.ts';
import { readWithTotal } from '../../db/pages.ts';
import type { PageRequest } from '../../http/route/pages.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { documentVisible } from '../../tenancy/document-readers.ts';
import type { DocumentText } from '../documents/store.ts';
import type { SourceKey } from '../index/store.ts';
import { sourceVisible } from '../sources/store.ts';

/** What a document was, or is if `endedAt` is null. */
export type VersionRow = {
  documentId: string;
  sourceId: string;
  number: number;
  title: string | null;
  metadata: Record<string, unknown>;
  contentType: string | null;
  contentHash: Buffer;
  totalLines: number;
  totalSize: number;
  sourceUrl: string | null;
  externalId: string | null;
  startedAt: Date;
  endedAt: Date | null;
  isDeletion: boolean;
};

/** SQL: the source `s` still shows its version `v`. */
function isShown(db: Db, now: Date): Statement {
  return db`(v.ended_at >= s.versions_from
    and v.ended_at > ${now}::timestamptz - make_interval(days => s.version_retention_days))`;
}

/** SQL: the columns of a VersionRow of a document `d`. */
const currentColumns = (db: Db) => db`
  d.id as document_id, d.source_id, d.version as number, d.title, d.metadata, d.content_type, d.content_hash,
  d.total_lines, d.total_size, d.source_url, d.external_id, coalesce(d.version_at, d.created_at) as started_at,
  null::timestamptz as ended_at, false as is_deletion`;

/** SQL: the columns of a VersionRow of a version `v`. */
const columns = (db: Db) => db`
  v.document_id, v.source_id, v.number, v.title, v.metadata, v.content_type, v.content_hash, v.total_lines,
  v.total_size, v.source_url, v.external_id, v.started_at, v.ended_at, v.is_deletion`;

/**
 * SQL: the version `v` is the last of a deleted document that the caller would see if it still existed. Its source `s` is
 * one that the caller sees.
 */
function isLastOfDeleted(db: Db, caller: Caller, now: Date): Statement {
  return db`v.is_deletion and ${isShown(db, now)} and ${documentVisible(db, caller, 'v')}
    and not exists (select from knowledge_documents d where d.app_id = ${caller.appId} and d.id = v.document_id)
    and not exists (select from knowledge_versions w
      where w.app_id = ${caller.appId} and w.document_id = v.document_id and w.number > v.number)`;
}

/** The source of a deleted document that the caller would see if it still existed. */
export async function findSourceOfDeleted(db: Db, caller: Caller, id: string, now: Date): Promise<string | undefined> {
  const [row] = await db<{ sourceId: string }[]>`
    select v.source_id from knowledge_versions v
    join knowledge_sources s on s.app_id = v.app_id and s.id = v.source_id
    where v.app_id = ${caller.appId} and v.document_id = ${id} and ${sourceVisible(db, caller, 's')}
      and ${isLastOfDeleted(db, caller, now)}`;
  return row?.sourceId;
}

export async function listDeleted(
  db: Db,
  caller: Caller,
  sourceId: string,
  now: Date,
  page: PageRequest,
): Promise<[VersionRow[], number]> {
  const from = db`
    knowledge_versions v join knowledge_sources s on s.app_id = v.app_id and s.id = v.source_id
    where v.app_id = ${caller.appId} and v.source_id = ${sourceId} and ${isLastOfDeleted(db, caller, now)}`;
  return readWithTotal(
    db<VersionRow[]>`
      select ${columns(db)} from ${from}
      order by v.ended_at desc, v.document_id desc limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from ${from}`,
  );
}

/** SQL: all versions of a document, the current one included. */
function versionsOf(db: Db, appId: string, documentId: string, now: Date): Statement {
  return db`(
    select ${currentColumns(db)} from knowledge_documents d where d.app_id = ${appId} and d.id = ${documentId}
    union all
    select ${columns(db)} from knowledge_versions v
    join knowledge_sources s on s.app_id = v.app_id and s.id = v.source_id
    where v.app_id = ${appId} and v.document_id = ${documentId} and ${isShown(db, now)}) v`;
}

/** One page of the versions of a document, newest first. */
export async function listVersions(
  db: Db,
  appId: string,
  documentId: string,
  now: Date,
  page: PageRequest,
): Promise<[VersionRow[], number]> {
  const all = versionsOf(db, appId, documentId, now);
  return readWithTotal(
    db<VersionRow[]>`select * from ${all} order by v.number desc limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from ${all}`,
  );
}

/** The version with this number. */
export async function findVersion(
  db: Db,
  appId: string,
  documentId: string,
  number: number,
  now: Date,
): Promise<VersionRow | undefined> {
  return db<VersionRow[]>`
    select * from ${versionsOf(db, appId, documentId, now)} where v.number = ${number}`.first();
}

/** The number of the newest version before this one. */
export async function findNumberBefore(db: Db, appId: string, documentId: string, number: number, now: Date) {
  const [row] = await db<{ number: number | null }[]>`
    select max(v.number) as number from ${versionsOf(db, appId, documentId, now)} where v.number < ${number}`;
  return row?.number ?? undefined;
}

/** The text of a version, current or old. */
export async function readVersionText(db: Db, appId: string, version: VersionRow): Promise<Buffer | undefined> {
  const { documentId, sourceId, contentHash, endedAt } = version;
  const [row] =
    endedAt === null
      ? await db<{ content: Buffer }[]>`
          select t.content from knowledge_texts t
          join knowledge_documents d on d.app_id = t.app_id and d.id = t.document_id
          where t.app_id = ${appId} and t.document_id = ${documentId} and d.version = ${version.number}`
      : await db<{ content: Buffer }[]>`
          select content from knowledge_version_texts
          where app_id = ${appId} and source_id = ${sourceId} and content_hash = ${contentHash}`;
  return row?.content;
}

/** The text of an old version of a document that the caller may read now; undefined if it has more bytes. */
export async function findVisibleVersionText(
  db: Db,
  caller: Caller,
  version: { id: string; number: number },
  bytesMax: number,
  now: Date,
): Promise<DocumentText | undefined> {
  return db<DocumentText[]>`
    select v.document_id as id, v.source_id, v.title, v.content_hash, v.source_url, t.content, v.number as version
    from knowledge_versions v
    join knowledge_documents d on d.app_id = v.app_id and d.id = v.document_id
    join knowledge_sources s on s.app_id = v.app_id and s.id = v.source_id
    join knowledge_version_texts t on t.app_id = v.app_id and t.source_id = v.source_id
      and t.content_hash = v.content_hash
    where v.app_id = ${caller.appId} and v.document_id = ${version.id} and v.number = ${version.number}
      and v.total_size <= ${bytesMax} and ${isShown(db, now)} and ${sourceVisible(db, caller, 's')}
      and ${documentVisible(db, caller, 'd')}`.first();
}

/** All that a document needs to become what it was. */
export type KeptVersion = VersionRow & {
  fileId: string | null;
  bytesHash: Buffer;
  content: Buffer;
  fragments: HeadingFragments | null;
};

export async function readKeptVersion(db: Db, appId: string, documentId: string, number: number) {
  return db<KeptVersion[]>`
    select ${columns(db)}, v.bytes_hash, t.content, t.fragments,
      (select f.id from files f where f.app_id = ${appId} and f.id = v.file_id) as file_id
    from knowledge_versions v
    join knowledge_version_texts t on t.app_id = v.app_id and t.source_id = v.source_id
      and t.content_hash = v.content_hash
    where v.app_id = ${appId} and v.document_id = ${documentId} and v.number = ${number}`.first();
}

/** The last version of a document, with the readers that it had when it was deleted. */
export async function findLastVersion(db: Db, appId: string, documentId: string) {
  return db<{ number: number; sourceId: string; aclId: string | null; isDeletion: boolean }[]>`
    select number, source_id, acl_id, is_deletion from knowledge_versions
    where app_id = ${appId} and document_id = ${documentId} order by number desc limit 1`.first();
}

/**
 * Continues the versions of a document that was deleted and has been written again. It keeps its id from elsewhere unless
 * another document has it by now.
 */
export async function continueVersions(db: Db, { appId, sourceId }: SourceKey, documentId: string): Promise<void> {
  await db`
    update knowledge_documents d set version = v.number + 1, created_at = v.created_at,
      version_at = greatest(date_trunc('milliseconds', clock_timestamp()), v.ended_at),
      external_id = e.id, external_order = case when e.id is not null then v.external_order end,
      external_version = case when e.id is not null then v.external_version end
    from knowledge_versions v cross join lateral (
      select case when exists (select from knowledge_documents o where o.app_id = ${appId}
        and o.source_id = ${sourceId} and o.external_id = v.external_id) then null else v.external_id end as id) e
    where d.app_id = ${appId} and d.id = ${documentId} and v.app_id = d.app_id and v.document_id = d.id
      and v.number = (select max(number) from knowledge_versions where app_id = ${appId} and document_id = ${documentId})`;
}

/**
 * The lists of grants of a source's documents, deleted ones included, that admit the caller: at most `count`. The caller
 * sees the documents that have one of these or none.
 */
export async function listAdmitted(
  db: Db,
  caller: Caller,
  { appId, sourceId }: SourceKey,
  count: number,
): Promise<string[]> {
  const rows = await db<{ aclId: string }[]>`
    select acl_id from (
      select acl_id from knowledge_documents where app_id = ${appId} and source_id = ${sourceId}
      union select acl_id from knowledge_versions where app_id = ${appId} and source_id = ${sourceId}) d
    where acl_id is not null and ${documentVisible(db, caller, 'd')} order by acl_id limit ${count}`;
  return rows.map(({ aclId }) => aclId);
}

/** What restoring a source to a time does with a document. `current` is the version that it has now. */
export type RestoreStep = {
  documentId: string;
  action: 'delete' | 'change' | 'create' | 'unknown';
  current: number | null;
  target: number | null;
};

/**
 * What is restored: the documents of a source as they were at a time. With `acls`, only those with one of these lists of
 * grants, or with none. What changed after `until` stays: a restore neither repeats its own steps nor undoes what others
 * do meanwhile.
 */
export type Restore = SourceKey & { at: Date; until: Date; acls: readonly string[] | undefined };

/** SQL: the steps of a restore. */
function restoreSteps(db: Db, { appId, sourceId, at, until, acls }: Restore): Statement {
  const of = (alias: string) => db`${db(`${alias}.app_id`)} = ${appId} and ${db(`${alias}.source_id`)} = ${sourceId}`;
  const began = db`date_trunc('milliseconds', coalesce(d.version_at, d.created_at))`;
  return db`(
    select d.id as document_id, d.version as current, p.number as target,
      case when p.number is not null then 'change'
        when date_trunc('milliseconds', d.created_at) > ${at}::timestamptz
          or exists (select from knowledge_versions w
            where w.app_id = ${appId} and w.document_id = d.id and w.ended_at <= ${at}::timestamptz) then 'delete'
        else 'unknown' end as action
    from knowledge_documents d
    left join knowledge_versions p on p.app_id = d.app_id and p.document_id = d.id
      and p.started_at <= ${at}::timestamptz and p.ended_at > ${at}::timestamptz
    where ${of('d')} and ${isChosen(db, 'd', acls)}
      and ${began} > ${at}::timestamptz and ${began} <= ${until}::timestamptz
      and (p.number is null or (d.content_hash, d.title, d.metadata, d.content_type, d.source_url)
        is distinct from (p.content_hash, p.title, p.metadata, p.content_type, p.source_url))
    union all
    select p.document_id, null, p.number, 'create'
    from knowledge_versions p
    join lateral (select w.ended_at, w.acl_id from knowledge_versions w
      where w.app_id = ${appId} and w.document_id = p.document_id order by w.number desc limit 1) l
      on l.ended_at <= ${until}::timestamptz and ${isChosen(db, 'l', acls)}
    where ${of('p')} and p.started_at <= ${at}::timestamptz and p.ended_at > ${at}::timestamptz
      and not exists (select from knowledge_documents d where d.app_id = ${appId} and d.id = p.document_id)) r`;
}

function isChosen(db: Db, alias: string, acls: readonly string[] | undefined): Statement {
  const acl = db(`${alias}.acl_id`);
  return acls === undefined ? db`true` : db`(${acl} is null or ${acl} = any(${[...acls]}::uuid[]))`;
}

/** The next steps of one kind, in the order of the documents. */
export function listRestoreSteps(
  db: Db,
  restore: Restore,
  action: RestoreStep['action'],
  after: string,
  count: number,
) {
  return db<RestoreStep[]>`
    select * from ${restoreSteps(db, restore)}
    where r.action = ${action} and r.document_id > ${after} order by r.document_id limit ${count}`;
}

/** How many documents there are now, and how many steps of each kind a restore would take. */
export async function countRestoreSteps(db: Db, restore: Restore) {
  const rows = await db<{ action: RestoreStep['action']; total: number }[]>`
    select r.action, count(*)::integer as total from ${restoreSteps(db, restore)} group by r.action`;
  const [count] = await db<[{ total: number }]>`
    select count(*)::integer as total from knowledge_documents d
    where d.app_id = ${restore.appId} and d.source_id = ${restore.sourceId} and ${isChosen(db, 'd', restore.acls)}`;
  const of = (action: RestoreStep['action']) => rows.find((row) => row.action === action)?.total ?? 0;
  return {
    documents: count.total,
    changed: of('change'),
    created: of('create'),
    deleted: of('delete'),
    unknown: of('unknown'),
  };
}

/** Sources with versions that are no longer shown. */
export function listSourcesToForget(db: Db, now: Date, count: number) {
  return db<SourceKey[]>`
    select s.app_id, s.id as source_id from knowledge_sources s
    where s.versions_from is not null and ${isInUse(db, 's.app_id')}
      and (s.version_retention_days is null or exists (
        select from knowledge_versions v where v.app_id = s.app_id and v.source_id = s.id and v.ended_at <= greatest(
          s.versions_from - interval '1 millisecond',
          ${now}::timestamptz - make_interval(days => s.version_retention_days))))
    limit ${count}`;
}

/** Deletes the oldest of the versions that are no longer shown. Lock the index of the source first. */
export async function forgetVersions(db: Db, { appId, sourceId }: SourceKey, now: Date, count: number) {
  const { count: deleted } = await db`
    delete from knowledge_versions where app_id = ${appId} and (document_id, number) in (
      select v.document_id, v.number from knowledge_versions v
      join knowledge_sources s on s.app_id = v.app_id and s.id = v.source_id
      where v.app_id = ${appId} and v.source_id = ${sourceId}
        and (s.version_retention_days is null or not ${isShown(db, now)})
      order by v.ended_at limit ${count})`;
  return deleted;
}

/** Ends a source's keeping of versions, once none is left. */
export async function endVersions(db: Db, { appId, sourceId }: SourceKey): Promise<void> {
  await db`
    update knowledge_sources set versions_from = null
    where app_id = ${appId} and id = ${sourceId} and version_retention_days is null`;
}

/** Apps with more versions than this. */
export async function listFullApps(db: Db, versionsMax: number) {
  return db<{ appId: string; total: number }[]>`
    select v.app_id, count(*) as total from knowledge_versions v where ${isInUse(db, 'v.app_id')}
    group by v.app_id having count(*) > ${versionsMax}`;
}

/** Sources of an app with versions that are among its oldest `excess`, with the end of the newest of those. */
export async function findExcess(db: Db, appId: string, excess: number) {
  return db<(SourceKey & { until: Date })[]>`
    select app_id, source_id, max(ended_at) as until from (
      select app_id, source_id, ended_at from knowledge_versions where app_id = ${appId}
      order by ended_at limit ${excess}) oldest
    group by app_id, source_id`;
}

/** Deletes some of the versions of a source that ended by then. Lock the index of the source first. */
export async function deleteVersionsUntil(db: Db, { appId, sourceId }: SourceKey, until: Date, count: number) {
  const { count: deleted } = await db`
    delete from knowledge_versions where app_id = ${appId} and (document_id, number) in (
      select document_id, number from knowledge_versions
      where app_id = ${appId} and source_id = ${sourceId} and ended_at < ${until}::timestamptz + interval '1 millisecond'
      order by ended_at limit ${count})`;
  return deleted;
}
