import { AppError } from '../../lib/errors.ts';
import type { Caller, Identity } from '../../tenancy/caller.ts';
import { hasScope, type ScopeNeed } from '../../tenancy/key-scopes.ts';

/** Who may call a route. */
export type Access =
  /** Callers that act inside one app. `callers` lists the allowed kinds; others get 403. */
  | { kind: 'app'; callers: readonly AppCallerKind[] }
  /** Holders of an API key, including publishable keys: `auth/*`. */
  | { kind: 'key' }
  /** Developers, with or without an app chosen. */
  | { kind: 'developer' }
  /** Anyone. Credentials are ignored. */
  | { kind: 'public' };

/** Every kind of caller that can act inside an app through a request. */
export const everyCaller = ['user', 'server', 'developer'] as const;
/** The callers that manage the app: secret keys and developers. */
export const operators = ['server', 'developer'] as const;

export type AppCallerKind = (typeof everyCaller)[number];

/** The credentials of the route, as the reference names them. */
export function securityOf(access: Access): Record<string, string[]>[] {
  switch (access.kind) {
    case 'public':
      return [];
    case 'key':
      return [{ apiKey: [] }];
    case 'developer':
      return [{ bearer: [] }];
    case 'app':
      return [{ apiKey: [] }, { bearer: [] }, { session: [] }];
  }
}

/** Whether callers of this kind, with the scopes of their key, may use the route. The things they name are checked later. */
export function allowsCaller(
  { access, need }: { access: Access; need: ScopeNeed | undefined },
  caller: Caller,
): boolean {
  const kind = caller.kind === 'agent' ? 'user' : caller.kind;
  if (access.kind !== 'app' || !access.callers.includes(kind)) return false;
  return need === undefined || hasScope(caller.scopes, need.area, need.reads);
}

/** Throws unless this identity may use a route of this access. */
export function requireAccess(access: Access, identity: Identity): void {
  if (access.kind === 'public') return;
  if (identity.kind === 'anonymous')
    throw new AppError('unauthenticated', 'Send a credential: an API key in x-api-key, or a bearer token.');
  if (access.kind === 'key') {
    if (identity.kind === 'publishable' || identity.kind === 'server') return;
    throw new AppError('unauthenticated', 'Send the API key of your app in x-api-key.');
  }
  if (identity.kind === 'publishable')
    throw new AppError('unauthenticated', 'A publishable key alone allows only sign-in. Send a user token with it.');
  if (access.kind === 'developer') {
    if (identity.kind === 'developer' || identity.kind === 'developer-without-app') return;
    throw new AppError('forbidden', 'This operation is for developers. Send a developer token.');
  }
  if (identity.kind === 'developer-without-app')
    throw new AppError('app_scope_required', 'Choose an app with the header x-app.');
  const kind = identity.kind === 'agent' ? 'user' : identity.kind;
  if (!access.callers.includes(kind))
    throw new AppError(
      'forbidden',
      'This credential does not allow the operation. Use a secret key or a developer token.',
    );
}
