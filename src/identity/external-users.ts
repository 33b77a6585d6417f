import type { Database } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { AppError } from '../lib/errors.ts';
import { lazyPackage } from '../lib/lazy-package.ts';
import type { ExternalUsers } from '../tenancy/credentials.ts';
import { mcpResource } from '../tenancy/mcp-tokens.ts';
import { findAccountUser } from './accounts.ts';
import type { IssuerKeys } from './issuer-keys.ts';
import { findIssuerByName } from './store.ts';
import { isStorableText, verifyToken } from './verify.ts';

const jose = lazyPackage<typeof import('jose')>('jose');

type ExternalUsersDeps = { db: Database; clock: Clock; keys: IssuerKeys; baseUrl: () => string };

/** Authenticates users whose tokens come from an issuer that their app trusts. */
export function createExternalUsers({ db, clock, keys, baseUrl }: ExternalUsersDeps): ExternalUsers {
  return {
    async findUser(key, token, { now, forMcp }) {
      const issuer = await findIssuerByName(db, key, statedIssuer(token));
      if (issuer === undefined)
        throw new AppError('invalid_credentials', 'The app does not trust the issuer of the token.');
      const audiences = [
        issuer.audience,
        ...(forMcp && key.type === 'publishable' ? [mcpResource(baseUrl(), key.text)] : []),
      ];
      const verified = await verifyToken(keys, issuer, token, audiences, now);
      const { userId, epoch } = await findAccountUser({ db, clock }, issuer, verified);
      const { id, updatedAt: changedAt } = issuer;
      return { userId, epoch, expiresAtMs: verified.expiresAtMs, issuer: { id, changedAt } };
    },
  };
}

function statedIssuer(token: string): string {
  try {
    const stated: unknown = jose().decodeJwt(token).iss;
    return isStorableText(stated) ? stated : '';
  } catch {
    throw new AppError('invalid_credentials', 'The token is not valid for this app.');
  }
}
