import type { Clock } from '../clock.ts';
import type { Database } from '../db/database.ts';
import { AppError } from '../errors.ts';
import { lazyPackage } from '../lazy-package.ts';
import type { ExternalUsers } from '../tenancy/credentials.ts';
import { findAccountUser } from './accounts.ts';
import type { IssuerKeys } from './issuer-keys.ts';
import { findIssuerByName } from './store.ts';
import { verifyToken } from './verify.ts';

const jose = lazyPackage<typeof import('jose')>('jose');

type ExternalUsersDeps = { db: Database; clock: Clock; keys: IssuerKeys; baseUrl: () => string };

/** Authenticates users whose tokens come from an issuer that their app trusts. */
export function createExternalUsers({ db, clock, keys, baseUrl }: ExternalUsersDeps): ExternalUsers {
  return {
    async findUser(key, token, now) {
      const issuer = await findIssuerByName(db, key, statedIssuer(token));
      if (issuer === undefined)
        throw new AppError('invalid_credentials', 'The app does not trust the issuer of the token.');
      const audiences = [issuer.audience, ...(key.type === 'publishable' ? [mcpResource(baseUrl(), key.text)] : [])];
      const verified = await verifyToken(keys, issuer, token, audiences, now);
      const { userId, epoch } = await findAccountUser({ db, clock }, issuer, verified);
      return { userId, epoch, expiresAtMs: verified.expiresAtMs };
    },
  };
}

/** The URL of an app's MCP endpoint, which is also the audience of tokens for it (RFC 8707). */
export function mcpResource(baseUrl: string, publishableKey: string): string {
  return `${baseUrl}/mcp/${publishableKey}`;
}

function statedIssuer(token: string): string {
  try {
    return jose().decodeJwt(token).iss ?? '';
  } catch {
    throw new AppError('invalid_credentials', 'The token is not valid for this app.');
  }
}
