import { FetchError } from '../content/fetch/errors.ts';
import type { Fetcher } from '../content/fetch/guarded-fetch.ts';
import type { Database, Db } from '../db/database.ts';
import type { Tasks } from '../domain.ts';
import type { Positions } from '../events/store.ts';
import { iso } from '../http/route/present.ts';
import { addJob } from '../jobs/queue.ts';
import type { JobContext } from '../jobs/task.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { Clock } from '../lib/clock.ts';
import { defined } from '../lib/defined.ts';
import { formatId } from '../lib/ids.ts';
import type { Timeouts } from '../lib/timeouts.ts';
import type { Scope } from '../tenancy/caller.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import { signedHeaders } from '../tenancy/signed-messages.ts';
import { traceFrom } from '../tracing/trace.ts';
import {
  type Attempt,
  type ClaimedDelivery,
  claimDeliveries,
  type DeliveryKey,
  type DueWebhook,
  endAttempt,
  listDueWebhooks,
  queueDeliveries,
  returnClaim,
} from './delivery-store.ts';
import { messageBody } from './present.ts';
import { noteFailure, noteSuccess } from './store.ts';
import { failingBefore, retryAfterMs, type WakeOffer, wakeEventName } from './wake-messages.ts';

type WebhookWorkDeps = {
  db: Database;
  clock: Clock;
  secrets: Secrets;
  fetcher: Fetcher;
  /** What to add to the message of an event that wakes a function; undefined if its claim is over. */
  offerRun(appId: string, eventId: string): Promise<WakeOffer | undefined>;
  timeouts: Readonly<Timeouts>;
  observe(outcome: string, seconds: number): void;
};

/** Concurrent requests of one process to one webhook. */
const requestsMax = 8;
/** If an attempt is not recorded after this time, its process has died, and the delivery is due again. */
const claimMs = 30_000;
/** A function may work until it responds. */
const hosting = { requestsMax: 50, timeoutMs: 300_000, claimMs: 330_000 };

/** Queues events for webhooks and the jobs that deliver them, in the transaction that logs the events. */
export async function deliverEvents(tx: Db, scope: Scope, positions: Positions, now: Date): Promise<void> {
  for (const due of await queueDeliveries(tx, scope, positions, now)) await addDeliverJob(tx, due);
}

/** Queues a job that sends all due deliveries of a webhook. At most one job of a webhook waits at a time. */
export function addDeliverJob(db: Db, { appId, webhookId, hosts }: DueWebhook): Promise<void> {
  const payload = { appId, webhookId, ...(hosts ? { hosts } : {}) };
  return addJob(db, taskNames.deliverWebhook, payload, { key: `webhook/${webhookId}` });
}

type DueKey = DeliveryKey & Partial<DueWebhook>;

/** The deliveries of a webhook in this process. */
type Running = {
  /** Deliveries that are being claimed or attempted. */
  open: number;
  /** Counts jobs, so that a claim that began before the last job is repeated. */
  jobs: number;
};

export function createWebhookWork(deps: WebhookWorkDeps): Tasks {
  const { db, clock } = deps;
  const byWebhook = new Map<string, Running>();

  async function claim(key: DueKey, rowsMax: number): Promise<ClaimedDelivery[]> {
    const now = clock.now();
    const untilMs = now.getTime() + (key.hosts ? hosting.claimMs : claimMs);
    return claimDeliveries(db, key, { rowsMax, now, claimedUntil: new Date(untilMs) });
  }

  /** Claims as many deliveries as may be attempted now. */
  async function claimFirst(key: DueKey, running: Running): Promise<ClaimedDelivery[]> {
    const claimed: ClaimedDelivery[] = [];
    const openMax = key.hosts ? hosting.requestsMax : requestsMax;
    for (let seen = -1; seen !== running.jobs && running.open < openMax; ) {
      seen = running.jobs;
      const free = openMax - running.open;
      running.open += free;
      const found = await claim(key, free).finally(() => {
        running.open -= free;
      });
      running.open += found.length;
      claimed.push(...found);
    }
    return claimed;
  }

  /** Attempts this delivery, and then others until none is due. */
  async function deliverUntilNoneDue(key: DueKey, running: Running, first: ClaimedDelivery, signal: AbortSignal) {
    try {
      for (let next: ClaimedDelivery | undefined = first; next !== undefined; ) {
        await attempt(deps, next, signal);
        for (let seen = -1; seen !== running.jobs; ) {
          seen = running.jobs;
          [next] = await claim(key, 1);
          if (next !== undefined) break;
        }
      }
    } finally {
      running.open -= 1;
    }
  }

  async function deliverWebhook(key: DueKey, { signal, waitOutside }: JobContext): Promise<void> {
    const running = byWebhook.get(key.webhookId) ?? { open: 0, jobs: 0 };
    byWebhook.set(key.webhookId, running);
    running.jobs += 1;
    try {
      const claimed = await claimFirst(key, running);
      if (claimed.length === 0) return;
      await waitOutside(async () => {
        const ends = await Promise.allSettled(claimed.map((first) => deliverUntilNoneDue(key, running, first, signal)));
        for (const end of ends) if (end.status === 'rejected') throw end.reason;
      });
    } finally {
      if (running.open === 0) byWebhook.delete(key.webhookId);
    }
  }

  return {
    [taskNames.deliverWebhook]: (payload, context) => deliverWebhook(payload as DueKey, context),
    [taskNames.deliverDue]: async () => {
      for (const key of await listDueWebhooks(db, clock.now())) await addDeliverJob(db, key);
    },
  };
}

