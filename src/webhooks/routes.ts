import { operators } from '../http/route/access.ts';
import { pageOf, pageQuery, readPage } from '../http/route/pages.ts';
import { registerResource } from '../http/route/resource.ts';
import { type Api, ref } from '../http/route/route.ts';
import { Type } from '../lib/type.ts';
import { presentDelivery, presentWebhook } from './present.ts';
import {
  deliverySchema,
  listDeliveriesQuery,
  rotateSchema,
  webhookCreateSchema,
  webhookListQuery,
  webhookSchema,
  webhookUpdateSchema,
} from './schema.ts';
import type { WebhookService } from './service.ts';

const tag = 'Webhooks';
const params = Type.Object({ webhook: Type.String() });

export function registerWebhookRoutes(api: Api, { webhooks }: { webhooks: WebhookService }): void {
  registerWebhooks(api, webhooks);
  registerDeliveries(api, webhooks);
}

function registerWebhooks(api: Api, webhooks: WebhookService): void {
  registerResource(api, {
    path: '/webhooks',
    param: 'webhook',
    ids: ['Webhook', 'Webhooks'],
    words: ['a webhook', 'webhooks'],
    tag,
    schema: webhookSchema,
    present: presentWebhook,
    about: {
      create:
        'The response contains the secret, which is not shown again. 422 for a URL that is not on the public internet, and for more than 50 webhooks.',
      list: 'Newest first, without their secrets.',
      get: 'Without its secret.',
      update: 'Omitted members keep their values. A change of `events` applies from the next event on.',
      remove: 'Permanent: its deliveries are deleted with it, including pending ones.',
    },
    create: { callers: operators, body: webhookCreateSchema, idempotency: 'credential', run: webhooks.create },
    list: { callers: operators, query: webhookListQuery, run: webhooks.list },
    get: { callers: operators, run: webhooks.get },
    update: { callers: operators, body: webhookUpdateSchema, run: webhooks.update },
    remove: { callers: operators, run: webhooks.remove },
  });
  for (const [verb, summary, description, run] of [
    [
      'pause',
      'Stop deliveries',
      'Events are kept for seven days and delivered once the webhook is resumed.',
      webhooks.pause,
    ],
    ['resume', 'Continue deliveries', 'Events of the pause are also delivered.', webhooks.resume],
  ] as const)
    api.provisioning(operators, {
      method: 'POST',
      path: `/webhooks/:webhook/${verb}`,
      operationId: `${verb}Webhook`,
      tag,
      changesRights: false,
      summary,
      description,
      params,
      responses: { 200: ref(webhookSchema) },
      handler: async ({ caller, params }) => presentWebhook(await run(caller, params.webhook)),
    });
  api.provisioning(operators, {
    method: 'POST',
    path: '/webhooks/:webhook/rotate_secret',
    operationId: 'rotateWebhookSecret',
    tag,
    changesRights: false,
    audit: 'durable',
    idempotency: 'credential',
    summary: 'Replace the secret',
    description:
      'The response contains the new secret, which is not shown again. Until the overlap ends, deliveries are signed with both secrets.',
    params,
    body: rotateSchema,
    responses: { 200: ref(webhookSchema) },
    handler: async ({ caller, params, body }) =>
      presentWebhook(await webhooks.rotate(caller, params.webhook, body.overlap_seconds)),
  });
}

function registerDeliveries(api: Api, webhooks: WebhookService): void {
  api.provisioning(operators, {
    method: 'POST',
    path: '/webhooks/:webhook/test',
    operationId: 'testWebhook',
    tag,
    changesRights: false,
    summary: 'Send a test event',
    description: 'Sends the event `webhook.test` to this webhook only. 409 while it is paused.',
    params,
    responses: { 201: ref(deliverySchema) },
    handler: async ({ caller, params }) => presentDelivery(await webhooks.test(caller, params.webhook)),
  });
  api.provisioning(operators, {
    method: 'GET',
    path: '/webhooks/:webhook/deliveries',
    operationId: 'listWebhookDeliveries',
    tag,
    summary: 'List the deliveries of a webhook',
    description:
      'Newest event first, each with its latest attempts. Filter by `state` and `type`. Deliveries are kept for seven days.',
    params,
    query: Type.Object({ ...pageQuery, ...listDeliveriesQuery.properties }),
    responses: { 200: pageOf(ref(deliverySchema)) },
    handler: ({ caller, params, query }) =>
      readPage(query, (request) => webhooks.listDeliveries(caller, params.webhook, query, request), presentDelivery),
  });
  api.provisioning(operators, {
    method: 'POST',
    path: '/webhooks/:webhook/deliveries/:delivery/redeliver',
    operationId: 'redeliverWebhookDelivery',
    tag,
    changesRights: false,
    summary: 'Deliver an event again',
    description:
      'Works in every state of the delivery. Sends the same id and body, with all retries. 409 while the webhook is paused.',
    params: Type.Object({ webhook: Type.String(), delivery: Type.String() }),
    responses: { 200: ref(deliverySchema) },
    handler: async ({ caller, params }) =>
      presentDelivery(await webhooks.redeliver(caller, params.webhook, params.delivery)),
  });
}
