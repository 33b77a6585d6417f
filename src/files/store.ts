/*
 * Triggers of files: files_counted and files_given_back update the quota of bytes; files_removed lists the blob for
 * deletion; files_created and files_updated emit events; files_uploads_ended deletes the upload that a file came by;
 * files_pictures_dropped deletes its cached pictures.
 */
import type { PartialState } from '../blob/blob-store.ts';
import type { Db } from '../db/database.ts';
import { isInUse } from '../db/fences.ts';
import { type Keyset, type KeysetPage, readKeyset, readWithTotal } from '../db/pages.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { Caller, Scope } from '../tenancy/caller.ts';
import { requireScope } from '../tenancy/key-scopes.ts';
import {
  agentVisible,
  fileGranted,
  type Grant,
  groupVisible,
  inScope,
  matchesSeen,
  orgVisible,
  ownedVisible,
  sandboxIsThere,
  teamVisible,
  userVisible,
} from '../tenancy/visible.ts';
import { isMadeBy } from './of-runs.ts';

export type FileRow = {
  appId: string;
  id: string;
  sandboxId: string;
  filename: string;
  contentType: string;
  size: number;
  checksum: Buffer;
  blobKey: string;
  width: number | null;
  height: number | null;
  shared: boolean;
  providerMetadata: Record<string, unknown>;
  orgId: string | null;
  teamId: string | null;
  userId: string | null;
  agentId: string | null;
  createdAt: Date;
  updatedAt: Date;
};

/** A file with the columns that decide who may change it. */
export type VisibleFileRow = FileRow & {
  /** The owners of the agent that owns the file. */
  agentOrgId: string | null;
  agentTeamId: string | null;
  agentUserId: string | null;
  /** Whether a grant gives the caller `write`. */
  grantedWrite: boolean;
};

export type NewFile = Omit<FileRow, 'createdAt' | 'updatedAt' | 'providerMetadata'>;

const newFileColumns = [
  'appId',
  'id',
  'sandboxId',
  'filename',
  'contentType',
  'size',
  'checksum',
  'blobKey',
  'width',
  'height',
  'shared',
  'orgId',
  'teamId',
  'userId',
  'agentId',
] as const satisfies readonly (keyof NewFile)[];

export async function insertFile(db: Db, file: NewFile): Promise<FileRow> {
  return db<[FileRow]>`
    insert into files ${db(file, newFileColumns)} returning *`.first();
}

const visible = (db: Db, caller: Caller) =>
  db`((${ownedVisible(db, caller, 'f')}) or (${inScope(db, caller, 'f')} and ${fileGranted(db, caller, 'f', 'read')}))`;

const seenFile = (db: Db, caller: Caller) => db`
  select f.*, a.org_id as agent_org_id, a.team_id as agent_team_id, a.user_id as agent_user_id,
    ${fileGranted(db, caller, 'f', 'write')} as granted_write
  from files f left join agents a on a.app_id = f.app_id and a.id = f.agent_id`;

/** Inserts many files with one statement, whose text does not depend on their number: it stays prepared. */
export async function insertFiles(db: Db, files: readonly NewFile[]): Promise<void> {
  if (files.length === 0) return;
  const column = <K extends keyof NewFile>(key: K) => files.map((file) => file[key]);
  await db`
    insert into files (app_id, id, sandbox_id, filename, content_type, size, checksum, blob_key, width, height, shared,
      org_id, team_id, user_id, agent_id)
    select * from unnest(${column('appId')}::uuid[], ${column('id')}::uuid[], ${column('sandboxId')}::uuid[],
      ${column('filename')}::text[], ${column('contentType')}::text[], ${column('size')}::bigint[],
      ${files.map((file) => `\\x${file.checksum.toString('hex')}`)}::text[]::bytea[], ${column('blobKey')}::text[],
      ${column('width')}::integer[], ${column('height')}::integer[], ${column('shared')}::boolean[],
      ${column('orgId')}::uuid[], ${column('teamId')}::uuid[], ${column('userId')}::uuid[],
      ${column('agentId')}::uuid[])`;
}

const namingFiles = { what: 'naming a file' };

