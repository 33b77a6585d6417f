import type { Database } from '../db/database.ts';
import type { Domain } from '../domain.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { Clock } from '../lib/clock.ts';
import { createUsageService, type UsageService } from './service.ts';
import { deleteOldCounts } from './store.ts';

/*
 * How much an app uses, and its limits.
 * - Triggers in migrations/ count bytes, documents and sandboxes in the transaction of each change; tenancy/quotas.ts
 *   refuses what exceeds a limit, and books pages and tokens.
 * - `service.ts` reads usage and sets an app's own limits; `quarry quota` sets the operator's.
 * - `store.ts` also finds counters that differ from what they count, for `quarry fsck`.
 */

/** Deletes counts that are no longer needed. */
const sweep = { task: taskNames.sweepUsage, everySeconds: 3_600 };
const pageDaysKept = 31;

export function createUsage(deps: { db: Database; clock: Clock }): Domain<UsageService> {
  return {
    service: createUsageService(deps),
    tasks: { [sweep.task]: async () => void (await deleteOldCounts(deps.db, pageDaysKept)) },
    recurring: [sweep],
  };
}
