import type { BlobStore } from '../blob/blob-store.ts';
import type { Database } from '../db/database.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { Task } from '../jobs/workers.ts';
import { limits } from '../lib/limits.ts';
import { deleteUnusedPictures } from './picture-store.ts';
import {
  deleteDoomedBlobOf,
  giveBackDueBlobs,
  isBackupRunning,
  isBlobUploading,
  postponeDoomedBlob,
  takeDueBlobs,
} from './store.ts';

const batchSize = 100;
const batchesMax = 1_000;
/** A write in progress touches its temporary file; one untouched for this long is dead. */
const temporaryAgeMs = 24 * 60 * 60 * 1_000;

export const sweepJob = { task: taskNames.sweepBlobs, everySeconds: 600 };

type SweepDeps = {
  db: Database;
  blobs: BlobStore;
  /** A database that is recovered to a time within these days finds the contents of all its files. Default 0. */
  deletedBlobDays?: number;
  /** Whether an app is in this cell. Cells share a blob store. By default, every app is. */
  ownsApp?: ((appId: string) => Promise<boolean>) | undefined;
};
type Swept = { blobs: number; temporary: number };

/**
 * Deletes blobs without a row and remains of interrupted writes. Any number of processes may sweep concurrently, and
 * the next sweep continues an interrupted one: what that had taken is due again an hour later. Throws if a blob cannot be
 * deleted; the next sweep then leaves it out. No transaction is open while the store deletes, however long it takes.
 */
export async function sweepBlobs({ db, blobs, deletedBlobDays = 0, ownsApp }: SweepDeps): Promise<Swept> {
  let removed = 0;
  for (let batch = 0; batch < batchesMax; batch++) {
    const due = await takeDueBlobs(db, batchSize, deletedBlobDays);
    // Blobs that a backup still has to copy are kept until a later sweep. One that starts after this finds no file of them.
    if (due.length > 0 && (await isBackupRunning(db))) {
      await giveBackDueBlobs(db, due, deletedBlobDays);
      break;
    }
    for (const [index, { appId, blobKey, partial, referred, dueAt }] of due.entries()) {
      try {
        if (!referred) await blobs.remove(blobKey);
        if (partial !== null) await blobs.partials.remove(blobKey, partial);
      } catch (error) {
        // One that the store keeps, such as a locked object, must not keep those behind it.
        await postponeDoomedBlob(db, appId, blobKey);
        await giveBackDueBlobs(db, due.slice(index + 1), deletedBlobDays);
        throw error;
      }
      // Unless its file was deleted meanwhile: then there is more to delete.
      await deleteDoomedBlobOf(db, appId, blobKey, dueAt);
    }
    removed += due.filter(({ referred }) => !referred).length;
    if (due.length < batchSize) break;
  }
  const isKept = async (blobKey: string) => {
    const [appId = ''] = blobKey.split('/', 1);
    if (ownsApp !== undefined && !(await ownsApp(appId))) return true;
    return isBlobUploading(db, blobKey);
  };
  return { blobs: removed, temporary: await blobs.sweepTemporary(temporaryAgeMs, isKept) };
}

export function createSweepTask(deps: SweepDeps): Task {
  return async (_payload, { log }) => {
    const { blobs, temporary } = await sweepBlobs(deps);
    await deleteUnusedPictures(deps.db, limits.pictureDaysKept);
    if (blobs + temporary > 0) log.info({ blobs, temporary }, 'Swept the blob store');
  };
}
