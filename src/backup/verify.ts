import { BlobMissing } from '../blob/blob-store.ts';
import type { Archive } from './archive.ts';
import { forEachBlob, hasBlob } from './blobs.ts';
import { BackupError } from './error.ts';
import { type Manifest, readManifest } from './manifest.ts';
import { countRows, readBlobList, readPart, readRows } from './parts.ts';
import { megabytes, type Progress } from './progress.ts';

/**
 * Reads a backup and compares every file in it with the manifest: rows are counted, blobs hashed.
 * @throws BackupError at the first mismatch.
 */
export async function verifyBackup(archive: Archive, progress: Progress): Promise<Manifest> {
  const manifest = await readManifest(archive);
  for (const { name, rows, parts } of [...manifest.tables, manifest.jobs]) {
    let found = 0;
    for await (const bytes of readRows(archive, parts)) found += countRows(bytes);
    if (found !== rows) throw new BackupError(`${name} has ${found} rows instead of ${rows}.`);
    progress.reportAtIntervals(() => `checked the rows of ${name}`);
  }
  if (manifest.secret) await readPart(archive, manifest.secret);
  const { store, close } = await archive.openBlobs('read');
  const seen = { count: 0, bytes: 0 };
  await forEachBlob(readBlobList(archive, manifest.blobs.parts), async (blob) => {
    if (!(await isWhole(store, blob))) throw new BackupError(`The blob ${blob.key} is missing or damaged.`);
    seen.count += 1;
    seen.bytes += blob.size;
    progress.reportAtIntervals(
      () => `checked ${seen.count} of ${manifest.blobs.count} blobs, ${megabytes(seen.bytes)}`,
    );
  });
  await close();
  if (seen.count !== manifest.blobs.count || seen.bytes !== manifest.blobs.bytes)
    throw new BackupError(`The list of blobs has ${seen.count} instead of ${manifest.blobs.count}.`);
  return manifest;
}

async function isWhole(store: Parameters<typeof hasBlob>[0], blob: Parameters<typeof hasBlob>[1]): Promise<boolean> {
  try {
    return await hasBlob(store, blob);
  } catch (error) {
    if (error instanceof BlobMissing) return false;
    throw error;
  }
}
