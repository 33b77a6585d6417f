import type { Db } from '../db/database.ts';
import { isInUse } from '../db/fences.ts';
import { readWithTotal } from '../db/pages.ts';
import type { Positions } from '../events/store.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { Scope } from '../tenancy/caller.ts';
import { sandboxIsThere } from '../tenancy/visible.ts';

export type Attempt = {
  at: string;
  duration_ms: number;
  status?: number;
  error?: { code: string; message: string };
};

export type DeliveryRow = {
  appId: string;
  id: string;
  webhookId: string;
  eventId: string;
  name: string;
  sequence: number;
  state: 'pending' | 'delivered' | 'failed';
  attempts: number;
  log: Attempt[];
  nextAttemptAt: Date | null;
  deliveredAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
};

export type DeliveryKey = { appId: string; webhookId: string };
/** A webhook with deliveries to send. `hosts`: it wakes a function. */
export type DueWebhook = DeliveryKey & { hosts: boolean };

/** A delivery that this process is attempting. */
export type ClaimedDelivery = DeliveryKey & {
  id: string;
  attempts: number;
  tries: number;
  url: string;
  secret: Buffer;
  previousSecret: Buffer | null;
  eventId: string;
  name: string;
  sequence: number;
  /** JSON as stored. */
  payload: string;
  emittedAt: Date;
  /** The trace of the change that the event reports. */
  traceparent: string | null;
};

/** The number of attempts that the log keeps. */
const loggedAttemptsMax = 20;

/** Queues events for the webhooks that subscribe to them. Returns the webhooks with new deliveries. */
export async function queueDeliveries(
  tx: Db,
  { appId, sandboxId }: Scope,
  { after, last }: Positions,
  now: Date,
): Promise<DueWebhook[]> {
  return tx<DueWebhook[]>`
    with queued as (
      insert into webhook_deliveries (app_id, id, webhook_id, event_id, sequence, next_attempt_at, created_at, updated_at)
      select e.app_id, new_uuid(), w.id, e.id, e.position, ${now}, ${now}, ${now}
      from events e join webhooks w on w.app_id = e.app_id and w.sandbox_id = e.sandbox_id
      where e.app_id = ${appId} and e.sandbox_id = ${sandboxId} and e.position > ${after} and e.position <= ${last}
        and (w.id = e.webhook_id or e.webhook_id is null and (e.name = any(w.events) or '*' = any(w.events)))
      returning app_id, webhook_id)
    select w.app_id, w.id as webhook_id, w.automations is not null as hosts
    from (select distinct app_id, webhook_id from queued) q
    join webhooks w on w.app_id = q.app_id and w.id = q.webhook_id`;
}

/** Claims due deliveries of an active webhook for one attempt. After `claimedUntil`, another process may repeat it. */
export async function claimDeliveries(
  db: Db,
  { appId, webhookId }: DeliveryKey,
  claim: { rowsMax: number; now: Date; claimedUntil: Date },
): Promise<ClaimedDelivery[]> {
  const rows = await db<ClaimedDelivery[]>`
    with due as (
      select d.app_id, d.id from webhook_deliveries d
      where d.app_id = ${appId} and d.webhook_id = ${webhookId} and d.state = 'pending'
        and d.next_attempt_at <= ${claim.now}
        and exists (select 1 from webhooks w where w.app_id = ${appId} and w.id = ${webhookId} and w.status = 'active'
          and ${sandboxIsThere(db, 'w.app_id', 'w.sandbox_id')})
      order by d.next_attempt_at, d.sequence limit ${claim.rowsMax} for update of d skip locked)
    update webhook_deliveries d set attempts = d.attempts + 1, tries = d.tries + 1, next_attempt_at = ${claim.claimedUntil}
    from due, webhooks w, events e
    where d.app_id = due.app_id and d.id = due.id and w.app_id = d.app_id and w.id = d.webhook_id
      and e.app_id = d.app_id and e.id = d.event_id
    returning d.app_id, d.webhook_id, d.id, d.attempts, d.tries, w.url, w.secret,
      case when w.previous_secret_until > ${claim.now} then w.previous_secret end as previous_secret,
      d.event_id, e.name, d.sequence, e.payload::text as payload, e.created_at as emitted_at, e.traceparent`;
  return rows.sort((a, b) => a.sequence - b.sequence);
}

