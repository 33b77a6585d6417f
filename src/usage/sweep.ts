import type { Database } from '../db/database.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { Task } from '../jobs/workers.ts';
import { deleteOldCounts } from './store.ts';

/** Deletes counts that are no longer needed. */
export const usageSweepJob = { task: taskNames.sweepUsage, everySeconds: 3_600 };

const pageDaysKept = 31;

export function createUsageSweepTask({ db }: { db: Database }): Task {
  return async () => void (await deleteOldCounts(db, pageDaysKept));
}
