import type { JWTPayload } from 'jose';
import { AppError } from '../lib/errors.ts';
import { lazyPackage } from '../lib/lazy-package.ts';
import { expiredToken } from '../tenancy/access-tokens.ts';
import { readBase64url } from '../tenancy/base64url.ts';
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
/** The last second of the year 9999. */
const secondsMax = 253_402_300_799;

export type VerifiedToken = { subject: string; issuedAt: Date; expiresAtMs: number; claims: JWTPayload };

/** Returns the claims of a token from this issuer for one of these audiences. 401 unless it is currently valid. */
export async function verifyToken(
  keys: IssuerKeys,
  issuer: IssuerRow,
  token: string,
  audiences: readonly string[],
  now: Date,
): Promise<VerifiedToken> {
  // Decoding ignores unused bits, so without this a changed signature could be valid.
  if (!token.split('.').every((part) => readBase64url(part) !== undefined)) throw notValid();
  const check = async (refresh: boolean) => {
    const set = jose().createLocalJWKSet(await keys.find(issuer, refresh));
    return jose().jwtVerify(token, set, {
      issuer: issuer.issuer,
      audience: [...audiences],
      algorithms,
      clockTolerance: clockSkewSeconds,
      currentDate: now,
      requiredClaims: ['sub', 'iat', 'exp'],
    });
  };
  try {
    const { payload } = await check(false).catch((error: unknown) => {
      // The issuer may have rotated its key.
      if (error instanceof jose().errors.JWKSNoMatchingKey) return check(true);
      throw error;
    });
    const { iat = 0, exp = 0 } = payload;
    const subject: unknown = payload.sub;
    if (!isStorableText(subject) || subject.length === 0 || subject.length > subjectCharactersMax) throw notValid();
    if (iat < 0 || iat * 1_000 > now.getTime() + clockSkewSeconds * 1_000 || exp > secondsMax) throw notValid();
    return {
      subject,
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

/** Whether a claim is text that PostgreSQL can store: without NUL and halves of surrogate pairs, which it would change. */
export function isStorableText(claim: unknown): claim is string {
  return typeof claim === 'string' && claim.isWellFormed() && !claim.includes('\0');
}

function notValid(cause?: unknown): AppError {
  return new AppError('invalid_credentials', 'The token is not valid for this app.', { cause });
}
