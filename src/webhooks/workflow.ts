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
  endAttempt,
  listDueWebhooks,
  queueDeliveries,
  returnClaim,
} from './delivery-store.ts';
import { messageBody } from './present.ts';
import { noteFailure, noteSuccess } from './store.ts';

type WebhookWorkDeps = {
  db: Database;
  clock: Clock;
  secrets: Secrets;
  fetcher: Fetcher;
  timeouts: Readonly<Timeouts>;
  observe(outcome: string, seconds: number): void;
};

/** Concurrent requests of one process to one webhook. */
const requestsMax = 8;
/** If an attempt is not recorded after this time, its process has died, and the delivery is due again. */
const claimMs = 30_000;
const secondMs = 1_000;
/** The waits between the ten attempts, three days in total. Each is up to a tenth longer, at random. */
const retrySeconds = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 73_495];
const retriedMs = retrySeconds.reduce((sum, seconds) => sum + seconds, 0) * secondMs;

/** Queues events for webhooks and the jobs that deliver them, in the transaction that logs the events. */
export async function deliverEvents(tx: Db, scope: Scope, positions: Positions, now: Date): Promise<void> {
  for (const webhookId of await queueDeliveries(tx, scope, positions, now))
    await addDeliverJob(tx, { appId: scope.appId, webhookId });
}

/** Queues a job that sends all due deliveries of a webhook. At most one job of a webhook waits at a time. */
export function addDeliverJob(db: Db, { appId, webhookId }: DeliveryKey): Promise<void> {
  return addJob(db, taskNames.deliverWebhook, { appId, webhookId }, { key: `webhook/${webhookId}` });
}

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

  async function claim(key: DeliveryKey, rowsMax: number): Promise<ClaimedDelivery[]> {
    const now = clock.now();
    return claimDeliveries(db, key, { rowsMax, now, claimedUntil: new Date(now.getTime() + claimMs) });
  }

  /** Claims as many deliveries as may be attempted now. */
  async function claimFirst(key: DeliveryKey, running: Running): Promise<ClaimedDelivery[]> {
    const claimed: ClaimedDelivery[] = [];
    for (let seen = -1; seen !== running.jobs && running.open < requestsMax; ) {
      seen = running.jobs;
      const free = requestsMax - running.open;
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
  async function deliverUntilNoneDue(key: DeliveryKey, running: Running, first: ClaimedDelivery, signal: AbortSignal) {
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

  async function deliverWebhook(key: DeliveryKey, { signal, waitOutside }: JobContext): Promise<void> {
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
    [taskNames.deliverWebhook]: (payload, context) => deliverWebhook(payload as DeliveryKey, context),
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
  const record: Attempt = { at: iso(at), duration_ms: Math.round(tookMs), ...outcome };
  const webhook = { appId: delivery.appId, id: delivery.webhookId };
  const now = clock.now();
  if (outcome.error === undefined) {
    await endAttempt(db, delivery, { state: 'delivered', nextAttemptAt: null, attempt: record, now });
    await noteSuccess(db, webhook);
    return;
  }
  const wait = retrySeconds[delivery.tries - 1];
  const waitMs = wait === undefined ? undefined : wait * secondMs * (1 + Math.random() / 10);
  await endAttempt(db, delivery, {
    state: waitMs === undefined ? 'failed' : 'pending',
    nextAttemptAt: waitMs === undefined ? null : new Date(now.getTime() + waitMs),
    attempt: record,
    now,
  });
  const failingBefore = new Date(now.getTime() - retriedMs);
  await noteFailure(db, webhook, { isGone: outcome.status === 410, failingBefore, now });
}

type Outcome = Pick<Attempt, 'status' | 'error'>;

/** Returns undefined if the process stops meanwhile. The body of the response is never read. */
async function send(
  { fetcher, secrets, timeouts }: WebhookWorkDeps,
  delivery: ClaimedDelivery,
  now: Date,
  signal: AbortSignal,
): Promise<Outcome | undefined> {
  const body = messageBody(delivery);
  const keys = [delivery.secret, ...(delivery.previousSecret === null ? [] : [delivery.previousSecret])];
  const plainKeys = keys.map((key) => secrets.unwrap(key).plain.toString());
  try {
    const response = await fetcher.fetch(delivery.url, {
      method: 'POST',
      body,
      lane: delivery.appId,
      redirect: 'manual',
      timeoutMs: timeouts.deliveryMs,
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
