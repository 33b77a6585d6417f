import type { Clock } from '../clock.ts';
import type { Database, Db } from '../db/database.ts';
import { production } from '../db/database.ts';
import { AppError } from '../errors.ts';
import { parseId } from '../ids.ts';
import { type AccessClaims, expiredToken, readAccessToken } from './access-tokens.ts';
import type { Caller, DeveloperIdentity, Identity, PublishableCaller, Scope, UserCaller } from './caller.ts';
import { loadUserCaller } from './callers.ts';
import { digest, type Secrets } from './secrets.ts';

/** The credential headers of a request, as sent. */
export type CredentialHeaders = {
  apiKey: string | undefined;
  authorization: string | undefined;
  app: string | undefined;
  sandbox: string | undefined;
};

/**
 * Who a request comes from. What is found in the database is kept for `cacheMs`, so that a request costs no query of
 * its own for this; a change made by this process is seen at once (`forget`), one made by another process when its
 * notification comes, and in any case after `cacheMs`.
 */
export class Credentials {
  readonly #db: Database;
  readonly #secrets: Secrets;
  readonly #clock: Clock;
  readonly #cache = new Map<string, { value: Promise<unknown>; until: number }>();

  constructor(deps: { db: Database; secrets: Secrets; clock: Clock }) {
    this.#db = deps.db;
    this.#secrets = deps.secrets;
    this.#clock = deps.clock;
  }

  /** Drops everything remembered. Called after each change to tenants, their rights or their credentials. */
  forget(): void {
    this.#cache.clear();
  }

  /** The caller behind these headers; `pathApp` is the app that a developer path names. Throws 401, 403 or 404. */
  async identify(headers: CredentialHeaders, pathApp?: string): Promise<Identity> {
    const bearer = readBearer(headers.authorization);
    const key = headers.apiKey === undefined ? undefined : await this.#key(headers.apiKey);
    if (bearer === undefined) return key === undefined ? { kind: 'anonymous' } : keyCaller(key);
    if (bearer.startsWith('dvt_')) {
      if (key?.type === 'secret') throw invalid('A developer token and a secret key cannot be sent together.');
      const scope = await this.#developerScope(bearer, headers, pathApp);
      if (key && scope.kind === 'developer' && !sameScope(key, scope))
        throw invalid('Key and token name different apps.');
      return scope;
    }
    const user = bearer.startsWith('sat_') ? await this.#personalToken(bearer) : await this.#accessToken(bearer);
    if (key && !sameScope(key, user)) throw invalid('Key and token name different apps or sandboxes.');
    return user;
  }

  /** The rights that a user has now; undefined when there is no such user. */
  findUserCaller(claims: AccessClaims): Promise<UserCaller | undefined> {
    return this.#remember(`user/${claims.appId}/${claims.userId}`, () => loadUserCaller(this.#db, claims));
  }

  async #accessToken(token: string): Promise<UserCaller> {
    const claims = await this.#remember(`jwt/${token}`, () => readAccessToken(this.#secrets, token, this.#clock.now()));
    // Remembered claims must not outlive their token.
    if (claims.expiresAtMs <= this.#clock.now().getTime()) throw expiredToken();
    const user = await this.findUserCaller(claims);
    if (!user) throw invalid('The access token is not valid.');
    return user;
  }

