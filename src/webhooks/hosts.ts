import type { Db } from '../db/database.ts';
import { iso } from '../http/route/present.ts';
import { newUuid } from '../lib/ids.ts';
import { failDelivery } from './delivery-store.ts';
import * as store from './store.ts';
import { failingBefore, wakeEventName } from './wake-messages.ts';

type Host = { appId: string; id: string; sandboxId: string };

/** Webhooks that wake functions for runs of programs, as the domain of automations uses them. */
export const programHosts = {
  find: store.findActiveHost,

  /** Writes the event by which a function learns of a run. Returns its id. */
  async wake(tx: Db, host: Host, payload: Record<string, unknown>, now: Date): Promise<string> {
    const id = newUuid();
    await store.insertEventFor(tx, host, { id, name: wakeEventName, payload, now });
    return id;
  },

  /** Records that the function did nothing after an event. */
  async noteIdle(tx: Db, host: Host, eventId: string, now: Date): Promise<void> {
    const error = { code: 'no_progress', message: 'The claim expired, and the function had written nothing.' };
    await failDelivery(tx, host, eventId, { at: iso(now), duration_ms: 0, error }, now);
    await store.noteFailure(tx, host, { isGone: false, failingBefore: failingBefore(now), now });
  },
};
