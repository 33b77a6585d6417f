import type { Clock } from '../../clock.ts';
import type { Database } from '../../db/database.ts';
import type { Logger } from '../../log.ts';
import { actsAs } from '../runs/invoker.ts';
import type { RunService } from '../runs/service.ts';
import { insertRun } from '../runs/store.ts';
import { latestTick, nextTick } from './cron.ts';
import { lockDueSchedules, setNextTick } from './store.ts';

const dueMax = 100;

type ScheduleDeps = { db: Database; clock: Clock; log: Logger; runs: RunService };

/**
 * Starts one run for every due scheduled automation; of several missed ticks only the latest counts.
 * The automation's row is locked meanwhile, so each tick is one run however many processes check. Returns how many.
 */
export async function startDueSchedules(deps: ScheduleDeps): Promise<number> {
  const { db, clock, runs, log } = deps;
  return db.begin(async (tx) => {
    const now = clock.now();
    const due = await lockDueSchedules(tx, now, dueMax);
    for (const automation of due) {
      const { schedule, timezone, nextTickAt } = automation;
      if (schedule === null || nextTickAt === null) continue;
      const tick = latestTick(schedule, timezone, nextTickAt, now) ?? nextTickAt;
      await setNextTick(tx, automation, nextTick(schedule, timezone, now) ?? null);
      const payload = { scheduled_at: tick.toISOString() };
      await insertRun(
        tx,
        runs.newRun(automation, {
          payload,
          input: { trigger: 'workflow.scheduled', payload },
          scheduledAt: tick,
          ...actsAs(automation, undefined),
        }),
      );
      log.debug({ automation: automation.id, tick }, 'scheduled run');
    }
    return due.length;
  });
}
