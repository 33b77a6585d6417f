import type { Database } from '../db/database.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { Ledger } from '../ledger/seal.ts';
import type { Clock } from '../lib/clock.ts';
import { deleteOldEntries } from './store.ts';

/** Deletes entries and counts older than the configured retention. */
export const auditSweepJob = { task: taskNames.sweepAudit, everySeconds: 3_600 };

type SweepDeps = { db: Database; clock: Clock; ledger: Ledger; daysKept: number };

const dayMs = 24 * 60 * 60 * 1_000;

/** Safe to run at any time, in any number of processes. Returns the number of rows deleted. */
export function sweepAudit(deps: SweepDeps): Promise<number> {
  const before = new Date(deps.clock.now().getTime() - deps.daysKept * dayMs);
  return deps.ledger.removeOld(before, () => deleteOldEntries(deps.db, before));
}
