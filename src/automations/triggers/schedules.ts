import type { Database } from '../../db/database.ts';
import type { Clock } from '../../lib/clock.ts';
import { latestTick, nextTick, ScheduleError } from '../../lib/cron.ts';
import type { Logger } from '../../lib/log.ts';
import { chooseIdentity } from '../runs/invoker.ts';
import { newRun } from '../runs/new-run.ts';
import { insertRun } from '../runs/store.ts';
import { lockDueSchedules, setNextTick } from './store.ts';

/** Schedules that one transaction starts. */
export const dueSchedulesMax = 100;

type ScheduleDeps = { db: Database; clock: Clock; log: Logger };

/**
 * Starts one run for every due scheduled automation; of several missed ticks only the latest counts.
 * The automation's row is locked meanwhile, so each tick starts one run, however many processes check.
 * Returns the number of due automations, at most `dueSchedulesMax`.
 */
export async function startDueSchedules(deps: ScheduleDeps): Promise<number> {
  const { db, clock, log } = deps;
  return db.begin(async (tx) => {
    const now = clock.now();
    const due = await lockDueSchedules(tx, now, dueSchedulesMax);
    for (const automation of due) {
      const { schedule, timezone, nextTickAt } = automation;
      if (schedule === null || nextTickAt === null) continue;
      const { tick, next, error } = readTicks(schedule, timezone, nextTickAt, now);
      await setNextTick(tx, automation, next);
      const payload = { scheduled_at: tick.toISOString() };
      await insertRun(
        tx,
        newRun(automation, now, {
          payload,
          input: { trigger: 'workflow.scheduled', payload },
          scheduledAt: tick,
          error,
          ...chooseIdentity(automation, undefined),
        }),
      );
      log.debug({ automation: automation.id, tick }, 'scheduled run');
    }
    return due.length;
  });
}

/**
 * The tick that is due, and the next one. A new version of the data about time zones may lack that of a schedule: then its
 * run fails and says so, and no other schedule is delayed.
 */
function readTicks(schedule: string, timezone: string, due: Date, now: Date) {
  try {
    const tick = latestTick(schedule, timezone, due, now) ?? due;
    return { tick, next: nextTick(schedule, timezone, now) ?? null, error: null };
  } catch (error) {
    if (!(error instanceof ScheduleError)) throw error;
    const message = `The schedule cannot be read any longer (${error.message}). It has stopped: change the automation.`;
    return { tick: due, next: null, error: { code: 'invalid_schedule', message } };
  }
}
