import { type Db, production, type Transaction } from '../db/database.ts';
import { sweepRows, sweepRowsOfNoApp } from '../db/delete-batch.ts';
import type { Scope } from '../tenancy/caller.ts';
import { type Measure, measures } from '../tenancy/quotas.ts';

type UsageRow = { measure: Measure; used: number; bound: number | null };

/** The current usage and the effective limit of each measure. */
export function readUsage(db: Db, { appId, sandboxId }: Scope): Promise<UsageRow[]> {
  return db<UsageRow[]>`
    select measure, app_used(${appId}, ${sandboxId}, measure) as used, quota_bound(${appId}, measure) as bound
    from unnest(${[...measures]}::text[]) measure`;
}

/** The operator's limit for the app, regardless of the app's own limit; null for no limit. */
export async function findOperatorLimit(db: Db, appId: string, measure: Measure): Promise<number | null> {
  const [row] = await db<{ bound: number | null }[]>`
    select coalesce((select operator_bound from app_quotas where app_id = ${appId} and measure = ${measure}),
      (select bound from quota_defaults where measure = ${measure})) as bound`;
  return row?.bound ?? null;
}

export async function setOwnLimit(db: Db, appId: string, measure: Measure, bound: number | null): Promise<void> {
  await db`
    insert into app_quotas (app_id, measure, own_bound) values (${appId}, ${measure}, ${bound})
    on conflict (app_id, measure) do update set own_bound = excluded.own_bound`;
}

/** Sets the operator's limit for the app. Null restores the default. */
export async function setOperatorLimit(db: Db, appId: string, measure: Measure, bound: number | null): Promise<void> {
  await db`
    insert into app_quotas (app_id, measure, operator_bound) values (${appId}, ${measure}, ${bound})
    on conflict (app_id, measure) do update set operator_bound = excluded.operator_bound`;
}

/** Stores the default limits of apps, for every process on this database. */
export async function saveDefaultLimits(db: Db, bounds: Record<Measure, number | undefined>): Promise<void> {
  for (const [measure, bound] of Object.entries(bounds)) {
    if (bound === undefined) await db`delete from quota_defaults where measure = ${measure}`;
    else
      await db`insert into quota_defaults as q (measure, bound) values (${measure}, ${bound})
        on conflict (measure) do update set bound = excluded.bound where q.bound <> excluded.bound`;
  }
}

export type Drift = { appId: string; sandboxId: string; measure: Measure; booked: number; counted: number };

/**
 * Finds counters that differ from the actual values. The lock waits for active writers and blocks new ones, so that
 * both numbers are consistent.
 */
export async function findDrift(tx: Transaction): Promise<Drift[]> {
  await tx`lock table app_usage in exclusive mode`;
  const rows = await tx<Drift[]>`
    with counted as (
      select app_id, sandbox_id, 'file_bytes' as measure, sum(bytes)::bigint as counted from (
        select app_id, sandbox_id, size as bytes from files
        union all
        select app_id, sandbox_id, length from uploads where finished_at is null
        union all
        select app_id, sandbox_id, bytes from knowledge_models where bytes > 0) stored
      group by app_id, sandbox_id
      union all
      select app_id, sandbox_id, 'documents', count(*) from knowledge_documents group by app_id, sandbox_id
      union all
      select app_id, ${production}::uuid, 'sandboxes', count(*) from sandboxes where id <> ${production} and removed_at is null
      group by app_id),
    booked as (
      select app_id, sandbox_id, measure, sum(used)::bigint as booked from app_usage
      where measure not in ('pages', 'tokens') group by app_id, sandbox_id, measure)
    select app_id, sandbox_id, measure, coalesce(booked, 0) as booked, coalesce(counted, 0) as counted
    from counted full join booked using (app_id, sandbox_id, measure)
    where coalesce(booked, 0) <> coalesce(counted, 0)`;
  return [...rows];
}

/** Sets the counters to the actual values. */
export async function correctDrift(tx: Transaction, drift: Drift[]): Promise<void> {
  for (const { appId, sandboxId, measure, counted } of drift) {
    await tx`delete from app_usage where app_id = ${appId} and sandbox_id = ${sandboxId} and measure = ${measure}`;
    await tx`insert into app_usage (app_id, sandbox_id, measure, period, part, used)
      values (${appId}, ${sandboxId}, ${measure}, 'epoch', 0, ${counted})`;
  }
}

/** Deletes counts of past days, and rate-limit budgets that have long been full. Returns the number of deleted rows. */
export async function deleteOldCounts(db: Db, daysKept: number): Promise<number> {
  const isPast = db`t.measure in ('pages', 'tokens') and t.period < current_date - ${daysKept}::integer`;
  const days = await sweepRows(db, { table: 'app_usage', where: isPast });
  const isFull = db`t.filled_at < now() - interval '10 minutes'`;
  return days + (await sweepRowsOfNoApp(db, { table: 'rate_budgets', where: isFull }));
}
