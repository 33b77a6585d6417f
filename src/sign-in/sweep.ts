import type { Database } from '../db/database.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { Clock } from '../lib/clock.ts';
import { deleteOldAddresses, deleteOldFailures } from './limits-store.ts';
import { deleteExpiredRefreshTokens } from './store.ts';

/** Deletes sign-in failures outside every window, old addresses and expired refresh tokens. */
export const authSweepJob = { task: taskNames.sweepAuth, everySeconds: 3_600 };

/** The length of the longest window. */
const failuresKeptMs = 60 * 60 * 1_000;
const addressesKeptMs = 180 * 24 * 60 * 60 * 1_000;

/** Safe to run at any time, in any number of processes. */
export async function sweepAuth({ db, clock }: { db: Database; clock: Clock }): Promise<void> {
  const now = clock.now();
  await deleteOldFailures(db, new Date(now.getTime() - failuresKeptMs));
  await deleteOldAddresses(db, new Date(now.getTime() - addressesKeptMs));
  await deleteExpiredRefreshTokens(db, now);
}