/**
 * A file visible to the caller, by ownership or by a grant. 403 unless the scopes of the caller's key allow reading files:
 * a request that names a file, in whatever area, is authorised like `GET /files/{file}`.
 */
export async function findVisibleFile(db: Db, caller: Caller, id: string): Promise<VisibleFileRow | undefined> {
  requireScope(caller.scopes, { area: 'files', reads: true }, namingFiles);
  return db<VisibleFileRow[]>`
    ${seenFile(db, caller)} where f.app_id = ${caller.appId} and f.id = ${id} and ${visible(db, caller)}`.first();
}

/** Those of the files that are visible to the caller. 403 unless the scopes of the caller's key allow reading files. */
export async function findVisibleFiles(db: Db, caller: Caller, ids: readonly string[]): Promise<VisibleFileRow[]> {
  if (ids.length > 0) requireScope(caller.scopes, { area: 'files', reads: true }, namingFiles);
  return db<VisibleFileRow[]>`
    ${seenFile(db, caller)}
    where f.app_id = ${caller.appId} and f.id = any(${[...ids]}::uuid[]) and ${visible(db, caller)}`;
}

/** A page of the files visible to the caller, in the order of their ids. `providerMetadata` must be part of theirs. */
export function listFilesByKeyset(
  db: Db,
  caller: Caller,
  keyset: Keyset,
  providerMetadata: Record<string, unknown> | undefined,
): Promise<KeysetPage<VisibleFileRow>> {
  return readKeyset(
    db,
    db`f.id`,
    keyset,
    ({ where, order, limit }) => db<VisibleFileRow[]>`
      ${seenFile(db, caller)} where ${visible(db, caller)} and ${where}
        and ${providerMetadata === undefined ? db`true` : db`f.provider_metadata @> ${JSON.stringify(providerMetadata)}::text::jsonb`}
      order by ${order} limit ${limit}`,
  );
}

type FileFilter = {
  orgId?: string | undefined;
  teamId?: string | undefined;
  userId?: string | undefined;
  agentId?: string | undefined;
  /** Lower case, without parameters. A trailing slash matches every subtype. */
  contentType?: string | undefined;
  search?: string | undefined;
  /** The beginning of the name. */
  prefix?: string | undefined;
  /** The run that made it. */
  runId?: string | undefined;
  sort?: FileOrder | undefined;
};

type FileOrder = 'created_at' | '-created_at' | 'filename' | '-filename' | 'size' | '-size';

/** A page of the files visible to the caller, newest first by default, and the total. */
export async function listVisibleFiles(
  db: Db,
  caller: Caller,
  page: PageRequest,
  filter: FileFilter,
): Promise<[VisibleFileRow[], number]> {
  const of = (kind: 'org' | 'team' | 'user' | 'agent', id: string | undefined) =>
    id === undefined ? db`true` : matchesSeen(db, caller, kind, `f.${kind}_id`, [id]);
  const essence = db`lower(btrim(split_part(f.content_type, ';', 1)))`;
  const { contentType, search, prefix, runId, sort = '-created_at' } = filter;
  const column = db(`f.${sort.replace('-', '')}`);
  const order = sort.startsWith('-') ? db`${column} desc, f.id desc` : db`${column}, f.id`;
  const where = db`${visible(db, caller)}
    and ${of('org', filter.orgId)} and ${of('team', filter.teamId)}
    and ${of('user', filter.userId)} and ${of('agent', filter.agentId)}
    and ${contentType === undefined ? db`true` : contentType.endsWith('/') ? db`starts_with(${essence}, ${contentType})` : db`${essence} = ${contentType}`}
    and ${search === undefined ? db`true` : db`position(lower(${search}) in lower(f.filename)) > 0`}
    and ${prefix === undefined ? db`true` : db`starts_with(f.filename, ${prefix})`}
    and ${runId === undefined ? db`true` : isMadeBy(db, caller, runId)}`;
  return readWithTotal(
    db<VisibleFileRow[]>`${seenFile(db, caller)} where ${where}
      order by ${order} limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from files f where ${where}`,
  );
}

/** A file of an app without a visibility check: for links that carry their own proof. */
export async function findFile(db: Db, appId: string, id: string): Promise<FileRow | undefined> {
  return db<FileRow[]>`select * from files where app_id = ${appId} and id = ${id}`.first();
}

