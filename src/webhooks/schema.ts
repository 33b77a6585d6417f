import { strict } from '../http/route/route.ts';
import { limits } from '../lib/limits.ts';
import { Type } from '../lib/type.ts';
import { warningsOf } from '../lib/warnings-schema.ts';
import { lookupKeyFilter, lookupKeyInput } from '../tenancy/lookup-keys.ts';

const optionalText = Type.Optional(Type.String());

const url = Type.String({ minLength: 1, maxLength: limits.urlCharactersMax });
const events = Type.Array(Type.String({ minLength: 1, maxLength: 200 }), {
  minItems: 1,
  maxItems: 100,
  uniqueItems: true,
  description: 'Names of events, or `*` for all.',
});
const automations = Type.Array(Type.String({ minLength: 1, maxLength: 300 }), {
  minItems: 1,
  maxItems: 100,
  uniqueItems: true,
  description:
    'Ids or lookup keys of automations whose workflow is a program. Instead of events, the URL receives a message when a run of them has work. Not together with `events`.',
});
const description = Type.String({ maxLength: limits.nameCharactersMax });

export const webhookSchema = Type.Object(
  {
    id: Type.String({ description: 'whk_…' }),
    app: Type.String(),
    sandbox: Type.Union([Type.String(), Type.Null()]),
    url: Type.String(),
    lookup_key: optionalText,
    description: optionalText,
    events: Type.Array(Type.String()),
    automations: Type.Optional(
      Type.Array(Type.String(), {
        description: 'The automations for whose runs a function is woken, instead of events.',
      }),
    ),
    status: Type.Enum(['active', 'paused']),
    paused_reason: optionalText,
    failing_since: Type.Optional(
      Type.String({
        description:
          'The time of the first failed attempt since the last success. With `automations`, a success is that the function wrote something.',
      }),
    ),
    secret: Type.Optional(
      Type.String({
        description: 'whsec_…: returned only in the response that creates or rotates it.',
      }),
    ),
    previous_secret_until: Type.Optional(
      Type.String({ description: 'Until this time, deliveries are also signed with the previous secret.' }),
    ),
    warnings: Type.Optional(
      warningsOf(
        'events.0',
        'Names in `events` that nothing has emitted so far, with the nearest name that is. Present only in the response that creates or changes the webhook.',
      ),
    ),
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { $id: 'Webhook', description: 'A URL that receives events.' },
);

export const webhookCreateSchema = strict({
  url,
  events: Type.Optional(events),
  automations: Type.Optional(automations),
  lookup_key: lookupKeyInput,
  description: Type.Optional(description),
});
export const webhookUpdateSchema = strict({
  url: Type.Optional(url),
  events: Type.Optional(events),
  automations: Type.Optional(automations),
  lookup_key: lookupKeyInput,
  description: Type.Optional(Type.Union([description, Type.Null()])),
});

export const webhookListQuery = Type.Object({ lookup_key: lookupKeyFilter });

export const secretOverlapSecondsDefault = 24 * 3_600;
export const rotateSchema = strict({
  overlap_seconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 7 * 24 * 3_600,
      description: 'How long deliveries are also signed with the previous secret. Default 86400, a day.',
    }),
  ),
});

const deliveryState = Type.Enum(['pending', 'delivered', 'failed']);

export const deliverySchema = Type.Object(
  {
    id: Type.String({ description: 'whd_…' }),
    webhook: Type.String(),
    event: Type.String({ description: 'evt_…, sent as `webhook-id`.' }),
    type: Type.String({ description: 'The name of the event.' }),
    sequence: Type.Integer({ description: 'The number of the event in its app or sandbox, from 1.' }),
    state: deliveryState,
    attempts: Type.Integer(),
    log: Type.Array(
      Type.Object({
        at: Type.String(),
        duration_ms: Type.Integer(),
        status: Type.Optional(Type.Integer({ description: 'The status of the response.' })),
        error: Type.Optional(Type.Object({ code: Type.String(), message: Type.String() })),
      }),
      { description: 'The latest 20 attempts, oldest first.' },
    ),
    next_attempt_at: optionalText,
    delivered_at: optionalText,
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { $id: 'WebhookDelivery', description: 'One event for one webhook, with its attempts.' },
);

export const listDeliveriesQuery = Type.Object({
  state: Type.Optional(deliveryState),
  type: Type.Optional(Type.String({ maxLength: 200, description: 'The name of the event.' })),
});
