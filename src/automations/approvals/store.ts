/* SQL for approvals and their links. */

import type { Db } from '../../db/database.ts';
import { readWithTotal } from '../../db/pages.ts';
import type { PageRequest } from '../../http/route/pages.ts';
import type { Caller, Scope } from '../../tenancy/caller.ts';
import { approvalVisible, inScope, sandboxIsThere } from '../../tenancy/visible.ts';

type ApprovalStatus = 'waiting' | 'answered' | 'expired' | 'cancelled';

export type ApprovalRow = {
  appId: string;
  id: string;
  sandboxId: string;
  automationId: string;
  runId: string;
  nodeId: string;
  commandId: string;
  attempt: number;
  status: ApprovalStatus;
  question: string;
  form: unknown;
  users: string[];
  teams: string[];
  roles: string[];
  orgId: string | null;
  /** The user who invoked the run. Processes of earlier releases know only this one. */
  excludedUserId: string | null;
  /** Users who invoked the runs that led to it. */
  excludedUsers: string[];
  expiresAt: Date | null;
  answer: unknown;
  answeredBy: string | null;
  closedAt: Date | null;
  createdAt: Date;
};

type NewApproval = Omit<ApprovalRow, 'status' | 'answer' | 'answeredBy' | 'closedAt'>;

export async function insertApproval(db: Db, row: NewApproval): Promise<void> {
  await db`
    insert into approvals (app_id, id, sandbox_id, automation_id, run_id, node_id, command_id, attempt, question, form, users,
      teams, roles, org_id, excluded_user_id, excluded_users, expires_at, created_at)
    values (${row.appId}, ${row.id}, ${row.sandboxId}, ${row.automationId}, ${row.runId}, ${row.nodeId}, ${row.commandId},
      ${row.attempt}, ${row.question}, ${JSON.stringify(row.form)}::text::json, ${row.users}::uuid[], ${row.teams}::uuid[],
      ${row.roles}::text[], ${row.orgId}, ${row.excludedUserId}, ${row.excludedUsers}::uuid[], ${row.expiresAt}, ${row.createdAt})`;
}

export async function findApproval(db: Db, caller: Caller, id: string, lock = false): Promise<ApprovalRow | undefined> {
  return db<ApprovalRow[]>`
    select p.* from approvals p where p.id = ${id} and ${approvalVisible(db, caller, 'p')} ${lock ? db`for update of p` : db``}`.first();
}

export async function listApprovals(
  db: Db,
  caller: Caller,
  filter: { status: ApprovalStatus; runId: string | undefined },
  page: PageRequest,
): Promise<[ApprovalRow[], number]> {
  const where = db`p.status = ${filter.status} and ${approvalVisible(db, caller, 'p')}
    ${filter.runId === undefined ? db`` : db`and p.run_id = ${filter.runId}`}`;
  return readWithTotal(
    db<ApprovalRow[]>`
      select p.* from approvals p where ${where} order by p.id desc limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from approvals p where ${where}`,
  );
}

/** An approval without a check of the caller, for the holder of a link. */
export async function lockApproval(db: Db, appId: string, id: string): Promise<ApprovalRow | undefined> {
  return db<ApprovalRow[]>`
    select * from approvals where app_id = ${appId} and id = ${id} for update`.first();
}

export async function setAnswer(
  db: Db,
  approval: Pick<ApprovalRow, 'appId' | 'id'>,
  answer: { data: unknown; by: string; at: Date },
): Promise<void> {
  await db`
    update approvals set status = 'answered', answer = ${JSON.stringify(answer.data)}::text::json,
      answered_by = ${answer.by}, closed_at = ${answer.at}
    where app_id = ${approval.appId} and id = ${approval.id}`;
}

/** Closes approvals of a run that no node waits for any longer, unless they are answered. */
export async function closeApprovals(
  db: Db,
  run: { appId: string; id: string },
  closed: readonly { id: string; status: 'expired' | 'cancelled' }[],
  now: Date,
): Promise<void> {
  await db`
    update approvals p set status = c.status, closed_at = ${now}
    from unnest(${closed.map(({ id }) => id)}::uuid[], ${closed.map(({ status }) => status)}::text[]) as c (id, status)
    where p.app_id = ${run.appId} and p.run_id = ${run.id} and p.id = c.id and p.status = 'waiting'`;
}

/**
 * The users who invoked a run or one that led to it: the run that started it, the one that it repeats, and the first of
 * those that started each other through events. A run between them may have acted as somebody else.
 */
export async function listInvokers(db: Db, run: { appId: string; id: string }): Promise<string[]> {
  const rows = await db<{ userId: string }[]>`
    with recursive led as (
      select id, parent_run_id, retried_from, tree_id, invoked_by_user_id from automation_runs
      where app_id = ${run.appId} and id = ${run.id}
      union
      select r.id, r.parent_run_id, r.retried_from, r.tree_id, r.invoked_by_user_id
      from led join automation_runs r on r.app_id = ${run.appId} and r.id in (led.parent_run_id, led.retried_from, led.tree_id))
    select distinct invoked_by_user_id as user_id from led where invoked_by_user_id is not null`;
  return rows.map(({ userId }) => userId);
}

/** The ids among these that exist in the app and the sandbox. */
export async function filterKnown(
  db: Db,
  scope: Scope,
  table: 'users' | 'teams' | 'orgs',
  ids: readonly string[],
): Promise<string[]> {
  const rows = await db<{ id: string }[]>`
    select t.id from ${db(table)} t where t.id = any(${[...ids]}::uuid[]) and ${inScope(db, scope, 't')}`;
  return rows.map(({ id }) => id);
}

export type LinkRow = { appId: string; id: string; approvalId: string; sentTo: string; expiresAt: Date };

export async function insertLink(db: Db, link: LinkRow & { createdAt: Date }): Promise<void> {
  await db`
    insert into approval_links (app_id, id, approval_id, sent_to, expires_at, created_at)
    values (${link.appId}, ${link.id}, ${link.approvalId}, ${link.sentTo}, ${link.expiresAt}, ${link.createdAt})`;
}

export async function countLinks(db: Db, approval: Pick<ApprovalRow, 'appId' | 'id'>): Promise<number> {
  const [{ count }] = await db<[{ count: number }]>`
    select count(*) as count from approval_links where app_id = ${approval.appId} and approval_id = ${approval.id}`;
  return count;
}

export async function findLink(db: Db, appId: string, id: string): Promise<LinkRow | undefined> {
  return db<LinkRow[]>`select * from approval_links where app_id = ${appId} and id = ${id}`.first();
}

export async function findAnyApproval(db: Db, appId: string, id: string): Promise<ApprovalRow | undefined> {
  return db<ApprovalRow[]>`
    select a.* from approvals a
    where a.app_id = ${appId} and a.id = ${id} and ${sandboxIsThere(db, 'a.app_id', 'a.sandbox_id')}`.first();
}
