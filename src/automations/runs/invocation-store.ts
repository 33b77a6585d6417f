import type { Db } from '../../db/database.ts';
import { sweepRows } from '../../db/delete-batch.ts';

/** SQL for the idempotency keys of invocations. */

/** A caller's idempotency key for an automation, with what it was used for. */
export type Invocation = {
  appId: string;
  automationId: string;
  caller: string;
  idempotencyKey: string;
  requestDigest: Buffer;
};

export type InvocationRow = { requestDigest: Buffer; runId: string };

/** Reserves an idempotency key for a run. Returns the earlier invocation if one already holds the key. */
export async function claimInvocation(
  db: Db,
  invocation: Invocation,
  runId: string,
): Promise<InvocationRow | undefined> {
  const { appId, automationId, caller, idempotencyKey, requestDigest } = invocation;
  const inserted = await db`
    insert into automation_invocations (app_id, automation_id, caller, idempotency_key, request_digest, run_id)
    values (${appId}, ${automationId}, ${caller}, ${idempotencyKey}, ${requestDigest}, ${runId})
    on conflict do nothing returning 1`;
  return inserted.length === 1 ? undefined : findInvocation(db, invocation);
}

export async function findInvocation(db: Db, invocation: Invocation): Promise<InvocationRow | undefined> {
  return db<InvocationRow[]>`
    select request_digest, run_id from automation_invocations
    where app_id = ${invocation.appId} and automation_id = ${invocation.automationId}
      and caller = ${invocation.caller} and idempotency_key = ${invocation.idempotencyKey}`.first();
}

/** Deletes idempotency keys and dispatched events from before this time. Logged events are kept for longer. */
export async function deleteOldInvocations(db: Db, before: Date): Promise<void> {
  await sweepRows(db, { table: 'automation_invocations', order: 'created_at', where: db`t.created_at < ${before}` });
  const isDone = db`t.dispatched_at is not null and not t.heard`;
  await sweepRows(db, { table: 'events', order: 'created_at', where: db`t.created_at < ${before} and ${isDone}` });
}
