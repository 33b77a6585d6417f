import type { Db } from '../db/database.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { Clock } from '../lib/clock.ts';
import { deleteExpired } from './store.ts';

export const uploadSweepJob = { task: taskNames.sweepUploads, everySeconds: 600 };

/** Deletes expired uploads. The sweep of blobs deletes their bytes. Safe in any number of processes. */
export async function sweepUploads({ db, clock }: { db: Db; clock: Clock }): Promise<void> {
  await deleteExpired(db, clock.now());
}
