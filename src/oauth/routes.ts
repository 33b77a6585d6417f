import type { FastifyReply } from 'fastify';
import { escapeHtml, isForPerson, sendErrorPage } from '../http/error-page.ts';
import { everyCaller } from '../http/route/access.ts';
import { registerResource } from '../http/route/resource.ts';
import { type Api, ref } from '../http/route/route.ts';
import { AppError } from '../lib/errors.ts';
import { formatId } from '../lib/ids.ts';
import { Type } from '../lib/type.ts';
import type { KeyScope } from '../tenancy/key-scopes.ts';
import { presentAssistant, presentRequest } from './present.ts';
import { formType, oauthErrors, readForm } from './protocol.ts';
import * as schema from './schema.ts';
import type { OauthService } from './service.ts';

const tag = 'Sign-in';
const params = Type.Object({ key: Type.String() });
const errors = schema.oauthErrorSchema;
const onlyIfOn = 'The key is a publishable one. 404 unless `QUARRY_MCP_OAUTH` is on, and `assistants` of the app.';

export function registerOauthRoutes(api: Api, { oauth }: { oauth: OauthService }): void {
  registerServerRoutes(api, oauth);
  registerTokenRoutes(api, oauth);
  registerConsentRoutes(api, oauth);
  registerResource(api, {
    path: '/connected_assistants',
    param: 'connected_assistant',
    ids: ['ConnectedAssistant', 'ConnectedAssistants'],
    words: ['a connected assistant', 'connected assistants'],
    tag,
    about: {
      list: 'Newest first. Users see their own; keys and developers those of all users.',
      get: 'Users see only their own.',
      remove: 'Disconnects it: its tokens stop working in every process within two seconds, and its open calls end.',
    },
    schema: schema.assistantSchema,
    present: presentAssistant,
    list: {
      callers: everyCaller,
      query: Type.Object({ user: Type.Optional(Type.String({ description: 'Only those of this user, usr_….' })) }),
      run: (caller, page, { user }) => oauth.list(caller, page, user),
    },
    get: { callers: everyCaller, run: oauth.get },
    remove: { callers: everyCaller, run: oauth.remove },
  });
}

/** What programs use before anyone has signed in. */
function registerServerRoutes(api: Api, oauth: OauthService): void {
  api.public({
    method: 'GET',
    path: '/.well-known/oauth-authorization-server/oauth/:key',
    operationId: 'getAuthorizationServerMetadata',
    tag,
    summary: 'Get the OAuth metadata of an app’s authorization server',
    description: `RFC 8414. ${onlyIfOn}`,
    params,
    responses: { 200: ref(schema.serverMetadataSchema) },
    handler: ({ params: { key } }) => oauth.describe(key),
  });
  api.public({
    method: 'POST',
    path: '/oauth/:key/register',
    operationId: 'registerAssistant',
    idempotency: 'credential',
    tag,
    summary: 'Register an OAuth client',
    description: `RFC 7591. Unknown members are ignored, as it demands. ${onlyIfOn}`,
    params,
    body: schema.clientRegistrationSchema,
    errors,
    responses: { 201: ref(schema.registeredClientSchema) },
    handler: ({ params: { key }, body, request }) => oauth.register(key, request.ip, body),
  });
  api.public({
    method: 'GET',
    path: '/oauth/:key/authorize',
    operationId: 'authorizeAssistant',
    tag,
    summary: 'Ask a user to connect an assistant',
    description: `For browsers: redirects to the consent page of the console, or back to the client with an error; unless the client is on the user’s machine, people first see a page with the error and a link. Requires \`response_type=code\`, \`client_id\`, \`redirect_uri\`, \`code_challenge\` and \`code_challenge_method=S256\`; takes \`scope\`, \`state\` and \`resource\`. ${onlyIfOn}`,
    params,
    uncheckedQuery: true,
    errors,
    responses: { 302: null },
    handler: async ({ params: { key }, request, reply }) => {
      const at = request.url.indexOf('?');
      const query = at < 0 ? '' : request.url.slice(at + 1);
      const isPerson = isForPerson(request);
      const sent = await oauth.authorize(key, request.ip, query).catch((error: unknown) => {
        if (!isPerson || !(error instanceof AppError)) throw error;
        request.log.info({ err: error }, 'refused');
        return error;
      });
      if (sent instanceof AppError) return sendRefusal(reply, sent);
      const { to, refusal } = sent;
      // Anyone can register an address, so a browser goes there only when its user chooses to (RFC 9700, 4.11.2).
      if (isPerson && refusal?.isLocal === false) return sendRefusal(reply, refusal.reason, to);
      return reply.redirect(to, 302);
    },
  });
}

