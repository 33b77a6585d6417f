import type { Domain } from '../domain.ts';
import { type AuthDeps, type AuthService, createAuthService } from './service.ts';
import { authSweepJob, sweepAuth } from './sweep.ts';

/*
 * Signing in to an app with a password, sessions and personal tokens.
 * - `service.ts` checks the password (users/passwords.ts), starts a session and exchanges refresh tokens.
 * - `limits.ts` counts failures for an address and for a client, and refuses further attempts.
 * - `store.ts` keeps sessions and tokens; tenancy/ resolves them to callers for every other request.
 * - `sweep.ts` deletes ended sessions. Sign-in with an issuer of the app is in identity/.
 */

export function createAuth(deps: AuthDeps): Domain<AuthService> {
  return {
    service: createAuthService(deps),
    tasks: { [authSweepJob.task]: () => sweepAuth(deps) },
    recurring: [authSweepJob],
  };
}
