import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { BlobMissing, type BlobStore } from '../blob/blob-store.ts';
import { openDiskBlobStore } from '../blob/disk.ts';
import { forEachBlob, hasBlob } from './blobs.ts';
import { BackupError } from './error.ts';
import { type Manifest, readManifest } from './manifest.ts';
import { countRows, readBlobList, readPart, readRows } from './parts.ts';
import { megabytes, type Progress } from './progress.ts';

/**
 * Reads a backup and compares every file in it with the manifest: rows are counted, blobs hashed.
 * @throws BackupError at the first mismatch.
 */
export async function verifyBackup(directory: string, progress: Progress): Promise<Manifest> {
  const manifest = await readManifest(directory);
  for (const { name, rows, parts } of [...manifest.tables, manifest.jobs]) {
    let found = 0;
    for await (const bytes of readRows(directory, parts)) found += countRows(bytes);
    if (found !== rows) throw new BackupError(`${name} has ${found} rows instead of ${rows}.`);
    progress.reportAtIntervals(() => `checked the rows of ${name}`);
  }
  if (manifest.secret) await readPart(directory, manifest.secret);
  const archive = await openArchivedBlobs(directory);
  const seen = { count: 0, bytes: 0 };
  await forEachBlob(readBlobList(directory, manifest.blobs.parts), async (blob) => {
    if (!(await isWhole(archive, blob))) throw new BackupError(`The blob ${blob.key} is missing or damaged.`);
    seen.count += 1;
    seen.bytes += blob.size;
    progress.reportAtIntervals(
      () => `checked ${seen.count} of ${manifest.blobs.count} blobs, ${megabytes(seen.bytes)}`,
    );
  });
  if (seen.count !== manifest.blobs.count || seen.bytes !== manifest.blobs.bytes)
    throw new BackupError(`The list of blobs has ${seen.count} instead of ${manifest.blobs.count}.`);
  return manifest;
}

/** The blobs of a backup, in the same layout as a server's directory of blobs. */
export async function openArchivedBlobs(directory: string): Promise<BlobStore> {
  const path = join(directory, 'blobs');
  // Opening a store creates its directory, but a backup is only read.
  if (!existsSync(path)) throw new BackupError(`${path} is missing.`);
  return openDiskBlobStore(path);
}

async function isWhole(archive: BlobStore, blob: Parameters<typeof hasBlob>[1]): Promise<boolean> {
  try {
    return await hasBlob(archive, blob);
  } catch (error) {
    if (error instanceof BlobMissing) return false;
    throw error;
  }
}
