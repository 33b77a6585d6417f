import type { Db } from '../db/database.ts';
import { found } from '../lib/errors.ts';
import type { Caller } from '../tenancy/caller.ts';
import { requireScope } from '../tenancy/key-scopes.ts';
import { pathId } from '../tenancy/references.ts';
import type { DueWebhook } from './delivery-store.ts';
import { findWebhook, type WebhookRow } from './store.ts';

export async function getWebhook(db: Db, caller: Caller, id: string): Promise<WebhookRow> {
  return found(await findWebhook(db, caller, pathId('webhook', id)));
}

/** The webhook, if the caller may say what its receiver gets: for one that wakes a function, claims on runs. */
export async function getForChange(db: Db, caller: Caller, id: string): Promise<WebhookRow> {
  const webhook = await getWebhook(db, caller, id);
  if (webhook.automations !== null)
    requireScope(caller.scopes, { area: 'automations', reads: false }, { what: 'changing what wakes a function' });
  return webhook;
}

export function keyOf({ appId, id, automations }: WebhookRow): DueWebhook {
  return { appId, webhookId: id, hosts: automations !== null };
}
