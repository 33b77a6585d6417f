import type { Db } from '../../db/database.ts';
import { isInUse } from '../../db/fences.ts';

/** SQL for functions that are woken for runs of programs. */

/** The oldest runs of these automations for which a function may be woken now. Nothing is locked. */
export async function findRunsToWake(
  db: Db,
  app: { appId: string },
  wanted: { automations: readonly string[]; full: readonly string[]; skip: readonly string[] },
  now: Date,
  count: number,
): Promise<{ id: string; automationId: string }[]> {
  return db`
    select w.run_id as id, w.automation_id
    from automation_program_work w join automation_runs r on r.app_id = w.app_id and r.id = w.run_id
    where w.app_id = ${app.appId} and w.automation_id = any(${[...wanted.automations]}::uuid[]) and w.ready_at <= ${now}
      and (w.wake_after is null or w.wake_after <= ${now}) and w.run_id <> all(${[...wanted.skip]}::uuid[])
      and (r.status = 'running' or r.status = 'pending' and w.automation_id <> all(${[...wanted.full]}::uuid[]))
    order by w.ready_at, w.run_id limit ${count}`;
}

/** Whether the webhook whose function has the run is there and wakes it for this automation. */
export async function isHosted(db: Db, appId: string, runId: string): Promise<boolean> {
  const { count } = await db`
    select from automation_program_work w join webhooks h on h.app_id = w.app_id and h.id = w.woken_by
    where w.app_id = ${appId} and w.run_id = ${runId} and w.automation_id = any(h.automations)`;
  return count > 0;
}

/** The runs that functions of a webhook hold now. */
export async function countWoken(db: Db, app: { appId: string }, webhookId: string, now: Date): Promise<number> {
  const [row] = await db<[{ total: number }]>`
    select count(*) as total from automation_program_work
    where app_id = ${app.appId} and woken_by = ${webhookId} and lease_until > ${now}`;
  return row.total;
}

/** The run and claim that an event offers; undefined if the claim is over. */
export async function findOffered(
  db: Db,
  appId: string,
  eventId: string,
  now: Date,
): Promise<{ runId: string; claim: string; leaseUntil: Date } | undefined> {
  return db<{ runId: string; claim: string; leaseUntil: Date }[]>`
    select run_id, claim, lease_until from automation_program_work
    where app_id = ${appId} and wake_event = ${eventId} and lease_until > ${now}`.first();
}

/** Lets functions be woken immediately for the runs of these automations that wait for it. */
export async function forgetWakes(db: Db, appId: string, automations: readonly string[]): Promise<void> {
  await db`
    update automation_program_work set wake_after = null
    where app_id = ${appId} and automation_id = any(${[...automations]}::uuid[]) and wake_after is not null`;
}

/** The webhooks of functions that have not continued their run: the claim has expired, and the pause after it is over. */
export async function listIdleHosts(db: Db, now: Date): Promise<{ appId: string; webhookId: string }[]> {
  return db`
    select distinct app_id, woken_by as webhook_id from automation_program_work w
    where woken_by is not null and ready_at <= ${now} and (wake_after is null or wake_after <= ${now})
      and ${isInUse(db, 'w.app_id')}`;
}

/** The name of the program of a run, and the lookup key of its automation if it has one. */
export async function findNames(
  db: Db,
  run: { appId: string; automationId: string; graphVersion: number | null },
): Promise<{ workflow: string; lookup_key?: string }> {
  const [row] = await db<{ workflow: string | null; lookupKey: string | null }[]>`
    select g.graph->>'name' as workflow, a.lookup_key
    from automations a left join automation_graphs g
      on g.app_id = a.app_id and g.automation_id = a.id and g.version = ${run.graphVersion}
    where a.app_id = ${run.appId} and a.id = ${run.automationId}`;
  return { workflow: row?.workflow ?? '', ...(row?.lookupKey == null ? {} : { lookup_key: row.lookupKey }) };
}
