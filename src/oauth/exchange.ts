import { hash } from 'node:crypto';
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import type { AppError } from '../lib/errors.ts';
import { coversScopes, type KeyScope } from '../tenancy/key-scopes.ts';
import { mcpTokenSeconds, mintMcpToken } from '../tenancy/mcp-tokens.ts';
import { digest, isDigestOf, type Secrets } from '../tenancy/secrets.ts';
import { enterPlace, type Place, type PlaceDeps, requireResource } from './place.ts';
import { oauthError, type Parameters } from './protocol.ts';
import { readScopes } from './scopes.ts';
import * as store from './store.ts';
import { findGrantId, isOwnRefreshToken, mintRefreshToken, readGrantId, successorOf } from './tokens.ts';

type ExchangeDeps = PlaceDeps & { clock: Clock; secrets: Secrets };
type Tokens = {
  access_token: string;
  token_type: 'Bearer';
  expires_in: number;
  refresh_token: string;
  scope: string;
};

const refreshMs = 30 * 24 * 3_600_000;
/** For how long the last refresh may be repeated, in case that its response was lost. */
const repeatMs = 30_000;

/** What clients do with the code and the tokens of a grant. */
export type Exchange = {
  /**
   * Exchanges a code or a refresh token. Each works once; a second use ends the grant with all its tokens, unless it may
   * be a repeated request.
   */
  exchange(key: string, address: string, readForm: () => Promise<Parameters>): Promise<Tokens>;
  /** Ends the grant of an access or refresh token (RFC 7009). An unknown token changes nothing. */
  revoke(key: string, address: string, readForm: () => Promise<Parameters>): Promise<void>;
};

export function createExchange(deps: ExchangeDeps): Exchange {
  const { db, clock, secrets, credentials } = deps;

  return {
    async exchange(key, address, readForm) {
      const place = await enterPlace(deps, 'token', key, address);
      const given = await readForm();
      requireResource(deps, place, given);
      switch (given.get('grant_type')) {
        case 'authorization_code':
          return exchangeCode(deps, place, given);
        case 'refresh_token':
          return refresh(deps, place, given);
        default:
          throw oauthError('unsupported_grant_type', 'grant_type must be authorization_code or refresh_token.');
      }
    },

    async revoke(key, address, readForm) {
      const place = await enterPlace(deps, 'token', key, address);
      const given = await readForm();
      const token = given.get('token');
      if (token === undefined) throw oauthError('invalid_request', 'token is missing.');
      const grantId = await findGrantId(secrets, token, place, clock.now());
      if (grantId === undefined) return;
      await db.begin(async (tx) => {
        const row = await store.lockGrant(tx, place, grantId);
        if (row !== undefined && isClientOf(place, row, given)) await store.deleteGrant(tx, row.appId, row.id);
      });
      credentials.forget();
    },
  };
}

function exchangeCode(deps: ExchangeDeps, place: Place, given: Parameters): Promise<Tokens> {
  const { clock, secrets } = deps;
  const code = given.get('code') ?? '';
  return withGrant(deps, place, readGrantId(code, 'mac_'), async (row, tx) => {
    if (!isDigestOf(code, row.codeDigest)) throw invalidGrant();
    // The code was exchanged before: someone else may have it.
    if (row.refreshDigest !== null) return undefined;
    requireSameClient(place, row, given);
    if (row.expiresAt <= clock.now()) throw invalidGrant();
    if (given.get('redirect_uri') !== row.redirectUri) throw invalidGrant();
    const verifier = given.get('code_verifier') ?? '';
    const challenge = hash('sha256', verifier, 'base64url');
    if (!/^[\w.~-]{43,128}$/.test(verifier) || challenge !== row.codeChallenge) throw invalidGrant();
    return issue(deps, row, tx, row.scopes, mintRefreshToken(secrets, row.id));
  });
}

function refresh(deps: ExchangeDeps, place: Place, given: Parameters): Promise<Tokens> {
  const { clock, secrets } = deps;
  const token = given.get('refresh_token') ?? '';
  return withGrant(deps, place, readGrantId(token, 'mrt_'), async (row, tx) => {
    const isOwn = isOwnRefreshToken(secrets, token);
    const next = successorOf(secrets, row.id, token);
    const isCurrent = isLastRefresh(row, token);
    const isRepeat = isOwn && isLastRefresh(row, next) && clock.now().getTime() < row.usedAt.getTime() + repeatMs;
    // An older token of this grant, used again. Anyone could invent another one.
    if (!isCurrent && isOwn && !(isRepeat && isClientOf(place, row, given))) return undefined;
    if (!(isCurrent || isRepeat) || row.expiresAt <= clock.now()) throw invalidGrant();
    requireSameClient(place, row, given);
    const scopes = readScopes(given.get('scope')) ?? row.scopes;
    if (!coversScopes(row.scopes, scopes)) throw oauthError('invalid_scope', 'The scope was not granted.');
    return isRepeat ? respondWithTokens(deps, row, scopes, next) : issue(deps, row, tx, scopes, next);
  });
}

/** Runs `decide` with the locked grant. If `decide` returns undefined, the grant ends. */
async function withGrant(
  { db, credentials }: ExchangeDeps,
  place: Place,
  grantId: string | undefined,
  decide: (row: store.GrantRow, tx: Db) => Promise<Tokens | undefined>,
): Promise<Tokens> {
  if (grantId === undefined) throw invalidGrant();
  const decided = await db.begin(async (tx) => {
    const row = await store.lockGrant(tx, place, grantId);
    if (row === undefined) throw invalidGrant();
    const result = await decide(row, tx);
    if (result === undefined) await store.deleteGrant(tx, row.appId, row.id);
    return result;
  });
  if (decided !== undefined) return decided;
  credentials.forget();
  throw invalidGrant();
}

/** Replaces the grant's code or refresh token by this one. */
async function issue(
  deps: ExchangeDeps,
  row: store.GrantRow,
  tx: Db,
  scopes: readonly KeyScope[],
  refreshToken: string,
) {
  const now = deps.clock.now();
  await store.renewGrant(tx, row, {
    refreshDigest: digest(refreshToken),
    now,
    expiresAt: new Date(now.getTime() + refreshMs),
  });
  return respondWithTokens(deps, row, scopes, refreshToken);
}

async function respondWithTokens(
  { secrets, clock }: ExchangeDeps,
  row: store.GrantRow,
  scopes: readonly KeyScope[],
  refreshToken: string,
): Promise<Tokens> {
  return {
    access_token: await mintMcpToken(secrets, { appId: row.appId, grantId: row.id, scopes }, clock.now()),
    token_type: 'Bearer',
    expires_in: mcpTokenSeconds,
    refresh_token: refreshToken,
    scope: scopes.join(' '),
  };
}

function isLastRefresh({ refreshDigest }: store.GrantRow, token: string): boolean {
  return refreshDigest !== null && isDigestOf(token, refreshDigest);
}

function isClientOf({ keyId }: Place, row: store.GrantRow, given: Parameters): boolean {
  return keyId === row.keyId && isDigestOf(given.get('client_id') ?? '', row.clientDigest);
}

function requireSameClient(place: Place, row: store.GrantRow, given: Parameters): void {
  if (!isClientOf(place, row, given)) throw invalidGrant();
}

function invalidGrant(): AppError {
  return oauthError('invalid_grant', 'The code or token is not valid for this client. Start again.');
}
