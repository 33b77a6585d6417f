import type { Clock } from '../clock.ts';
import type { Fetcher } from '../content/fetch/guarded-fetch.ts';
import type { Database } from '../db/database.ts';
import type { Domain } from '../domain.ts';
import type { OnLogged } from '../events/log.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import { createWebhookService, type WebhookService } from './service.ts';
import { addDeliverJob, createWebhookWork, deliverEvents } from './workflow.ts';

type WebhooksDeps = { db: Database; clock: Clock; secrets: Secrets; fetcher: Fetcher };

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
