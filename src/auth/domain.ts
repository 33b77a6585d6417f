import type { Domain } from '../domain.ts';
import { type AuthDeps, type AuthService, createAuthService } from './service.ts';
import { authSweepJob, createAuthSweepTask } from './sweep.ts';

export function createAuth(deps: AuthDeps): Domain<AuthService> {
  return {
    service: createAuthService(deps),
    tasks: { [authSweepJob.task]: createAuthSweepTask(deps) },
    recurring: [authSweepJob],
  };
}
