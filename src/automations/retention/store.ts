import type { Db, Statement } from '../../db/database.ts';
import { isInUse } from '../../db/fences.ts';
import type { RunRetention } from '../../tenancy/run-retention.ts';

/** SQL for runs that are kept no longer. */

/** An automation whose runs are not kept for ever. */
export type RetainedAutomation = {
  appId: string;
  sandboxId: string;
  id: string;
  name: string;
  retention: RunRetention;
};

type OldRun = {
  id: string;
  sequence: number;
  link: Buffer | null;
  journalBytes: number;
  completedAt: Date;
  createdAt: Date;
  /** The place in the order of runs. */
  place: string;
};

/** The runs of one kind that are kept no longer: those that ended before a time, and all up to a run. */
export type OldRuns = {
  failed: boolean;
  /** None that ended after this time is deleted. */
  endedBefore: Date;
  /** All that ended before this time are; null if age does not matter. */
  agedBefore: Date | null;
  /** All up to this place are; null if their number does not matter. */
  upTo: RunPlace | null;
};
export type RunPlace = { createdAt: string; id: string };

/** Automations whose runs are not kept for ever, in order. */
export async function listRetained(
  db: Db,
  after: { appId: string; id: string } | undefined,
  countMax: number,
  /** Only those of this app. */
  ofApp?: string,
): Promise<RetainedAutomation[]> {
  return db<RetainedAutomation[]>`
    select a.app_id, a.sandbox_id, a.id, a.name, coalesce(a.retention, app.run_retention) as retention
    from automations a join apps app on app.id = a.app_id
    where coalesce(a.retention, app.run_retention) is not null and ${isInUse(db, 'a.app_id')}
      ${ofApp === undefined ? db`` : db`and a.app_id = ${ofApp}`}
      ${after === undefined ? db`` : db`and (a.app_id, a.id) > (${after.appId}, ${after.id})`}
    order by a.app_id, a.id limit ${countMax}`;
}

/** How long the runs of an automation are kept now; undefined for ever. */
export async function findRetention(
  db: Db,
  { appId, id }: { appId: string; id: string },
): Promise<RunRetention | undefined> {
  const [row] = await db<{ retention: RunRetention | null }[]>`
    select coalesce(a.retention, app.run_retention) as retention
    from automations a join apps app on app.id = a.app_id where a.app_id = ${appId} and a.id = ${id}`;
  return row?.retention ?? undefined;
}

function ofKind(db: Db, failed: boolean): Statement {
  return failed ? db`r.status = 'failed'` : db`r.status in ('completed', 'cancelled')`;
}

/** The newest run that is more than so many; undefined if there are not so many. */
export async function findSurplus(
  db: Db,
  automation: { appId: string; id: string },
  failed: boolean,
  kept: number,
): Promise<RunPlace | undefined> {
  return db<RunPlace[]>`
    select r.created_at::text as created_at, r.id from automation_runs r
    where r.app_id = ${automation.appId} and r.automation_id = ${automation.id} and ${ofKind(db, failed)}
    order by r.created_at desc, r.id desc offset ${kept} limit 1`.first();
}

/**
 * The oldest runs after a place that are kept no longer, locked until the transaction ends if they are to be deleted.
 * Runs that another transaction has locked are left out.
 */
export async function listOldRuns(
  db: Db,
  automation: { appId: string; id: string },
  old: OldRuns,
  after: RunPlace | undefined,
  countMax: number,
  lock: boolean,
): Promise<OldRun[]> {
  const { appId, id } = automation;
  const isAged = old.agedBefore === null ? db`false` : db`r.completed_at < ${old.agedBefore}`;
  const isSurplus =
    old.upTo === null
      ? db`false`
      : db`(r.created_at, r.id) <= (${old.upTo.createdAt}::timestamptz, ${old.upTo.id}::uuid)`;
  return db<OldRun[]>`
    select r.id, r.sequence, r.link, r.journal_bytes, r.completed_at, r.created_at, r.created_at::text as place
    from automation_runs r
    where r.app_id = ${appId} and r.automation_id = ${id} and ${ofKind(db, old.failed)}
      and r.created_at < ${old.endedBefore} and r.completed_at < ${old.endedBefore} and (${isAged} or ${isSurplus})
      -- A rate counts the runs that started in a time, which is at most a day.
      and (r.rate_key is null or r.started_at is null or r.started_at < ${old.endedBefore}::timestamptz - interval '1 day')
      ${after === undefined ? db`` : db`and (r.created_at, r.id) > (${after.createdAt}::timestamptz, ${after.id}::uuid)`}
    order by r.created_at, r.id limit ${countMax} ${lock ? db`for update of r skip locked` : db``}`;
}

/** Those of these runs of which no active run descends: as part of its tree, as its child or as another attempt. */
export async function listFree(db: Db, appId: string, runs: readonly string[]): Promise<Set<string>> {
  const rows = await db<{ id: string }[]>`
    select r.id from automation_runs r where r.app_id = ${appId} and r.id = any(${[...runs]}::uuid[])
    and not exists (select from automation_runs t where t.app_id = ${appId} and t.tree_id = r.id
      and t.status in ('pending', 'running'))
    and not exists (
      with recursive descendants as (
        select d.id, d.status from automation_runs d where d.app_id = ${appId} and d.parent_run_id = r.id
        union
        select d.id, d.status from automation_runs d where d.app_id = ${appId} and d.retried_from = r.id
        union
        select n.id, n.status from descendants p cross join lateral (
          select d.id, d.status from automation_runs d where d.app_id = ${appId} and d.parent_run_id = p.id
          union
          select d.id, d.status from automation_runs d where d.app_id = ${appId} and d.retried_from = p.id) n)
      select from descendants where status in ('pending', 'running'))`;
  return new Set(rows.map(({ id }) => id));
}

/**
 * The ended extractions that only these runs started: no other run started or continues with them, unless it is gone.
 */
export async function listOwnExtractions(
  db: Db,
  appId: string,
  runs: readonly string[],
  isGone: (run: string) => boolean,
): Promise<string[]> {
  const rows = await db<{ id: string; others: string[] }[]>`
    select c.child_id as id, array(
      select o.run_id from automation_run_children o where o.app_id = ${appId} and o.child_kind = c.child_kind
        and o.child_id = c.child_id and o.run_id <> all(${[...runs]}::uuid[])
      union all
      select n.id from automation_runs n where n.app_id = ${appId} and n.retried_from = c.run_id
        and n.id <> all(${[...runs]}::uuid[])) as others
    from automation_run_children c join extractions e on e.app_id = c.app_id and e.id = c.child_id
    where c.app_id = ${appId} and c.run_id = any(${[...runs]}::uuid[]) and c.child_kind = 'extraction'
      and e.state <> 'running'`;
  return [...new Set(rows.filter(({ others }) => others.every(isGone)).map(({ id }) => id))];
}

/** Deletes runs with everything that is deleted with them: journals, outputs, approvals. */
export async function deleteRuns(db: Db, appId: string, runs: readonly string[]): Promise<void> {
  await db`delete from automation_runs where app_id = ${appId} and id = any(${[...runs]}::uuid[])`;
}

/** Keeps a run until the transaction ends. False if it was deleted. */
export async function keepRun(db: Db, run: { appId: string; id: string }): Promise<boolean> {
  const rows = await db`
    select 1 from automation_runs where app_id = ${run.appId} and id = ${run.id} for key share`;
  return rows.length === 1;
}
