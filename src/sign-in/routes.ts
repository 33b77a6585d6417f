import { everyCaller } from '../http/route/access.ts';
import { type Api, ref } from '../http/route/route.ts';
import { AppError, notFound } from '../lib/errors.ts';
import { formatId } from '../lib/ids.ts';
import { Type } from '../lib/type.ts';
import type { Caller, Scope } from '../tenancy/caller.ts';
import { pathId } from '../tenancy/references.ts';
import { requireSelf, type UserService } from '../users/service.ts';
import type { UserRow } from '../users/store.ts';
import { presentSession, presentToken } from './present.ts';
import { loginSchema, mintedTokenSchema, personalTokenSchema, refreshSchema, tokenCreateSchema } from './schema.ts';
import type { AuthService, Session } from './service.ts';

const tag = 'Sign-in';
const userParams = Type.Object({ user: Type.String() });

/** Sign-in requires only the app's publishable key. */
export function registerAuthRoutes(api: Api, { auth, users }: { auth: AuthService; users: UserService }): void {
  async function presentTokens(scope: Scope, session: Session) {
    const user = await users.findInScope(scope, session.userId);
    if (!user) throw new AppError('invalid_credentials', 'The user was deleted.');
    return presentSession(session, user);
  }

  api.key({
    method: 'POST',
    path: '/api/v1/auth/login',
    operationId: 'login',
    idempotency: 'credential',
    tag,
    summary: 'Sign in with e-mail and password',
    description:
      'Returns an access token for one hour and a refresh token. A wrong address and a wrong password return the same 401; too many failures return 429 with `Retry-After`.',
    body: loginSchema,
    responses: { 200: ref(mintedTokenSchema) },
    handler: async ({ caller, body, request }) =>
      presentTokens(caller, await auth.login(caller, request.ip, body.email, body.password)),
  });
  api.key({
    method: 'POST',
    path: '/api/v1/auth/refresh',
    operationId: 'refreshSession',
    idempotency: 'credential',
    audit: 'failures',
    tag,
    summary: 'Exchange a refresh token for a new pair',
    description: 'A refresh token works once. Using it again ends the session for every holder.',
    body: refreshSchema,
    responses: { 200: ref(mintedTokenSchema) },
    handler: async ({ caller, body }) => presentTokens(caller, await auth.refresh(caller, body.refresh_token)),
  });
  api.key({
    method: 'POST',
    path: '/api/v1/auth/logout',
    operationId: 'logout',
    idempotency: 'credential',
    tag,
    summary: 'End a session',
    description:
      'Ends the session of the refresh token with all its access tokens. Returns 204 even if the session has already ended.',
    body: refreshSchema,
    responses: { 204: null },
    handler: async ({ caller, body, request }) => {
      const ended = await auth.logout(caller, body.refresh_token);
      request.auditNote = ended ? { resource: formatId('user', ended.userId) } : { failed: true };
    },
  });
  registerTokenRoutes(api, users, auth);
}

/** Keys and developers create sessions for any user; users create personal tokens for themselves. */
function registerTokenRoutes(api: Api, users: UserService, auth: AuthService): void {
  api.provisioning(everyCaller, {
    method: 'POST',
    path: '/users/:user/tokens',
    operationId: 'createUserToken',
    idempotency: 'credential',
    tag,
    summary: 'Create a token for a user',
    description:
      'By default, keys and developers create a session (an access and a refresh token), and end users a personal token.',
    params: userParams,
    body: tokenCreateSchema,
    responses: { 201: ref(mintedTokenSchema) },
    handler: async ({ caller, params, body, request }) => {
      requireSelf(caller, params.user);
      const user = await getTokenUser(users, caller, params.user);
      if ((body.type ?? (caller.kind === 'user' ? 'personal' : 'session')) === 'session') {
        if (caller.kind === 'user')
          throw new AppError('forbidden', 'Users can create only personal tokens here. To start a session, sign in.');
        return presentSession(await auth.openSession(caller, user.id), user);
      }
      const { row, token, expiresIn } = await auth.createPersonalToken(caller, user.id, {
        name: body.name,
        days: body.expires_in_days,
        shown: caller.kind === 'user' ? request.credential : undefined,
      });
      return { ...presentToken(row), token, token_type: 'Bearer', expires_in: expiresIn };
    },
  });
  api.provisioning(everyCaller, {
    method: 'GET',
    path: '/users/:user/tokens',
    operationId: 'listUserTokens',
    tag,
    summary: "List a user's personal tokens",
    description:
      'The newest 200 tokens of the user, including revoked and expired ones, without their values. End users see only their own.',
    params: userParams,
    responses: { 200: Type.Object({ data: Type.Array(ref(personalTokenSchema)) }) },
    handler: async ({ caller, params }) => {
      const user = await getTokenUser(users, caller, params.user);
      return { data: (await auth.listPersonalTokens(caller, user.id)).map(presentToken) };
    },
  });
  api.provisioning(everyCaller, {
    method: 'DELETE',
    path: '/users/:user/tokens/:token',
    operationId: 'revokeUserToken',
    tag,
    summary: 'Revoke a personal token',
    description:
      'The token stops working in every process within two seconds. End users can revoke only their own tokens; those of others return 404.',
    params: Type.Object({ user: Type.String(), token: Type.String() }),
    responses: { 204: null },
    handler: async ({ caller, params }) => {
      const user = await getTokenUser(users, caller, params.user);
      await auth.revokePersonalToken(caller, user.id, pathId('token', params.token));
    },
  });
}

/** The user whose tokens are named: they are visible only to that user, and to keys and developers of the app. */
async function getTokenUser(users: UserService, caller: Caller, id: string): Promise<UserRow> {
  const user = await users.get(caller, id);
  if (caller.kind === 'user' && caller.userId !== user.id) throw notFound();
  return user;
}
