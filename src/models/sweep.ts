import type { Database } from '../db/database.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { Clock } from '../lib/clock.ts';
import { deleteOldUses } from './budget-store.ts';
import { abandonCalls, deleteOldCalls } from './call-store.ts';

/** Marks calls of killed processes, and deletes old records and counts. */
export const modelSweepJob = { task: taskNames.sweepModels, everySeconds: 600 };

const batchMax = 5_000;
const dayMs = 24 * 3_600 * 1_000;
/** No call takes longer: nodes end after an hour at most, requests of extractions too. */
const callMsMax = 6 * 3_600 * 1_000;

export type SweepDeps = { db: Database; clock: Clock; daysKept: number };

export async function sweepModels({ db, clock, daysKept }: SweepDeps): Promise<void> {
  const now = clock.now().getTime();
  while ((await abandonCalls(db, new Date(now - callMsMax), batchMax)) === batchMax);
  while ((await deleteOldUses(db, clock.now(), batchMax)) === batchMax);
  await deleteOldCalls(db, new Date(now - daysKept * dayMs));
}
