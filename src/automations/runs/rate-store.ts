import type { Db, Statement } from '../../db/database.ts';
import { queueAdvance } from './store.ts';

/** SQL for automations that start only so many runs in a time. */

export type Rate = { limit: number; per: string; key?: string };

/** A run that the rate of its automation counts. */
type Rated = { appId: string; automationId: string; concurrencyKey: Buffer | null; rateKey: Buffer };
type Waiting = { appId: string; id: string };

const unitMs: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The length of a time such as `10m`, in milliseconds. */
export function perMs({ per }: Pick<Rate, 'per'>): number {
  return Number(per.slice(0, -1)) * (unitMs[per.slice(-1)] ?? 0);
}

/**
 * Whether a run may start now: fewer than `limit` have started in the time before, and it is the oldest of those that
 * wait. The oldest that waits is always queued, or woken when it may start. The automation must be locked.
 * @param runsOfValue the limit of active runs with the same value, if there is one
 */
export async function takeTurn(
  db: Db,
  run: Rated & { id: string },
  rate: Rate,
  runsOfValue: number | undefined,
  now: Date,
): Promise<boolean> {
  const ms = perMs(rate);
  const later = ({ startedAt }: { startedAt: Date }) => new Date(startedAt.getTime() + ms);
  // The start that must be over for this run, and that for the next one.
  const starts = await db<{ startedAt: Date }[]>`
    select started_at from automation_runs
    where app_id = ${run.appId} and automation_id = ${run.automationId} and rate_key = ${run.rateKey}
      and started_at > ${new Date(now.getTime() - ms)}
    order by started_at desc offset ${Math.max(0, rate.limit - 2)} limit ${Math.min(2, rate.limit)}`;
  const [beforeNext, beforeThis] = rate.limit === 1 ? [{ startedAt: now }, starts[0]] : starts;
  const oldest = await findOldest(db, run, runsOfValue);
  if (beforeThis !== undefined) {
    if (oldest !== undefined) await wakeAt(db, oldest, later(beforeThis));
    return false;
  }
  if (oldest !== undefined && oldest.id !== run.id) {
    await queueAdvance(db, oldest);
    return false;
  }
  const next = await findOldest(db, run, runsOfValue, run.id);
  if (next === undefined) return true;
  if (beforeNext === undefined) await queueAdvance(db, next);
  else await wakeAt(db, next, later(beforeNext));
  return true;
}

/** Queues the oldest run that waits for the rate that counts this run. */
export async function queueOldest(db: Db, run: Rated, runsOfValue: number | undefined): Promise<void> {
  const oldest = await findOldest(db, run, runsOfValue);
  if (oldest !== undefined) await queueAdvance(db, oldest);
}

/** The oldest waiting run that the same rate counts and that no other limit delays; with `starting`, after that run has started. */
async function findOldest(
  db: Db,
  { appId, automationId, rateKey, concurrencyKey }: Rated,
  runsOfValue: number | undefined,
  starting?: string,
): Promise<Waiting | undefined> {
  const own = (name: string) =>
    db`${db(`${name}.app_id`)} = ${appId} and ${db(`${name}.automation_id`)} = ${automationId}`;
  const more = starting === undefined ? db`0` : db`case when p.concurrency_key = ${concurrencyKey} then 1 else 0 end`;
  const hasRoom: Statement =
    runsOfValue === undefined
      ? db``
      : db`and (p.concurrency_key is null or ${more} + (select count(*) from automation_runs r where ${own('r')}
          and r.status = 'running' and r.concurrency_key = p.concurrency_key) < ${runsOfValue})`;
  return db<Waiting[]>`
    select p.app_id, p.id from automation_runs p
    where ${own('p')} and p.status = 'pending' and p.rate_key = ${rateKey} and p.graph_version is not null
      ${starting === undefined ? db`` : db`and p.id <> ${starting}`} ${hasRoom}
    order by p.created_at, p.id limit 1`.first();
}

async function wakeAt(db: Db, run: Waiting, at: Date): Promise<void> {
  await db`
    update automation_runs set wake_at = ${at}
    where app_id = ${run.appId} and id = ${run.id} and status = 'pending' and (wake_at is null or wake_at > ${at})`;
}
