import type { Db, Statement } from '../../db/database.ts';

/** SQL for the runs of an automation that wait for their turn. */

/** How many runs of an automation may be active: in all, and with the same value in their payload. */
type Limits = { maxConcurrentRuns: number | null; concurrency: { key: string; limit: number } | null };

/** A run, as far as the limits of its automation go. */
type Turn = { appId: string; automationId: string; concurrencyKey: Buffer | null };

/** Values of which the oldest waiting run is looked at when a run ends. */
const keysMax = 1_000;

/**
 * Returns an automation's limits of concurrent runs and locks its row until the transaction ends. Without a limit,
 * returns undefined and locks nothing. Call it before locking any run of the automation, so that no deadlock is possible.
 */
export async function lockLimit(db: Db, appId: string, automationId: string): Promise<Limits | undefined> {
  const [row] = await db<Limits[]>`
    select max_concurrent_runs, concurrency from automations
    where app_id = ${appId} and id = ${automationId} and (max_concurrent_runs is not null or concurrency is not null)
    for no key update`;
  return row;
}

/** Whether one more run of an automation may start now. */
export async function mayStartRun(db: Db, { appId, automationId, concurrencyKey }: Turn): Promise<boolean> {
  const limits = await lockLimit(db, appId, automationId);
  const running = db`select 1 from automation_runs
    where app_id = ${appId} and automation_id = ${automationId} and status = 'running'`;
  const isFull = async (max: number, counted: Statement) => {
    const [{ count }] = await db<[{ count: number }]>`select count(*) as count from (${counted} limit ${max}) running`;
    return count >= max;
  };
  const { maxConcurrentRuns: max = null, concurrency = null } = limits ?? {};
  if (max !== null && (await isFull(max, running))) return false;
  if (concurrency === null || concurrencyKey === null) return true;
  return !(await isFull(concurrency.limit, db`${running} and concurrency_key = ${concurrencyKey}`));
}

/** Queues the oldest waiting run of an automation with a limit. Call it in the transaction that ends a run of it. */
export async function queueNextPending(db: Db, appId: string, automationId: string): Promise<void> {
  const limits = await lockLimit(db, appId, automationId);
  if (limits === undefined) return;
  if (limits.concurrency === null) return queuePendingRuns(db, appId, automationId, 1);
  await queueRuns(db, oldestWithRoom(db, { appId, id: automationId }, limits.concurrency.limit));
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
function oldestWithRoom(db: Db, automation: { appId: string; id: string }, limit: number): Statement {
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
  return db`
    with recursive keys (key, place) as (
      (select first.concurrency_key, 1 from (${nextKey(db``)}) first)
      union all
      select (${nextKey(db`and p.concurrency_key > keys.key`)}), place + 1 from keys
      where keys.key is not null and place < ${keysMax}),
    heads as (
      select head.* from keys cross join lateral (${waiting(db`= keys.key`)}) head
      where keys.key is not null and (select count(*) from automation_runs r
        where ${own('r')} and r.status = 'running' and r.concurrency_key = keys.key) < ${limit}
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
