import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Fetcher } from '../content/fetch/guarded-fetch.ts';
import type { Database, Db } from '../db/database.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { Clock } from '../lib/clock.ts';
import { defined } from '../lib/defined.ts';
import { AppError, found, invalidField, notFound } from '../lib/errors.ts';
import { formatId, newUuid, parseId } from '../lib/ids.ts';
import { readBase64url } from '../tenancy/base64url.ts';
import type { Caller, Scope, UserCaller } from '../tenancy/caller.ts';
import { type Credential, epochOf, issuerOf, requirePerson } from '../tenancy/credential.ts';
import type { Credentials } from '../tenancy/credentials.ts';
import { assistantAreas, coversScopes, intersectScopes, type KeyScope } from '../tenancy/key-scopes.ts';
import {
  isMcpToken,
  mcpIssuer,
  mcpResource,
  mcpTokenSeconds,
  mintMcpToken,
  readMcpToken,
} from '../tenancy/mcp-tokens.ts';
import { fieldId, pathId } from '../tenancy/references.ts';
import { requireRoom } from '../tenancy/room.ts';
import { digest, type Secrets } from '../tenancy/secrets.ts';
import { type Client, Clients } from './clients.ts';
import { type PendingRequest, pendingCharactersMax, pendingMs, readPending, wrapPending } from './pending.ts';
import { addParameters, matchesRedirectUri, oauthCodeOf, oauthError, readParameters } from './protocol.ts';
import * as store from './store.ts';

type Parameters = ReadonlyMap<string, string>;
/** The app and key in the path. */
type Place = Scope & { keyId: string; key: string };

export type OauthDeps = {
  db: Database;
  clock: Clock;
  secrets: Secrets;
  credentials: Credentials;
  fetcher: Pick<Fetcher, 'fetch' | 'check'>;
  baseUrl: () => string;
  /** Whether the operator switched this on. */
  mcpOauth: boolean;
  /** Counts a request from this address. 429 after too many in a minute. */
  takeTurn: (what: string, address: string, perMinute: number) => Promise<void>;
};

const codeMs = 120_000;
const refreshMs = 30 * 24 * 3_600_000;
/** For how long the last refresh may be repeated, in case that its response was lost. */
const repeatMs = 30_000;
const grantsMax = 100;
const stateCharactersMax = 2_000;
/** Assistants in a data centre share an address. */
const turnsPerMinute = { authorize: 60, register: 60, token: 600 };

export type OauthService = ReturnType<typeof createOauthService>;