  async #personalToken(token: string): Promise<UserCaller> {
    const claims = await this.#remember(`sat/${token}`, () => findPersonalToken(this.#db, token));
    // What is remembered must not outlive the token.
    const isOver = claims?.expiresAt != null && claims.expiresAt <= this.#clock.now();
    const user = claims && !isOver ? await this.findUserCaller(claims) : undefined;
    if (!user) throw invalid('The token is unknown or was revoked.');
    return user;
  }

  async #key(text: string): Promise<ApiKey> {
    const found = /^[sp]k_[\w-]{8,200}$/.test(text)
      ? await this.#remember(`key/${text}`, () => findKey(this.#db, text))
      : undefined;
    if (!found) throw invalid('The API key is unknown or was revoked.');
    return found;
  }

  async #developerScope(token: string, headers: CredentialHeaders, pathApp: string | undefined) {
    const developer = /^dvt_[\w-]{8,200}$/.test(token)
      ? await this.#remember(`dvt/${token}`, () => findDeveloper(this.#db, token))
      : undefined;
    if (!developer) throw invalid('The developer token is unknown or was revoked.');
    return this.chooseScope(developer.developerId, headers, pathApp);
  }

  /** The developer in the app and sandbox that path or headers choose. Throws 403 or 404 unless they are theirs. */
  async chooseScope(developerId: string, headers: CredentialHeaders, pathApp: string | undefined) {
    const named = pathApp ?? headers.app;
    if (named === undefined) return { kind: 'developer-without-app', developerId } satisfies DeveloperIdentity;
    const appId = parseId('app', named);
    const sandboxId = headers.sandbox === undefined ? production : parseId('sandbox', headers.sandbox);
    const apps = await this.#remember(`apps/${developerId}`, () => listDeveloperSandboxes(this.#db, developerId));
    const sandboxes = appId === undefined ? undefined : apps.get(appId);
    if (appId === undefined || sandboxes === undefined) {
      if (pathApp !== undefined) throw new AppError('not_found', 'There is no such app, or it is not yours.');
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

  #remember<T>(name: string, load: () => Promise<T>): Promise<T> {
    const now = performance.now();
    const kept = this.#cache.get(name);
    if (kept && kept.until > now) return kept.value as Promise<T>;
    if (this.#cache.size >= cacheEntriesMax) this.#cache.clear();
    const value = load();
    this.#cache.set(name, { value, until: now + cacheMs });
    // A refusal or a failed query is not remembered: neither can be used to fill the cache or to outlast its cause.
    value.then(
      (found) => found === undefined && this.#cache.delete(name),
      () => this.#cache.delete(name),
    );
    return value;
  }
}

const cacheMs = 1_500;
const cacheEntriesMax = 20_000;

type ApiKey = Scope & { keyId: string; type: 'secret' | 'publishable' };

function keyCaller({ type, ...key }: ApiKey): Caller | PublishableCaller {
  return type === 'secret' ? { kind: 'server', ...key } : { kind: 'publishable', ...key };
}

function sameScope(a: Scope, b: Scope): boolean {
  return a.appId === b.appId && a.sandboxId === b.sandboxId;
}

function readBearer(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined;
  const match = /^Bearer +(\S{8,4096})$/i.exec(authorization.trim());
  if (!match?.[1]) throw invalid('The Authorization header must be "Bearer" and a token.');
  return match[1];
}

function invalid(message: string): AppError {
  return new AppError('invalid_credentials', message);
}

async function findKey(db: Db, text: string): Promise<ApiKey | undefined> {
  const [row] = await db<ApiKey[]>`
    select k.app_id, k.sandbox_id, k.id as key_id, k.type
    from credentials c join api_keys k on k.app_id = c.app_id and k.digest = c.digest
    where c.digest = ${digest(text)} and k.revoked_at is null`;
  return row;
}

async function findDeveloper(db: Db, token: string): Promise<{ developerId: string } | undefined> {
  const [row] = await db<{ developerId: string }[]>`
    select developer_id from developer_tokens where digest = ${digest(token)} and revoked_at is null`;
  return row;
}

async function listDeveloperSandboxes(db: Db, developerId: string): Promise<Map<string, Set<string>>> {
  const rows = await db<{ appId: string; sandboxes: string[] }[]>`
    select a.id as app_id, array_agg(s.id) as sandboxes
    from apps a join sandboxes s on s.app_id = a.id where a.developer_id = ${developerId} group by a.id`;
  return new Map(rows.map((row) => [row.appId, new Set(row.sandboxes)]));
}

type PersonalToken = AccessClaims & { expiresAt: Date | null };

async function findPersonalToken(db: Db, token: string): Promise<PersonalToken | undefined> {
  const [row] = await db<PersonalToken[]>`
    select t.app_id, t.user_id, u.sandbox_id, t.expires_at
    from credentials c join personal_tokens t on t.app_id = c.app_id and t.digest = c.digest
      join users u on u.app_id = t.app_id and u.id = t.user_id
    where c.digest = ${digest(token)} and t.revoked_at is null`;
  return row;
}
