import { iso } from '../http/route/present.ts';
import { type Api, ref } from '../http/route/route.ts';
import type { ExternalSignIn } from '../identity/sign-in.ts';
import { AppError } from '../lib/errors.ts';
import type { Credentials } from '../tenancy/credentials.ts';
import { readSessionCookie, sessionSeconds } from '../tenancy/sessions.ts';
import { registerExternalSignInRoutes } from './external-routes.ts';
import { presentConsoleSession, presentSessionCookie } from './present.ts';
import { consoleSessionSchema, signInLinkSchema, signInSchema } from './schema.ts';
import type { ConsoleService } from './service.ts';
import { signInUrl } from './sign-in-links.ts';

const tag = 'Console';
const path = '/console/session';

type Deps = {
  consoleSessions: ConsoleService;
  externalSignIn: ExternalSignIn;
  credentials: Credentials;
  baseUrl: () => string;
};

/** Registers the ways to sign in to the web console, and the sign-out. */
export function registerConsoleRoutes(api: Api, deps: Deps): void {
  registerExternalSignInRoutes(api, deps);
  registerSessionRoutes(api, deps);
  registerSignInLinks(api, deps);
}

/** Registers the session itself. The routes are public; the session cookie is checked here. */
function registerSessionRoutes(api: Api, { consoleSessions, baseUrl }: Deps): void {
  api.public({
    method: 'POST',
    path,
    operationId: 'openConsoleSession',
    idempotency: 'credential',
    tag,
    summary: 'Sign in to the web console',
    description:
      'Send an end user’s e-mail and password with the publishable key of their app, only a developer token, or only the code of a sign-in link. ' +
      'The response sets a cookie, which is a credential only together with `csrf_token` in the header `x-quarry-csrf`.',
    audit: 'batched',
    body: signInSchema,
    responses: { 201: ref(consoleSessionSchema) },
    handler: async ({ body, request, reply }) => {
      const { value, session } = await consoleSessions.signIn(body, request.ip, (actor) => {
        request.auditNote = { actor };
      });
      reply.header('set-cookie', presentSessionCookie(request, baseUrl(), value, sessionSeconds));
      return presentConsoleSession(session);
    },
  });
  api.public({
    method: 'GET',
    path,
    operationId: 'getConsoleSession',
    tag,
    summary: 'Get the signed-in caller and a new CSRF token',
    description: '401 without a valid session cookie. The new token does not end earlier ones.',
    responses: { 200: ref(consoleSessionSchema) },
    handler: async ({ request }) =>
      presentConsoleSession(await consoleSessions.get(readSessionCookie(request.headers.cookie))),
  });
  api.public({
    method: 'DELETE',
    path,
    operationId: 'closeConsoleSession',
    tag,
    summary: 'Sign out of the web console',
    description: 'Deletes the session and the cookie. Also returns 204 if the session has already ended.',
    audit: 'batched',
    responses: { 204: null },
    handler: async ({ request, reply }) => {
      const csrf = request.headers['x-quarry-csrf'];
      const cookie = readSessionCookie(request.headers.cookie);
      const actor = await consoleSessions.signOut(cookie, Array.isArray(csrf) ? csrf[0] : csrf);
      request.auditNote = actor === undefined ? { failed: true } : { actor };
      reply.header('set-cookie', presentSessionCookie(request, baseUrl(), '', 0));
    },
  });
}

function registerSignInLinks(api: Api, { consoleSessions, baseUrl }: Deps): void {
  api.developer({
    method: 'POST',
    path: '/protected/api/v1/developer/sign_in_links',
    operationId: 'createSignInLink',
    idempotency: 'credential',
    tag,
    summary: 'Create a link that signs you in to the web console',
    description:
      'Needs a developer token: a session of the console cannot create one. Each token has at most ten links that still work; another one ends the oldest.',
    responses: { 201: ref(signInLinkSchema) },
    handler: async ({ request }) => {
      const [, token] = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '') ?? [];
      if (token === undefined) throw new AppError('forbidden', 'Send a developer token: a session creates no link.');
      const link = await consoleSessions.createSignInLink(token);
      if (!link) throw new AppError('invalid_credentials', 'The developer token is revoked.');
      return { url: signInUrl(baseUrl(), link.code), expires_at: iso(link.expiresAt) };
    },
  });
}
