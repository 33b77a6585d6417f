import type { Database, Db } from '../db/database.ts';
import { sweepRows, sweepRowsOfNoApp } from '../db/delete-batch.ts';
import type { Scope } from '../tenancy/caller.ts';
import { hasEmail } from '../tenancy/email.ts';

/** At most `max` failures in any `ms` milliseconds; with `countsAll`, at most `max` attempts of any outcome. */
export type AttemptWindow = { bucket: string; max: number; ms: number; countsAll?: boolean };

/** A full window: when its oldest failure leaves it, and whether pending attempts may free it earlier. */
type FullWindow = { freeAt: Date; mayClear: boolean };

/** Reserves a slot in every window. If one is full, reserves none and returns the one that stays full the longest. */
export async function reserveAttempt(
  db: Database,
  windows: readonly AttemptWindow[],
  id: string,
  now: Date,
  pendingMsMax: number,
): Promise<FullWindow | undefined> {
  const buckets = windows.map(({ bucket }) => bucket);
  return db.begin(async (tx) => {
    // Always in the same order, to avoid deadlocks.
    await tx`select pg_advisory_xact_lock(hash)
      from (select hashtextextended(bucket, 0) as hash from unnest(${buckets}::text[]) as bucket order by 1) locks`;
    let full: FullWindow | undefined;
    for (const { bucket, max, ms } of windows) {
      const since = new Date(now.getTime() - ms);
      const underWaySince = new Date(now.getTime() - pendingMsMax);
      const rows = await tx<{ at: Date; pending: boolean }[]>`
        select at, pending and at > ${underWaySince} as pending from sign_in_failures
        where bucket = ${bucket} and at > ${since} order by at desc, id limit ${Math.min(max, windowRowsMax)}`;
      const oldest = rows[max - 1];
      if (oldest === undefined) continue;
      const freeAt = new Date(oldest.at.getTime() + ms);
      const mayClear = rows.some(({ pending }) => pending);
      if (full === undefined || freeAt > full.freeAt) full = { freeAt, mayClear: mayClear && (full?.mayClear ?? true) };
      else full.mayClear &&= mayClear;
    }
    if (full) return full;
    await tx`insert into sign_in_failures (bucket, id, at)
      select bucket, ${id}::uuid, ${now}::timestamptz from unnest(${buckets}::text[]) as bucket`;
    return undefined;
  });
}

const windowRowsMax = 1_000;

/** Counts the attempt as a failure. */
export async function countFailure(db: Db, id: string, windows: readonly AttemptWindow[]): Promise<void> {
  await db`update sign_in_failures set pending = false
    where id = ${id} and bucket = any(${windows.map(({ bucket }) => bucket)})`;
}

/** Releases the slots of an attempt that did not fail. */
export async function releaseAttempt(db: Db, id: string, windows: readonly AttemptWindow[]): Promise<void> {
  await db`delete from sign_in_failures where id = ${id} and bucket = any(${windows.map(({ bucket }) => bucket)})`;
}

export async function deleteOldFailures(db: Db, before: Date): Promise<void> {
  await sweepRowsOfNoApp(db, { table: 'sign_in_failures', order: 'at', where: db`t.at < ${before}` });
}

export async function isKnownAddress(db: Db, mailbox: Scope & { email: string }, address: string): Promise<boolean> {
  return db`select from sign_in_addresses a join users u on u.app_id = a.app_id and u.id = a.user_id
    where u.app_id = ${mailbox.appId} and u.sandbox_id = ${mailbox.sandboxId}
      and ${hasEmail(db, mailbox.email)} and a.address = ${address}`.any();
}

const addressesPerUserMax = 100;

/** Keeps only the latest addresses of each user. */
export async function recordAddress(db: Db, appId: string, userId: string, address: string, now: Date): Promise<void> {
  await db`insert into sign_in_addresses (app_id, user_id, address, last_at)
    select app_id, id, ${address}, ${now}::timestamptz from users where app_id = ${appId} and id = ${userId}
    on conflict (app_id, user_id, address) do update set last_at = excluded.last_at`;
  await db`delete from sign_in_addresses where app_id = ${appId} and user_id = ${userId} and address in (
    select address from sign_in_addresses where app_id = ${appId} and user_id = ${userId}
    order by last_at desc offset ${addressesPerUserMax})`;
}

export async function deleteOldAddresses(db: Db, before: Date): Promise<void> {
  await sweepRows(db, { table: 'sign_in_addresses', order: 'last_at', where: db`t.last_at < ${before}` });
}