/** Shows a person why the request was refused, with a link to the client if its address is known. */
function sendRefusal(reply: FastifyReply, reason: AppError, to?: string): FastifyReply {
  const back = to === undefined ? '' : `<p><a href="${escapeHtml(to)}">Back to ${escapeHtml(new URL(to).host)}</a></p>`;
  return sendErrorPage(
    reply,
    { status: oauthErrors.present(reason).status, message: reason.message },
    { title: 'The assistant cannot be connected', rest: back && `\n    ${back}` },
  );
}

function registerTokenRoutes(api: Api, oauth: OauthService): void {
  api.public({
    method: 'POST',
    path: '/oauth/:key/token',
    operationId: 'exchangeAssistantToken',
    idempotency: 'credential',
    tag,
    summary: 'Exchange a code or a refresh token of an assistant',
    description: `RFC 6749, as a form. A code and a refresh token work once: the second use ends the connection. ${onlyIfOn}`,
    params,
    rawBody: formType,
    rawBodySchema: ref(schema.tokenFormSchema),
    errors,
    responses: { 200: ref(schema.mcpTokenSchema) },
    handler: ({ params: { key }, request }) => oauth.exchange(key, request.ip, () => readForm(request)),
  });
  api.public({
    method: 'POST',
    path: '/oauth/:key/revoke',
    operationId: 'revokeAssistantToken',
    idempotency: 'credential',
    tag,
    summary: 'End the connection of an assistant with one of its tokens',
    description: `RFC 7009, as a form: \`token\` and \`client_id\`. Also returns 200 for an unknown token. ${onlyIfOn}`,
    params,
    rawBody: formType,
    rawBodySchema: ref(schema.revocationFormSchema),
    errors,
    responses: { 200: Type.Object({}) },
    handler: async ({ params: { key }, request }) => {
      await oauth.revoke(key, request.ip, () => readForm(request));
      return {};
    },
  });
}

/** What the consent page of the console uses. */
function registerConsentRoutes(api: Api, oauth: OauthService): void {
  const path = '/api/v1/assistant_request';
  api.app(['user'], {
    method: 'GET',
    path,
    operationId: 'getAssistantRequest',
    tag,
    summary: 'Show what an assistant asks for',
    description: 'For the consent page. 422 if the request has expired, or is for another app.',
    query: schema.assistantRequestQuery,
    responses: { 200: ref(schema.assistantRequestSchema) },
    handler: ({ caller, query }) => presentRequest(oauth.show(caller, query.request)),
  });
  api.app(['user'], {
    method: 'POST',
    path,
    operationId: 'decideAssistantRequest',
    idempotency: 'credential',
    audit: 'durable',
    tag,
    summary: 'Allow or refuse what an assistant asks for',
    description: 'A user has at most 100 connected assistants. Personal tokens are 403.',
    body: schema.assistantDecisionSchema,
    responses: { 200: ref(schema.assistantDecidedSchema) },
    handler: async ({ caller, body, request }) => {
      if (caller.kind !== 'user') throw new AppError('forbidden', 'Only users connect assistants.');
      const { url, grantId } = await oauth.decide(caller, request.credential, {
        request: body.request,
        allow: body.decision === 'allow',
        ...(body.scopes === undefined ? {} : { scopes: body.scopes as KeyScope[] }),
      });
      if (grantId !== undefined) request.auditNote = { resource: formatId('assistant', grantId) };
      return { redirect_url: url };
    },
  });
}
