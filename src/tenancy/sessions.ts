import { randomBytes } from 'node:crypto';
import type { Database, Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { AppError } from '../lib/errors.ts';
import { formatId, parseId } from '../lib/ids.ts';
import { readBase64url } from './base64url.ts';
import type { Scope } from './caller.ts';
import type { Identified } from './credential.ts';
import type { CredentialHeaders, Credentials } from './credentials.ts';
import { digest, type Secrets } from './secrets.ts';
import { sandboxIsThere } from './visible.ts';

/** The cookie that carries the value of a session. */
export const sessionCookie = 'quarry_session';

/** A session of the console ends after this time. */
export const sessionSeconds = 12 * 3_600;

/** The owner of a session. */
export type Session = { expiresAt: Date } & (
  | (Scope & { kind: 'user'; userId: string; epoch: number; issuerId: string | null })
  | { kind: 'developer'; developerId: string; name: string; tokenDigest: Buffer }
);

/**
 * Sessions of the web console: a cookie that is a credential only together with the CSRF token given to the page. Other
 * sites can make a browser send the cookie, but can neither read the token nor set the header.
 */
export class Sessions {
  readonly #db: Database;
  readonly #directory: Database;
  readonly #secrets: Secrets;
  readonly #clock: Clock;
  readonly #credentials: Credentials;

  /** @param deps.directory the database of developers and their sessions */
  constructor(deps: { db: Database; directory: Database; secrets: Secrets; clock: Clock; credentials: Credentials }) {
    this.#db = deps.db;
    this.#directory = deps.directory;
    this.#secrets = deps.secrets;
    this.#clock = deps.clock;
    this.#credentials = deps.credentials;
  }

  /**
   * The caller of a request with cookies and no other credential; anonymous without a session cookie.
   * @param csrf the header x-quarry-csrf. Throws 401 when it does not belong to the session, or the session has ended.
   */
  async identify(
    cookies: string,
    csrf: string | undefined,
    headers: CredentialHeaders,
    pathApp?: string,
  ): Promise<Identified> {
    const value = readSessionCookie(cookies);
    if (value === undefined) return { identity: { kind: 'anonymous' }, credential: undefined };
    this.requireCsrf(value, csrf);
    const session = await this.find(value);
    if (!session) throw new AppError('invalid_credentials', 'The session has ended. Sign in again.');
    const shown = { kind: 'session', digest: digest(value).toString('hex') } as const;
    if (session.kind === 'developer') {
      const identity = await this.#credentials.chooseScope(session.developerId, headers, pathApp);
      return { identity, credential: { ...shown, tokenDigest: session.tokenDigest.toString('hex') } };
    }
    const user = await this.#credentials.findUserCaller(session);
    if (!user) throw new AppError('invalid_credentials', 'The session has ended. Sign in again.');
    const { epoch, issuerId } = session;
    return { identity: user, credential: { ...shown, epoch, issuerId } };
  }

  /** The session behind a cookie's value; undefined when it has ended. */
  async find(value: string): Promise<Session | undefined> {
    const user = userValue.exec(value);
    const now = this.#clock.now();
    if (!user) return value.startsWith('csd_') ? findDeveloperSession(this.#directory, value, now) : undefined;
    const appId = parseId('app', `dap_${user[1]}`);
    return appId === undefined ? undefined : findUserSession(this.#db, appId, value, now);
  }

  /** A new CSRF token. All tokens of a session are valid as long as the session. */
  csrfToken(value: string): string {
    const nonce = randomBytes(12).toString('base64url');
    return `${nonce}.${this.#secrets.sign('session', `csrf/${nonce}/${value}`).toString('base64url')}`;
  }

  /** 401 unless the token belongs to this session. */
  requireCsrf(value: string, token: string | undefined): void {
    const [nonce = '', mac = '', ...more] = (token ?? '').split('.');
    const proof = more.length === 0 ? readBase64url(mac) : undefined;
    const valid = proof !== undefined && this.#secrets.verify('session', `csrf/${nonce}/${value}`, proof);
    if (!valid) throw new AppError('unauthenticated', 'A session requires its CSRF token in the header x-quarry-csrf.');
  }
}

/** The value contains the app, so that a session is never looked up by its digest alone. */
const userValue = /^csu_([0-9A-Za-z]{22})_[\w-]{43}$/;

/** The value of a new session's cookie. */
export function generateSessionValue(appId?: string): string {
  const secret = randomBytes(32).toString('base64url');
  return appId === undefined ? `csd_${secret}` : `csu_${formatId('app', appId).slice(4)}_${secret}`;
}

/** The session's value in a Cookie header. */
export function readSessionCookie(header: string | undefined): string | undefined {
  for (const pair of (header ?? '').split(';')) {
    const at = pair.indexOf('=');
    if (pair.slice(0, at).trim() === sessionCookie) return pair.slice(at + 1).trim();
  }
  return undefined;
}

async function findUserSession(db: Db, appId: string, value: string, now: Date): Promise<Session | undefined> {
  const [row] = await db<
    { sandboxId: string; userId: string; epoch: number; issuerId: string | null; expiresAt: Date }[]
  >`
    select s.user_id, u.sandbox_id, s.session_epoch as epoch, s.issuer_id, s.expires_at
    from console_user_sessions s
      join users u on u.app_id = s.app_id and u.id = s.user_id and u.session_epoch = s.session_epoch
    where s.app_id = ${appId} and s.digest = ${digest(value)} and s.expires_at > ${now}
      and ${sandboxIsThere(db, 'u.app_id', 'u.sandbox_id')}`;
  return row && { kind: 'user', appId, ...row };
}

async function findDeveloperSession(db: Db, value: string, now: Date): Promise<Session | undefined> {
  const [row] = await db<{ developerId: string; name: string; tokenDigest: Buffer; expiresAt: Date }[]>`
    select t.developer_id, d.name, s.token_digest, s.expires_at
    from console_developer_sessions s join developer_tokens t on t.digest = s.token_digest
      join developers d on d.id = t.developer_id
    where s.digest = ${digest(value)} and s.expires_at > ${now} and t.revoked_at is null`;
  return row && { kind: 'developer', ...row };
}
