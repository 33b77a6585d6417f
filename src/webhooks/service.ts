import type { Static } from 'typebox';
import type { Fetcher } from '../content/fetch/guarded-fetch.ts';
import type { Database, Db } from '../db/database.ts';
import { logEvents, type OnLogged } from '../events/log.ts';
import { lockLog } from '../events/store.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { Clock } from '../lib/clock.ts';
import { AppError, found, invalidField } from '../lib/errors.ts';
import { formatId, newUuid } from '../lib/ids.ts';
import type { Caller } from '../tenancy/caller.ts';
import { checkLookupKey, refuseDuplicateKey } from '../tenancy/lookup-keys.ts';
import { pathId } from '../tenancy/references.ts';
import { requireRoom } from '../tenancy/room.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import { generateWebhookSecret } from '../tenancy/signed-messages.ts';
import { type DeliveryRow, findDelivery, listDeliveries, restartDelivery } from './delivery-store.ts';
import {
  type listDeliveriesQuery,
  secretOverlapSecondsDefault,
  type webhookCreateSchema,
  type webhookListQuery,
  type webhookUpdateSchema,
} from './schema.ts';
import * as store from './store.ts';
import { findUnknownEvents } from './warnings.ts';

type WebhookDeps = {
  db: Database;
  clock: Clock;
  secrets: Secrets;
  fetcher: Pick<Fetcher, 'check'>;
  onLogged: OnLogged;
  /** Queues the job that sends the due deliveries of a webhook. */
  deliver(db: Db, webhook: { appId: string; webhookId: string }): Promise<void>;
};

/** Webhooks of production, and of each sandbox. */
const webhooksMax = 50;

const testEventName = 'webhook.test';

export type WebhookService = ReturnType<typeof createWebhookService>;

export function createWebhookService({ db, clock, secrets, fetcher, onLogged, deliver }: WebhookDeps) {
  async function get(caller: Caller, id: string): Promise<store.WebhookRow> {
    return found(await store.findWebhook(db, caller, pathId('webhook', id)));
  }

  async function getActive(caller: Caller, id: string): Promise<store.WebhookRow> {
    const webhook = await get(caller, id);
    if (webhook.status === 'paused') throw new AppError('conflict', 'This webhook is paused. Resume it first.');
    return webhook;
  }

  function requireSafeUrl(url: string): void {
    const checked = fetcher.check(url);
    if (!checked.ok) throw invalidField('url', checked.problem);
  }

  return {
    get,

    /** Returns the row and its secret, which is shown only here. */
    async create(caller: Caller, input: Static<typeof webhookCreateSchema>) {
      const { url, events, description = null, lookup_key: lookupKey = null } = input;
      checkLookupKey(caller, input.lookup_key);
      requireSafeUrl(url);
      const plainSecret = generateWebhookSecret();
      const secret = secrets.wrap(Buffer.from(plainSecret));
      const write = async (tx: Db) => {
        const { appId, sandboxId } = caller;
        const message = `There can be at most ${webhooksMax} webhooks.`;
        const room = { things: 'webhooks', max: webhooksMax, message, appId, sandboxId };
        await requireRoom(tx, room, () => store.countWebhooks(tx, caller));
        // The webhook begins after the events that the log has now.
        found(await lockLog(tx, caller));
        const values = { id: newUuid(), url, lookupKey, description, events, secret, now: clock.now() };
        return store.insertWebhook(tx, caller, values);
      };
      const row = await uniqueKey(() => db.begin(write));
      return { ...row, plainSecret, warnings: await findUnknownEvents(db, caller, events) };
    },

    list: (caller: Caller, page: PageRequest, query: Static<typeof webhookListQuery> = {}) =>
      store.listWebhooks(db, caller, page, query.lookup_key),

    async update(caller: Caller, id: string, change: Static<typeof webhookUpdateSchema>) {
      if (change.url !== undefined) requireSafeUrl(change.url);
      checkLookupKey(caller, change.lookup_key);
      const { lookup_key: lookupKey, ...rest } = change;
      const next = { ...rest, lookupKey };
      const update = () => store.updateWebhook(db, caller, pathId('webhook', id), next, clock.now());
      const row = found(await uniqueKey(update));
      return { ...row, warnings: await findUnknownEvents(db, caller, change.events ?? []) };
    },

    async remove(caller: Caller, id: string): Promise<void> {
      found(await store.deleteWebhook(db, caller, pathId('webhook', id)));
    },

    async pause(caller: Caller, id: string): Promise<store.WebhookRow> {
      return found(await store.setWebhookStatus(db, caller, pathId('webhook', id), 'paused', clock.now()));
    },

    /** Resumes deliveries, including those of events of the pause. */
    async resume(caller: Caller, id: string): Promise<store.WebhookRow> {
      return db.begin(async (tx) => {
        const row = found(await store.setWebhookStatus(tx, caller, pathId('webhook', id), 'active', clock.now()));
        await deliver(tx, { appId: row.appId, webhookId: row.id });
        return row;
      });
    },

    /** Returns the row and its new secret, which is shown only here. */
    async rotate(caller: Caller, id: string, overlapSeconds = secretOverlapSecondsDefault) {
      const plainSecret = generateWebhookSecret();
      const now = clock.now();
      const next = {
        secret: secrets.wrap(Buffer.from(plainSecret)),
        previousUntil: new Date(now.getTime() + overlapSeconds * 1_000),
        now,
      };
      return { ...found(await store.replaceSecret(db, caller, pathId('webhook', id), next)), plainSecret };
    },

    /** Sends a test event to this webhook only. */
    async test(caller: Caller, id: string): Promise<DeliveryRow> {
      const webhook = await getActive(caller, id);
      const event = {
        id: newUuid(),
        name: testEventName,
        payload: { webhook: formatId('webhook', webhook.id) },
        now: clock.now(),
      };
      return db.begin(async (tx) => {
        await store.insertTestEvent(tx, webhook, event);
        while (await logEvents(tx, webhook, onLogged));
        const key = { appId: webhook.appId, webhookId: webhook.id };
        return found(await findDelivery(tx, key, { eventId: event.id }));
      });
    },

    async listDeliveries(caller: Caller, id: string, filter: Static<typeof listDeliveriesQuery>, page: PageRequest) {
      const webhook = await get(caller, id);
      return listDeliveries(db, { appId: webhook.appId, webhookId: webhook.id }, filter, page);
    },

    async redeliver(caller: Caller, id: string, deliveryId: string): Promise<DeliveryRow> {
      const webhook = await get(caller, id);
      const key = { appId: webhook.appId, webhookId: webhook.id };
      const named = { id: pathId('webhookDelivery', deliveryId) };
      found(await findDelivery(db, key, named));
      await getActive(caller, id);
      return db.begin(async (tx) => {
        found(await restartDelivery(tx, key, named.id, clock.now()));
        await deliver(tx, key);
        return found(await findDelivery(tx, key, named));
      });
    },
  };
}

function uniqueKey<T>(write: () => Promise<T>): Promise<T> {
  return refuseDuplicateKey('webhooks_lookup_key', 'webhook', write);
}
