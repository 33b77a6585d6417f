import type { Database } from '../db/database.ts';
import { taskNames } from '../jobs/task-names.ts';
import { sweepExpired } from './store.ts';
import { endWatches } from './watch-store.ts';

export const kvSweepJob = { task: taskNames.sweepKv, everySeconds: 60 };
const batchMax = 1_000;

/** Deletes expired entries, and logs that are no longer watched. Any number of processes may run it concurrently. */
export async function sweepKv(db: Database): Promise<void> {
  while ((await sweepExpired(db, batchMax)) === batchMax);
  await endWatches(db);
}
