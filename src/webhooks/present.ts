import { compact, iso, presentSandboxId } from '../http/route/present.ts';
import { formatId } from '../lib/ids.ts';
import type { DeliveryRow } from './delivery-store.ts';
import type { WebhookRow } from './store.ts';
import type { EventWarning } from './warnings.ts';

/** `plainSecret` is present only in responses that create it, `warnings` only in those that set the events. */
export function presentWebhook(row: WebhookRow & { plainSecret?: string; warnings?: EventWarning[] }) {
  return {
    ...compact({
      id: formatId('webhook', row.id),
      app: formatId('app', row.appId),
      url: row.url,
      lookup_key: row.lookupKey,
      description: row.description,
      events: row.events,
      automations: row.automations?.map((id) => formatId('automation', id)),
      status: row.status,
      paused_reason: pausedReason(row),
      failing_since: row.failingSince && iso(row.failingSince),
      secret: row.plainSecret,
      previous_secret_until: row.previousSecretUntil && iso(row.previousSecretUntil),
      warnings: row.warnings?.length ? row.warnings : null,
      created_at: iso(row.createdAt),
      updated_at: iso(row.updatedAt),
    }),
    sandbox: presentSandboxId(row.sandboxId),
  };
}

function pausedReason({ pausedReason: reason, failingSince, automations }: WebhookRow): string | null {
  switch (reason) {
    case 'request':
      return 'It was paused by request.';
    case 'gone':
      return 'The receiver returned 410 Gone.';
    case 'failing':
      return `No ${automations === null ? 'delivery has succeeded' : 'run was continued'} since ${failingSince ? iso(failingSince) : 'it was created'}.`;
    case null:
      return null;
  }
}

export function presentDelivery(row: DeliveryRow) {
  return compact({
    id: formatId('webhookDelivery', row.id),
    webhook: formatId('webhook', row.webhookId),
    event: formatId('event', row.eventId),
    type: row.name,
    sequence: row.sequence,
    state: row.state,
    attempts: row.attempts,
    log: row.log,
    next_attempt_at: row.nextAttemptAt && iso(row.nextAttemptAt),
    delivered_at: row.deliveredAt && iso(row.deliveredAt),
    created_at: iso(row.createdAt),
    updated_at: iso(row.updatedAt),
  });
}

/**
 * The body of a delivery. The payload is JSON as stored, so that every attempt has the same bytes. `more` is added to
 * the payload, an object.
 */
export function messageBody(
  event: { eventId: string; name: string; sequence: number; payload: string; emittedAt: Date },
  more: object = {},
): string {
  const { eventId, name, sequence, payload, emittedAt } = event;
  const id = formatId('event', eventId);
  const data =
    Object.keys(more).length === 0 ? payload : JSON.stringify({ ...(JSON.parse(payload) as object), ...more });
  return `${JSON.stringify({ id, type: name, timestamp: iso(emittedAt), sequence }).slice(0, -1)},"data":${data}}`;
}