/** Sends one delivery and records the outcome. Throws only when the process stops or the database fails. */
async function attempt(deps: WebhookWorkDeps, delivery: ClaimedDelivery, signal: AbortSignal): Promise<void> {
  const { db, clock } = deps;
  const at = clock.now();
  const startedAt = performance.now();
  const span = { continues: delivery.traceparent, attributes: { 'quarry.webhook.attempt': delivery.attempts } };
  const outcome = await traceFrom('deliver webhook', span, () => send(deps, delivery, at, signal));
  if (outcome === undefined) {
    await returnClaim(db, delivery, clock.now());
    throw signal.reason;
  }
  const tookMs = performance.now() - startedAt;
  deps.observe(outcome.error?.code ?? 'delivered', tookMs / 1_000);
  const { status, error } = outcome;
  const record: Attempt = { at: iso(at), duration_ms: Math.round(tookMs), ...defined({ status, error }) };
  const webhook = { appId: delivery.appId, id: delivery.webhookId };
  const now = clock.now();
  if (outcome.error === undefined) {
    await endAttempt(db, delivery, { state: 'delivered', nextAttemptAt: null, attempt: record, now });
    // A function succeeds when it writes something.
    if (delivery.name !== wakeEventName) await noteSuccess(db, webhook);
    return;
  }
  const waitMs = outcome.isOver ? undefined : retryAfterMs(delivery);
  await endAttempt(db, delivery, {
    state: waitMs === undefined ? 'failed' : 'pending',
    nextAttemptAt: waitMs === undefined ? null : new Date(now.getTime() + waitMs),
    attempt: record,
    now,
  });
  if (outcome.isOver) return;
  await noteFailure(db, webhook, { isGone: outcome.status === 410, failingBefore: failingBefore(now), now });
}

/** `isOver`: there was nothing to send any more. */
type Outcome = Pick<Attempt, 'status' | 'error'> & { isOver?: true };
const claimOver = { code: 'claim_over', message: 'The run has ended, or its claim has, before this attempt.' };

/** Returns undefined if the process stops meanwhile. The body of the response is never read. */
async function send(
  { fetcher, secrets, offerRun, timeouts }: WebhookWorkDeps,
  delivery: ClaimedDelivery,
  now: Date,
  signal: AbortSignal,
): Promise<Outcome | undefined> {
  const wakes = delivery.name === wakeEventName;
  const offer = wakes ? await offerRun(delivery.appId, delivery.eventId) : {};
  if (offer === undefined) return { error: claimOver, isOver: true };
  const body = messageBody(delivery, offer);
  const keys = [delivery.secret, ...(delivery.previousSecret === null ? [] : [delivery.previousSecret])];
  const plainKeys = keys.map((key) => secrets.unwrap(key).plain.toString());
  try {
    const response = await fetcher.fetch(delivery.url, {
      method: 'POST',
      body,
      lane: delivery.appId,
      redirect: 'manual',
      timeoutMs: wakes ? hosting.timeoutMs : timeouts.deliveryMs,
      signal,
      bytesMax: Number.POSITIVE_INFINITY,
      headers: {
        'content-type': 'application/json',
        ...signedHeaders(formatId('event', delivery.eventId), now, body, plainKeys),
      },
    });
    response.discard();
    return { status: response.status, ...errorOfStatus(response.status) };
  } catch (error) {
    if (signal.aborted) return undefined;
    if (error instanceof FetchError) return { error: { code: error.code, message: error.message } };
    throw error;
  }
}

function errorOfStatus(status: number): Pick<Outcome, 'error'> {
  if (status >= 200 && status < 300) return {};
  if (status >= 300 && status < 400)
    return {
      error: { code: 'redirected', message: 'The receiver returned a redirect, and redirects are not followed.' },
    };
  return { error: { code: 'refused', message: `The receiver returned ${status}.` } };
}