/** The file that a link names, unless its sandbox was deleted. */
export async function findLinkedFile(db: Db, appId: string, id: string): Promise<FileRow | undefined> {
  return db<FileRow[]>`
    select f.* from files f
    where f.app_id = ${appId} and f.id = ${id} and ${sandboxIsThere(db, 'f.app_id', 'f.sandbox_id')}`.first();
}

/** Several files of an app, for responses that embed files. */
export function listFilesById(db: Db, appId: string, ids: readonly string[]): Promise<FileRow[]> {
  return db<FileRow[]>`select * from files where app_id = ${appId} and id = any(${[...ids]}::uuid[])`;
}

type FileChange = {
  filename?: string | undefined;
  providerMetadata?: Record<string, unknown> | undefined;
  shared?: boolean | undefined;
};

/** Locks the file's row, so that changes to its grants are serialized. */
export async function lockFile(db: Db, appId: string, id: string): Promise<boolean> {
  return db`select 1 from files where app_id = ${appId} and id = ${id} for update`.any();
}

/** Changes the members that are not undefined. False when there is no such file. */
export async function updateFile(db: Db, appId: string, id: string, change: FileChange): Promise<boolean> {
  const { filename, providerMetadata, shared } = change;
  return db`
    update files set filename = ${filename ?? db`filename`}, shared = ${shared ?? db`shared`},
      provider_metadata = ${providerMetadata === undefined ? db`provider_metadata` : db.json(providerMetadata as never)},
      updated_at = now()
    where app_id = ${appId} and id = ${id}`.any();
}

/**
 * Deletes the row; triggers list its blob for deletion. False when there is no such file. Its documents lose their file,
 * so the indexes of their sources are locked first, like by every transaction that changes several rows of a source.
 */
export async function deleteFile(db: Db, appId: string, id: string): Promise<boolean> {
  return db`
    with indexes as materialized (
      select from knowledge_indexes where app_id = ${appId} and source_id in (
        select source_id from knowledge_documents where app_id = ${appId} and file_id = ${id})
      order by source_id for update)
    delete from files where app_id = ${appId} and id = ${id} and (select count(*) from indexes) >= 0`.any();
}

/** The grants of each of these files, in their order; an empty list for a file without grants. */
export async function listGrants(db: Db, appId: string, fileIds: readonly string[]): Promise<Map<string, Grant[]>> {
  const grants = new Map<string, Grant[]>(fileIds.map((id) => [id, []]));
  if (fileIds.length === 0) return grants;
  const rows = await db<(Grant & { fileId: string })[]>`
    select file_id, principal_type, principal_id, principal_role, actions from file_grants
    where app_id = ${appId} and file_id = any(${[...fileIds]}::uuid[]) order by file_id, position`;
  for (const { fileId, ...grant } of rows) grants.get(fileId)?.push(grant);
  return grants;
}

export async function replaceGrants(db: Db, appId: string, fileId: string, grants: readonly Grant[]): Promise<void> {
  await db`delete from file_grants where app_id = ${appId} and file_id = ${fileId}`;
  if (grants.length === 0) return;
  const rows = grants.map((grant, position) => ({
    app_id: appId,
    file_id: fileId,
    principal_type: grant.principalType,
    principal_id: grant.principalId,
    principal_role: grant.principalRole,
    actions: [...grant.actions],
    position,
  }));
  await db`insert into file_grants ${db(rows)}`;
}

/** The app's key to verify a capability URL with, and the file if it currently has that role. */
type CapabilityRow = FileRow & { capabilityKey: Buffer; id: string | null; inRole: boolean };

/** Exactly one query, whether or not the app and the file exist. */
export async function findCapability(
  db: Db,
  appId: string,
  fileId: string,
  role: 'avatar' | 'org_logo' | 'share',
): Promise<CapabilityRow | undefined> {
  const inRole = {
    avatar: db`exists (select 1 from agents g where g.app_id = ${appId} and g.profile_picture_file_id = f.id)`,
    org_logo: db`exists (select 1 from orgs o where o.app_id = ${appId} and o.logo_file_id = f.id)`,
    share: db`f.shared`,
  }[role];
  return db<CapabilityRow[]>`
    select apps.capability_key, f.*, coalesce(${inRole}, false) as in_role
    from apps left join files f on f.app_id = apps.id and f.id = ${fileId}
      and ${sandboxIsThere(db, 'f.app_id', 'f.sandbox_id')} where apps.id = ${appId}`.first();
}

