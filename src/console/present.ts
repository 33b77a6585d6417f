import type { FastifyRequest } from 'fastify';
import { presentApp } from '../apps/present.ts';
import { compact, iso } from '../http/route/present.ts';
import { formatId } from '../lib/ids.ts';
import { sessionCookie } from '../tenancy/sessions.ts';
import { presentUser } from '../users/present.ts';
import type { ConsoleSession } from './service.ts';

export function presentConsoleSession(session: ConsoleSession) {
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

/** The cookie of a console session for `seconds`; 0 deletes it. */
export function presentSessionCookie(request: FastifyRequest, baseUrl: string, value: string, seconds: number): string {
  const secure = request.protocol === 'https' || baseUrl.startsWith('https:') ? ['Secure'] : [];
  return [`${sessionCookie}=${value}`, 'Path=/', `Max-Age=${seconds}`, 'HttpOnly', 'SameSite=Strict', ...secure].join(
    '; ',
  );
}
