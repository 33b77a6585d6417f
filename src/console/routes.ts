import type { FastifyReply, FastifyRequest } from 'fastify';
import { iso } from '../http/route/present.ts';
import { type Api, ref } from '../http/route/route.ts';
import type { ExternalSignIn } from '../identity/sign-in.ts';
import { AppError } from '../lib/errors.ts';
import type { Credentials } from '../tenancy/credentials.ts';
import { readSessionCookie, sessionCookie, sessionSeconds } from '../tenancy/sessions.ts';
import { registerExternalSignInRoutes } from './external-routes.ts';
import { presentConsoleSession } from './present.ts';
import { consoleSessionSchema, signInLinkSchema, signInSchema } from './schema.ts';
import type { ConsoleService } from './service.ts';
import { signInUrl } from './sign-in-links.ts';

const tag = 'Console';
const path = '/console/session';

/**
 * Registers sign-in to and sign-out from the web console. The routes are public; the session cookie is checked here.
 */
export function registerConsoleRoutes(
  api: Api,
  deps: {
    consoleSessions: ConsoleService;
    externalSignIn: ExternalSignIn;
    credentials: Credentials;
    baseUrl: () => string;
  },
): void {
  const { consoleSessions, baseUrl } = deps;
  registerExternalSignInRoutes(api, { ...deps, setCookie: sessionCookieOf });
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
      setCookie(request, reply, value, sessionSeconds);
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
      setCookie(request, reply, '', 0);
    },
  });
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

  function setCookie(request: FastifyRequest, reply: FastifyReply, value: string, seconds: number): void {
    reply.header('set-cookie', sessionCookieOf(request, value, seconds));
  }

  function sessionCookieOf(request: FastifyRequest, value: string, seconds: number): string {
    const secure = request.protocol === 'https' || baseUrl().startsWith('https:');
    const attributes = ['Path=/', `Max-Age=${seconds}`, 'HttpOnly', 'SameSite=Strict', ...(secure ? ['Secure'] : [])];
    return [`${sessionCookie}=${value}`, ...attributes].join('; ');
  }
}
