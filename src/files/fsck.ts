import { createHash } from 'node:crypto';
import { BlobMissing, type BlobStore } from '../blob/blob-store.ts';
import type { Database } from '../db/database.ts';
import { formatId } from '../lib/ids.ts';
import {
  deleteDoomedBlob,
  deleteFile,
  findUnreferencedBlobs,
  isBlobReferenced,
  pageFilesByBlob,
  type StoredBlob,
} from './store.ts';

/** One problem, and what `repair` did about it. */
export type Finding = {
  kind: 'missing_blob' | 'size_mismatch' | 'checksum_mismatch' | 'unreferenced_blob';
  /** The id of the file (fil_…), if there is one. */
  file?: string;
  blobKey: string;
  detail: string;
  repair: 'file_deleted' | 'blob_deleted' | 'left' | undefined;
};

type FsckReport = { files: number; blobs: number; findings: number; unrepaired: number };

const batchSize = 500;
/** A blob younger than this may belong to a write in progress, for example by a server of another release. */
const youngMs = 60 * 60 * 1_000;
/** If this many files, and most of all files, have no blob, the configured store is probably the wrong one. */
const wrongStoreFiles = 10;

export class WrongBlobStoreError extends Error {}

/**
 * Compares every file with its blob and every blob with the rows, reading all contents once. `repair` deletes rows
 * whose blob is missing and unreferenced blobs; changed contents are kept, because no better copy exists. Reports each
 * problem when it is found. Throws WrongBlobStoreError before the first repair when most blobs are missing. Safe while
 * a server is running.
 */
export async function checkFiles(
  { db, blobs, now }: { db: Database; blobs: BlobStore; now: Date },
  repair: boolean,
  report: (finding: Finding) => void,
): Promise<FsckReport> {
  const totals = { files: 0, blobs: 0, findings: 0, unrepaired: 0 };
  const check: Check = {
    ...{ db, blobs, repair, totals },
    found(finding) {
      totals.findings += 1;
      if (finding.repair === undefined || finding.repair === 'left') totals.unrepaired += 1;
      report(finding);
    },
  };
  const missing = await compareFiles(check);
  if (repair && missing.length >= wrongStoreFiles && missing.length * 2 > totals.files)
    throw new WrongBlobStoreError(
      `${missing.length} of ${totals.files} files have no contents here. This looks like the wrong blob store, so nothing was repaired: check QUARRY_BLOB_STORE, QUARRY_DATA_DIR and the S3 settings.`,
    );
  for (const file of missing) await repairMissing(check, file);
  await compareBlobs(check, now.getTime() - youngMs);
  return totals;
}

type Check = {
  db: Database;
  blobs: BlobStore;
  repair: boolean;
  totals: FsckReport;
  found(finding: Finding): void;
};

/** Compares every file with its blob. Returns the files that have none. */
async function compareFiles({ db, blobs, repair, totals, found }: Check): Promise<StoredBlob[]> {
  const missing: StoredBlob[] = [];
  for (let after: StoredBlob | undefined; ; ) {
    const files = await pageFilesByBlob(db, after, batchSize);
    for (const file of files) {
      totals.files += 1;
      const read = await measure(blobs, file.blobKey);
      const checksum = file.checksum.toString('hex');
      const changed = {
        file: formatId('file', file.id),
        blobKey: file.blobKey,
        repair: repair ? 'left' : undefined,
      } as const;
      if (read === undefined) missing.push(file);
      else if (read.size !== file.size)
        found({ ...changed, kind: 'size_mismatch', detail: `${read.size} bytes instead of ${file.size}` });
      else if (read.checksum !== checksum)
        found({ ...changed, kind: 'checksum_mismatch', detail: `SHA-256 ${read.checksum} instead of ${checksum}` });
    }
    after = files.at(-1);
    if (after === undefined || files.length < batchSize) return missing;
  }
}

async function repairMissing({ db, repair, found }: Check, file: StoredBlob): Promise<void> {
  // Read again: the file may have been deleted meanwhile.
  if (!(await isBlobReferenced(db, file))) return;
  const { appId, id, blobKey } = file;
  if (repair) {
    await deleteFile(db, appId, id);
    await deleteDoomedBlob(db, appId, blobKey);
  }
  found({
    kind: 'missing_blob',
    file: formatId('file', id),
    blobKey,
    detail: 'the contents are missing',
    repair: repair ? 'file_deleted' : undefined,
  });
}

/** Compares every blob that was last changed until `old` with the rows. */
async function compareBlobs({ db, blobs, repair, totals, found }: Check, old: number): Promise<void> {
  let batch: string[] = [];
  const examine = async () => {
    for (const blobKey of await findUnreferencedBlobs(db, batch)) {
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
