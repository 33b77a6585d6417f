/*
 * Triggers of refresh_tokens: refresh_tokens_added and refresh_tokens_removed keep `credentials`, where a token's app is
 * looked up.
 * Triggers of personal_tokens: personal_tokens_added and personal_tokens_removed do so too; personal_tokens_changed
 * notifies every process of changed rights.
 */
import type { Db } from '../db/database.ts';
import { sweepRows } from '../db/delete-batch.ts';

type RefreshTokenRow = {
  familyId: string;
  userId: string;
  sandboxId: string;
  epoch: number;
  expiresAt: Date;
  usedAt: Date | null;
  revokedAt: Date | null;
};

/** Inserts a token for the given or current session epoch of the user. Returns the epoch; undefined if it has ended. */
export async function insertRefreshToken(
  db: Db,
  token: { appId: string; digest: Buffer; familyId: string; userId: string; expiresAt: Date; epoch?: number },
): Promise<number | undefined> {
  const [row] = await db<{ sessionEpoch: number }[]>`
    insert into refresh_tokens (app_id, digest, family_id, user_id, expires_at, session_epoch)
    select app_id, ${token.digest}::bytea, ${token.familyId}::uuid, id, ${token.expiresAt}::timestamptz, session_epoch
    from users where app_id = ${token.appId} and id = ${token.userId}
      and session_epoch = coalesce(${token.epoch ?? null}, session_epoch)
    returning session_epoch`;
  return row?.sessionEpoch;
}

/** Locks and returns the token, so that the second of two requests sees it used. Undefined if its epoch has ended. */
export async function lockRefreshToken(db: Db, appId: string, digest: Buffer): Promise<RefreshTokenRow | undefined> {
  return db<RefreshTokenRow[]>`
    select t.family_id, t.user_id, u.sandbox_id, t.session_epoch as epoch, t.expires_at, t.used_at, t.revoked_at
    from refresh_tokens t
      join users u on u.app_id = t.app_id and u.id = t.user_id and u.session_epoch = t.session_epoch
    where t.app_id = ${appId} and t.digest = ${digest} for update of t`.first();
}

export async function markRefreshTokenUsed(db: Db, appId: string, digest: Buffer, now: Date): Promise<void> {
  await db`update refresh_tokens set used_at = ${now} where app_id = ${appId} and digest = ${digest}`;
}

export async function revokeRefreshFamily(db: Db, appId: string, familyId: string, now: Date): Promise<void> {
  await db`update refresh_tokens set revoked_at = ${now}
    where app_id = ${appId} and family_id = ${familyId} and revoked_at is null`;
}

export type PersonalTokenRow = {
  id: string;
  name: string | null;
  createdAt: Date;
  lastUsedAt: Date | null;
  expiresAt: Date | null;
  revokedAt: Date | null;
};

/** Returns undefined if this session epoch of the user has ended, or the token with which this one is created. */
export async function insertPersonalToken(
  db: Db,
  token: {
    appId: string;
    id: string;
    userId: string;
    name: string | null;
    digest: Buffer;
    expiresAt: Date;
    epoch: number | undefined;
    issuerId: string | undefined;
    /** The digest of the personal token with which this one is created. */
    parentDigest: Buffer | null;
  },
): Promise<PersonalTokenRow | undefined> {
  return db<PersonalTokenRow[]>`
    insert into personal_tokens (app_id, id, user_id, name, digest, expires_at, session_epoch, issuer_id, parent_id)
    select u.app_id, ${token.id}::uuid, u.id, ${token.name}, ${token.digest}::bytea, ${token.expiresAt}::timestamptz,
      u.session_epoch, ${token.issuerId ?? null}::uuid, p.id
    from users u left join personal_tokens p
      on p.app_id = u.app_id and p.digest = ${token.parentDigest}::bytea and p.revoked_at is null
    where u.app_id = ${token.appId} and u.id = ${token.userId}
      and u.session_epoch = coalesce(${token.epoch ?? null}, u.session_epoch)
      and (p.id is not null or ${token.parentDigest}::bytea is null)
    returning id, name, created_at, last_used_at, expires_at, revoked_at`.first();
}

export function listPersonalTokens(db: Db, appId: string, userId: string): Promise<PersonalTokenRow[]> {
  return db<PersonalTokenRow[]>`
    select id, name, created_at, last_used_at, expires_at, revoked_at from personal_tokens
    where app_id = ${appId} and user_id = ${userId} order by created_at desc, id desc limit 200`;
}

/** The number of tokens that are not revoked, including expired ones. */
export async function countPersonalTokens(db: Db, appId: string, userId: string): Promise<number> {
  const [row] = await db<[{ count: number }]>`
    select count(*) as count from personal_tokens
    where app_id = ${appId} and user_id = ${userId} and revoked_at is null`;
  return row.count;
}

/** Revokes the token and those that were created with it. Returns false if there is no such token, or it was revoked. */
export async function revokePersonalToken(db: Db, appId: string, userId: string, id: string): Promise<boolean> {
  return db`
    with recursive ended as (
      select id from personal_tokens
      where app_id = ${appId} and user_id = ${userId} and id = ${id} and revoked_at is null
      union select t.id from ended e join personal_tokens t on t.app_id = ${appId} and t.parent_id = e.id)
    update personal_tokens set revoked_at = now()
    where app_id = ${appId} and id in (select id from ended) and revoked_at is null`.any();
}

/** Deletes expired refresh tokens. Expired personal tokens stay, so that lists show them. */
export async function deleteExpiredRefreshTokens(db: Db, now: Date): Promise<void> {
  await sweepRows(db, { table: 'refresh_tokens', order: 'expires_at', where: db`t.expires_at < ${now}` });
}
