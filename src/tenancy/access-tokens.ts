import { errors, jwtVerify, SignJWT } from 'jose';
import { AppError } from '../errors.ts';
import { formatId, parseId } from '../ids.ts';
import { readBase64url } from './base64url.ts';
import type { Scope } from './caller.ts';
import type { Secrets } from './secrets.ts';

export const accessTokenSeconds = 3600;
const issuer = 'quarry';

/** Whose token it is, of which epoch of theirs and of which session: it ends with either. */
type AccessClaims = Scope & { userId: string; epoch?: number; sessionId?: string | undefined };

/** A JWT (HS256) that carries user, app, sandbox, epoch and session, valid for an hour. */
export async function mintAccessToken(secrets: Secrets, claims: AccessClaims, now: Date): Promise<string> {
  const [key] = secrets.keys('access-token');
  if (!key) throw new Error('There is no root secret.');
  const issuedAt = Math.floor(now.getTime() / 1000);
  const { epoch = 0, sessionId } = claims;
  return new SignJWT({
    app: formatId('app', claims.appId),
    sbx: formatId('sandbox', claims.sandboxId),
    epo: epoch,
    ...(sessionId === undefined ? {} : { sid: sessionId }),
  })
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .setIssuer(issuer)
    .setSubject(formatId('user', claims.userId))
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + accessTokenSeconds)
    .sign(key);
}

/** What a token says, and until when it is good. */
type ReadAccessToken = Scope & {
  userId: string;
  epoch: number;
  sessionId: string | undefined;
  expiresAtMs: number;
};

/** Whose token this is. 401 `expired_token` when it is genuine and too old, `invalid_credentials` for all else. */
export async function readAccessToken(secrets: Secrets, token: string, now: Date): Promise<ReadAccessToken> {
  const isCanonical = token.split('.').every((part) => readBase64url(part) !== undefined);
  for (const key of isCanonical ? secrets.keys('access-token') : []) {
    try {
      const { payload } = await jwtVerify(token, key, { algorithms: ['HS256'], issuer, currentDate: now });
      const userId = parseId('user', payload.sub ?? '');
      const appId = parseId('app', String(payload.app));
      const sandboxId = parseId('sandbox', String(payload.sbx));
      const sessionId = typeof payload.sid === 'string' ? payload.sid : undefined;
      const expiresAtMs = (payload.exp ?? 0) * 1000;
      if (userId && appId && sandboxId)
        return { userId, appId, sandboxId, epoch: Number(payload.epo), sessionId, expiresAtMs };
    } catch (error) {
      if (error instanceof errors.JWTExpired) throw expiredToken();
      // The previous root secret may fit.
    }
  }
  throw new AppError('invalid_credentials', 'The access token is not valid.');
}

export function expiredToken(): AppError {
  return new AppError('expired_token', 'The access token has expired. Refresh it, or sign in again.');
}
