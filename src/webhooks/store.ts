import type { Db, Statement } from '../db/database.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { Scope } from '../tenancy/caller.ts';
import { inScope } from '../tenancy/visible.ts';

export type WebhookRow = {
  appId: string;
  id: string;
  sandboxId: string;
  url: string;
  lookupKey: string | null;
  description: string | null;
  events: string[];
  /** For whose runs a function is woken; null for a webhook that receives events. */
  automations: string[] | null;
  status: 'active' | 'paused';
  pausedReason: 'request' | 'failing' | 'gone' | null;
  failingSince: Date | null;
  secret: Buffer;
  previousSecret: Buffer | null;
  previousSecretUntil: Date | null;
  createdAt: Date;
  updatedAt: Date;
};

export async function insertWebhook(
  db: Db,
  scope: Scope,
  webhook: Pick<WebhookRow, 'id' | 'url' | 'lookupKey' | 'description' | 'events' | 'automations' | 'secret'> & {
    now: Date;
  },
): Promise<WebhookRow> {
  const { id, url, lookupKey, description, events, automations, secret, now } = webhook;
  return db<[WebhookRow]>`
    insert into webhooks (app_id, sandbox_id, id, url, lookup_key, description, events, automations, secret,
      created_at, updated_at)
    values (${scope.appId}, ${scope.sandboxId}, ${id}, ${url}, ${lookupKey}, ${description}, ${events},
      ${automations}::uuid[], ${secret}, ${now}, ${now})
    returning *`.first();
}

export async function countWebhooks(db: Db, scope: Scope, lookupKey?: string): Promise<number> {
  const [count] = await db<[{ total: number }]>`
    select count(*) as total from webhooks w where ${listed(db, scope, lookupKey)}`;
  return count.total;
}

/** SQL: the webhooks of a scope; with a lookup key, only the one that has it. */
function listed(db: Db, scope: Scope, lookupKey: string | undefined): Statement {
  const all = inScope(db, scope, 'w');
  return lookupKey === undefined ? all : db`${all} and w.lookup_key = ${lookupKey}`;
}

export async function findWebhook(db: Db, scope: Scope, id: string): Promise<WebhookRow | undefined> {
  return db<WebhookRow[]>`select w.* from webhooks w where ${inScope(db, scope, 'w')} and w.id = ${id}`.first();
}

export async function listWebhooks(
  db: Db,
  scope: Scope,
  page: PageRequest,
  lookupKey?: string,
): Promise<[WebhookRow[], number]> {
  const rows = await db<WebhookRow[]>`
    select w.* from webhooks w where ${listed(db, scope, lookupKey)}
    order by w.created_at desc, w.id desc limit ${page.pageSize} offset ${page.offset}`;
  return [rows, await countWebhooks(db, scope, lookupKey)];
}

export async function updateWebhook(
  db: Db,
  scope: Scope,
  id: string,
  change: {
    url?: string | undefined;
    events?: string[] | undefined;
    automations?: string[] | undefined;
    lookupKey?: string | null | undefined;
    description?: string | null | undefined;
  },
  now: Date,
): Promise<WebhookRow | undefined> {
  return db<WebhookRow[]>`
    update webhooks w set url = coalesce(${change.url ?? null}, w.url),
      events = coalesce(${change.events ?? null}::text[], w.events),
      automations = coalesce(${change.automations ?? null}::uuid[], w.automations),
      lookup_key = case when ${change.lookupKey !== undefined} then ${change.lookupKey ?? null} else w.lookup_key end,
      description = case when ${change.description !== undefined} then ${change.description ?? null} else w.description end,
      updated_at = ${now}
    where ${inScope(db, scope, 'w')} and w.id = ${id} returning *`.first();
}

export async function setWebhookStatus(
  db: Db,
  scope: Scope,
  id: string,
  status: WebhookRow['status'],
  now: Date,
): Promise<WebhookRow | undefined> {
  return db<WebhookRow[]>`
    update webhooks w set status = ${status}, updated_at = ${now},
      paused_reason = case when ${status} = 'paused' then coalesce(w.paused_reason, 'request') end,
      failing_since = case when ${status} = 'paused' then w.failing_since end
    where ${inScope(db, scope, 'w')} and w.id = ${id} returning *`.first();
}

/** Keeps the current secret as the previous one until this time. */
export async function replaceSecret(
  db: Db,
  scope: Scope,
  id: string,
  next: { secret: Buffer; previousUntil: Date; now: Date },
): Promise<WebhookRow | undefined> {
  const overlaps = next.previousUntil > next.now;
  return db<WebhookRow[]>`
    update webhooks w set secret = ${next.secret}, updated_at = ${next.now},
      previous_secret = case when ${overlaps} then w.secret end,
      previous_secret_until = case when ${overlaps} then ${next.previousUntil}::timestamptz end
    where ${inScope(db, scope, 'w')} and w.id = ${id} returning *`.first();
}

const eventsReadMax = 10_000;

/** The names of the latest events of the app that belong to this scope. */
export async function listRecentEventNames(db: Db, { appId, sandboxId }: Scope): Promise<string[]> {
  const rows = await db<{ name: string }[]>`
    select distinct name from (
      select name, sandbox_id from events where app_id = ${appId} order by id desc limit ${eventsReadMax}) latest
    where sandbox_id = ${sandboxId}`;
  return rows.map(({ name }) => name);
}

/** The webhook, if it is active and wakes a function. */
export async function findActiveHost(
  db: Db,
  appId: string,
  id: string,
): Promise<{ appId: string; id: string; sandboxId: string; automations: string[] } | undefined> {
  return db<{ appId: string; id: string; sandboxId: string; automations: string[] }[]>`
    select app_id, id, sandbox_id, automations from webhooks
    where app_id = ${appId} and id = ${id} and status = 'active' and automations is not null`.first();
}

/** Inserts an event for one webhook only. It starts no automation. */
export async function insertEventFor(
  db: Db,
  webhook: { appId: string; id: string; sandboxId: string },
  event: { id: string; name: string; payload: unknown; now: Date },
): Promise<void> {
  await db`
    insert into events (app_id, id, sandbox_id, name, payload, webhook_id, created_at, dispatched_at)
    values (${webhook.appId}, ${event.id}, ${webhook.sandboxId}, ${event.name},
      ${JSON.stringify(event.payload)}::text::json, ${webhook.id}, ${event.now}, ${event.now})`;
}

/** A success ends a series of failures. */
export async function noteSuccess(db: Db, webhook: { appId: string; id: string }): Promise<void> {
  await db`
    update webhooks set failing_since = null
    where app_id = ${webhook.appId} and id = ${webhook.id} and failing_since is not null`;
}

/** Records a failure. Pauses the webhook if its receiver is gone, or if nothing has succeeded since `failingBefore`. */
export async function noteFailure(
  db: Db,
  webhook: { appId: string; id: string },
  failure: { isGone: boolean; failingBefore: Date; now: Date },
): Promise<void> {
  const { isGone, failingBefore, now } = failure;
  await db`
    update webhooks set failing_since = coalesce(failing_since, ${now}),
      status = case when ${isGone} or failing_since <= ${failingBefore} then 'paused' else status end,
      paused_reason = case when ${isGone} then 'gone' when failing_since <= ${failingBefore} then 'failing' end,
      updated_at = case when ${isGone} or failing_since <= ${failingBefore} then ${now} else updated_at end
    where app_id = ${webhook.appId} and id = ${webhook.id} and status = 'active'
      and (${isGone} or failing_since is null or failing_since <= ${failingBefore})`;
}
