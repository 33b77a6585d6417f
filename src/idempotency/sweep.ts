import type { Database } from '../db/database.ts';
import type { Domain } from '../domain.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { Clock } from '../lib/clock.ts';
import { deleteExpired } from './store.ts';

const job = { task: taskNames.sweepIdempotency, everySeconds: 900 };

/** Deletes records older than a day. */
export function createIdempotencySweep(deps: { db: Database; clock: Clock }): Domain<undefined> {
  return { service: undefined, tasks: { [job.task]: () => sweepIdempotency(deps) }, recurring: [job] };
}

/** Deletes expired records. Safe to run at any time, in any number of processes. */
export async function sweepIdempotency({ db, clock }: { db: Database; clock: Clock }): Promise<void> {
  await deleteExpired(db, clock.now());
}
