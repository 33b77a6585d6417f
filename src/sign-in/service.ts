import type { Database, Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { defined } from '../lib/defined.ts';
import { AppError, found, invalidField, notFound } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import { accessTokenSeconds, mintAccessToken } from '../tenancy/access-tokens.ts';
import type { Scope } from '../tenancy/caller.ts';
import { type Credential, epochOf, issuerOf } from '../tenancy/credential.ts';
import type { Credentials } from '../tenancy/credentials.ts';
import { lockRoom, requireRoom } from '../tenancy/room.ts';
import { digest, generateCredential, type Secrets } from '../tenancy/secrets.ts';
import { verifyPassword } from '../users/passwords.ts';
import type { UserService } from '../users/service.ts';
import { createSignInLimiter } from './limits.ts';
import * as store from './store.ts';

const refreshTokenMs = 30 * 24 * 3600 * 1000;
/** The lifetime of a personal token. */
export const personalTokenDays = { default: 30, max: 3_650 } as const;
const dayMs = 24 * 3600 * 1000;
const personalTokensMax = 50;

/** The result of signing in, refreshing or creating a session. */
export type Session = { accessToken: string; refreshToken: string; expiresIn: number; userId: string };

/** The user whose password matched, and their session epoch at that time. */
type SignedIn = { userId: string; epoch: number };

export type AuthService = Sessions &
  PersonalTokens & {
    login(scope: Scope, address: string, email: string, password: string): Promise<Session>;
    /**
     * Finds the user whose password matches, and their session epoch. The error and its timing are the same for an
     * unknown e-mail, a user without a password and a wrong password. 429 after too many failures.
     */
    checkPassword(scope: Scope, address: string, email: string, password: string): Promise<SignedIn>;
    /** Checks a token used to sign in from this address. 429 after too many failures. */
    attemptFrom(address: string, check: () => Promise<undefined>): Promise<undefined>;
    /** Counts a request from this address. 429 after too many in a minute. */
    takeTurn(what: string, from: string, perMinute: number): Promise<void>;
  };

type Sessions = {
  /** Creates a session. `epoch` is the session epoch in which the password was checked; by default the current one. */
  openSession(scope: Scope, userId: string, epoch?: number): Promise<Session>;
  /** Exchanges a refresh token for a new pair. A reused token ends every token of its family. */
  refresh(scope: Scope, token: string): Promise<Session>;
  /** Ends the session of the refresh token and its access tokens. Returns undefined for an unknown token. */
  logout(scope: Scope, token: string): Promise<{ userId: string } | undefined>;
};

type PersonalTokens = {
  /**
   * `shown` is the credential with which a user creates the token. The new token does not outlive it, nor its issuer.
   * `expiresIn` is in seconds.
   */
  createPersonalToken(
    scope: Scope,
    userId: string,
    input: { name: string | undefined; days: number | undefined; shown: Credential | undefined },
  ): Promise<{ row: store.PersonalTokenRow; token: string; expiresIn: number }>;
  listPersonalTokens(scope: Scope, userId: string): Promise<store.PersonalTokenRow[]>;
  revokePersonalToken(scope: Scope, userId: string, id: string): Promise<void>;
};

export type AuthDeps = {
  db: Database;
  /** The database that counts failed attempts. */
  directory: Database;
  secrets: Secrets;
  clock: Clock;
  users: UserService;
  credentials: Credentials;
};

export function createAuthService(deps: AuthDeps): AuthService {
  const { users } = deps;
  const limiter = createSignInLimiter(deps);
  const sessions = createSessions(deps);

  function checkPassword(scope: Scope, address: string, email: string, password: string): Promise<SignedIn> {
    const { appId, sandboxId } = scope;
    return limiter.attempt({ address, mailbox: { appId, sandboxId, email } }, async () => {
      const user = await users.findPassword(scope, email);
      const matches = await verifyPassword(password, user?.passwordHash ?? undefined);
      if (!user || !matches) throw wrongCredentials();
      return { userId: user.id, epoch: user.sessionEpoch };
    });
  }

  return {
    ...sessions,
    ...createPersonalTokens(deps),
    checkPassword,
    async login(scope, address, email, password) {
      const { userId, epoch } = await checkPassword(scope, address, email, password);
      return sessions.openSession(scope, userId, epoch);
    },
    attemptFrom: (address, check) => limiter.attempt({ address }, check),
    takeTurn: limiter.takeTurn,
  };
}

function createSessions({ db, secrets, clock, credentials }: AuthDeps): Sessions {
  /** Adds a pair of tokens to a family. Undefined if the user's sessions of that epoch have ended. */
  async function issue(
    tx: Db,
    { appId, sandboxId }: Scope,
    { userId, familyId, epoch }: { userId: string; familyId: string; epoch: number | undefined },
  ): Promise<Session | undefined> {
    const now = clock.now();
    const refreshToken = generateCredential('rt');
    const expiresAt = new Date(now.getTime() + refreshTokenMs);
    const token = { appId, digest: digest(refreshToken), familyId, userId, expiresAt, ...defined({ epoch }) };
    const inserted = await store.insertRefreshToken(tx, token);
    if (inserted === undefined) return undefined;
    const claims = { appId, sandboxId, userId, epoch: inserted, sessionId: familyId };
    const accessToken = await mintAccessToken(secrets, claims, now);
    return { accessToken, refreshToken, expiresIn: accessTokenSeconds, userId };
  }

  return {
    async openSession(scope, userId, epoch) {
      const session = await issue(db, scope, { userId, familyId: newUuid(), epoch });
      if (session === undefined) throw sessionEnded(epoch);
      return session;
    },

    async refresh(scope, token) {
      const session = await db.begin(async (tx) => {
        const now = clock.now();
        const row = await store.lockRefreshToken(tx, scope.appId, digest(token));
        if (!row || row.sandboxId !== scope.sandboxId || row.revokedAt || row.expiresAt <= now) return undefined;
        if (row.usedAt) {
          await store.revokeRefreshFamily(tx, scope.appId, row.familyId, now);
          credentials.forgetSession(scope.appId, row.familyId);
          return undefined;
        }
        await store.markRefreshTokenUsed(tx, scope.appId, digest(token), now);
        return issue(tx, scope, row);
      });
      if (!session) throw new AppError('invalid_credentials', 'The refresh token is not valid. Sign in again.');
      return session;
    },

    async logout(scope, token) {
      const row = await db.begin(async (tx) => {
        const held = await store.lockRefreshToken(tx, scope.appId, digest(token));
        if (!held || held.sandboxId !== scope.sandboxId || held.revokedAt) return undefined;
        await store.revokeRefreshFamily(tx, scope.appId, held.familyId, clock.now());
        return held;
      });
      if (row) credentials.forgetSession(scope.appId, row.familyId);
      return row && { userId: row.userId };
    },
  };
}

function createPersonalTokens({ db, clock }: AuthDeps): PersonalTokens {
  return {
    async createPersonalToken(scope, userId, { name, days, shown }) {
      const now = clock.now();
      const last = shown?.kind === 'personal_token' ? shown.expiresAt : null;
      const wanted = new Date(now.getTime() + (days ?? personalTokenDays.default) * dayMs);
      const isTooLong = last !== null && wanted > last;
      if (isTooLong && days !== undefined)
        throw invalidField('expires_in_days', `must not outlive the token that creates it: ${last.toISOString()}`);
      const expiresAt = isTooLong ? last : wanted;
      const token = generateCredential('sat');
      const epoch = epochOf(shown);
      const of = { epoch, issuerId: issuerOf(shown) };
      const made = { id: newUuid(), userId, name: name ?? null, digest: digest(token), expiresAt, ...of };
      const row = await db.begin(async (tx) => {
        const { appId } = scope;
        const message = `A user has at most ${personalTokensMax} tokens. Revoke one first.`;
        const room = { ...roomOf(userId), max: personalTokensMax, message };
        await requireRoom(tx, scope, room, () => store.countPersonalTokens(tx, appId, userId));
        const parentDigest = shown?.kind === 'personal_token' ? Buffer.from(shown.digest, 'hex') : null;
        return store.insertPersonalToken(tx, { appId, ...made, parentDigest });
      });
      if (!row) throw sessionEnded(epoch);
      return { row, token, expiresIn: Math.floor((expiresAt.getTime() - now.getTime()) / 1000) };
    },

    listPersonalTokens: (scope, userId) => store.listPersonalTokens(db, scope.appId, userId),

    async revokePersonalToken(scope, userId, id) {
      await db.begin(async (tx) => {
        // A token that is being created with this one exists then, or its creation sees this one revoked.
        await lockRoom(tx, scope, roomOf(userId));
        found(await store.revokePersonalToken(tx, scope.appId, userId, id));
      });
    },
  };
}

/** The room for the personal tokens of a user. */
const roomOf = (userId: string) => ({ things: 'tokens', of: userId });

/** The user's sessions have ended. Without a session of their own that could have ended, the user was deleted: 404. */
function sessionEnded(epoch: number | undefined): AppError {
  if (epoch === undefined) return notFound();
  return new AppError('invalid_credentials', 'The session has ended. Sign in again.');
}

function wrongCredentials(): AppError {
  return new AppError('invalid_credentials', 'The e-mail address or the password is wrong.');
}
