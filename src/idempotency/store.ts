/*
 * Triggers of idempotency_records: idempotency_records_added, idempotency_records_resized and idempotency_records_removed
 * keep idempotency_usage and idempotency_holders: the number of records and the bytes of their responses, of each space
 * and of each caller in it.
 */
import type { Db } from '../db/database.ts';
import { sweepRows } from '../db/delete-batch.ts';
import type { Holdings } from '../tenancy/room.ts';

/** Identifies a record, and whose it is. `digest` covers sandbox, caller, method, path and key. */
export type Place = { appId: string; digest: Buffer; sandboxId: string; holder: string };

/** The response of a completed request. `body` is encrypted with the wrapping key. */
type StoredResponse = { status: number; headers: Record<string, string>; body: Buffer | null };

export type RecordRow = Omit<StoredResponse, 'status' | 'headers'> & {
  requestDigest: Buffer | null;
  claimedUntil: Date;
  status: number | null;
  headers: Record<string, string> | null;
};

type Claim = { claim: string; requestDigest: Buffer | null; now: Date; claimedUntil: Date; expiresAt: Date };

/** Claims the key if it is new, expired, or its claim has ended. Returns false if another request holds it. */
export async function claimRecord(db: Db, place: Place, claim: Claim): Promise<boolean> {
  return db`
    insert into idempotency_records as r
      (app_id, digest, sandbox_id, holder, request_digest, claim, claimed_until, expires_at)
    values (${place.appId}, ${place.digest}, ${place.sandboxId}, ${place.holder}, ${claim.requestDigest},
      ${claim.claim}, ${claim.claimedUntil}, ${claim.expiresAt})
    on conflict (app_id, digest) do update set
      request_digest = excluded.request_digest, claim = excluded.claim, claimed_until = excluded.claimed_until,
      expires_at = excluded.expires_at, status = null, headers = null, body = null, bytes = 0
    where r.expires_at <= ${claim.now} or (r.status is null and r.claimed_until <= ${claim.now})`.any();
}

export async function findRecord(db: Db, place: Place): Promise<RecordRow | undefined> {
  return db<RecordRow[]>`
    select request_digest, claimed_until, status, headers, body from idempotency_records
    where app_id = ${place.appId} and digest = ${place.digest}`.first();
}

/** Extends a claim that is still held. */
export async function renewClaim(db: Db, place: Place, claim: string, until: Date): Promise<void> {
  await db`update idempotency_records set claimed_until = ${until}
    where app_id = ${place.appId} and digest = ${place.digest} and claim = ${claim} and status is null`;
}

/** Stores the response. Returns false if the claim has passed to another request. */
export async function completeRecord(
  db: Db,
  place: Place,
  claim: string,
  done: StoredResponse & { requestDigest: Buffer; expiresAt: Date },
): Promise<boolean> {
  return db`
    update idempotency_records set status = ${done.status}, headers = ${db.json(done.headers)}, body = ${done.body},
      bytes = ${done.body?.length ?? 0}, request_digest = ${done.requestDigest}, expires_at = ${done.expiresAt}
    where app_id = ${place.appId} and digest = ${place.digest} and claim = ${claim} and status is null`.any();
}

/** Frees the key, because the request changed nothing. */
export async function releaseClaim(db: Db, place: Place, claim: string): Promise<void> {
  await db`delete from idempotency_records
    where app_id = ${place.appId} and digest = ${place.digest} and claim = ${claim} and status is null`;
}

export type Usage = { records: Holdings; bytes: Holdings };

/** What the space and the caller of a record hold. */
export async function findUsage(db: Db, place: Place): Promise<Usage> {
  const [row] = await db<{ records: number; bytes: number; ownRecords: number; ownBytes: number }[]>`
    select u.records, u.bytes, coalesce(h.records, 0) as own_records, coalesce(h.bytes, 0) as own_bytes
    from idempotency_usage u
    left join idempotency_holders h
      on h.app_id = u.app_id and h.sandbox_id = u.sandbox_id and h.holder = ${place.holder}
    where u.app_id = ${place.appId} and u.sandbox_id = ${place.sandboxId}`;
  const { records = 0, bytes = 0, ownRecords = 0, ownBytes = 0 } = row ?? {};
  return { records: { ofSpace: records, ofCaller: ownRecords }, bytes: { ofSpace: bytes, ofCaller: ownBytes } };
}

export async function deleteExpired(db: Db, now: Date): Promise<void> {
  await sweepRows(db, { table: 'idempotency_records', order: 'expires_at', where: db`t.expires_at <= ${now}` });
}
