import type { Db } from '../db/database.ts';
import { sweepRows, sweepRowsOfNoApp } from '../db/delete-batch.ts';

export async function insertUserSession(
  db: Db,
  session: { appId: string; digest: Buffer; userId: string; epoch: number; issuerId?: string; expiresAt: Date },
): Promise<void> {
  await db`insert into console_user_sessions (app_id, digest, user_id, session_epoch, issuer_id, expires_at)
    values (${session.appId}, ${session.digest}, ${session.userId}, ${session.epoch}, ${session.issuerId ?? null},
      ${session.expiresAt})`;
}

/** Returns false if the token is unknown or revoked. */
export async function insertDeveloperSession(
  db: Db,
  session: { digest: Buffer; tokenDigest: Buffer; expiresAt: Date },
): Promise<boolean> {
  return db`insert into console_developer_sessions (digest, token_digest, expires_at)
    select ${session.digest}::bytea, digest, ${session.expiresAt}::timestamptz from developer_tokens
    where digest = ${session.tokenDigest} and revoked_at is null`.any();
}

export async function deleteUserSession(db: Db, appId: string, digest: Buffer): Promise<void> {
  await db`delete from console_user_sessions where app_id = ${appId} and digest = ${digest}`;
}

export async function deleteDeveloperSession(db: Db, digest: Buffer): Promise<void> {
  await db`delete from console_developer_sessions where digest = ${digest}`;
}

export async function deleteExpiredSessions(db: Db, now: Date): Promise<void> {
  const where = db`t.expires_at <= ${now}`;
  await sweepRows(db, { table: 'console_user_sessions', order: 'expires_at', where });
  await sweepRowsOfNoApp(db, { table: 'console_developer_sessions', order: 'expires_at', where });
  await sweepRowsOfNoApp(db, { table: 'console_sign_in_links', order: 'expires_at', where });
}

/** Returns false if the developer token is unknown or revoked. Only the newest links of a token are kept. */
export async function insertSignInLink(
  tx: Db,
  link: { digest: Buffer; tokenDigest: Buffer; expiresAt: Date },
  linksMax: number,
): Promise<boolean> {
  const held = await tx`
    select from developer_tokens where digest = ${link.tokenDigest} and revoked_at is null for no key update`;
  if (held.count === 0) return false;
  await tx`insert into console_sign_in_links (digest, token_digest, expires_at)
    values (${link.digest}, ${link.tokenDigest}, ${link.expiresAt})`;
  await tx`delete from console_sign_in_links where token_digest = ${link.tokenDigest} and digest in (
    select digest from console_sign_in_links where token_digest = ${link.tokenDigest}
    order by expires_at desc, digest offset ${linksMax})`;
  return true;
}

/** Deletes a link and returns the digest of its developer token, unless the link is too old. */
export async function deleteSignInLink(db: Db, digest: Buffer, now: Date): Promise<Buffer | undefined> {
  const [row] = await db<{ tokenDigest: Buffer; isFresh: boolean }[]>`
    delete from console_sign_in_links where digest = ${digest}
    returning token_digest, expires_at > ${now}::timestamptz as is_fresh`;
  return row?.isFresh ? row.tokenDigest : undefined;
}

export async function listDeveloperApps(db: Db, developerId: string, max: number): Promise<string[]> {
  const rows = await db<{ id: string }[]>`
    select id from apps where developer_id = ${developerId} order by id limit ${max}`;
  return rows.map(({ id }) => id);
}
