import { type Database, production } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { AppError } from '../lib/errors.ts';
import { parseId } from '../lib/ids.ts';
import { expiredToken, isForeignToken, readAccessToken } from './access-tokens.ts';
import type { Caller, DeveloperIdentity, PublishableCaller, Scope, UserCaller } from './caller.ts';
import { loadUserRights } from './callers.ts';
import type { CredentialFacts, Identified } from './credential.ts';
import * as store from './credential-store.ts';
import { intersectScopes } from './key-scopes.ts';
import { isMcpToken, readMcpToken } from './mcp-tokens.ts';
import { digest, type Secrets } from './secrets.ts';

/** The credential headers of a request, as sent. */
export type CredentialHeaders = {
  apiKey: string | undefined;
  authorization: string | undefined;
  app: string | undefined;
  sandbox: string | undefined;
  /** Whether the request is one of the MCP endpoint, for which an issuer can create tokens of their own. */
  forMcp?: boolean;
};

/** A key and its text in the request. */
type SentKey = store.ApiKey & { text: string };

/** Finds the user of a token of another issuer, with their session epoch. Throws 401 or 503. */
export type ExternalUsers = {
  findUser(
    key: SentKey,
    token: string,
    request: { now: Date; forMcp: boolean },
  ): Promise<{ userId: string; epoch: number; expiresAtMs: number; issuer: { id: string; changedAt: Date } }>;
};

/**
 * Identifies the caller of a request. Results from the database are cached for `cacheMs`, so that most requests need no
 * query. A change made by this process takes effect immediately (`forget`), one made by another process when its
 * notification arrives, or after `cacheMs` at the latest.
 */
export class Credentials {
  readonly #external: ExternalUsers | undefined;
  readonly #db: Database;
  readonly #directory: Database;
  readonly #secrets: Secrets;
  readonly #clock: Clock;
  readonly #cache = new Map<string, { value: Promise<unknown>; until: number }>();

  /** @param deps.directory the database of developers, if it is another one */
  constructor(deps: { db: Database; directory?: Database; secrets: Secrets; clock: Clock; external?: ExternalUsers }) {
    this.#external = deps.external;
    this.#db = deps.db;
    this.#directory = deps.directory ?? deps.db;
    this.#secrets = deps.secrets;
    this.#clock = deps.clock;
  }

  /** Clears the cache. Called after each change to tenants, their rights or their credentials. */
  forget(): void {
    this.#cache.clear();
  }

  /** Removes a session that has ended from the cache. */
  forgetSession(appId: string, sessionId: string): void {
    this.#cache.delete(sessionName(appId, sessionId));
  }

  /** The caller with these headers; `pathApp` is the app in a developer path. Throws 401, 403 or 404. */
  async identify(headers: CredentialHeaders, pathApp?: string): Promise<Identified> {
    const bearer = readBearer(headers.authorization);
    if (bearer !== undefined && /^[sp]k_/.test(bearer))
      throw invalid('An API key (sk_… or pk_…) is sent in the header x-api-key, not as a bearer token.');
    const key = headers.apiKey === undefined ? undefined : await this.#key(headers.apiKey);
    if (bearer === undefined)
      return key === undefined ? { identity: { kind: 'anonymous' }, credential: undefined } : identifiedByKey(key);
    if (bearer.startsWith('dvt_')) {
      if (key?.type === 'secret') throw invalid('A developer token and a secret key cannot be sent together.');
      const identity = await this.#developerScope(bearer, headers, pathApp);
      if (key && identity.kind === 'developer' && !sameScope(key, identity))
        throw invalid('Key and token name different apps.');
      return { identity, credential: { kind: 'developer_token', digest: hexDigest(bearer) } };
    }
    const user = await this.#userOf(bearer, key && { ...key, text: headers.apiKey ?? '' }, headers.forMcp ?? false);
    if (key && !sameScope(key, user.identity)) throw invalid('Key and token name different apps or sandboxes.');
    return user;
  }

  /** The app and sandbox of the publishable key in a path. Throws 404 for any other text. */
  async getPublishable(key: string): Promise<PublishableCaller> {
    const headers = { apiKey: key, authorization: undefined, app: undefined, sandbox: undefined };
    const { identity } = await this.identify(headers).catch((error: unknown) => {
      // Only that it is not a key makes it unknown, not that the database does not respond.
      if (!(error instanceof AppError) || error.status !== 401) throw error;
      return { identity: undefined };
    });
    if (identity?.kind !== 'publishable') throw new AppError('not_found', 'There is no such path.');
    return identity;
  }

