import type { Database } from '../db/database.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { Task } from '../jobs/workers.ts';
import type { Clock } from '../lib/clock.ts';
import { deleteExpiredSessions } from './store.ts';

/** Deletes expired sessions. */
export const consoleSweepJob = { task: taskNames.sweepConsole, everySeconds: 3_600 };

export function createConsoleSweepTask({ db, clock }: { db: Database; clock: Clock }): Task {
  return () => deleteExpiredSessions(db, clock.now());
}
