import type { Database } from '../db/database.ts';
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

export type AuthService = ReturnType<typeof createAuthService>;

export type AuthDeps = {
  db: Database;
  /** The database that counts failed attempts. */
  directory: Database;
  secrets: Secrets;
  clock: Clock;
  users: UserService;
  credentials: Credentials;
};

export function createAuthService(deps: AuthDeps) {
  const { db, secrets, clock, users, credentials } = deps;
  const limiter = createSignInLimiter(deps);

  /** Creates a session. `epoch` is the session epoch in which the password was checked; by default the current one. */
  async function openSession(scope: Scope, userId: string, epoch?: number): Promise<Session> {
    const now = clock.now();
    const refreshToken = generateCredential('rt');
    const familyId = newUuid();
    const inserted = await store.insertRefreshToken(db, {
      appId: scope.appId,
      digest: digest(refreshToken),
      familyId,
      userId,
      expiresAt: new Date(now.getTime() + refreshTokenMs),
      ...defined({ epoch }),
    });
    if (inserted === undefined) throw sessionEnded(epoch);
    return session(scope, { userId, familyId, epoch: inserted }, refreshToken, now);
  }

  async function session(
    scope: Scope,
    { userId, familyId, epoch }: { userId: string; familyId: string; epoch: number },
    refreshToken: string,
    now: Date,
  ): Promise<Session> {
    const claims = { appId: scope.appId, sandboxId: scope.sandboxId, userId, epoch, sessionId: familyId };
    const accessToken = await mintAccessToken(secrets, claims, now);
    return { accessToken, refreshToken, expiresIn: accessTokenSeconds, userId };
  }

  /**
   * Finds the user whose password matches, and their session epoch. The error and its timing are the same for an unknown
   * e-mail, a user without a password and a wrong password. 429 after too many failures.
   */
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
    openSession,

    async login(scope: Scope, address: string, email: string, password: string): Promise<Session> {
      const { userId, epoch } = await checkPassword(scope, address, email, password);
      return openSession(scope, userId, epoch);
    },

    checkPassword,

    /** Checks a token used to sign in from this address. 429 after too many failures. */
    attemptFrom: (address: string, check: () => Promise<undefined>) => limiter.attempt({ address }, check),

    /** Counts a request from this address. 429 after too many in a minute. */
    takeTurn: limiter.takeTurn,

    /** Exchanges a refresh token for a new pair. A reused token ends every token of its family. */
    async refresh(scope: Scope, token: string): Promise<Session> {
      const now = clock.now();
      const outcome = await db.begin(async (tx) => {
        const row = await store.lockRefreshToken(tx, scope.appId, digest(token));
        if (!row || row.sandboxId !== scope.sandboxId || row.revokedAt || row.expiresAt <= now) return undefined;
        if (row.usedAt) {
          await store.revokeRefreshFamily(tx, scope.appId, row.familyId, now);
          credentials.forgetSession(scope.appId, row.familyId);
          return undefined;
        }
        await store.markRefreshTokenUsed(tx, scope.appId, digest(token), now);
        const refreshToken = generateCredential('rt');
        const expiresAt = new Date(now.getTime() + refreshTokenMs);
        const { familyId, userId, epoch } = row;
        await store.insertRefreshToken(tx, {
          appId: scope.appId,
          digest: digest(refreshToken),
          familyId,
          userId,
          expiresAt,
          epoch,
        });
        return { refreshToken, userId, familyId, epoch };
      });
      if (!outcome) throw new AppError('invalid_credentials', 'The refresh token is not valid. Sign in again.');
      return session(scope, outcome, outcome.refreshToken, now);
    },

    /** Ends the session of the refresh token and its access tokens. Returns undefined for an unknown token. */
    async logout(scope: Scope, token: string): Promise<{ userId: string } | undefined> {
      const row = await db.begin(async (tx) => {
        const held = await store.lockRefreshToken(tx, scope.appId, digest(token));
        if (!held || held.sandboxId !== scope.sandboxId || held.revokedAt) return undefined;
        await store.revokeRefreshFamily(tx, scope.appId, held.familyId, clock.now());
        return held;
      });
      if (row) credentials.forgetSession(scope.appId, row.familyId);
      return row && { userId: row.userId };
    },

    /**
     * `shown` is the credential with which a user creates the token. The new token does not outlive a personal token, nor
     * the issuer of a sign-in.
     */
    async createPersonalToken(
      scope: Scope,
      userId: string,
      input: { name: string | undefined; days: number | undefined; shown: Credential | undefined },
    ) {
      const { name, days, shown } = input;
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

    listPersonalTokens: (scope: Scope, userId: string) => store.listPersonalTokens(db, scope.appId, userId),

    async revokePersonalToken(scope: Scope, userId: string, id: string): Promise<void> {
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
