import type { Fetcher } from '../content/fetch/guarded-fetch.ts';
import type { Database } from '../db/database.ts';
import type { Domain } from '../domain.ts';
import type { OnLogged } from '../events/log.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { Clock } from '../lib/clock.ts';
import type { Timeouts } from '../lib/timeouts.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import { createWebhookService, type WebhookService } from './service.ts';
import { addDeliverJob, createWebhookWork, deliverEvents } from './workflow.ts';

/*
 * Events for other servers, delivered at least once.
 * - `change.ts` creates and changes webhooks, `service.ts` pauses, resumes and rotates them, `deliveries.ts` lists and
 *   repeats what was sent.
 * - When events are numbered (events/log.ts), `workflow.ts` queues a delivery for each webhook that wants them, in the same
 *   transaction, and a job for each webhook that sends what is due.
 * - An attempt is signed (Standard Webhooks) and sent by the guarded fetch; a failed one is due again after growing waits.
 * - A webhook with `automations` wakes a function instead: `hosts.ts` writes an event for it alone, which is delivered in
 *   the same way, with a claim on the run (automations/programs/wakes.ts).
 * - `delivery-store.ts` keeps deliveries and their attempts; `store.ts` the webhooks.
 */

type WebhooksDeps = {
  db: Database;
  clock: Clock;
  secrets: Secrets;
  fetcher: Fetcher;
  /** What is added to the message that wakes a function for a run; undefined if the claim on the run has ended. */
  offerRun: Parameters<typeof createWebhookWork>[0]['offerRun'];
  /** Programs whose runs functions execute. */
  programs: Parameters<typeof createWebhookService>[0]['programs'];
  timeouts: Readonly<Timeouts>;
  /** Counts an attempt, with how it ended. */
  observe(outcome: string, seconds: number): void;
};

/** `onLogged` queues logged events for webhooks. */
export function createWebhooks(deps: WebhooksDeps): Domain<WebhookService> & { onLogged: OnLogged } {
  const onLogged: OnLogged = (tx, scope, positions) => deliverEvents(tx, scope, positions, deps.clock.now());
  return {
    onLogged,
    service: createWebhookService({ ...deps, onLogged, deliver: addDeliverJob }),
    tasks: createWebhookWork(deps),
    recurring: [{ task: taskNames.deliverDue, everySeconds: 10 }],
  };
}
