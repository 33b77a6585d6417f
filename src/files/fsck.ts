import { createHash } from 'node:crypto';
import { BlobMissing, type BlobStore } from '../blob/blob-store.ts';
import type { Database } from '../db/database.ts';
import { formatId } from '../ids.ts';
import {
  deleteDoomedBlob,
  deleteFile,
  findUnreferredBlobs,
  isBlobReferred,
  pageFilesByBlob,
  type StoredBlob,
} from './store.ts';

/** One thing that is not as it should be, and what `repair` did about it. */
export type Finding = {
  kind: 'missing_blob' | 'size_mismatch' | 'checksum_mismatch' | 'unreferenced_blob';
  /** The file (fil_…) that the row is, where there is one. */
  file?: string;
  blobKey: string;
  detail: string;
  repair: 'file_deleted' | 'blob_deleted' | 'left' | undefined;
};

type FsckReport = { files: number; blobs: number; findings: number; unrepaired: number };

const batchSize = 500;
/** A blob this young may belong to a write whose row comes next, on a server of another release for one. */
const youngMs = 60 * 60 * 1_000;
/** This many files without a blob, and most of all: then it is the wrong store that is looked at, not a broken one. */
const wrongStoreFiles = 10;

export class WrongBlobStoreError extends Error {}

/**
 * Compares every file with its bytes and every blob with the rows, reading all contents once. With `repair` it deletes
 * rows whose bytes are gone and blobs that nothing refers to; bytes that changed stay, for there is nothing better.
 * Each finding is reported when it is found. Throws WrongBlobStoreError before the first repair when most blobs are
 * missing. Safe beside a running server.
 */
export async function checkFiles(
  { db, blobs, now }: { db: Database; blobs: BlobStore; now: Date },
  repair: boolean,
  report: (finding: Finding) => void,
): Promise<FsckReport> {
  const totals = { files: 0, blobs: 0, findings: 0, unrepaired: 0 };
  const found = (finding: Finding) => {
    totals.findings += 1;
    if (finding.repair === undefined || finding.repair === 'left') totals.unrepaired += 1;
    report(finding);
  };

  const missing: StoredBlob[] = [];
  for (let after: StoredBlob | undefined; ; ) {
    const files = await pageFilesByBlob(db, after, batchSize);
    for (const file of files) {
      totals.files += 1;
      const { blobKey } = file;
      const id = formatId('file', file.id);
      const read = await measure(blobs, blobKey);
      if (read === undefined) missing.push(file);
      else if (read.size !== file.size)
        found({
          kind: 'size_mismatch',
          file: id,
          blobKey,
          detail: `${read.size} bytes instead of ${file.size}`,
          repair: repair ? 'left' : undefined,
        });
      else if (read.checksum !== file.checksum.toString('hex'))
        found({
          kind: 'checksum_mismatch',
          file: id,
          blobKey,
          detail: `SHA-256 ${read.checksum} instead of ${file.checksum.toString('hex')}`,
          repair: repair ? 'left' : undefined,
        });
    }
    const last = files.at(-1);
    if (last === undefined || files.length < batchSize) break;
    after = last;
  }

  if (repair && missing.length >= wrongStoreFiles && missing.length * 2 > totals.files)
    throw new WrongBlobStoreError(
      `${missing.length} of ${totals.files} files have no contents here. This looks like the wrong blob store, so nothing was repaired: check QUARRY_BLOB_STORE, QUARRY_DATA_DIR and the S3 settings.`,
    );
  for (const file of missing) {
    // Read again: the file may have been deleted in the meantime.
    if (!(await isBlobReferred(db, file))) continue;
    const { appId, id, blobKey } = file;
    if (repair) {
      await deleteFile(db, appId, id);
      await deleteDoomedBlob(db, appId, blobKey);
    }
    found({
      kind: 'missing_blob',
      file: formatId('file', id),
      blobKey,
      detail: 'the contents are gone',
      repair: repair ? 'file_deleted' : undefined,
    });
  }

  const old = now.getTime() - youngMs;
  let batch: string[] = [];
  const examine = async () => {
    for (const blobKey of await findUnreferredBlobs(db, batch)) {
      if (repair) await blobs.remove(blobKey);
      found({
        kind: 'unreferenced_blob',
        blobKey,
        detail: 'no file refers to it',
        repair: repair ? 'blob_deleted' : undefined,
      });
    }
    batch = [];
  };
  for await (const { key, modifiedAt } of blobs.list()) {
    totals.blobs += 1;
    if (modifiedAt.getTime() > old) continue;
    batch.push(key);
    if (batch.length >= batchSize) await examine();
  }
  await examine();
  return totals;
}

async function measure(blobs: BlobStore, key: string): Promise<{ size: number; checksum: string } | undefined> {
  const hash = createHash('sha256');
  let size = 0;
  try {
    for await (const chunk of await blobs.read(key)) {
      size += chunk.byteLength;
      hash.update(chunk);
    }
  } catch (error) {
    if (error instanceof BlobMissing) return undefined;
    throw error;
  }
  return { size, checksum: hash.digest('hex') };
}
