import type { BlobStore } from '../blob/blob-store.ts';
import type { Database } from '../db/database.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { Task } from '../jobs/workers.ts';
import { deleteDoomedBlob, isBackupRunning, takeDueBlobs } from './store.ts';

const batchSize = 100;
const batchesMax = 1_000;
/** A write that is still going on touches its temporary file; nothing is silent for this long and alive. */
const temporaryAgeMs = 24 * 60 * 60 * 1_000;

export const sweepJob = { task: taskNames.sweepBlobs, everySeconds: 600 };

type Swept = { blobs: number; temporary: number };

/**
 * Deletes the blobs that no row refers to any more, and what interrupted writes left in the blob store. Any number of
 * processes may sweep at the same time, and one that is stopped half way leaves the rest to the next.
 */
export async function sweepBlobs({ db, blobs }: { db: Database; blobs: BlobStore }): Promise<Swept> {
  let removed = 0;
  for (let batch = 0; batch < batchesMax; batch++) {
    const due = await db.begin(async (tx) => {
      // What a backup still has to copy stays; the next sweep after it takes it away.
      if (await isBackupRunning(tx)) return [];
      const taken = await takeDueBlobs(tx, batchSize);
      for (const { appId, blobKey, referred } of taken) {
        if (!referred) await blobs.remove(blobKey);
        await deleteDoomedBlob(tx, appId, blobKey);
      }
      return taken;
    });
    removed += due.filter(({ referred }) => !referred).length;
    if (due.length < batchSize) break;
  }
  return { blobs: removed, temporary: await blobs.sweepTemporary(temporaryAgeMs) };
}

export function createSweepTask(deps: { db: Database; blobs: BlobStore }): Task {
  return async (_payload, { log }) => {
    const { blobs, temporary } = await sweepBlobs(deps);
    if (blobs + temporary > 0) log.info({ blobs, temporary }, 'Swept the blob store');
  };
}