/** Records that a blob is about to be written. Without a row after `graceHours`, the sweep deletes it. Returns until when. */
export async function insertDoomedBlob(db: Db, scope: Scope, blobKey: string, graceHours: number): Promise<Date> {
  const [row] = await db<[{ dueAt: Date }]>`insert into doomed_blobs (app_id, blob_key, due_at)
    values (${scope.appId}, ${blobKey}, date_trunc('milliseconds', now()) + make_interval(hours => ${graceHours}))
    returning due_at`;
  return row.dueAt;
}

/** Deletes the record of a blob, unless somebody has changed it since it had this time. Returns whether it did. */
export async function deleteDoomedBlobOf(db: Db, appId: string, blobKey: string, dueAt: Date): Promise<boolean> {
  return db`
    delete from doomed_blobs where app_id = ${appId} and blob_key = ${blobKey} and due_at = ${dueAt}`.any();
}

export async function deleteDoomedBlob(db: Db, appId: string, blobKey: string): Promise<void> {
  await db`delete from doomed_blobs where app_id = ${appId} and blob_key = ${blobKey}`;
}

/** Leaves the blob to a sweep of the next day. */
export async function postponeDoomedBlob(db: Db, appId: string, blobKey: string): Promise<void> {
  await db`
    update doomed_blobs set due_at = now() + interval '1 day' where app_id = ${appId} and blob_key = ${blobKey}`;
}

type DueBlob = {
  appId: string;
  blobKey: string;
  /** When the record is due again, which says that nobody else has changed it. */
  dueAt: Date;
  /** The state of a partial blob to delete as well. */
  partial: PartialState | null;
  referred: boolean;
};

/**
 * Decides to delete some of the blobs that are due; other sweeps leave them out for an hour. Those of deleted files are due
 * `keptDays` later. From then on, no file can begin to refer to such a blob.
 */
export async function takeDueBlobs(db: Db, limit: number, keptDays: number): Promise<DueBlob[]> {
  const taken = await db<Omit<DueBlob, 'referred'>[]>`
    with due as materialized (
      select app_id, blob_key from doomed_blobs d
      where ${isInUse(db, 'd.app_id')} and d.due_at <= now() - make_interval(days => ${keptDays})
      order by d.due_at limit ${limit} for update of d skip locked)
    update doomed_blobs d
    set due_at = date_trunc('milliseconds', now()) - make_interval(days => ${keptDays}) + interval '1 hour'
    from due where d.app_id = due.app_id and d.blob_key = due.blob_key
    returning d.app_id, d.blob_key, d.partial, d.due_at`;
  if (taken.length === 0) return [];
  // After the decision: a file that was deleted while the first statement ran refers to nothing any more.
  const referred = await db<{ blobKey: string }[]>`
    select f.blob_key from unnest(${taken.map(({ appId }) => appId)}::uuid[],
      ${taken.map(({ blobKey }) => blobKey)}::text[]) g (app_id, blob_key)
      join files f on f.app_id = g.app_id and f.blob_key = g.blob_key`;
  const kept = new Set(referred.map(({ blobKey }) => blobKey));
  return taken.map((blob) => ({ ...blob, referred: kept.has(blob.blobKey) }));
}

/** Leaves blobs that were taken and not deleted to the next sweep. */
export async function giveBackDueBlobs(db: Db, blobs: readonly DueBlob[], keptDays: number): Promise<void> {
  await db`
    update doomed_blobs d set due_at = now() - make_interval(days => ${keptDays})
    from unnest(${blobs.map(({ appId }) => appId)}::uuid[], ${blobs.map(({ blobKey }) => blobKey)}::text[],
      ${blobs.map(({ dueAt }) => dueAt)}::timestamptz[]) g (app_id, blob_key, due_at)
    where d.app_id = g.app_id and d.blob_key = g.blob_key and d.due_at = g.due_at`;
}

