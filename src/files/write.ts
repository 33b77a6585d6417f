import type { BlobStore, StoredBlob } from '../blob/blob-store.ts';
import { type Database, type Db, isRefusedStatement, isUniqueViolation } from '../db/database.ts';
import { AppError } from '../errors.ts';
import { newUuid } from '../ids.ts';
import type { Logger } from '../log.ts';
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
  /** More bytes than this: BlobTooLarge. */
  sizeMax?: number;
  /** SHA-256 in hex; of other bytes: BlobChecksumMismatch. */
  checksum?: string;
  /** The file's id where it was given out beforehand. */
  id?: string;
};

/** What else is written in the transaction of a new file's row. */
export type RecordFile = (tx: Db, row: store.FileRow) => Promise<void>;

type ImageSize = { width: number; height: number };

export type WriteDeps = {
  db: Database;
  blobs: BlobStore;
  log: Logger;
  /** Reads the size from the first bytes of an image of this app; undefined when it cannot be told. */
  imageSize: (bytes: Uint8Array, appId: string) => Promise<ImageSize | undefined>;
};

/** After this a blob that still has no row was left by a process that died; no upload takes as long. */
const graceHours = 24;
/** Formats say their size at the beginning, after what cameras put before it. */
const imageHeadBytes = 1024 * 1024;

/** Contents that are stored and have no row yet. */
type StoredFile = {
  /** Writes the row, and what `record` adds, in this transaction. May be tried again in another. */
  commit(tx: Db, owned: Owned, record?: RecordFile): Promise<store.FileRow>;
  /** There will be no row: the blob may go. */
  discard(): Promise<void>;
};

/**
 * Stores contents and row: the blob is whole and durable before the row exists, and a note that is as durable as either
 * names the blob from before it exists until its row does. So a process may die at any point, and what it leaves is
 * swept away. `record` may add to the row's transaction.
 */
export async function writeFile(
  deps: WriteDeps,
  scope: Scope,
  contents: FileContents,
  owned: Owned,
  record?: RecordFile,
): Promise<store.FileRow> {
  const stored = await storeFile(deps, scope, contents);
  try {
    return await deps.db.begin((tx) => stored.commit(tx, owned, record));
  } catch (error) {
    // A connection that broke may have broken after the commit: then the row is there, and only the note can tell.
    if (error instanceof AppError || isRefusedStatement(error)) await stored.discard();
    throw error;
  }
}

/** The first half of `writeFile`, which takes its time and holds no transaction. */
export async function storeFile(deps: WriteDeps, scope: Scope, contents: FileContents): Promise<StoredFile> {
  const { db, blobs } = deps;
  const { filename, contentType, sizeMax, checksum, shared = false, id = newUuid() } = contents;
  const blobKey = `${scope.appId}/${newUuid()}`;
  const discard = () => forgetBlob(deps, scope.appId, blobKey);
  await store.insertDoomedBlob(db, scope, blobKey, graceHours);
  let blob: StoredBlob;
  let image: ImageSize | undefined;
  try {
    blob = await blobs.put(blobKey, contents.bytes, {
      contentType,
      ...(sizeMax === undefined ? {} : { sizeMax }),
      ...(checksum === undefined ? {} : { checksum }),
    });
    image = isImage(contentType)
      ? await readImageSize(deps, scope.appId, blobKey, contents.bytes, blob.size)
      : undefined;
  } catch (error) {
    await discard();
    throw refusalOf(error);
  }
  return {
    async commit(tx, owned, record) {
      try {
        const row = await store.insertFile(tx, {
          appId: scope.appId,
          sandboxId: scope.sandboxId,
          id,
          filename,
          contentType,
          size: blob.size,
          checksum: Buffer.from(blob.checksum, 'hex'),
          blobKey,
          width: image?.width ?? null,
          height: image?.height ?? null,
          shared,
          ...owned,
        });
        await store.deleteDoomedBlob(tx, scope.appId, blobKey);
        await record?.(tx, row);
        return row;
      } catch (error) {
        throw refusalOf(error);
      }
    },
    discard,
  };
}

/** What the caller is told, where the failure is not ours. */
function refusalOf(error: unknown): unknown {
  const overQuota = quotaError(error);
  if (overQuota) return overQuota;
  if (isUniqueViolation(error, 'files_pkey')) return new AppError('conflict', 'This upload was done already.');
  if (isDiskFull(error))
    return new AppError('unavailable', 'The server has no room left for this file.', { cause: error });
  return error;
}

function isDiskFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT');
}

/** Removes a blob that nothing refers to. A failure is left to the sweep: the note about the blob is still there. */
export async function forgetBlob(
  { db, blobs, log }: Pick<WriteDeps, 'db' | 'blobs' | 'log'>,
  appId: string,
  blobKey: string,
): Promise<void> {
  try {
    await blobs.remove(blobKey);
    await store.deleteDoomedBlob(db, appId, blobKey);
  } catch (error) {
    log.warn({ err: error, blobKey }, 'A blob was left to the sweep');
  }
}

/** Width and height are worth having, never worth losing an upload for. */
async function readImageSize(
  { blobs, imageSize, log }: WriteDeps,
  appId: string,
  blobKey: string,
  bytes: FileContents['bytes'],
  size: number,
): Promise<ImageSize | undefined> {
  try {
    if (bytes instanceof Uint8Array) return await imageSize(bytes.subarray(0, imageHeadBytes), appId);
    const chunks: Buffer[] = [];
    const head = await blobs.read(blobKey, { start: 0, end: Math.min(size, imageHeadBytes) });
    for await (const chunk of head) chunks.push(chunk);
    return await imageSize(Buffer.concat(chunks), appId);
  } catch (error) {
    log.info({ err: error, blobKey }, 'The size of an image could not be read');
    return undefined;
  }
}
