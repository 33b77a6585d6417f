import type { Clock } from '../clock.ts';
import type { Database } from '../db/database.ts';
import type { Domain } from '../domain.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { Scope } from '../tenancy/caller.ts';
import { logEvents, type OnLogged } from './log.ts';
import { deleteReleasedEvents, releaseOldEvents } from './store.ts';

const sweep = { task: taskNames.sweepEvents, everySeconds: 600 };
const sweepRowsMax = 1_000;
const dayMs = 24 * 60 * 60 * 1_000;

/** How long events are logged, and with them the deliveries to webhooks; and how many of one app or sandbox. */
export const eventBounds = { keptDays: 7, eventsMax: 1_000_000 };

export function createEvents({ db, clock, onLogged }: { db: Database; clock: Clock; onLogged: OnLogged }): Domain {
  return {
    service: undefined,
    tasks: {
      [taskNames.logEvents]: async (payload) => {
        while (await db.begin((tx) => logEvents(tx, payload as Scope, onLogged)));
      },
      [sweep.task]: () => sweepEvents({ db, clock }),
    },
    recurring: [sweep],
  };
}

/** Safe to run at any time, in any number of processes. */
export async function sweepEvents({ db, clock }: { db: Database; clock: Clock }): Promise<void> {
  const before = new Date(clock.now().getTime() - eventBounds.keptDays * dayMs);
  do await releaseOldEvents(db, before, eventBounds.eventsMax, sweepRowsMax);
  while ((await deleteReleasedEvents(db, sweepRowsMax)) === sweepRowsMax);
}
