/*
 * Triggers of assistant_grants: assistant_grants_changed notifies every process of changed rights.
 */
import type { Db } from '../db/database.ts';
import { sweepRows } from '../db/delete-batch.ts';
import type { PageRequest } from '../http/route/pages.ts';
import { type Caller, canSeeWholeApp, type Scope } from '../tenancy/caller.ts';
import { keyIsValid } from '../tenancy/credential-store.ts';
import type { KeyScope } from '../tenancy/key-scopes.ts';
import { inScope } from '../tenancy/visible.ts';

export type GrantRow = Scope & {
  id: string;
  userId: string;
  keyId: string;
  clientDigest: Buffer;
  clientName: string;
  clientUrl: string | null;
  redirectUri: string;
  scopes: KeyScope[];
  codeDigest: Buffer;
  codeChallenge: string;
  refreshDigest: Buffer | null;
  createdAt: Date;
  usedAt: Date;
  expiresAt: Date;
};

/** Returns false if this session epoch of the user has ended. */
export async function insertGrant(
  db: Db,
  row: Omit<GrantRow, 'sandboxId' | 'refreshDigest'> & { epoch: number | undefined; issuerId: string | undefined },
): Promise<boolean> {
  return db`
    insert into assistant_grants (app_id, id, user_id, session_epoch, key_id, client_digest, client_name, client_url,
      redirect_uri, scopes, code_digest, code_challenge, created_at, used_at, expires_at, issuer_id)
    select app_id, ${row.id}::uuid, id, session_epoch, ${row.keyId}::uuid, ${row.clientDigest}::bytea, ${row.clientName},
      ${row.clientUrl}, ${row.redirectUri}, ${row.scopes}::text[], ${row.codeDigest}::bytea, ${row.codeChallenge},
      ${row.createdAt}::timestamptz, ${row.usedAt}::timestamptz, ${row.expiresAt}::timestamptz, ${row.issuerId ?? null}::uuid
    from users where app_id = ${row.appId} and id = ${row.userId}
      and session_epoch = coalesce(${row.epoch ?? null}, session_epoch)`.any();
}

/** Locks and returns the grant, so that the second of two requests sees what the first did. */
export async function lockGrant(db: Db, scope: Scope, id: string): Promise<GrantRow | undefined> {
  return db<GrantRow[]>`
    select g.*, u.sandbox_id from assistant_grants g
      join users u on u.app_id = g.app_id and u.id = g.user_id and u.session_epoch = g.session_epoch
    where ${inScope(db, scope, 'u')} and g.app_id = ${scope.appId} and g.id = ${id} for update of g`.first();
}

export async function renewGrant(
  db: Db,
  { appId, id }: GrantRow,
  { refreshDigest, now, expiresAt }: { refreshDigest: Buffer; now: Date; expiresAt: Date },
): Promise<void> {
  await db`update assistant_grants set refresh_digest = ${refreshDigest}, used_at = ${now}, expires_at = ${expiresAt}
    where app_id = ${appId} and id = ${id}`;
}

/** SQL: the assistant `g` is connected or waits for its tokens: its time is not over, nor its key, which its tokens name. */
function isOpen(db: Db, now: Date, grant = 'g') {
  return db`${db(`${grant}.expires_at`)} > ${now}
    and ${keyIsValid(db, `${grant}.app_id`, `${grant}.key_id`, now)}`;
}

/** SQL: the assistant is connected, and the caller sees it: users their own. */
function connectedVisible(db: Db, caller: Caller, now: Date) {
  const seen = canSeeWholeApp(caller) ? db`true` : db`g.user_id = ${caller.kind === 'user' ? caller.userId : null}`;
  return db`${inScope(db, caller, 'u')} and g.app_id = ${caller.appId} and ${seen}
    and g.refresh_digest is not null and ${isOpen(db, now)}`;
}

const sameUser = (db: Db) =>
  db`join users u on u.app_id = g.app_id and u.id = g.user_id and u.session_epoch = g.session_epoch`;

export async function listGrants(
  db: Db,
  caller: Caller,
  page: PageRequest,
  now: Date,
  userId: string | undefined,
): Promise<[GrantRow[], number]> {
  const where = db`${connectedVisible(db, caller, now)}
    and (${userId ?? null}::uuid is null or g.user_id = ${userId ?? null})`;
  const rows = await db<GrantRow[]>`
    select g.*, u.sandbox_id from assistant_grants g ${sameUser(db)} where ${where}
    order by g.created_at desc, g.id desc limit ${page.pageSize} offset ${page.offset}`;
  const [counted] = await db<[{ total: number }]>`
    select count(*) as total from assistant_grants g ${sameUser(db)} where ${where}`;
  return [rows, counted.total];
}

export async function findGrant(db: Db, caller: Caller, id: string, now: Date): Promise<GrantRow | undefined> {
  return db<GrantRow[]>`
    select g.*, u.sandbox_id from assistant_grants g ${sameUser(db)}
    where ${connectedVisible(db, caller, now)} and g.id = ${id}`.first();
}

/** The user's grants that have not ended, with those whose code was not exchanged yet. */
export async function countGrants(db: Db, { appId }: Scope, userId: string, now: Date): Promise<number> {
  const [row] = await db<[{ count: number }]>`
    select count(*) as count from assistant_grants g
    where g.app_id = ${appId} and g.user_id = ${userId} and ${isOpen(db, now)}`;
  return row.count;
}

export async function deleteGrant(db: Db, appId: string, id: string): Promise<void> {
  await db`delete from assistant_grants where app_id = ${appId} and id = ${id}`;
}

/** Deletes expired grants of all apps, those of keys that have ended, and those of sessions that have ended. */
export async function deleteEndedGrants(db: Db, now: Date): Promise<void> {
  const isOfSession = db`exists (
    select from users u where u.app_id = t.app_id and u.id = t.user_id and u.session_epoch = t.session_epoch)`;
  await sweepRows(db, { table: 'assistant_grants', where: db`not (${isOpen(db, now, 't')} and ${isOfSession})` });
}

/**
 * Whether the app lets assistants connect. A change of this waits until the transaction has ended, and then also ends the
 * connection that the transaction made.
 */
export async function lockSwitch(db: Db, appId: string): Promise<boolean> {
  const [app] = await db<{ assistants: boolean }[]>`select assistants from apps where id = ${appId} for share`;
  return app?.assistants ?? false;
}

export async function findSwitch(db: Db, appId: string): Promise<boolean> {
  const [app] = await db<{ assistants: boolean }[]>`select assistants from apps where id = ${appId}`;
  return app?.assistants ?? false;
}

/** Ends every connection to the app. */
export async function deleteGrantsOfApp(db: Db, appId: string): Promise<void> {
  await db`delete from assistant_grants where app_id = ${appId}`;
}
