import type { Database } from '../../db/database.ts';
import type { Domain } from '../../domain.ts';
import { taskNames } from '../../jobs/task-names.ts';
import type { Clock } from '../../lib/clock.ts';
import { deleteExpired } from './store.ts';

/*
 * Responses of a model in the shape of OpenAI's API.
 * - `plan.ts` checks a request and searches, `stored.ts` finds earlier responses, `input.ts` reads the messages,
 *   `writing.ts` collects what the model writes.
 * - `events.ts` has the events of a stream.
 * - Stored responses are deleted after 30 days, here.
 */

const sweepJob = { task: taskNames.sweepResponses, everySeconds: 600 };

export function createResponseSweep({ db, clock }: { db: Database; clock: Clock }): Domain<undefined> {
  return {
    service: undefined,
    tasks: { [sweepJob.task]: () => deleteExpired(db, clock.now()) },
    recurring: [sweepJob],
  };
}
