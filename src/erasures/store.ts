import type { Static } from 'typebox';
import type { Db } from '../db/database.ts';
import type { PageRequest } from '../http/route/pages.ts';
import { sourceVisible } from '../knowledge/sources/store.ts';
import type { Caller, Scope } from '../tenancy/caller.ts';
import { documentVisible } from '../tenancy/document-readers.ts';
import { inScope } from '../tenancy/visible.ts';
import type { certificateSchema, SubjectKind } from './schema.ts';

export type Certificate = Static<typeof certificateSchema>;
export type Receiver = Certificate['statement']['receivers'][number];

/** What later steps need of rows that earlier ones delete. */
type Work = {
  email?: string | null;
  /** The source of an erased document, and where its index ended then. */
  sourceId?: string;
  boundary?: number;
};

export type ErasureRow = Scope & {
  id: string;
  subjectKind: SubjectKind;
  subjectId: string;
  withFiles: boolean;
  status: 'running' | 'done';
  counts: Record<string, number>;
  receivers: Receiver[] | null;
  work: Work;
  certificate: Certificate | null;
  createdAt: Date;
  completedAt: Date | null;
};

/** Who or what is erased. */
export type Subject = Pick<ErasureRow, 'appId' | 'subjectId'>;

export type NewErasure = Scope &
  Pick<ErasureRow, 'id' | 'subjectKind' | 'subjectId' | 'withFiles' | 'work' | 'createdAt'>;

/** Returns false if the erasure already exists. */
export async function insertErasure(db: Db, erasure: NewErasure): Promise<boolean> {
  const { count } = await db`
    insert into erasures (app_id, sandbox_id, id, subject_kind, subject_id, with_files, work, created_at)
    values (${erasure.appId}, ${erasure.sandboxId}, ${erasure.id}, ${erasure.subjectKind}, ${erasure.subjectId},
      ${erasure.withFiles}, ${db.json(erasure.work as never)}, ${erasure.createdAt})
    on conflict (app_id, id) do nothing`;
  return count > 0;
}

export async function countErasures(db: Db, scope: Scope, status: 'running' | 'any'): Promise<number> {
  const [row] = await db<[{ total: number }]>`
    select count(*) as total from erasures e where ${inScope(db, scope, 'e')}
      and ${status === 'any' ? db`true` : db`e.status = ${status}`}`;
  return row.total;
}

export async function findErasure(db: Db, scope: Scope, id: string): Promise<ErasureRow | undefined> {
  return db<ErasureRow[]>`select e.* from erasures e where ${inScope(db, scope, 'e')} and e.id = ${id}`.first();
}

export async function findErasureById(db: Db, appId: string, id: string): Promise<ErasureRow | undefined> {
  return db<ErasureRow[]>`select * from erasures where app_id = ${appId} and id = ${id}`.first();
}

export async function listErasures(db: Db, scope: Scope, page: PageRequest): Promise<[ErasureRow[], number]> {
  const rows = await db<ErasureRow[]>`
    select e.* from erasures e where ${inScope(db, scope, 'e')}
    order by e.created_at desc, e.id desc limit ${page.pageSize} offset ${page.offset}`;
  return [rows, await countErasures(db, scope, 'any')];
}

/** Adds to a count, in the transaction that deleted the rows. */
export async function addCount(db: Db, { appId, id }: ErasureKey, name: string, deleted: number): Promise<void> {
  if (deleted === 0) return;
  await db`
    update erasures set counts = counts
      || jsonb_build_object(${name}::text, coalesce((counts ->> ${name}::text)::bigint, 0) + ${deleted}::bigint)
    where app_id = ${appId} and id = ${id}`;
}

type ErasureKey = { appId: string; id: string };

export async function setReceivers(db: Db, { appId, id }: ErasureKey, receivers: Receiver[]): Promise<void> {
  await db`
    update erasures set receivers = ${db.json(receivers as never)}
    where app_id = ${appId} and id = ${id} and receivers is null`;
}

export async function setWork(db: Db, { appId, id }: ErasureKey, work: Work): Promise<void> {
  await db`update erasures set work = ${db.json(work as never)} where app_id = ${appId} and id = ${id}`;
}

/** Stores the certificate once. */
export async function complete(db: Db, { appId, id }: ErasureKey, certificate: Certificate, now: Date): Promise<void> {
  await db`
    update erasures set status = 'done', work = '{}', certificate = ${db.json(certificate as never)},
      completed_at = ${now}
    where app_id = ${appId} and id = ${id} and status = 'running'`;
}

