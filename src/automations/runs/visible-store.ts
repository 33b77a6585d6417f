import type { Db } from '../../db/database.ts';
import { readWithTotal } from '../../db/pages.ts';
import type { PageRequest } from '../../http/route/pages.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { inScope, runVisible } from '../../tenancy/visible.ts';
import { automationNamed } from '../definitions/store.ts';
import type { RunStatus } from '../engine/fold.ts';
import type { RunRow } from './store.ts';

/** SQL for runs that are visible to a caller: by id and in lists. */

export async function findVisibleRun(db: Db, caller: Caller, id: string): Promise<RunRow | undefined> {
  return db<RunRow[]>`
    select r.* from automation_runs r where r.id = ${id} and ${runVisible(db, caller, 'r')}`.first();
}

/** Returns the ids of those runs that are visible to the caller. */
export async function filterVisibleRuns(db: Db, caller: Caller, ids: readonly string[]): Promise<string[]> {
  const rows = await db<{ id: string }[]>`
    select r.id from automation_runs r where r.id = any(${[...ids]}::uuid[]) and ${runVisible(db, caller, 'r')}`;
  return rows.map(({ id }) => id);
}

export async function listRuns(
  db: Db,
  caller: Caller,
  automationId: string,
  status: string | undefined,
  page: PageRequest,
): Promise<[RunRow[], number]> {
  const where = db`${inScope(db, caller, 'r')} and r.automation_id = ${automationId}
    and (${status ?? null}::text is null or r.status = ${status ?? null})`;
  return readWithTotal(
    db<RunRow[]>`
      select r.* from automation_runs r where ${where}
      order by r.created_at desc, r.id desc limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from automation_runs r where ${where}`,
  );
}

/** A run in a list, without payload and result, which are read run by run. */
export type RunSummaryRow = Omit<RunRow, 'payload' | 'input' | 'participants' | 'result'> & { automationName: string };

export type RunFilter = {
  status?: RunStatus | 'waiting' | undefined;
  automationId?: string | undefined;
  retriedFrom?: string | undefined;
  since?: Date | undefined;
  until?: Date | undefined;
  /** The id of a run, or part of the name or lookup key of its automation. */
  search?: { runId: string } | { text: string } | undefined;
};

/** The runs of all visible automations, newest first, starting before the given run. */
export async function listVisibleRuns(
  db: Db,
  caller: Caller,
  filter: RunFilter,
  before: string | undefined,
  count: number,
): Promise<RunSummaryRow[]> {
  const { status, automationId, retriedFrom, since, until, search } = filter;
  const inState = status === 'waiting' ? db`r.status = 'running' and r.waiting` : db`r.status = ${status ?? ''}`;
  return db<RunSummaryRow[]>`
    select r.app_id, r.id, r.sandbox_id, r.automation_id, a.name as automation_name, r.graph_version, r.program, r.workflow_changed, r.type, r.status,
      r.error, r.event_id, r.parent_run_id, r.retried_from, r.invoked_by_user_id, r.invoked_by_agent_id, r.org_id,
      r.team_id, r.user_id, r.sequence, r.waiting, r.waiting_for, r.lease_until, r.started_at, r.completed_at, r.created_at, r.updated_at
    from automation_runs r join automations a on a.app_id = r.app_id and a.id = r.automation_id
    where ${runVisible(db, caller, 'r')}
      ${before === undefined ? db`` : db`and r.id < ${before}`}
      ${status === undefined ? db`` : db`and ${inState}`}
      ${automationId === undefined ? db`` : db`and r.automation_id = ${automationId}`}
      ${retriedFrom === undefined ? db`` : db`and r.retried_from = ${retriedFrom}`}
      ${since === undefined ? db`` : db`and r.created_at >= ${since}`}
      ${until === undefined ? db`` : db`and r.created_at < ${until}`}
      ${search === undefined ? db`` : db`and ${matches(db, search)}`}
    order by r.id desc limit ${count}`;
}

function matches(db: Db, search: NonNullable<RunFilter['search']>) {
  if ('runId' in search) return db`r.id = ${search.runId}`;
  return automationNamed(db, search.text);
}
