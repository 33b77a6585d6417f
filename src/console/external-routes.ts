import { isForPerson, sendErrorPage } from '../http/error-page.ts';
import { type Api, strict } from '../http/route/route.ts';
import { type ExternalSignIn, pendingSeconds } from '../identity/sign-in.ts';
import { AppError } from '../lib/errors.ts';
import { formatId } from '../lib/ids.ts';
import { Type } from '../lib/type.ts';
import type { Credentials } from '../tenancy/credentials.ts';
import { sessionSeconds } from '../tenancy/sessions.ts';
import { presentSessionCookie } from './present.ts';
import { type ConsoleService, identifyPublishable } from './service.ts';

const tag = 'Console';
const path = '/console/oidc';
const cookieName = 'quarry_sign_in';

type Deps = {
  externalSignIn: ExternalSignIn;
  consoleSessions: ConsoleService;
  credentials: Credentials;
  baseUrl: () => string;
};

/** Registers sign-in to the web console at an issuer that the app trusts. */
export function registerExternalSignInRoutes(api: Api, deps: Deps): void {
  registerStart(api, deps);
  registerCallback(api, deps);
}

function registerStart(api: Api, { externalSignIn, credentials, baseUrl }: Deps): void {
  api.public({
    method: 'GET',
    path: `${path}/issuers`,
    operationId: 'listSignInIssuers',
    tag,
    summary: 'List the issuers at which users of an app sign in to the console',
    description: 'For the sign-in page. Lists only issuers that have a console client, of the publishable key’s app.',
    query: Type.Object({ publishable_key: Type.String({ maxLength: 300 }) }),
    responses: { 200: Type.Object({ data: Type.Array(Type.Object({ id: Type.String(), issuer: Type.String() })) }) },
    handler: async ({ query }) => {
      const issuers = await externalSignIn.list(await identifyPublishable(credentials, query.publishable_key));
      return { data: issuers.map(({ id, issuer }) => ({ id: formatId('identityIssuer', id), issuer })) };
    },
  });

  api.public({
    method: 'POST',
    path: `${path}/start`,
    operationId: 'startExternalSignIn',
    idempotency: 'credential',
    tag,
    summary: 'Start a sign-in to the console at an issuer',
    description: 'Returns the address to open in the browser, and sets a cookie that the callback requires.',
    body: strict({
      publishable_key: Type.String({ maxLength: 300 }),
      identity_issuer: Type.String({ maxLength: 100 }),
    }),
    responses: { 201: Type.Object({ url: Type.String() }) },
    handler: async ({ body, reply }) => {
      const scope = await identifyPublishable(credentials, body.publishable_key);
      const begun = await externalSignIn.begin(scope, body.identity_issuer, `${baseUrl()}${path}/callback`);
      reply.header('set-cookie', cookieOf(baseUrl(), begun.cookie, pendingSeconds));
      return { url: begun.url };
    },
  });
}

function registerCallback(api: Api, { externalSignIn, consoleSessions, baseUrl }: Deps): void {
  api.public({
    method: 'GET',
    path: `${path}/callback`,
    operationId: 'finishExternalSignIn',
    tag,
    summary: 'Complete a sign-in to the console at an issuer',
    description: 'The issuer redirects the browser here. Creates a console session. Browsers get errors as a page.',
    audit: 'batched',
    query: Type.Object({ code: Type.Optional(Type.String()), state: Type.Optional(Type.String()) }),
    uncheckedQuery: true,
    responses: { 302: null },
    handler: async ({ query, request, reply }) => {
      const finished = externalSignIn.finish(readCookie(request.headers.cookie), query);
      const user = await finished.catch((error: unknown) => {
        if (!isForPerson(request) || !(error instanceof AppError)) throw error;
        request.log.info({ err: error }, 'refused');
        request.auditNote = { failed: true };
        return error;
      });
      if (user instanceof AppError) {
        const rest = '\n    <p><a href="/console/">Back to the sign-in page</a></p>';
        return sendErrorPage(reply, user, { title: 'You are not signed in', rest });
      }
      const { value } = await consoleSessions.openUserSession(user);
      const { appId, sandboxId, userId } = user;
      request.auditNote = {
        actor: { scopes: [{ appId, sandboxId }], kind: 'user', id: userId, credential: 'external' },
        resource: formatId('user', userId),
      };
      const session = presentSessionCookie(request, baseUrl(), value, sessionSeconds);
      reply.header('set-cookie', [cookieOf(baseUrl(), '', 0), session]);
      return reply.redirect('/console/', 302);
    },
  });
}

function cookieOf(baseUrl: string, value: string, seconds: number): string {
  const secure = baseUrl.startsWith('https:') ? ['Secure'] : [];
  // Lax: the browser comes back from another site.
  return [`${cookieName}=${value}`, `Path=${path}`, `Max-Age=${seconds}`, 'HttpOnly', 'SameSite=Lax', ...secure].join(
    '; ',
  );
}

function readCookie(header: string | undefined): string | undefined {
  const pair = (header ?? '').split(';').find((each) => each.trim().startsWith(`${cookieName}=`));
  return pair?.trim().slice(cookieName.length + 1);
}