/** Filters users, teams, orgs or agents by visibility to the caller. */
export async function findVisiblePrincipals(
  db: Db,
  caller: Caller,
  type: 'user' | 'team' | 'org' | 'agent' | 'group',
  ids: readonly string[],
): Promise<Set<string>> {
  const kinds = { user: userVisible, team: teamVisible, org: orgVisible, agent: agentVisible, group: groupVisible };
  const seen = kinds[type](db, caller, 'p');
  const rows = await db<{ id: string }[]>`
    select p.id from ${db(`${type}s`)} p where p.id = any(${[...ids]}::uuid[]) and ${seen}`;
  return new Set(rows.map(({ id }) => id));
}

export type StoredBlob = Pick<FileRow, 'appId' | 'id' | 'blobKey' | 'size' | 'checksum'>;

/** The next `limit` files of all apps, ordered by app and blob. */
export function pageFilesByBlob(
  db: Db,
  after: { appId: string; blobKey: string } | undefined,
  limit: number,
): Promise<StoredBlob[]> {
  return db`
    select app_id, id, blob_key, size, checksum from files
    where ${after === undefined ? db`true` : db`(app_id, blob_key) > (${after.appId}, ${after.blobKey})`}
    order by app_id, blob_key limit ${limit}`;
}

/** Whether a file still refers to the blob. */
export async function isBlobReferenced(
  db: Db,
  { appId, blobKey }: { appId: string; blobKey: string },
): Promise<boolean> {
  return db`select 1 from files where app_id = ${appId} and blob_key = ${blobKey}`.any();
}

/** The blobs among these that no file refers to and that are neither being written nor due for deletion. */
export async function findUnreferencedBlobs(db: Db, blobKeys: readonly string[]): Promise<string[]> {
  if (blobKeys.length === 0) return [];
  const rows = await db<{ blobKey: string }[]>`
    select k.blob_key from unnest(${blobKeys.map(appOfBlob)}::uuid[], ${[...blobKeys]}::text[]) k (app_id, blob_key)
    where ${isOwnBlob(db)}
      and not exists (select 1 from files f where f.app_id = k.app_id and f.blob_key = k.blob_key)
      and not exists (select 1 from doomed_blobs d where d.app_id = k.app_id and d.blob_key = k.blob_key)
      and not exists (select 1 from uploads u where u.app_id = k.app_id and u.blob_key = k.blob_key)`;
  return rows.map(({ blobKey }) => blobKey);
}

/** Whether the remains of a write may belong to an unfinished upload, here or in another database with the same store. */
export async function isBlobUploading(db: Db, blobKey: string): Promise<boolean> {
  const appId = appOfBlob(blobKey);
  return db`
    select 1 from (values (${appId}::uuid)) k (app_id) where not (${isOwnBlob(db)})
      or exists (select from uploads u where u.app_id = ${appId} and u.blob_key = ${blobKey} and u.finished_at is null)`.any();
}

/** SQL: this database decides about the blob, because it is of no app or of one in use here. */
function isOwnBlob(db: Db) {
  return db`(k.app_id is null or exists (select from apps a where a.id = k.app_id) and ${isInUse(db, 'k.app_id')})`;
}

/** The app in the key of a blob. Null for a stray file in the blob store. */
function appOfBlob(blobKey: string): string | null {
  const [, appId] = /^([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})\//.exec(blobKey) ?? [];
  return appId ?? null;
}

/** The keys of the newest referenced blobs. */
export async function sampleBlobKeys(db: Db, limit: number): Promise<string[]> {
  const rows = await db<{ blobKey: string }[]>`select blob_key from files order by created_at desc limit ${limit}`;
  return rows.map(({ blobKey }) => blobKey);
}

/** A backup holds this session lock while it copies blobs. An arbitrary but unique number. */
export const backupLockKey = 7_130_241_005;

/**
 * Whether a backup may still need a blob whose row was deleted. Call it after the deletion is committed: a backup that
 * starts later does not see the row. Inside a transaction, it also delays the start of a backup until the end.
 */
export async function isBackupRunning(db: Db): Promise<boolean> {
  const [row] = await db<{ free: boolean }[]>`select pg_try_advisory_xact_lock_shared(${backupLockKey}) as free`;
  return row?.free !== true;
}
