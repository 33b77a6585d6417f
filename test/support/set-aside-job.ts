import type { Database } from '../../src/db/database.ts';
import { addJob, type JobPayload } from '../../src/jobs/queue.ts';

/** Adds a job that has ended its process three times. No worker sees it before it is set aside. */
export async function setJobAside(db: Database, task: string, payload: JobPayload, reason = 'poisoned'): Promise<void> {
  await db.begin(async (tx) => {
    await addJob(tx, task, payload);
    await tx`
      update jobs
      set attempts = max_attempts, last_error = ${reason}, crashes = 3
      where payload::text = ${JSON.stringify(payload)} and attempts = 0`;
  });
}
