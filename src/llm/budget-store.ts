import { type Db, nobody, production } from '../db/database.ts';
import type { CallOrigin } from './origin.ts';

export const budgetSubjects = ['app', 'sandbox', 'user', 'agent', 'automation', 'run'] as const;
export type BudgetSubject = (typeof budgetSubjects)[number];
export const budgetPeriods = ['day', 'month', 'total'] as const;
export type BudgetPeriod = (typeof budgetPeriods)[number];

export type BudgetRow = {
  appId: string;
  id: string;
  sandboxId: string;
  subject: BudgetSubject;
  subjectId: string | null;
  period: BudgetPeriod;
  tokens: number | null;
  cost: number | null;
  softTokens: number | null;
  softCost: number | null;
  createdAt: Date;
  updatedAt: Date;
};

/** A budget that a call counts in, with the subject that the call belongs to. */
export type AppliedBudget = BudgetRow & { usesOf: string };

/** How much of a budget a subject has used in a period, with what is reserved. */
export type UseRow = { tokens: number; cost: number };

/**
 * The budgets that a call counts in, in a fixed order, so that concurrent calls lock their uses in the same one. Those
 * of the app and of sandboxes are in production and count the calls of sandboxes too.
 */
export async function listAppliedBudgets(db: Db, origin: CallOrigin): Promise<AppliedBudget[]> {
  const { appId, sandboxId } = origin;
  return db<AppliedBudget[]>`
    select b.*, s.id as uses_of from model_budgets b
    join (values ('app', ${nobody}::uuid), ('sandbox', ${sandboxId === production ? null : sandboxId}::uuid),
      ('user', ${origin.userId ?? null}::uuid), ('agent', ${origin.agentId ?? null}::uuid),
      ('automation', ${origin.automationId ?? null}::uuid), ('run', ${origin.runId ?? null}::uuid)) s (subject, id) on s.subject = b.subject and s.id is not null
    where b.app_id = ${appId} and (b.subject_id is null or b.subject_id = s.id)
      and b.sandbox_id = case when b.subject in ('app', 'sandbox') then ${production}::uuid else ${sandboxId}::uuid end
    order by b.id`;
}

export type Amount = { tokens: number; cost: number };

/** Adds to what is used unless it would exceed the budget. Returns the new use, or undefined. */
export async function reserveUse(
  tx: Db,
  budget: AppliedBudget,
  periodStart: string,
  { tokens, cost }: Amount,
): Promise<UseRow | undefined> {
  const { appId, id, usesOf } = budget;
  return tx<UseRow[]>`
    insert into model_budget_uses as u (app_id, budget_id, subject_id, period_start, tokens, cost)
    select ${appId}::uuid, ${id}::uuid, ${usesOf}::uuid, ${periodStart}::date, ${tokens}::bigint, ${cost}::bigint
    where ${tokens}::bigint <= coalesce(${budget.tokens}::bigint, ${tokens}::bigint)
      and ${cost}::bigint <= coalesce(${budget.cost}::bigint, ${cost}::bigint)
    on conflict (app_id, budget_id, subject_id, period_start) do update
      set tokens = u.tokens + excluded.tokens, cost = u.cost + excluded.cost, updated_at = excluded.updated_at
      where u.tokens + excluded.tokens <= coalesce(${budget.tokens}::bigint, u.tokens + excluded.tokens)
        and u.cost + excluded.cost <= coalesce(${budget.cost}::bigint, u.cost + excluded.cost)
    returning u.tokens, u.cost`.first();
}

/** Adds a difference to what is used. Returns the new use, or undefined if the budget was deleted. */
export async function settleUse(
  tx: Db,
  { appId, id, usesOf }: AppliedBudget,
  periodStart: string,
  change: Amount,
): Promise<UseRow | undefined> {
  return tx<UseRow[]>`
    update model_budget_uses u set tokens = greatest(0, u.tokens + ${change.tokens}),
      cost = greatest(0, u.cost + ${change.cost}), updated_at = now()
    where u.app_id = ${appId} and u.budget_id = ${id} and u.subject_id = ${usesOf} and u.period_start = ${periodStart}::date
    returning u.tokens, u.cost`.first();
}

export async function findUse(db: Db, budget: AppliedBudget, periodStart: string): Promise<UseRow | undefined> {
  return db<UseRow[]>`
    select u.tokens, u.cost from model_budget_uses u
    where u.app_id = ${budget.appId} and u.budget_id = ${budget.id} and u.subject_id = ${budget.usesOf}
      and u.period_start = ${periodStart}::date`.first();
}

/** Notes that an event was emitted for a limit. False if it was before, in the same period. */
export async function markReached(
  tx: Db,
  { appId, id, usesOf }: AppliedBudget,
  periodStart: string,
  level: 'soft' | 'hard',
): Promise<boolean> {
  const key = tx`app_id = ${appId} and budget_id = ${id} and subject_id = ${usesOf}
    and period_start = ${periodStart}::date`;
  if (level === 'soft') {
    return tx`update model_budget_uses set soft_at = now() where ${key} and soft_at is null`.any();
  }
  // A first call that is too large has left no row.
  return tx`
    insert into model_budget_uses as u (app_id, budget_id, subject_id, period_start, tokens, cost, hard_at)
    select ${appId}::uuid, ${id}::uuid, ${usesOf}::uuid, ${periodStart}::date, 0, 0, now()
    where exists (select 1 from model_budgets where app_id = ${appId} and id = ${id})
    on conflict (app_id, budget_id, subject_id, period_start)
      do update set hard_at = excluded.hard_at where u.hard_at is null`.any();
}