  /** The user with their current rights; undefined unless they exist and this is their session epoch. */
  async findUserCaller(claims: Scope & { userId: string; epoch: number }): Promise<UserCaller | undefined> {
    const name = `user/${claims.appId}/${claims.sandboxId}/${claims.userId}`;
    const rights = await this.#cached(name, () => loadUserRights(this.#db, claims));
    return rights?.sessionEpoch === claims.epoch ? rights.caller : undefined;
  }

  /** Returns those of the credentials that have ended. Reads the database, not the cache. */
  findEnded<T extends CredentialFacts>(shown: readonly T[]): Promise<T[]> {
    return store.findEnded(this.#db, this.#directory, shown, this.#clock.now());
  }

  #userOf(bearer: string, key: SentKey | undefined, forMcp: boolean): Promise<Identified & { identity: UserCaller }> {
    if (bearer.startsWith('sat_')) return this.#personalToken(bearer);
    if (isMcpToken(bearer)) return this.#assistantToken(bearer, forMcp ? key : undefined);
    const issuer = isForeignToken(bearer) ? this.#external : undefined;
    return issuer === undefined ? this.#accessToken(bearer) : this.#externalToken(issuer, bearer, key, forMcp);
  }

  /** Identifies the user of a token of another issuer. The publishable key names the app, which must trust the issuer. */
  async #externalToken(external: ExternalUsers, token: string, key: SentKey | undefined, forMcp: boolean) {
    if (key === undefined) throw invalid('Send the publishable key of the app with a token of its issuer.');
    const now = this.#clock.now();
    const name = `external/${forMcp ? 'mcp' : 'api'}/${key.keyId}/${token}`;
    const known = await this.#cached(name, () => external.findUser(key, token, { now, forMcp }));
    // Cached claims must not outlive their token.
    if (known.expiresAtMs <= now.getTime()) throw expiredToken();
    const identity = await this.findUserCaller({ ...key, userId: known.userId, epoch: known.epoch });
    if (!identity) throw invalid('The token belongs to sessions that have ended.');
    const expiresAt = new Date(known.expiresAtMs);
    const issuer = { ...known.issuer, keyId: key.keyId };
    const credential = { kind: 'user', epoch: known.epoch, sessionId: undefined, expiresAt, issuer } as const;
    return { identity, credential };
  }

  async #accessToken(token: string): Promise<Identified & { identity: UserCaller }> {
    const claims = await this.#cached(`jwt/${token}`, () => readAccessToken(this.#secrets, token, this.#clock.now()));
    // Cached claims must not outlive their token.
    if (claims.expiresAtMs <= this.#clock.now().getTime()) throw expiredToken();
    const { epoch, sessionId, appId } = claims;
    const expiresAt = new Date(claims.expiresAtMs);
    const [identity, isOpen] = await Promise.all([
      this.findUserCaller(claims),
      sessionId === undefined ||
        this.#cached(sessionName(appId, sessionId), () => store.isSessionOpen(this.#db, appId, sessionId)),
    ]);
    if (!identity || !isOpen) throw invalid('The access token is not valid.');
    return { identity, credential: { kind: 'user', epoch, sessionId, expiresAt } };
  }

  /** Identifies the user of a token of an assistant. It is valid only at the MCP endpoint of the key that it was issued for. */
  async #assistantToken(token: string, key: SentKey | undefined): Promise<Identified & { identity: UserCaller }> {
    const now = this.#clock.now();
    const claims = await this.#cached(`mat/${token}`, () => readMcpToken(this.#secrets, token, now));
    if (claims.expiresAtMs <= now.getTime()) throw expiredToken();
    const { appId, grantId } = claims;
    const grant = await this.#cached(`grant/${appId}/${grantId}`, () => store.findGrant(this.#db, appId, grantId));
    if (key?.type !== 'publishable' || key.keyId !== grant?.keyId)
      throw invalid('The token is valid only for the MCP endpoint that it was issued for, and until it is revoked.');
    const user = grant.expiresAt <= now ? undefined : await this.findUserCaller(grant);
    if (!user) throw invalid('The user no longer allows this assistant.');
    const scopes = intersectScopes(grant.scopes, claims.scopes) ?? [];
    const expiresAt = new Date(claims.expiresAtMs);
    const credential = { kind: 'user', epoch: grant.epoch, sessionId: undefined, expiresAt, grantId } as const;
    return { identity: { ...user, scopes }, credential };
  }

  async #personalToken(token: string): Promise<Identified & { identity: UserCaller }> {
    const claims = await this.#cached(`sat/${token}`, () => store.findPersonalToken(this.#db, token));
    // Cached claims must not outlive the token.
    const isOver = claims?.expiresAt != null && claims.expiresAt <= this.#clock.now();
    const identity = claims && !isOver ? await this.findUserCaller(claims) : undefined;
    if (!claims || !identity) throw invalid('The token is unknown or revoked.');
    const { epoch, expiresAt, issuerId } = claims;
    return { identity, credential: { kind: 'personal_token', digest: hexDigest(token), epoch, expiresAt, issuerId } };
  }

  async #key(text: string): Promise<store.ApiKey> {
    // A repeated header arrives joined, and a key has no comma.
    if (text.includes(',')) throw invalid('Send one API key, once.');
    const found = /^[sp]k_[\w-]{8,200}$/.test(text)
      ? await this.#cached(`key/${text}`, () => store.findKey(this.#db, text))
      : undefined;
    if (!found) throw invalid('The API key is unknown or revoked.');
    // A cached key must not outlive its end.
    if (found.expiresAt !== null && found.expiresAt <= this.#clock.now()) throw invalid('The API key has expired.');
    return found;
  }

  async #developerScope(token: string, headers: CredentialHeaders, pathApp: string | undefined) {
    const developer = /^dvt_[\w-]{8,200}$/.test(token)
      ? await this.#cached(`dvt/${token}`, () => store.findDeveloper(this.#directory, token))
      : undefined;
    if (!developer) throw invalid('The developer token is unknown or revoked.');
    return this.chooseScope(developer.developerId, headers, pathApp);
  }

  /** The developer in the app and sandbox chosen by path or headers. Throws 403 or 404 unless they are theirs. */
  async chooseScope(developerId: string, headers: CredentialHeaders, pathApp: string | undefined) {
    const named = pathApp ?? headers.app;
    if (named === undefined) return { kind: 'developer-without-app', developerId } satisfies DeveloperIdentity;
    const appId = parseId('app', named);
    const sandboxId = headers.sandbox === undefined ? production : parseId('sandbox', headers.sandbox);
    const apps = await this.#cached(`apps/${developerId}`, () => store.listDeveloperSandboxes(this.#db, developerId));
    const sandboxes = appId === undefined ? undefined : apps.get(appId);
    if (appId === undefined || sandboxes === undefined) {
      if (pathApp !== undefined) throw new AppError('not_found', 'The app does not exist or is not yours.');
      throw new AppError('forbidden', 'The app that x-app names does not exist or is not yours.');
    }
    if (
      sandboxId === undefined ||
      !sandboxes.has(sandboxId) ||
      (headers.sandbox !== undefined && sandboxId === production)
    )
      throw new AppError('forbidden', 'The sandbox that x-sandbox names does not exist in this app.');
    return { kind: 'developer', developerId, appId, sandboxId } satisfies Caller;
  }

  #cached<T>(name: string, load: () => Promise<T>): Promise<T> {
    const now = performance.now();
    const kept = this.#cache.get(name);
    if (kept && kept.until > now) return kept.value as Promise<T>;
    if (this.#cache.size >= cacheEntriesMax) this.#cache.clear();
    const value = load();
    this.#cache.set(name, { value, until: now + cacheMs });
    // Errors are not cached: they could fill the cache or outlast their cause.
    value.then(
      (found) => (found === undefined || found === false) && this.#cache.delete(name),
      () => this.#cache.delete(name),
    );
    return value;
  }
}

