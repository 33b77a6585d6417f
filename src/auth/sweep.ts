import type { Clock } from '../clock.ts';
import type { Database } from '../db/database.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { Task } from '../jobs/workers.ts';
import { deleteExpiredRefreshTokens, deleteOldHits } from './store.ts';

/** Removes what signing in leaves: counts of windows that are over, and tokens that can no longer be used. */
export const authSweepJob = { task: taskNames.sweepAuth, everySeconds: 3_600 };

/** No window of attempts is as long. */
const hitsKeptMs = 60 * 60 * 1_000;

export function createAuthSweepTask(deps: { db: Database; clock: Clock }): Task {
  return () => sweepAuth(deps);
}

/** Safe to run at any time, on any number of processes. */
export async function sweepAuth({ db, clock }: { db: Database; clock: Clock }): Promise<void> {
  const now = clock.now();
  await deleteOldHits(db, new Date(now.getTime() - hitsKeptMs));
  await deleteExpiredRefreshTokens(db, now);
}
