import type { Database } from '../db/database.ts';
import type { Domain } from '../domain.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { Clock } from '../lib/clock.ts';
import type { Scope } from '../tenancy/caller.ts';
import { eventsTopic, logEvents, type OnLogged } from './log.ts';
import { createEventService, type EventService, eventStream } from './service.ts';
import { deleteReleasedEvents, releaseOldEvents } from './store.ts';

/*
 * What happened in an app, for automations, webhooks and streams.
 * - `emit.ts` writes an event in the transaction of the change that it reports. Triggers in migrations/ do the same for
 *   changes by SQL.
 * - `log.ts` numbers committed events in a job, so that readers miss none, and passes them to webhooks.
 * - `service.ts` and `routes.ts` take events from programs, and stream all; `store.ts` also deletes old ones.
 * Data flows one way: a change emits an event; a job numbers it; webhooks deliver it, automations start runs, streams
 * show it.
 */

const sweep = { task: taskNames.sweepEvents, everySeconds: 600 };
const sweepRowsMax = 1_000;
const dayMs = 24 * 60 * 60 * 1_000;

/** Days for which events and their deliveries are kept, and how many events of production or of one sandbox. */
export const eventBounds = { keptDays: 7, eventsMax: 1_000_000 };

type EventsDeps = { db: Database; clock: Clock; streamSecondsMax: number; onLogged: OnLogged };

export function createEvents({ db, clock, streamSecondsMax, onLogged }: EventsDeps): Domain<EventService> {
  return {
    service: createEventService({ db, streamSecondsMax }),
    streams: { [eventsTopic]: eventStream(db) },
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
  const { eventsMax } = eventBounds;
  do await releaseOldEvents(db, before, eventsMax, sweepRowsMax);
  while ((await deleteReleasedEvents(db, before, eventsMax, sweepRowsMax)) === sweepRowsMax);
}
