import { everyCaller } from '../http/route/access.ts';
import type { Api } from '../http/route/route.ts';
import { Type } from '../lib/type.ts';
import type { Knowledge } from './domain.ts';
import { inboundSecretInputSchema, inboundSecretSchema, inboundUrlSchema } from './schema.ts';

const tag = 'Knowledge';
const source = '/api/v1/knowledge_sources/:source';
const sourceParams = Type.Object({ source: Type.String() });

/** The inbound URLs of sources. */
export function registerInboundRoutes(api: Api, { inbound }: Knowledge): void {
  registerUrls(api, inbound);
  registerPosts(api, inbound);
}

function registerUrls(api: Api, inbound: Knowledge['inbound']): void {
  api.app(everyCaller, {
    method: 'GET',
    path: `${source}/inbound_url`,
    operationId: 'getInboundUrl',
    // Anyone with the URL can write documents.
    reads: false,
    tag,
    summary: 'Get the secret URL at which a webhook/inbound source accepts documents',
    description:
      'Anyone who has the URL can add documents: treat it as a secret. 404 for other types of sources, 403 for callers that can only read it.',
    params: sourceParams,
    responses: { 200: inboundUrlSchema },
    handler: ({ caller, params }) => inbound.getUrl(caller, params.source),
  });

  api.app(everyCaller, {
    method: 'POST',
    path: `${source}/inbound_url`,
    operationId: 'rotateInboundUrl',
    idempotency: 'credential',
    audit: 'durable',
    tag,
    summary: 'Replace the inbound URL',
    description: 'The old URL stops working immediately. Takes no body. Requires the right to change the source.',
    params: sourceParams,
    responses: { 201: inboundUrlSchema },
    handler: ({ caller, params }) => inbound.rotate(caller, params.source),
  });

  api.app(everyCaller, {
    method: 'POST',
    path: `${source}/inbound_url/signing_secret`,
    operationId: 'setInboundSecret',
    idempotency: 'credential',
    audit: 'durable',
    tag,
    summary: 'Require signatures at the inbound URL, or replace their secret',
    description:
      'From then on, posts must be signed as in Standard Webhooks. The response contains the secret, which is not shown again. Requires the right to change the source.',
    params: sourceParams,
    body: inboundSecretInputSchema,
    responses: { 201: inboundSecretSchema },
    handler: ({ caller, params, body }) => inbound.setSecret(caller, params.source, body),
  });

  api.app(everyCaller, {
    method: 'DELETE',
    path: `${source}/inbound_url/signing_secret`,
    operationId: 'deleteInboundSecret',
    audit: 'durable',
    tag,
    summary: 'Accept unsigned posts at the inbound URL again',
    description: 'Requires the right to change the source.',
    params: sourceParams,
    responses: { 204: null },
    handler: ({ caller, params }) => inbound.removeSecret(caller, params.source),
  });
}

function registerPosts(api: Api, inbound: Knowledge['inbound']): void {
  api.public({
    method: 'POST',
    path: '/api/v1/inbound/:token',
    operationId: 'postInbound',
    tag,
    summary: 'Post a document to an inbound URL',
    description:
      'The URL itself is the credential. Each posted body becomes a document. A URL with a signing secret accepts only messages signed as Standard Webhooks specifies, each once: 401 without a valid signature of the last five minutes, 409 for a copy of an accepted request.',
    params: Type.Object({ token: Type.String() }),
    audit: 'batched',
    rawBody: '*/*',
    idempotencyCaller: ({ params }) => inbound.findCaller((params as { token: string }).token),
    responses: { 202: Type.Object({ ingestion: Type.String() }) },
    handler: ({ params, request }) => inbound.receive(params.token, request),
  });
}
