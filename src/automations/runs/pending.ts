import type { Db, Statement } from '../../db/database.ts';
import { perMs, type Rate } from './rate-store.ts';
import type { RunRow } from './store.ts';

/** Why a run has not started: the limit of its automation that delays it, and when it starts at the earliest. */
export type PendingFor = { limit: 'max_concurrent_runs' | 'concurrency' | 'rate'; until?: string; ahead: number };

type Limits = {
  maxConcurrentRuns: number | null;
  concurrency: { key: string; limit: number } | null;
  rate: Rate | null;
};

/** Of the runs ahead of one, at most this many are counted. */
const aheadMax = 10_000;

/** Reads what a pending run of a workflow waits for; undefined if no limit of its automation delays it. */
export async function findPendingFor(db: Db, run: RunRow, now: Date): Promise<PendingFor | undefined> {
  const { appId, automationId, concurrencyKey, rateKey } = run;
  const [limits] = await db<Limits[]>`
    select max_concurrent_runs, concurrency, rate from automations where app_id = ${appId} and id = ${automationId}`;
  if (limits === undefined) return undefined;
  const { maxConcurrentRuns: max, concurrency, rate } = limits;
  const own = db`app_id = ${appId} and automation_id = ${automationId}`;
  const countRuns = async (where: Statement, most: number) => {
    const [{ count }] = await db<[{ count: number }]>`
      select count(*) as count from (select 1 from automation_runs where ${own} and ${where} limit ${most}) counted`;
    return count;
  };
  const ahead = (same: Statement) =>
    countRuns(
      db`status = 'pending' and graph_version is not null
        and (created_at, id) < (${run.createdAt}, ${run.id}::uuid) ${same}`,
      aheadMax,
    );
  if (max !== null && (await countRuns(db`status = 'running'`, max)) >= max)
    return { limit: 'max_concurrent_runs', ahead: await ahead(db``) };
  const sameValue = db`and concurrency_key = ${concurrencyKey}`;
  if (concurrency !== null && concurrencyKey !== null) {
    const active = await countRuns(db`status = 'running' ${sameValue}`, concurrency.limit);
    if (active >= concurrency.limit) return { limit: 'concurrency', ahead: await ahead(sameValue) };
  }
  if (rate === null || rateKey === null) return undefined;
  const before = await ahead(db`and rate_key = ${rateKey}`);
  const starts = await db<{ startedAt: Date }[]>`
    select started_at from automation_runs
    where ${own} and rate_key = ${rateKey} and started_at > ${new Date(now.getTime() - perMs(rate))}
    order by started_at desc limit ${rate.limit}`;
  const times = starts.map(({ startedAt }) => startedAt.getTime()).reverse();
  const until = startOf(times, before, rate, now.getTime());
  return until > now.getTime() ? { limit: 'rate', until: new Date(until).toISOString(), ahead: before } : undefined;
}

/**
 * When a run starts that has so many runs ahead of it, if all of them start as soon as the rate lets them: each start
 * is a time of the rate after the start that is `limit` starts before it.
 */
function startOf(starts: readonly number[], ahead: number, rate: Rate, nowMs: number): number {
  const place = starts.length + ahead;
  const rounds = Math.floor(place / rate.limit);
  const first = place % rate.limit;
  // In the first round are the starts that there were, and those that are possible now.
  return (starts[first] ?? nowMs) + rounds * perMs(rate);
}
