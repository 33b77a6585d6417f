import { presentApp } from '../apps/present.ts';
import { compact, iso } from '../http/route/present.ts';
import { formatId } from '../lib/ids.ts';
import { presentUser } from '../users/present.ts';
import type { ConsoleService } from './service.ts';

export function presentConsoleSession(session: Awaited<ReturnType<ConsoleService['get']>>) {
  return compact({
    kind: session.kind,
    csrf_token: session.csrfToken,
    expires_at: iso(session.expiresAt),
    user: session.kind === 'user' ? presentUser(session.user) : undefined,
    app: session.kind === 'user' ? presentApp(session.app) : undefined,
    developer:
      session.kind === 'developer'
        ? { id: formatId('developer', session.developer.id), name: session.developer.name }
        : undefined,
  });
}
