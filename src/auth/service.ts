import { createHash } from 'node:crypto';
import type { Clock } from '../clock.ts';
import type { Database } from '../db/database.ts';
import { AppError, notFound } from '../errors.ts';
import { newUuid } from '../ids.ts';
import { accessTokenSeconds, mintAccessToken } from '../tenancy/access-tokens.ts';
import type { Scope } from '../tenancy/caller.ts';
import { verifyPassword } from '../tenancy/passwords.ts';
import { digest, newCredential, type Secrets } from '../tenancy/secrets.ts';
import type { UserService } from '../users/service.ts';
import * as store from './store.ts';

const refreshTokenMs = 30 * 24 * 3600 * 1000;
const personalTokenDays = 30;
const personalTokensMax = 50;
const attemptWindowMs = 60_000;
const attemptsPerAddress = 10;
const attemptsPerEmail = 5;

/** What signing in, refreshing and minting give. */
export type Session = { accessToken: string; refreshToken: string; expiresIn: number; userId: string };

export type AuthService = ReturnType<typeof createAuthService>;

export type AuthDeps = { db: Database; secrets: Secrets; clock: Clock; users: UserService };

export function createAuthService(deps: AuthDeps) {
  const { db, secrets, clock, users } = deps;

  async function openSession(scope: Scope, userId: string): Promise<Session> {
    const now = clock.now();
    const refreshToken = newCredential('rt');
    const expiresAt = new Date(now.getTime() + refreshTokenMs);
    const row = { appId: scope.appId, digest: digest(refreshToken), familyId: newUuid(), userId, expiresAt };
    await store.insertRefreshToken(db, row);
    return session(scope, userId, refreshToken, now);
  }

  async function session(scope: Scope, userId: string, refreshToken: string, now: Date): Promise<Session> {
    const claims = { appId: scope.appId, sandboxId: scope.sandboxId, userId };
    const accessToken = await mintAccessToken(secrets, claims, now);
    return { accessToken, refreshToken, expiresIn: accessTokenSeconds, userId };
  }

  /** 429 past `max` hits a minute in the bucket. */
  async function limitAttempts(bucket: string, max: number): Promise<void> {
    const now = clock.now().getTime();
    const windowStart = now - (now % attemptWindowMs);
    const hits = await store.countHit(db, bucket, new Date(windowStart));
    if (hits <= max) return;
    const seconds = Math.ceil((windowStart + attemptWindowMs - now) / 1000);
    throw new AppError('rate_limited', `Too many sign-in attempts. Try again in ${seconds} s.`, {
      headers: { 'retry-after': String(seconds) },
    });
  }

  /** 429 when too many try to sign in from one address. */
  const limitAddress = (address: string) => limitAttempts(`login/address/${address}`, attemptsPerAddress);

  /**
   * The id of the user whose password it is. One answer, in the same time, for an unknown e-mail, a user without a
   * password and a wrong password; 429 after too many attempts at one e-mail.
   */
  async function checkPassword(scope: Scope, email: string, password: string): Promise<string> {
    const mailbox = createHash('sha256').update(email.toLowerCase()).digest('base64url');
    await limitAttempts(`login/email/${scope.appId}/${scope.sandboxId}/${mailbox}`, attemptsPerEmail);
    const user = await users.findPassword(scope, email);
    const matches = await verifyPassword(password, user?.passwordHash ?? undefined);
    if (!user || !matches) throw wrongCredentials();
    return user.id;
  }

  return {
    openSession,

    async login(scope: Scope, address: string, email: string, password: string): Promise<Session> {
      await limitAddress(address);
      return openSession(scope, await checkPassword(scope, email, password));
    },

    limitAddress,
    checkPassword,

    /** A new pair for a refresh token. A token that was used before ends every token of its family. */
    async refresh(scope: Scope, token: string): Promise<Session> {
      const now = clock.now();
      const outcome = await db.begin(async (tx) => {
        const row = await store.lockRefreshToken(tx, scope.appId, digest(token));
        if (!row || row.sandboxId !== scope.sandboxId || row.revokedAt || row.expiresAt <= now) return undefined;
        if (row.usedAt) {
          await store.revokeRefreshFamily(tx, scope.appId, row.familyId, now);
          return undefined;
        }
        await store.markRefreshTokenUsed(tx, scope.appId, digest(token), now);
        const refreshToken = newCredential('rt');
        const expiresAt = new Date(now.getTime() + refreshTokenMs);
        const { familyId, userId } = row;
        await store.insertRefreshToken(tx, {
          appId: scope.appId,
          digest: digest(refreshToken),
          familyId,
          userId,
          expiresAt,
        });
        return { refreshToken, userId };
      });
      if (!outcome) throw new AppError('invalid_credentials', 'The refresh token is not valid. Sign in again.');
      return session(scope, outcome.userId, outcome.refreshToken, now);
    },

    /** Ends the token's family. An unknown token is as good as ended. */
    async logout(scope: Scope, token: string): Promise<void> {
      await db.begin(async (tx) => {
        const row = await store.lockRefreshToken(tx, scope.appId, digest(token));
        if (row && row.sandboxId === scope.sandboxId)
          await store.revokeRefreshFamily(tx, scope.appId, row.familyId, clock.now());
      });
    },

    async createPersonalToken(scope: Scope, userId: string, name: string | undefined, days = personalTokenDays) {
      const live = (await store.listPersonalTokens(db, scope.appId, userId)).filter((token) => !token.revokedAt);
      if (live.length >= personalTokensMax)
        throw new AppError('quota_exceeded', `A user has at most ${personalTokensMax} tokens. Revoke one first.`);
      const token = newCredential('sat');
      const expiresAt = new Date(clock.now().getTime() + days * 24 * 3600 * 1000);
      const row = await store.insertPersonalToken(db, {
        appId: scope.appId,
        id: newUuid(),
        userId,
        name: name ?? null,
        digest: digest(token),
        expiresAt,
      });
      return { row, token, expiresIn: days * 24 * 3600 };
    },

    listPersonalTokens: (scope: Scope, userId: string) => store.listPersonalTokens(db, scope.appId, userId),

    async revokePersonalToken(scope: Scope, userId: string, id: string): Promise<void> {
      if (!(await store.revokePersonalToken(db, scope.appId, userId, id))) throw notFound();
    },
  };
}

function wrongCredentials(): AppError {
  return new AppError('invalid_credentials', 'The e-mail address or the password is wrong.');
}
