import type { Db } from '../db/database.ts';
import { found } from '../lib/errors.ts';
import type { Caller } from '../tenancy/caller.ts';
import { pathId } from '../tenancy/references.ts';
import type { DueWebhook } from './delivery-store.ts';
import { findWebhook, type WebhookRow } from './store.ts';

export async function getWebhook(db: Db, caller: Caller, id: string): Promise<WebhookRow> {
  return found(await findWebhook(db, caller, pathId('webhook', id)));
}

export function keyOf({ appId, id, automations }: WebhookRow): DueWebhook {
  return { appId, webhookId: id, hosts: automations !== null };
}
