import type { Clock } from '../clock.ts';
import type { Database } from '../db/database.ts';
import type { Domain } from '../domain.ts';
import { createUsageService, type UsageService } from './service.ts';
import { createUsageSweepTask, usageSweepJob } from './sweep.ts';

export function createUsage(deps: { db: Database; clock: Clock }): Domain<UsageService> {
  return {
    service: createUsageService(deps),
    tasks: { [usageSweepJob.task]: createUsageSweepTask(deps) },
    recurring: [usageSweepJob],
  };
}
