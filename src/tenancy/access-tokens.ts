import { defined } from '../lib/defined.ts';
import { AppError } from '../lib/errors.ts';
import { formatId, parseId } from '../lib/ids.ts';
import { lazyPackage } from '../lib/lazy-package.ts';
import { readBase64url } from './base64url.ts';
import type { Scope } from './caller.ts';
import type { Secrets } from './secrets.ts';

export const accessTokenSeconds = 3600;
const issuer = 'quarry';
const jose = lazyPackage<typeof import('jose')>('jose');

/** The user, session epoch and session of a token. It ends with either. */
type AccessClaims = Scope & { userId: string; epoch?: number; sessionId?: string | undefined };

/** A JWT (HS256) that carries user, app, sandbox, epoch and session, valid for an hour. */
export async function mintAccessToken(secrets: Secrets, claims: AccessClaims, now: Date): Promise<string> {
  const [key] = secrets.keys('access-token');
  if (!key) throw new Error('No root secret is set.');
  const issuedAt = Math.floor(now.getTime() / 1000);
  const { epoch = 0, sessionId } = claims;
  return new (jose().SignJWT)({
    app: formatId('app', claims.appId),
    sbx: formatId('sandbox', claims.sandboxId),
    epo: epoch,
    ...defined({ sid: sessionId }),
  })
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .setIssuer(issuer)
    .setSubject(formatId('user', claims.userId))
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + accessTokenSeconds)
    .sign(key);
}

/** The claims of a token, and its expiry. */
type ReadAccessToken = Scope & {
  userId: string;
  epoch: number;
  sessionId: string | undefined;
  expiresAtMs: number;
};

/** Verifies a token and returns its claims. 401 `expired_token` when it has expired, otherwise `invalid_credentials`. */
export async function readAccessToken(secrets: Secrets, token: string, now: Date): Promise<ReadAccessToken> {
  const isCanonical = token.split('.').every((part) => readBase64url(part) !== undefined);
  for (const key of isCanonical ? secrets.keys('access-token') : []) {
    try {
      const { payload } = await jose().jwtVerify(token, key, { algorithms: ['HS256'], issuer, currentDate: now });
      const userId = parseId('user', payload.sub ?? '');
      const appId = parseId('app', String(payload.app));
      const sandboxId = parseId('sandbox', String(payload.sbx));
      const sessionId = typeof payload.sid === 'string' ? payload.sid : undefined;
      const expiresAtMs = (payload.exp ?? 0) * 1000;
      if (userId && appId && sandboxId)
        return { userId, appId, sandboxId, epoch: Number(payload.epo), sessionId, expiresAtMs };
    } catch (error) {
      if (error instanceof jose().errors.JWTExpired) throw expiredToken();
      // Try the previous root secret.
    }
  }
  throw new AppError('invalid_credentials', 'The access token is not valid.');
}

/** Whether a token states another issuer. Says nothing about whether it is valid. */
export function isForeignToken(token: string): boolean {
  const claims = readBase64url(token.split('.')[1] ?? '');
  if (claims === undefined || claims.length > 12_288) return false;
  try {
    const { iss } = JSON.parse(claims.toString()) as { iss?: unknown };
    return typeof iss === 'string' && iss !== issuer;
  } catch {
    return false;
  }
}

export function expiredToken(): AppError {
  return new AppError('expired_token', 'The access token has expired. Refresh it, or sign in again.');
}
