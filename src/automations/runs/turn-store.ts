import type { Db, Statement } from '../../db/database.ts';
import { perMs, queueOldest, type Rate, takeTurn } from './rate-store.ts';

/** SQL for the runs of an automation that wait for their turn. */

/** How many runs of an automation may be active, in all and with the same value in their payload, and how many may start. */
type Limits = {
  maxConcurrentRuns: number | null;
  concurrency: { key: string; limit: number } | null;
  rate: Rate | null;
};

/** A run, as far as the limits of its automation go. */
type Turn = {
  appId: string;
  id: string;
  automationId: string;
  concurrencyKey: Buffer | null;
  rateKey: Buffer | null;
};

/** Values of which the oldest waiting run is looked at when a run ends. */
const keysMax = 1_000;

/**
 * Returns an automation's limits of runs and locks its row until the transaction ends. Without a limit,
 * returns undefined and locks nothing. Call it before locking any run of the automation, so that no deadlock is possible.
 */
export async function lockLimit(db: Db, appId: string, automationId: string): Promise<Limits | undefined> {
  return db<Limits[]>`
    select max_concurrent_runs, concurrency, rate from automations
    where app_id = ${appId} and id = ${automationId}
      and (max_concurrent_runs is not null or concurrency is not null or rate is not null)
    for no key update`.first();
}

/** Whether one more run of an automation without a workflow may start now. */
export async function hasRoom(db: Db, automation: { appId: string; id: string }): Promise<boolean> {
  const limits = await lockLimit(db, automation.appId, automation.id);
  return (
    limits === undefined ||
    limits.maxConcurrentRuns === null ||
    !(await isFull(db, automation, limits.maxConcurrentRuns))
  );
}

/**
 * Whether a run may start now. `full`: no run of its automation may. `later`: it is queued or woken when its turn comes.
 */
export async function takeTurnOf(db: Db, run: Turn, now: Date): Promise<'now' | 'full' | 'later'> {
  const { appId, automationId, concurrencyKey, rateKey } = run;
  const limits = await lockLimit(db, appId, automationId);
  if (limits === undefined) return 'now';
  const { maxConcurrentRuns: max, concurrency, rate } = limits;
  const automation = { appId, id: automationId };
  if (max !== null && (await isFull(db, automation, max))) return 'full';
  const ofValue = db`and concurrency_key = ${concurrencyKey}`;
  if (concurrency !== null && concurrencyKey !== null && (await isFull(db, automation, concurrency.limit, ofValue)))
    return 'later';
  if (rate === null || rateKey === null) return 'now';
  return (await takeTurn(db, { ...run, rateKey }, rate, concurrency?.limit, now)) ? 'now' : 'later';
}

async function isFull(
  db: Db,
  { appId, id }: { appId: string; id: string },
  max: number,
  ofThem: Statement = db``,
): Promise<boolean> {
  const [{ count }] = await db<[{ count: number }]>`
    select count(*) as count from (
      select 1 from automation_runs
      where app_id = ${appId} and automation_id = ${id} and status = 'running' ${ofThem} limit ${max}) running`;
  return count >= max;
}

/** Queues the oldest waiting run of an automation with a limit. Call it in the transaction that ends this run of it. */
export async function queueNextPending(db: Db, run: Omit<Turn, 'id'>, now: Date): Promise<void> {
  const { appId, automationId, rateKey } = run;
  const limits = await lockLimit(db, appId, automationId);
  if (limits === undefined) return;
  if (limits.concurrency === null && limits.rate?.key === undefined) await queuePendingRuns(db, appId, automationId, 1);
  else await queueRuns(db, oldestWithRoom(db, { appId, id: automationId }, limits, now));
  // The run may have been the one that was to be woken next.
  if (limits.rate !== null && rateKey !== null) await queueOldest(db, { ...run, rateKey }, limits.concurrency?.limit);
}

/** Queues the oldest waiting runs after a limit has changed, as many as may find a slot. */
export async function queuePendingRuns(
  db: Db,
  appId: string,
  automationId: string,
  countMax: number | null,
): Promise<void> {
  await queueRuns(
    db,
    db`select app_id, id, traceparent from automation_runs
      where app_id = ${appId} and automation_id = ${automationId} and status = 'pending' and graph_version is not null
      order by created_at, id limit ${countMax ?? 10_000}`,
  );
}

/** SQL: the oldest waiting run whose value has a free slot. Each value is one step in an index. */
function oldestWithRoom(
  db: Db,
  automation: { appId: string; id: string },
  { concurrency, rate }: Limits,
  now: Date,
): Statement {
  const own = (name: string) =>
    db`${db(`${name}.app_id`)} = ${automation.appId} and ${db(`${name}.automation_id`)} = ${automation.id}`;
  const waiting = (key: Statement) => db`
    select p.app_id, p.id, p.traceparent, p.created_at from automation_runs p
    where ${own('p')} and p.status = 'pending' and p.graph_version is not null and p.concurrency_key ${key}
    order by p.created_at, p.id limit 1`;
  const nextKey = (after: Statement) => db`
    select p.concurrency_key from automation_runs p
    where ${own('p')} and p.status = 'pending' and p.concurrency_key is not null ${after}
    order by p.concurrency_key limit 1`;
  const hasSlot =
    concurrency === null
      ? db``
      : db`and (select count(*) from automation_runs r
          where ${own('r')} and r.status = 'running' and r.concurrency_key = keys.key) < ${concurrency.limit}`;
  const hasStart =
    rate?.key === undefined
      ? db``
      : db`and (select count(*) from (
          select 1 from automation_runs r where ${own('r')} and r.rate_key = keys.key
            and r.started_at > ${new Date(now.getTime() - perMs(rate))} limit ${rate.limit}) started) < ${rate.limit}`;
  return db`
    with recursive keys (key, place) as (
      (select first.concurrency_key, 1 from (${nextKey(db``)}) first)
      union all
      select (${nextKey(db`and p.concurrency_key > keys.key`)}), place + 1 from keys
      where keys.key is not null and place < ${keysMax}),
    heads as (
      select head.* from keys cross join lateral (${waiting(db`= keys.key`)}) head
      where keys.key is not null ${hasSlot} ${hasStart}
      union all
      (${waiting(db`is null`)}))
    select app_id, id, traceparent from heads order by created_at, id limit 1`;
}

async function queueRuns(db: Db, runs: Statement): Promise<void> {
  await db`
    select add_job('advance_run', json_strip_nulls(json_build_object('appId', oldest.app_id,
      'runId', oldest.id, 'traceparent', oldest.traceparent)))
    from (${runs}) oldest`;
}