/** Records the outcome of an attempt, unless another one has begun since. */
export async function endAttempt(
  db: Db,
  delivery: ClaimedDelivery,
  end: { state: DeliveryRow['state']; nextAttemptAt: Date | null; attempt: Attempt; now: Date },
): Promise<void> {
  await db`
    update webhook_deliveries set state = ${end.state}, next_attempt_at = ${end.nextAttemptAt}, updated_at = ${end.now},
      delivered_at = case when ${end.state} = 'delivered' then ${end.now} else delivered_at end,
      log = case when jsonb_array_length(log) >= ${loggedAttemptsMax} then log - 0 else log end
        || ${JSON.stringify(end.attempt)}::text::jsonb
    where app_id = ${delivery.appId} and id = ${delivery.id} and attempts = ${delivery.attempts} and state = 'pending'`;
}

/** Records that an event had no effect, although its receiver had accepted it. */
export async function failDelivery(
  db: Db,
  webhook: { appId: string; id: string },
  eventId: string,
  attempt: Attempt,
  now: Date,
): Promise<void> {
  await db`
    update webhook_deliveries set state = 'failed', updated_at = ${now},
      log = log || ${JSON.stringify(attempt)}::text::jsonb
    where app_id = ${webhook.appId} and webhook_id = ${webhook.id} and event_id = ${eventId} and state = 'delivered'`;
}

/** Undoes a claim whose attempt was interrupted: the delivery is due again, and the attempt does not count. */
export async function returnClaim(db: Db, delivery: ClaimedDelivery, now: Date): Promise<void> {
  await db`
    update webhook_deliveries set attempts = attempts - 1, tries = tries - 1, next_attempt_at = ${now}
    where app_id = ${delivery.appId} and id = ${delivery.id} and attempts = ${delivery.attempts} and state = 'pending'`;
}

/** Active webhooks with a due delivery. */
export async function listDueWebhooks(db: Db, now: Date): Promise<DueWebhook[]> {
  return db<DueWebhook[]>`
    select w.app_id, w.id as webhook_id, w.automations is not null as hosts from webhooks w
    where w.status = 'active' and ${isInUse(db, 'w.app_id')} and ${sandboxIsThere(db, 'w.app_id', 'w.sandbox_id')} and exists (
      select 1 from webhook_deliveries d
      where d.app_id = w.app_id and d.webhook_id = w.id and d.state = 'pending' and d.next_attempt_at <= ${now})`;
}

const shown = (db: Db) => db`
  select d.*, e.name from webhook_deliveries d join events e on e.app_id = d.app_id and e.id = d.event_id`;

export async function findDelivery(
  db: Db,
  { appId, webhookId }: DeliveryKey,
  by: { id: string } | { eventId: string },
): Promise<DeliveryRow | undefined> {
  const which = 'id' in by ? db`d.id = ${by.id}` : db`d.event_id = ${by.eventId}`;
  return db<DeliveryRow[]>`
    ${shown(db)} where d.app_id = ${appId} and d.webhook_id = ${webhookId} and ${which}`.first();
}

/** Newest first. */
export async function listDeliveries(
  db: Db,
  { appId, webhookId }: DeliveryKey,
  filter: { state?: string | undefined; type?: string | undefined },
  page: PageRequest,
): Promise<[DeliveryRow[], number]> {
  const where = db`d.app_id = ${appId} and d.webhook_id = ${webhookId}
    and (${filter.state ?? null}::text is null or d.state = ${filter.state ?? null})
    and (${filter.type ?? null}::text is null or e.name = ${filter.type ?? null})`;
  return readWithTotal(
    db<DeliveryRow[]>`
      ${shown(db)} where ${where}
      order by d.sequence desc limit ${page.pageSize} offset ${page.offset}`,
    db`
      select count(*) as total from webhook_deliveries d join events e on e.app_id = d.app_id and e.id = d.event_id
      where ${where}`,
  );
}

/** Makes a delivery due again, with all its retries. */
export async function restartDelivery(db: Db, key: DeliveryKey, id: string, now: Date): Promise<boolean> {
  const { count } = await db`
    update webhook_deliveries set state = 'pending', tries = 0, next_attempt_at = ${now}, updated_at = ${now}
    where app_id = ${key.appId} and webhook_id = ${key.webhookId} and id = ${id}`;
  return count > 0;
}
