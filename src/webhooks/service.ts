import type { Static } from 'typebox';
import { deleteOwner } from '../deletions/service.ts';
import type { PageRequest } from '../http/route/pages.ts';
import { found } from '../lib/errors.ts';
import type { Caller } from '../tenancy/caller.ts';
import { pathId } from '../tenancy/references.ts';
import { generateWebhookSecret } from '../tenancy/signed-messages.ts';
import { type ChangeDeps, createWebhookChanges } from './change.ts';
import { createDeliveries, type DeliveryDeps } from './deliveries.ts';
import { getForChange, getWebhook, keyOf } from './find.ts';
import { secretOverlapSecondsDefault, type webhookListQuery } from './schema.ts';
import * as store from './store.ts';

export type WebhookService = ReturnType<typeof createWebhookService>;

export function createWebhookService(deps: ChangeDeps & DeliveryDeps) {
  const { db, clock, secrets, deliver, programs } = deps;

  return {
    ...createWebhookChanges(deps),
    ...createDeliveries(deps),
    get: (caller: Caller, id: string) => getWebhook(db, caller, id),

    list: (caller: Caller, page: PageRequest, query: Static<typeof webhookListQuery> = {}) =>
      store.listWebhooks(db, caller, page, query.lookup_key),

    async remove(caller: Caller, id: string): Promise<void> {
      found(await deleteOwner(db, caller, 'webhook', pathId('webhook', id)));
    },

    async pause(caller: Caller, id: string): Promise<store.WebhookRow> {
      return found(await store.setWebhookStatus(db, caller, pathId('webhook', id), 'paused', clock.now()));
    },

    /** Resumes deliveries, including those of events of the pause, and wakes a function for all runs that wait. */
    async resume(caller: Caller, id: string): Promise<store.WebhookRow> {
      await getForChange(db, caller, id);
      return db.begin(async (tx) => {
        const row = found(await store.setWebhookStatus(tx, caller, pathId('webhook', id), 'active', clock.now()));
        await deliver(tx, keyOf(row));
        await programs.restart(tx, row);
        return row;
      });
    },

    /** Returns the row and its new secret, which is shown only here. */
    async rotate(caller: Caller, id: string, overlapSeconds = secretOverlapSecondsDefault) {
      await getForChange(db, caller, id);
      const plainSecret = generateWebhookSecret();
      const now = clock.now();
      const next = {
        secret: secrets.wrap(Buffer.from(plainSecret)),
        previousUntil: new Date(now.getTime() + overlapSeconds * 1_000),
        now,
      };
      return { ...found(await store.replaceSecret(db, caller, pathId('webhook', id), next)), plainSecret };
    },
  };
}
