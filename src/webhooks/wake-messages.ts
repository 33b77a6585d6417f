import type { ClaimedDelivery } from './delivery-store.ts';

/** Messages that wake a function: an event for one webhook, with a claim on a run that is added when it is sent. */

export const wakeEventName = 'automation_run.ready';

/** What the domain of automations adds to the message: the claim, until when it is valid, and where it is used. */
export type WakeOffer = { claim: string; lease_until: string; url: string };

const secondMs = 1_000;
/** The waits between the ten attempts, three days in total. Each is up to a tenth longer, at random. */
const retrySeconds = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 73_495];
const retriedMs = retrySeconds.reduce((sum, seconds) => sum + seconds, 0) * secondMs;
/** A claim is short, and the function is woken with another one afterwards. */
const wakeRetriesMax = 1;

/** Nothing has succeeded for long enough to pause a webhook if its failures began before this time. */
export function failingBefore(now: Date): Date {
  return new Date(now.getTime() - retriedMs);
}

/** How long to wait after a failed attempt; undefined after the last one. */
export function retryAfterMs({ tries, name }: ClaimedDelivery): number | undefined {
  const wait = name === wakeEventName && tries > wakeRetriesMax ? undefined : retrySeconds[tries - 1];
  return wait === undefined ? undefined : wait * secondMs * (1 + Math.random() / 10);
}