const cacheMs = 1_500;
const cacheEntriesMax = 20_000;

function sessionName(appId: string, sessionId: string): string {
  return `session/${appId}/${sessionId}`;
}

function identifiedByKey({ type, appId, sandboxId, keyId, scopes, expiresAt }: store.ApiKey): Identified {
  const key = { appId, sandboxId, keyId };
  return type === 'secret'
    ? {
        identity: { kind: 'server', ...key, ...(scopes === null ? {} : { scopes }) },
        credential: { kind: 'secret_key', keyId, expiresAt },
      }
    : { identity: { kind: 'publishable', ...key }, credential: { kind: 'publishable_key', keyId, expiresAt } };
}

function hexDigest(token: string): string {
  return digest(token).toString('hex');
}

function sameScope(a: Scope, b: Scope): boolean {
  return a.appId === b.appId && a.sandboxId === b.sandboxId;
}

function readBearer(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined;
  const [, token] = /^Bearer +(\S+)$/i.exec(authorization.trim()) ?? [];
  if (token === undefined) throw invalid('The Authorization header must be "Bearer" and a token.');
  if (token.length < tokenCharactersMin || token.length > tokenCharactersMax)
    throw invalid('The bearer token is not valid.');
  return token;
}

const tokenCharactersMin = 8;
const tokenCharactersMax = 16_384;

function invalid(message: string): AppError {
  return new AppError('invalid_credentials', message);
}