/** The id of what is to be erased, if the caller sees it. */
export async function findSubject(db: Db, caller: Caller, kind: SubjectKind, id: string): Promise<boolean> {
  const rows =
    kind === 'user'
      ? await db`select u.id from users u where ${inScope(db, caller, 'u')} and u.id = ${id}`
      : kind === 'source'
        ? await db`select s.id from knowledge_sources s where s.id = ${id} and ${sourceVisible(db, caller, 's')}`
        : await db`
            select d.id from knowledge_documents d
            join knowledge_sources s on s.app_id = d.app_id and s.id = d.source_id
            where d.id = ${id} and ${sourceVisible(db, caller, 's')} and ${documentVisible(db, caller, 'd')}
            union all
            select v.document_id from knowledge_versions v
            join knowledge_sources s on s.app_id = v.app_id and s.id = v.source_id
            where v.document_id = ${id} and v.is_deletion and ${sourceVisible(db, caller, 's')}
              and ${documentVisible(db, caller, 'v')}
              and not exists (select from knowledge_documents d
                where d.app_id = ${caller.appId} and d.id = v.document_id)
              and not exists (select from knowledge_versions w
                where w.app_id = ${caller.appId} and w.document_id = v.document_id and w.number > v.number)`;
  return rows.length > 0;
}

/** Whether there is such a user, document or source in the app and sandbox. */
export async function isSubject(db: Db, scope: Scope, kind: SubjectKind, id: string): Promise<boolean> {
  const tables = { user: 'users', document: 'knowledge_documents', source: 'knowledge_sources' };
  const rows = await db`select t.id from ${db(tables[kind])} t where ${inScope(db, scope, 't')} and t.id = ${id}`;
  if (rows.length > 0 || kind !== 'document') return rows.length > 0;
  // A deleted document has versions that are kept.
  return db`
    select from knowledge_versions v join knowledge_sources s on s.app_id = v.app_id and s.id = v.source_id
    where ${inScope(db, scope, 's')} and v.document_id = ${id} limit 1`.any();
}

/**
 * Ends everything by which a user could act or be recognised, before the rest is deleted. Returns the e-mail address
 * that the user had; undefined if there is no such user.
 */
export async function hideUser(tx: Db, { appId, sandboxId }: Scope, id: string, now: Date) {
  const [user] = await tx<{ email: string | null }[]>`
    select email from users where app_id = ${appId} and sandbox_id = ${sandboxId} and id = ${id} for update`;
  if (user === undefined) return undefined;
  await tx`
    update users set email = null, name = null, password_hash = null, metadata = '{}', org_id = null, org_role = null,
      session_epoch = session_epoch + 1, sessions_ended_at = ${now}, updated_at = ${now}
    where app_id = ${appId} and id = ${id}`;
  await tx`update personal_tokens set revoked_at = ${now} where app_id = ${appId} and user_id = ${id} and revoked_at is null`;
  return user;
}

/** Stops ingestion into the source, and hides it from searches. */
export async function closeSource(tx: Db, appId: string, id: string): Promise<void> {
  await tx`
    update knowledge_sources set state = 'paused', version_retention_days = null, next_pull_at = null, inbound_digest = null, inbound_token = null,
      credentials = null, credentials_for = null where app_id = ${appId} and id = ${id}`;
  await tx`delete from knowledge_indexes where app_id = ${appId} and source_id = ${id}`;
}

export type ExportedUser = Scope & { id: string; email: string | null };

/** The user whose archive the caller may read. */
export async function findExportedUser(db: Db, caller: Caller, id: string): Promise<ExportedUser | undefined> {
  return db<ExportedUser[]>`
    select u.app_id, u.sandbox_id, u.id, u.email from users u where ${inScope(db, caller, 'u')} and u.id = ${id}`.first();
}

/** Where the bytes of these files are, by their ids. */
export async function findBlobKeys(db: Db, appId: string, ids: readonly string[]): Promise<Map<string, string>> {
  const rows = await db<{ id: string; blobKey: string }[]>`
    select id, blob_key from files where app_id = ${appId} and id = any(${[...ids]}::uuid[])`;
  return new Map(rows.map(({ id, blobKey }) => [id, blobKey]));
}
