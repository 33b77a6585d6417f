import type { BlobStore, StoredBlob } from '../blob/blob-store.ts';
import {
  type Database,
  type Db,
  isRefusedStatement,
  isUniqueViolation,
  runAfterwards,
  runApart,
} from '../db/database.ts';
import { defined } from '../lib/defined.ts';
import { AppError } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import type { Logger } from '../lib/log.ts';
import type { Scope } from '../tenancy/caller.ts';
import { quotaError } from '../tenancy/quotas.ts';
import type { Owned } from '../tenancy/visible.ts';
import { isImage } from './media-types.ts';
import * as store from './store.ts';

export type FileContents = {
  bytes: Uint8Array | AsyncIterable<Uint8Array>;
  filename: string;
  contentType: string;
  shared?: boolean;
  /** More bytes throw BlobTooLarge. */
  sizeMax?: number;
  /** Expected SHA-256 in hex. Other bytes throw BlobChecksumMismatch. */
  checksum?: string;
  /** The file's id, if it was assigned earlier. */
  id?: string;
};

/** Additional writes in the transaction of a new file's row. */
export type RecordFile = (tx: Db, row: store.FileRow) => Promise<void>;

type ImageSize = { width: number; height: number };

export type WriteDeps = {
  db: Database;
  blobs: BlobStore;
  log: Logger;
  /** Reads the size from the first bytes of an image; undefined when it cannot be determined. */
  imageSize: (bytes: Uint8Array, appId: string) => Promise<ImageSize | undefined>;
};

/** A blob without a row after this time was left by a process that died. No upload takes this long. */
const graceHours = 24;
/** Image formats state their size near the beginning, after camera metadata. */
const imageHeadBytes = 1024 * 1024;

/** Stored contents without a row. */
type StoredFile = {
  /** Writes the row, and the additions of `record`, in this transaction. May be retried in another. */
  commit(tx: Db, owned: Owned, record?: RecordFile): Promise<store.FileRow>;
  /** Deletes the blob, which will get no row. */
  discard(): Promise<void>;
};

/**
 * Stores contents and row, and returns the row. The blob is complete and durable before the row exists. From before the
 * blob exists until its row does, a durable record names it: if the process dies, the sweep deletes the blob. `record`
 * may add to the row's transaction.
 */
export async function writeFile(
  deps: WriteDeps,
  scope: Scope,
  contents: FileContents,
  owned: Owned,
  record?: RecordFile,
): Promise<store.FileRow> {
  const stored = await storeFile(deps, scope, contents);
  return beginWith(deps.db, stored, (tx) => stored.commit(tx, owned, record));
}

/** Runs a transaction that commits the stored contents. Deletes them if it is refused. */
export async function beginWith<T>(db: Database, stored: StoredFile, work: (tx: Db) => Promise<T>): Promise<T> {
  try {
    return await db.begin(work);
  } catch (error) {
    // The connection may have been lost after the commit: then the row exists. The record of the blob says which.
    if (error instanceof AppError || isRefusedStatement(error)) await stored.discard();
    throw error;
  }
}

/** The first, slow half of `writeFile`, which holds no transaction. */
export async function storeFile(deps: WriteDeps, scope: Scope, contents: FileContents): Promise<StoredFile> {
  const { db, blobs } = deps;
  const { filename, contentType, sizeMax, checksum, shared = false, id = newUuid() } = contents;
  const blobKey = `${scope.appId}/${newUuid()}`;
  const discard = () => discardBlob(deps, scope.appId, blobKey);
  // Committed before the blob exists, and independent of the transaction that will write the row.
  const noted = await runApart(() => store.insertDoomedBlob(db, scope, blobKey, graceHours));
  try {
    const blob = await blobs.put(blobKey, contents.bytes, {
      contentType,
      ...defined({ sizeMax, checksum }),
    });
    const bytes = contents.bytes instanceof Uint8Array ? contents.bytes : undefined;
    const commit = await adoptBlob(deps, scope, { id, filename, contentType, shared }, blob, bytes, noted);
    return { commit, discard };
  } catch (error) {
    await discard();
    throw translateWriteError(error);
  }
}

/**
 * How a stored blob becomes a file. `bytes` are its contents, if they are in memory. `noted` is the time in the record of a
 * write: once the sweep has changed it, the blob may be gone.
 */
export async function adoptBlob(
  deps: WriteDeps,
  scope: Scope,
  file: { id: string; filename: string; contentType: string; shared: boolean },
  blob: StoredBlob,
  bytes?: Uint8Array,
  noted?: Date,
): Promise<StoredFile['commit']> {
  const image = isImage(file.contentType) ? await readImageSize(deps, scope.appId, blob, bytes) : undefined;
  return async (tx, { orgId, teamId, userId, agentId }, record) => {
    try {
      const row = await store.insertFile(tx, {
        appId: scope.appId,
        sandboxId: scope.sandboxId,
        ...file,
        size: blob.size,
        checksum: Buffer.from(blob.checksum, 'hex'),
        blobKey: blob.key,
        width: image?.width ?? null,
        height: image?.height ?? null,
        orgId,
        teamId,
        userId,
        agentId,
      });
      if (noted !== undefined && !(await store.deleteDoomedBlobOf(tx, scope.appId, blob.key, noted)))
        throw new AppError('unavailable', 'This write took too long. Send it again.');
      await record?.(tx, row);
      return row;
    } catch (error) {
      throw translateWriteError(error);
    }
  };
}

/** Translates errors of the quota, of a used upload link and of a full disk; returns others unchanged. */
export function translateWriteError(error: unknown): unknown {
  const overQuota = quotaError(error);
  if (overQuota) return overQuota;
  if (isUniqueViolation(error, 'files_pkey')) return new AppError('conflict', 'The file was already uploaded.');
  if (isDiskFull(error))
    return new AppError('unavailable', 'The server has no space left for this file.', { cause: error });
  return error;
}

function isDiskFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT');
}

/** Deletes an unreferenced blob. Never throws: if that fails, the record of the blob still exists, and the sweep deletes it. */
export async function discardBlob(
  { db, blobs, log }: Pick<WriteDeps, 'db' | 'blobs' | 'log'>,
  appId: string,
  blobKey: string,
): Promise<void> {
  await runAfterwards(async () => {
    try {
      await blobs.remove(blobKey);
      await store.deleteDoomedBlob(db, appId, blobKey);
    } catch (error) {
      log.warn({ err: error, blobKey }, 'Could not delete a blob; the sweep will retry');
    }
  });
}

/** Width and height are optional: an error here never fails an upload. */
async function readImageSize(
  { blobs, imageSize, log }: WriteDeps,
  appId: string,
  { key, size }: StoredBlob,
  bytes: Uint8Array | undefined,
): Promise<ImageSize | undefined> {
  try {
    if (bytes !== undefined) return await imageSize(bytes.subarray(0, imageHeadBytes), appId);
    const chunks: Buffer[] = [];
    const head = await blobs.read(key, { start: 0, end: Math.min(size, imageHeadBytes) });
    for await (const chunk of head) chunks.push(chunk);
    return await imageSize(Buffer.concat(chunks), appId);
  } catch (error) {
    log.info({ err: error, blobKey: key }, 'Could not read the size of an image');
    return undefined;
  }
}
