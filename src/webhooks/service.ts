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
import { type DeliveryRow, type DueWebhook, findDelivery, listDeliveries, restartDelivery } from './delivery-store.ts';
import {
  type listDeliveriesQuery,
  secretOverlapSecondsDefault,
  type webhookCreateSchema,
  type webhookListQuery,
  type webhookUpdateSchema,
} from './schema.ts';
import * as store from './store.ts';
import { wakeEventName } from './wake-messages.ts';
import { findUnknownEvents } from './warnings.ts';

type WebhookDeps = {
  db: Database;
  clock: Clock;
  secrets: Secrets;
  fetcher: Pick<Fetcher, 'check'>;
  onLogged: OnLogged;
  /** Queues the job that sends the due deliveries of a webhook. */
  deliver(db: Db, webhook: DueWebhook): Promise<void>;
  programs: {
    /** Throws 403 unless the caller may execute runs. */
    requireWorker(caller: Caller): void;
    /** The ids of automations whose runs a program executes. Throws 403 unless the caller may execute them. */
    check(caller: Caller, names: readonly string[]): Promise<string[]>;
    /** Wakes the function of a webhook for all runs that wait for it. */
    restart(tx: Db, host: Pick<store.WebhookRow, 'appId' | 'id' | 'automations'>): Promise<void>;
  };
};

/** Webhooks of production, and of each sandbox. */
const webhooksMax = 50;

const testEventName = 'webhook.test';

export type WebhookService = ReturnType<typeof createWebhookService>;

export function createWebhookService({ db, clock, secrets, fetcher, onLogged, deliver, programs }: WebhookDeps) {
  async function get(caller: Caller, id: string): Promise<store.WebhookRow> {
    return found(await store.findWebhook(db, caller, pathId('webhook', id)));
  }

  /** The webhook, if the caller may say what its receiver gets: for one that wakes a function, claims on runs. */
  async function getForChange(caller: Caller, id: string): Promise<store.WebhookRow> {
    const webhook = await get(caller, id);
    if (webhook.automations !== null) programs.requireWorker(caller);
    return webhook;
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
      const { url, events = [], description = null, lookup_key: lookupKey = null } = input;
      if ((input.events === undefined) === (input.automations === undefined))
        throw invalidField('events', 'exactly one of events and automations is required');
      checkLookupKey(caller, input.lookup_key);
      requireSafeUrl(url);
      const automations = input.automations === undefined ? null : await programs.check(caller, input.automations);
      const plainSecret = generateWebhookSecret();
      const secret = secrets.wrap(Buffer.from(plainSecret));
      const write = async (tx: Db) => {
        const { appId, sandboxId } = caller;
        const message = `There can be at most ${webhooksMax} webhooks.`;
        const room = { things: 'webhooks', max: webhooksMax, message, appId, sandboxId };
        await requireRoom(tx, room, () => store.countWebhooks(tx, caller));
        // The webhook begins after the events that the log has now.
        found(await lockLog(tx, caller));
        const values = { id: newUuid(), url, lookupKey, description, events, automations, secret, now: clock.now() };
        const row = await store.insertWebhook(tx, caller, values);
        await programs.restart(tx, row);
        return row;
      };
      const row = await uniqueKey(() => db.begin(write));
      return { ...row, plainSecret, warnings: await findUnknownEvents(db, caller, events) };
    },

    list: (caller: Caller, page: PageRequest, query: Static<typeof webhookListQuery> = {}) =>
      store.listWebhooks(db, caller, page, query.lookup_key),

    async update(caller: Caller, id: string, change: Static<typeof webhookUpdateSchema>) {
      if (change.url !== undefined) requireSafeUrl(change.url);
      checkLookupKey(caller, change.lookup_key);
      const { automations: isHost } = await getForChange(caller, id);
      const wrong = isHost === null ? 'automations' : 'events';
      if (change[wrong] !== undefined)
        throw invalidField(wrong, 'cannot be given to a webhook that was created without');
      const { lookup_key: lookupKey, automations: names, ...rest } = change;
      const automations = names === undefined ? undefined : await programs.check(caller, names);
      const next = { ...rest, automations, lookupKey };
      const update = () =>
        db.begin(async (tx) => {
          const row = found(await store.updateWebhook(tx, caller, pathId('webhook', id), next, clock.now()));
          await programs.restart(tx, row);
          return row;
        });
      const row = await uniqueKey(update);
      return { ...row, warnings: await findUnknownEvents(db, caller, change.events ?? []) };
    },

    async remove(caller: Caller, id: string): Promise<void> {
      found(await store.deleteWebhook(db, caller, pathId('webhook', id)));
    },

    async pause(caller: Caller, id: string): Promise<store.WebhookRow> {
      return found(await store.setWebhookStatus(db, caller, pathId('webhook', id), 'paused', clock.now()));
    },

    /** Resumes deliveries, including those of events of the pause, and wakes a function for all runs that wait. */
    async resume(caller: Caller, id: string): Promise<store.WebhookRow> {
      await getForChange(caller, id);
      return db.begin(async (tx) => {
        const row = found(await store.setWebhookStatus(tx, caller, pathId('webhook', id), 'active', clock.now()));
        await deliver(tx, keyOf(row));
        await programs.restart(tx, row);
        return row;
      });
    },

    /** Returns the row and its new secret, which is shown only here. */
    async rotate(caller: Caller, id: string, overlapSeconds = secretOverlapSecondsDefault) {
      await getForChange(caller, id);
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
        await store.insertEventFor(tx, webhook, event);
        while (await logEvents(tx, webhook, onLogged));
        return found(await findDelivery(tx, keyOf(webhook), { eventId: event.id }));
      });
    },

    async listDeliveries(caller: Caller, id: string, filter: Static<typeof listDeliveriesQuery>, page: PageRequest) {
      const webhook = await get(caller, id);
      return listDeliveries(db, keyOf(webhook), filter, page);
    },

    async redeliver(caller: Caller, id: string, deliveryId: string): Promise<DeliveryRow> {
      const webhook = await get(caller, id);
      const key = keyOf(webhook);
      const named = { id: pathId('webhookDelivery', deliveryId) };
      const delivery = found(await findDelivery(db, key, named));
      await getActive(caller, id);
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

function keyOf({ appId, id, automations }: store.WebhookRow): DueWebhook {
  return { appId, webhookId: id, hosts: automations !== null };
}

function uniqueKey<T>(write: () => Promise<T>): Promise<T> {
  return refuseDuplicateKey('webhooks_lookup_key', 'webhook', write);
}
