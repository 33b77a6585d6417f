import type { Static } from 'typebox';
import type { Fetcher } from '../content/fetch/guarded-fetch.ts';
import { requireSafeUrl } from '../content/fetch/safe-url.ts';
import type { Database, Db } from '../db/database.ts';
import { lockLog } from '../events/store.ts';
import type { Clock } from '../lib/clock.ts';
import { found, invalidField } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import type { Caller } from '../tenancy/caller.ts';
import { checkLookupKey, refuseDuplicateKey } from '../tenancy/lookup-keys.ts';
import { pathId } from '../tenancy/references.ts';
import { requireRoom } from '../tenancy/room.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import { generateWebhookSecret } from '../tenancy/signed-messages.ts';
import { getForChange } from './find.ts';
import type { webhookCreateSchema, webhookUpdateSchema } from './schema.ts';
import * as store from './store.ts';
import { findUnknownEvents } from './warnings.ts';

export type ChangeDeps = {
  db: Database;
  clock: Clock;
  secrets: Secrets;
  fetcher: Pick<Fetcher, 'check'>;
  programs: {
    /** The ids of automations whose runs a program executes. Throws 403 unless the caller may execute them. */
    check(caller: Caller, names: readonly string[]): Promise<string[]>;
    /** Wakes the function of a webhook for all runs that wait for it. */
    restart(tx: Db, host: Pick<store.WebhookRow, 'appId' | 'id' | 'automations'>): Promise<void>;
  };
};

/** Webhooks of production, and of each sandbox. */
const webhooksMax = 50;

export function createWebhookChanges({ db, clock, secrets, fetcher, programs }: ChangeDeps) {
  return {
    /** Returns the row and its secret, which is shown only here. */
    async create(caller: Caller, input: Static<typeof webhookCreateSchema>) {
      const { url, events = [], description = null, lookup_key: lookupKey = null } = input;
      if ((input.events === undefined) === (input.automations === undefined))
        throw invalidField('events', 'exactly one of events and automations is required');
      checkLookupKey(caller, input.lookup_key);
      requireSafeUrl(fetcher, 'url', url);
      const automations = input.automations === undefined ? null : await programs.check(caller, input.automations);
      const plainSecret = generateWebhookSecret();
      const secret = secrets.wrap(Buffer.from(plainSecret));
      const write = async (tx: Db) => {
        await requireRoom(tx, caller, { things: 'webhooks', max: webhooksMax }, () => store.countWebhooks(tx, caller));
        // The webhook begins after the events that the log has now.
        found(await lockLog(tx, caller));
        const values = { id: newUuid(), url, lookupKey, description, events, automations, secret, now: clock.now() };
        const row = await store.insertWebhook(tx, caller, values);
        await programs.restart(tx, row);
        return row;
      };
      const row = await refuseDuplicateKey('webhooks_lookup_key', 'webhook', () => db.begin(write));
      return { ...row, plainSecret, warnings: await findUnknownEvents(db, caller, events) };
    },

    async update(caller: Caller, id: string, change: Static<typeof webhookUpdateSchema>) {
      if (change.url !== undefined) requireSafeUrl(fetcher, 'url', change.url);
      checkLookupKey(caller, change.lookup_key);
      const { automations: isHost } = await getForChange(db, caller, id);
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
      const row = await refuseDuplicateKey('webhooks_lookup_key', 'webhook', update);
      return { ...row, warnings: await findUnknownEvents(db, caller, change.events ?? []) };
    },
  };
}
