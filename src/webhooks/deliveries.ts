import type { Static } from 'typebox';
import type { Database, Db } from '../db/database.ts';
import { logEvents, type OnLogged } from '../events/log.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { Clock } from '../lib/clock.ts';
import { AppError, found } from '../lib/errors.ts';
import { formatId, newUuid } from '../lib/ids.ts';
import type { Caller } from '../tenancy/caller.ts';
import { pathId } from '../tenancy/references.ts';
import { type DeliveryRow, type DueWebhook, findDelivery, listDeliveries, restartDelivery } from './delivery-store.ts';
import { getWebhook, keyOf } from './find.ts';
import type { listDeliveriesQuery } from './schema.ts';
import * as store from './store.ts';
import { wakeEventName } from './wake-messages.ts';

export type DeliveryDeps = {
  db: Database;
  clock: Clock;
  onLogged: OnLogged;
  /** Queues the job that sends the due deliveries of a webhook. */
  deliver(db: Db, webhook: DueWebhook): Promise<void>;
};

const testEventName = 'webhook.test';

/** What was sent to a webhook, and what is sent again. */
export function createDeliveries({ db, clock, onLogged, deliver }: DeliveryDeps) {
  return {
    /** Sends a test event to this webhook only. */
    async test(caller: Caller, id: string): Promise<DeliveryRow> {
      const webhook = await getWebhook(db, caller, id);
      requireActive(webhook);
      const event = {
        id: newUuid(),
        name: testEventName,
        payload: { webhook: formatId('webhook', webhook.id) },
        now: clock.now(),
      };
      return db.begin(async (tx) => {
        await store.insertEventFor(tx, webhook, event);
        while (await logEvents(tx, webhook, onLogged));
        return found(await findDelivery(tx, keyOf(webhook), { eventId: event.id }));
      });
    },

    async listDeliveries(caller: Caller, id: string, filter: Static<typeof listDeliveriesQuery>, page: PageRequest) {
      const webhook = await getWebhook(db, caller, id);
      return listDeliveries(db, keyOf(webhook), filter, page);
    },

    async redeliver(caller: Caller, id: string, deliveryId: string): Promise<DeliveryRow> {
      const webhook = await getWebhook(db, caller, id);
      const key = keyOf(webhook);
      const named = { id: pathId('webhookDelivery', deliveryId) };
      const delivery = found(await findDelivery(db, key, named));
      requireActive(webhook);
      if (delivery.name === wakeEventName)
        throw new AppError('conflict', 'A claim is offered once. Resume the webhook to wake the function again.');
      return db.begin(async (tx) => {
        found(await restartDelivery(tx, key, named.id, clock.now()));
        await deliver(tx, key);
        return found(await findDelivery(tx, key, named));
      });
    },
  };
}

function requireActive({ status }: store.WebhookRow): void {
  if (status === 'paused') throw new AppError('conflict', 'This webhook is paused. Resume it first.');
}
