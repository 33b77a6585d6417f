/*
 * Triggers of uploads: uploads_reserved, uploads_finished and uploads_ended update the quota of bytes; the last one also
 * lists the partial blob for deletion.
 */
import type { PartialState } from '../blob/blob-store.ts';
import type { Db } from '../db/database.ts';
import { sweepRows } from '../db/delete-batch.ts';
import { hasEnded } from '../db/holder-lock.ts';
import { readWithTotal } from '../db/pages.ts';
import type { PageRequest } from '../http/route/pages.ts';
import { type Caller, canSeeWholeApp, type Scope } from '../tenancy/caller.ts';
import type { Holdings } from '../tenancy/room.ts';
import { inScope, type Owned } from '../tenancy/visible.ts';

export type UploadRow = {
  appId: string;
  id: string;
  sandboxId: string;
  userId: string | null;
  /** The value of the header Upload-Metadata. */
  metadata: string;
  owned: Owned;
  length: number;
  received: number;
  blobKey: string;
  state: PartialState;
  holder: string | null;
  createdAt: Date;
  expiresAt: Date;
  finishedAt: Date | null;
};

type Key = { appId: string; id: string };

const visible = (db: Db, caller: Caller) =>
  canSeeWholeApp(caller)
    ? inScope(db, caller, 'u')
    : db`(${inScope(db, caller, 'u')} and u.user_id = ${caller.kind === 'user' ? caller.userId : null})`;

/** What a space and one user of it hold in unfinished uploads. `bytes` are those that have not arrived yet. */
export async function findUnfinished(
  tx: Db,
  { appId, sandboxId }: Scope,
  userId: string | null,
): Promise<{ uploads: Holdings; bytesOfCaller: number }> {
  const [row] = await tx<[{ uploads: number; own: number; ownBytes: number }]>`
    select count(*) as uploads, count(*) filter (where user_id = ${userId}) as own,
      coalesce(sum(length - received) filter (where user_id = ${userId}), 0)::bigint as own_bytes
    from uploads where app_id = ${appId} and sandbox_id = ${sandboxId} and finished_at is null`;
  return { uploads: { ofSpace: row.uploads, ofCaller: row.own }, bytesOfCaller: row.ownBytes };
}

export async function insertUpload(db: Db, upload: Omit<UploadRow, 'received' | 'finishedAt'>): Promise<UploadRow> {
  const { owned, state } = upload;
  return db<[UploadRow]>`
    insert into uploads (app_id, id, sandbox_id, user_id, metadata, owned, length, blob_key, state, holder, created_at,
      expires_at)
    values (${upload.appId}, ${upload.id}, ${upload.sandboxId}, ${upload.userId}, ${upload.metadata},
      ${db.json(owned as never)}, ${upload.length}, ${upload.blobKey}, ${db.json(state as never)}, ${upload.holder},
      ${upload.createdAt}, ${upload.expiresAt})
    returning *`.first();
}

export async function findVisibleUpload(db: Db, caller: Caller, id: string, now: Date): Promise<UploadRow | undefined> {
  return db<UploadRow[]>`
    select u.* from uploads u
    where u.app_id = ${caller.appId} and u.id = ${id} and u.expires_at > ${now} and ${visible(db, caller)}`.first();
}

/** A page of the unfinished uploads that the caller may see, newest first, and the total. */
export async function listVisibleUploads(
  db: Db,
  caller: Caller,
  page: PageRequest,
  now: Date,
): Promise<[UploadRow[], number]> {
  const where = db`u.finished_at is null and u.expires_at > ${now} and ${visible(db, caller)}`;
  return readWithTotal(
    db<UploadRow[]>`
      select u.* from uploads u where ${where}
      order by u.created_at desc, u.id desc limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from uploads u where ${where}`,
  );
}

/** Records which bytes have become durable. Returns false if the holder lost the upload or it no longer exists. */
export async function saveState(db: Db, { appId, id }: Key, holder: string, state: PartialState): Promise<boolean> {
  return db`
    update uploads set received = ${state.size}, state = ${db.json(state as never)}
    where app_id = ${appId} and id = ${id} and holder = ${holder} and finished_at is null`.any();
}

/** Marks the upload as finished, once. */
export async function finishUpload(tx: Db, { appId, id }: Key, holder: string, now: Date): Promise<boolean> {
  return tx`
    update uploads set finished_at = ${now}
    where app_id = ${appId} and id = ${id} and holder = ${holder} and finished_at is null and received = length`.any();
}

/** Marks what is stored beside a complete blob for deletion. */
export async function markPartialForDeletion(tx: Db, { appId, blobKey, state }: UploadRow): Promise<void> {
  await tx`
    insert into doomed_blobs (app_id, blob_key, partial) values (${appId}, ${blobKey}, ${tx.json(state as never)})
    on conflict (app_id, blob_key) do update set due_at = excluded.due_at, partial = excluded.partial`;
}

export async function releaseUpload(db: Db, { appId, id }: Key, holder: string): Promise<void> {
  await db`update uploads set holder = null where app_id = ${appId} and id = ${id} and holder = ${holder}`;
}

export async function deleteUpload(db: Db, { appId, id }: Key): Promise<boolean> {
  return db`delete from uploads where app_id = ${appId} and id = ${id}`.any();
}

export async function deleteExpired(db: Db, now: Date): Promise<void> {
  await sweepRows(db, { table: 'uploads', order: 'expires_at', where: db`t.expires_at <= ${now}` });
}

/** Half of an advisory lock key; the other half is the hash of a holder's name. */
const holderLockSpace = 7_130_245;

/**
 * Holds an upload for this process, unless another living process holds it. `session` keeps the lock that shows that
 * this process is alive. The lock is taken each time, because a lost connection loses it.
 */
export async function holdUpload(session: Db, { appId, id }: Key, holder: string): Promise<UploadRow | undefined> {
  return session<UploadRow[]>`
    with present as materialized (select pg_try_advisory_lock(${holderLockSpace}, hashtext(${holder})))
    update uploads set holder = ${holder} from present
    where app_id = ${appId} and id = ${id}
      and (holder is null or holder = ${holder} or ${hasEnded(session, holderLockSpace, session`holder`)})
    returning uploads.*`.first();
}

/** Takes the lock that shows that this process is alive, before it inserts an upload that it holds. */
export async function showHolder(session: Db, holder: string): Promise<void> {
  await session`select pg_try_advisory_lock(${holderLockSpace}, hashtext(${holder}))`;
}
