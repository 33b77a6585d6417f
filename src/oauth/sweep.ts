import type { Database } from '../db/database.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { Task } from '../jobs/workers.ts';
import type { Clock } from '../lib/clock.ts';
import { deleteEndedGrants } from './store.ts';

/** Deletes what assistants may no longer use. */
export const assistantSweepJob = { task: taskNames.sweepAssistants, everySeconds: 3_600 };

export function createAssistantSweepTask({ db, clock }: { db: Database; clock: Clock }): Task {
  return () => deleteEndedGrants(db, clock.now());
}
