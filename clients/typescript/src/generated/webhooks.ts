// Written by scripts/generate-clients.ts from openapi.json. Do not edit: npm run clients
import { type CallOptions, type Connection, type Pages, path } from '../connection.ts';
import type * as S from './schema.ts';

export const webhooks = (c: Connection) => ({
  /** Create a webhook. */
  create: (body: S.CreateWebhookRequest, options?: CallOptions): Promise<S.Webhook> => c.send('POST', '/api/v1/webhooks', body, options),
  /** List webhooks. */
  list: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; /** Only the one with this lookup key. */
lookup_key?: string | undefined; }, options?: CallOptions): Pages<S.Webhook, S.WebhookPage> => c.list('/api/v1/webhooks', query, options),
  /** Get a webhook. */
  get: (webhook: string, options?: CallOptions): Promise<S.Webhook> => c.get(path`/api/v1/webhooks/${webhook}`, undefined, options),
  /** Update a webhook. */
  update: (webhook: string, body?: S.UpdateWebhookRequest, options?: CallOptions): Promise<S.Webhook> => c.send('PATCH', path`/api/v1/webhooks/${webhook}`, body, options),
  /** Delete a webhook. */
  delete: (webhook: string, options?: CallOptions): Promise<void> => c.send('DELETE', path`/api/v1/webhooks/${webhook}`, undefined, options),
  /** Stop deliveries. */
  pause: (webhook: string, options?: CallOptions): Promise<S.Webhook> => c.postOnce(path`/api/v1/webhooks/${webhook}/pause`, undefined, options),
  /** Continue deliveries. */
  resume: (webhook: string, options?: CallOptions): Promise<S.Webhook> => c.postOnce(path`/api/v1/webhooks/${webhook}/resume`, undefined, options),
  /** Replace the secret. */
  rotateSecret: (webhook: string, body?: S.RotateWebhookSecretRequest, options?: CallOptions): Promise<S.Webhook> => c.send('POST', path`/api/v1/webhooks/${webhook}/rotate_secret`, body, options),
  /** Send a test event. */
  test: (webhook: string, options?: CallOptions): Promise<S.WebhookDelivery> => c.postOnce(path`/api/v1/webhooks/${webhook}/test`, undefined, options),
  /** List the deliveries of a webhook. */
  listDeliveries: (webhook: string, query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; /** Only those in this state. */
state?: 'pending' | 'delivered' | 'failed' | undefined; /** The name of the event. */
type?: string | undefined; }, options?: CallOptions): Pages<S.WebhookDelivery, S.WebhookDeliveryPage> => c.list(path`/api/v1/webhooks/${webhook}/deliveries`, query, options),
  /** Deliver an event again. */
  redeliver: (webhook: string, delivery: string, options?: CallOptions): Promise<S.WebhookDelivery> => c.postOnce(path`/api/v1/webhooks/${webhook}/deliveries/${delivery}/redeliver`, undefined, options),
});
