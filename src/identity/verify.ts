import type { JWTPayload } from 'jose';
import { AppError } from '../errors.ts';
import { lazyPackage } from '../lazy-package.ts';
import { expiredToken } from '../tenancy/access-tokens.ts';
import type { IssuerKeys } from './issuer-keys.ts';
import type { IssuerRow } from './store.ts';

const jose = lazyPackage<typeof import('jose')>('jose');

/** Only signatures by a private key. `none` and shared secrets (HS256 and others) are never accepted. */
const algorithms = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
];
const clockSkewSeconds = 60;
const subjectCharactersMax = 255;

export type VerifiedToken = { subject: string; issuedAt: Date; expiresAtMs: number; claims: JWTPayload };

/** Returns the claims of a token from this issuer for one of these audiences. 401 unless it is currently valid. */
export async function verifyToken(
  keys: IssuerKeys,
  issuer: IssuerRow,
  token: string,
  audiences: readonly string[],
  now: Date,
): Promise<VerifiedToken> {
  const check = async (refresh: boolean) => {
    const set = jose().createLocalJWKSet(await keys.find(issuer, refresh));
    return jose().jwtVerify(token, set, {
      ...{ issuer: issuer.issuer, audience: [...audiences], algorithms, clockTolerance: clockSkewSeconds },
      ...{ currentDate: now, requiredClaims: ['sub', 'iat', 'exp'] },
    });
  };
  try {
    const { payload } = await check(false).catch((error: unknown) => {
      // The issuer may have rotated its key.
      if (error instanceof jose().errors.JWKSNoMatchingKey) return check(true);
      throw error;
    });
    const { sub = '', iat = 0, exp = 0 } = payload;
    if (sub.length === 0 || sub.length > subjectCharactersMax || sub.includes('\0')) throw notValid();
    if (iat * 1_000 > now.getTime() + clockSkewSeconds * 1_000) throw notValid();
    return {
      subject: sub,
      issuedAt: new Date(iat * 1_000),
      expiresAtMs: (exp + clockSkewSeconds) * 1_000,
      claims: payload,
    };
  } catch (error) {
    if (error instanceof AppError) throw error;
    if (error instanceof jose().errors.JWTExpired) throw expiredToken();
    if (error instanceof jose().errors.JOSEError) throw notValid(error);
    throw error;
  }
}

function notValid(cause?: unknown): AppError {
  return new AppError('invalid_credentials', 'The token is not valid for this app.', { cause });
}