export function createOauthService(deps: OauthDeps) {
  const { db, clock, secrets, credentials, baseUrl, takeTurn } = deps;
  const clients = new Clients(deps);

  /** The app of a publishable key; 404 for any other text, or if the operator or the app has not switched this on. */
  async function placeOf(key: string): Promise<Place> {
    if (!deps.mcpOauth) throw new AppError('not_found', 'There is no such path.');
    const headers = { apiKey: key, authorization: undefined, app: undefined, sandbox: undefined };
    const { identity } = await credentials.identify(headers).catch(() => ({ identity: undefined }));
    if (identity?.kind !== 'publishable' || !(await store.findSwitch(db, identity.appId)))
      throw new AppError('not_found', 'There is no such path.');
    return { appId: identity.appId, sandboxId: identity.sandboxId, keyId: identity.keyId, key };
  }

  /** The response at the client's address, which names its issuer (RFC 9207). */
  function respond(
    { key, redirectUri, state }: Pick<PendingRequest, 'key' | 'redirectUri' | 'state'>,
    result: Record<string, string>,
  ) {
    return addParameters(redirectUri, { ...result, ...defined({ state }), iss: mcpIssuer(baseUrl(), key) });
  }

  /** Reads the rest of a request, after the client and its address are known. Its errors go to that address. */
  function readRequest(place: Place, client: Client, given: Parameters, redirectUri: string): PendingRequest {
    const { appId, sandboxId, keyId, key } = place;
    const refuse = (name: string, message: string) => oauthError('invalid_request', `${name} ${message}.`);
    if (given.has('request')) throw oauthError('request_not_supported', 'Send the parameters themselves.');
    if (given.has('request_uri')) throw oauthError('request_uri_not_supported', 'Send the parameters themselves.');
    if (given.get('response_type') !== 'code')
      throw oauthError('unsupported_response_type', 'response_type must be code.');
    if ((given.get('response_mode') ?? 'query') !== 'query') throw refuse('response_mode', 'must be query');
    const challenge = given.get('code_challenge') ?? '';
    if (given.get('code_challenge_method') !== 'S256') throw refuse('code_challenge_method', 'must be S256');
    if (readBase64url(challenge)?.length !== 32)
      throw refuse('code_challenge', 'must be a SHA-256 digest in base64url');
    requireResource(place, given);
    const { name, url, isVerified } = client;
    const clientDigest = digest(given.get('client_id') ?? '').toString('hex');
    return {
      ...{ kind: 'assistant', appId, sandboxId, keyId, key, redirectUri, challenge },
      ...defined({ state: given.get('state') }),
      client: { digest: clientDigest, name, isVerified, ...defined({ url }) },
      scopes: readScopes(given.get('scope')) ?? [...assistantAreas],
      untilMs: clock.now().getTime() + pendingMs,
    };
  }

  function requireResource({ key }: Place, given: Parameters): void {
    const resource = mcpResource(baseUrl(), key);
    if ((given.get('resource') ?? resource) !== resource)
      throw oauthError('invalid_target', `resource must be ${resource}.`);
  }

  /** Runs `decide` with the locked grant. If `decide` returns undefined, the grant ends. */
  async function withGrant<T>(
    place: Place,
    grantId: string,
    decide: (row: store.GrantRow, tx: Db) => Promise<T | undefined>,
  ): Promise<T> {
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
  async function issue(row: store.GrantRow, tx: Db, scopes: readonly KeyScope[], refreshToken: string) {
    const now = clock.now();
    await store.renewGrant(tx, row, {
      refreshDigest: digest(refreshToken),
      now,
      expiresAt: new Date(now.getTime() + refreshMs),
    });
    return respondWithTokens(row, scopes, refreshToken);
  }

  async function respondWithTokens(row: store.GrantRow, scopes: readonly KeyScope[], refreshToken: string) {
    return {
      access_token: await mintMcpToken(secrets, { appId: row.appId, grantId: row.id, scopes }, clock.now()),
      token_type: 'Bearer' as const,
      expires_in: mcpTokenSeconds,
      refresh_token: refreshToken,
      scope: scopes.join(' '),
    };
  }

  function exchangeCode(place: Place, given: Parameters) {
    const code = given.get('code') ?? '';
    const grantId = readGrantId(code, 'mac_');
    if (grantId === undefined) throw invalidGrant();
    return withGrant(place, grantId, async (row, tx) => {
      if (!isEqual(digest(code), row.codeDigest)) throw invalidGrant();
      // The code was exchanged before: someone else may have it.
      if (row.refreshDigest !== null) return undefined;
      requireSameClient(place, row, given);
      if (row.expiresAt <= clock.now()) throw invalidGrant();
      if (given.get('redirect_uri') !== row.redirectUri) throw invalidGrant();
      const verifier = given.get('code_verifier') ?? '';
      const challenge = createHash('sha256').update(verifier).digest('base64url');
      if (!/^[\w.~-]{43,128}$/.test(verifier) || challenge !== row.codeChallenge) throw invalidGrant();
      return issue(row, tx, row.scopes, mintRefreshToken(secrets, row.id, randomBytes(32)));
    });
  }

  function refresh(place: Place, given: Parameters) {
    const token = given.get('refresh_token') ?? '';
    const grantId = readGrantId(token, 'mrt_');
    if (grantId === undefined) throw invalidGrant();
    return withGrant(place, grantId, async (row, tx) => {
      const isOwn = isOwnRefreshToken(secrets, token);
      const next = successorOf(secrets, grantId, token);
      const isCurrent = isDigestOf(token, row.refreshDigest);
      const isRepeat =
        isOwn && isDigestOf(next, row.refreshDigest) && clock.now().getTime() < row.usedAt.getTime() + repeatMs;
      // An older token of this grant, used again. Anyone could invent another one.
      if (!isCurrent && isOwn && !(isRepeat && isClientOf(place, row, given))) return undefined;
      if (!(isCurrent || isRepeat) || row.expiresAt <= clock.now()) throw invalidGrant();
      requireSameClient(place, row, given);
      const wanted = readScopes(given.get('scope'));
      if (!coversScopes(row.scopes, wanted ?? row.scopes))
        throw oauthError('invalid_scope', 'The scope was not granted.');
      const scopes = wanted ?? row.scopes;
      return isRepeat ? respondWithTokens(row, scopes, next) : issue(row, tx, scopes, next);
    });
  }

  return {
    /** Whether users of this app sign assistants in here. */
    isOn: async ({ appId }: Scope) => deps.mcpOauth && (await store.findSwitch(db, appId)),

    disconnectAll: store.deleteGrantsOfApp,

    /** The metadata of the authorization server (RFC 8414). */
    async describe(key: string) {
      await placeOf(key);
      const issuer = mcpIssuer(baseUrl(), key);
      return {
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        registration_endpoint: `${issuer}/register`,
        revocation_endpoint: `${issuer}/revoke`,
        scopes_supported: assistantScopes,
        response_types_supported: ['code'],
        response_modes_supported: ['query'],
        grant_types_supported: ['authorization_code', 'refresh_token'],
        token_endpoint_auth_methods_supported: ['none'],
        revocation_endpoint_auth_methods_supported: ['none'],
        code_challenge_methods_supported: ['S256'],
        authorization_response_iss_parameter_supported: true,
        client_id_metadata_document_supported: true,
      };
    },

    async register(key: string, address: string, metadata: Record<string, unknown>) {
      const { appId } = await placeOf(key);
      await takeTurn('register', address, turnsPerMinute.register);
      const { id, client } = clients.register(appId, metadata);
      return {
        client_id: id,
        client_id_issued_at: Math.floor(clock.now().getTime() / 1_000),
        client_name: client.name,
        ...defined({ client_uri: client.url }),
        redirect_uris: [...client.redirectUris],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
      };
    },

    /**
     * Returns where the browser goes: the consent page, or back to the client with an error. Throws if the request does
     * not prove where the client is.
     */
    async authorize(key: string, address: string, query: string): Promise<string> {
      const place = await placeOf(key);
      await takeTurn('authorize', address, turnsPerMinute.authorize);
      const given = readParameters(query);
      const id = given.get('client_id');
      const redirectUri = given.get('redirect_uri');
      if (id === undefined) throw oauthError('invalid_request', 'client_id is missing.');
      if (redirectUri === undefined) throw oauthError('invalid_request', 'redirect_uri is missing.');
      const client = await clients.find(place.appId, id);
      if (!matchesRedirectUri(client.redirectUris, redirectUri))
        throw oauthError('invalid_redirect_uri', 'redirect_uri is not one of the client’s addresses.');
      const state = given.get('state');
      if ((state?.length ?? 0) > stateCharactersMax)
        throw oauthError('invalid_request', `state has more than ${stateCharactersMax} characters.`);
      try {
        const request = wrapPending(secrets, readRequest(place, client, given, redirectUri));
        if (request.length > pendingCharactersMax) throw oauthError('invalid_request', 'The request is too long.');
        return `${baseUrl()}/console/connect?${new URLSearchParams({ key, request }).toString()}`;
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        const result = { error: oauthCodeOf(error), error_description: error.message };
        return respond({ key, redirectUri, ...defined({ state }) }, result);
      }
    },

    /** What a client asks of the user. */
    show(caller: Caller, text: string): PendingRequest {
      return readPending(secrets, text, caller, clock.now());
    },

    /** Records the user's decision and returns where their browser goes. */
    async decide(
      caller: UserCaller,
      credential: Credential | undefined,
      { request, scopes, allow }: { request: string; allow: boolean; scopes?: KeyScope[] },
    ): Promise<{ url: string; grantId?: string }> {
      // The connection would outlive the token.
      requirePerson(credential, 'A personal token cannot connect an assistant. Sign in to decide.');
      const now = clock.now();
      const pending = readPending(secrets, request, caller, now);
      if (!allow) {
        const denied = { error: 'access_denied', error_description: 'The user refused.' };
        return { url: respond(pending, denied) };
      }
      const granted = scopes ?? pending.scopes;
      if (!coversScopes(pending.scopes, granted)) throw invalidField('scopes', 'must be among those of the request');
      const { appId, sandboxId, userId } = caller;
      const id = newUuid();
      const code = `mac_${formatId('assistant', id).slice(4)}${randomBytes(32).toString('base64url')}`;
      const created = await db.begin(async (tx) => {
        const message = `A user has at most ${grantsMax} connected assistants. Disconnect one first.`;
        const room = { things: 'connected assistants', max: grantsMax, message, appId, sandboxId, of: userId };
        if (!(await store.lockSwitch(tx, appId)))
          throw new AppError('conflict', 'The app no longer lets assistants connect.');
        await requireRoom(tx, room, () => store.countGrants(tx, caller, userId, now));
        return store.insertGrant(tx, {
          ...{ appId, id, userId, keyId: pending.keyId, scopes: granted },
          ...{ epoch: epochOf(credential), issuerId: issuerOf(credential) },
          clientDigest: Buffer.from(pending.client.digest, 'hex'),
          clientName: pending.client.name,
          clientUrl: pending.client.url ?? null,
          redirectUri: pending.redirectUri,
          codeDigest: digest(code),
          codeChallenge: pending.challenge,
          ...{ createdAt: now, usedAt: now, expiresAt: new Date(now.getTime() + codeMs) },
        });
      });
      if (!created) throw new AppError('invalid_credentials', 'The session has ended. Sign in again.');
      return { url: respond(pending, { code }), grantId: id };
    },

    /**
     * Exchanges a code or a refresh token. Each works once; a second use ends the grant with all its tokens, unless it
     * may be a repeated request.
     */
    async exchange(key: string, address: string, readForm: () => Promise<Parameters>) {
      const place = await placeOf(key);
      await takeTurn('token', address, turnsPerMinute.token);
      const given = await readForm();
      requireResource(place, given);
      switch (given.get('grant_type')) {
        case 'authorization_code':
          return exchangeCode(place, given);
        case 'refresh_token':
          return refresh(place, given);
        default:
          throw oauthError('unsupported_grant_type', 'grant_type must be authorization_code or refresh_token.');
      }
    },

    /** Ends the grant of an access or refresh token (RFC 7009). An unknown token changes nothing. */
    async revoke(key: string, address: string, readForm: () => Promise<Parameters>): Promise<void> {
      const place = await placeOf(key);
      await takeTurn('token', address, turnsPerMinute.token);
      const given = await readForm();
      const token = given.get('token');
      if (token === undefined) throw oauthError('invalid_request', 'token is missing.');
      const grantId = await grantOf(secrets, token, place, clock.now());
      if (grantId === undefined) return;
      await db.begin(async (tx) => {
        const row = await store.lockGrant(tx, place, grantId);
        if (row !== undefined && isClientOf(place, row, given)) await store.deleteGrant(tx, row.appId, row.id);
      });
      credentials.forget();
    },

    list(caller: Caller, page: PageRequest, user: string | undefined) {
      const userId = user === undefined ? undefined : fieldId('user', 'user', user);
      return store.listGrants(db, caller, page, clock.now(), userId);
    },

    get: async (caller: Caller, id: string) =>
      found(await store.findGrant(db, caller, pathId('assistant', id), clock.now())),

    async remove(caller: Caller, id: string): Promise<void> {
      const row = await store.findGrant(db, caller, pathId('assistant', id), clock.now());
      if (row === undefined) throw notFound();
      await store.deleteGrant(db, row.appId, row.id);
      credentials.forget();
    },
  };
}

/** Every scope that a client may ask for. */
const assistantScopes: KeyScope[] = [
  'read',
  ...assistantAreas,
  ...assistantAreas.map((area) => `${area}:read` as const),
];
/** Clients ask for these by habit. They grant nothing here: every client gets a refresh token, and no identity token. */
const habitualScopes = ['openid', 'offline_access'];

/** The scopes of a request without duplicates; undefined if it names none. */
function readScopes(text: string | undefined): KeyScope[] | undefined {
  const asked = (text ?? '').split(' ').filter((scope) => scope !== '' && !habitualScopes.includes(scope));
  const unknown = asked.find((scope) => !(assistantScopes as string[]).includes(scope));
  if (unknown !== undefined)
    throw oauthError(
      'invalid_scope',
      `${JSON.stringify(unknown)} is unknown. There are ${assistantScopes.join(', ')}.`,
    );
  return asked.length === 0 ? undefined : [...intersectAll(asked as KeyScope[])];
}

/** The smallest list that allows the same, without areas that users cannot open. */
function intersectAll(scopes: readonly KeyScope[]): readonly KeyScope[] {
  return intersectScopes(scopes, assistantAreas) ?? [];
}

function isClientOf({ keyId }: Place, row: store.GrantRow, given: Parameters): boolean {
  return keyId === row.keyId && isEqual(digest(given.get('client_id') ?? ''), row.clientDigest);
}

function requireSameClient(place: Place, row: store.GrantRow, given: Parameters): void {
  if (!isClientOf(place, row, given)) throw invalidGrant();
}

const secretCharacters = 43;

/** `mrt_`, the grant, a secret of 32 bytes, and a signature by which an older token is recognised without a row. */
function mintRefreshToken(secrets: Secrets, grantId: string, secret: Buffer): string {
  const text = `mrt_${formatId('assistant', grantId).slice(4)}${secret.toString('base64url')}`;
  return `${text}${secrets.sign('mcp-token', text).toString('base64url')}`;
}

/**
 * The one token that can follow this one. Only the server can compute it, and a repeated request gets the same, so that a
 * connection never has two.
 */
function successorOf(secrets: Secrets, grantId: string, token: string): string {
  return mintRefreshToken(secrets, grantId, secrets.sign('mcp-token', `after ${token}`));
}

function isOwnRefreshToken(secrets: Secrets, token: string): boolean {
  const text = token.slice(0, -secretCharacters);
  const proof = readBase64url(token.slice(-secretCharacters));
  return proof !== undefined && secrets.verify('mcp-token', text, proof);
}

/** The grant that a code or refresh token names. Says nothing about whether it is valid. */
function readGrantId(token: string, prefix: 'mac_' | 'mrt_'): string | undefined {
  const length = prefix === 'mac_' ? secretCharacters : 2 * secretCharacters;
  const [, id] = new RegExp(`^${prefix}([0-9A-Za-z]{22})[\\w-]{${length}}$`).exec(token) ?? [];
  return id === undefined ? undefined : parseId('assistant', `asg_${id}`);
}

async function grantOf(secrets: Secrets, token: string, place: Place, now: Date): Promise<string | undefined> {
  if (token.startsWith('mrt_')) return isOwnRefreshToken(secrets, token) ? readGrantId(token, 'mrt_') : undefined;
  if (!isMcpToken(token)) return undefined;
  const claims = await readMcpToken(secrets, token, now).catch(() => undefined);
  return claims?.appId === place.appId ? claims.grantId : undefined;
}

function isDigestOf(token: string, stored: Buffer | null): boolean {
  return stored !== null && isEqual(digest(token), stored);
}

function isEqual(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

function invalidGrant(): AppError {
  return oauthError('invalid_grant', 'The code or token is not valid for this client. Start again.');
}
