import { type Db, production } from '../db/database.ts';
import { isInUse } from '../db/fences.ts';
import { readWithTotal } from '../db/pages.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { BudgetRow } from '../llm/budget-store.ts';
import type { Scope } from '../tenancy/caller.ts';
import { inScope } from '../tenancy/visible.ts';
import type { UsageDimension } from './budget-schema.ts';

export type BudgetLimits = Pick<BudgetRow, 'tokens' | 'cost' | 'softTokens' | 'softCost'>;
type NewBudget = BudgetLimits & Pick<BudgetRow, 'id' | 'subject' | 'subjectId' | 'period'> & { now: Date };

export async function insertBudget(db: Db, { appId, sandboxId }: Scope, budget: NewBudget): Promise<BudgetRow> {
  const { id, subject, subjectId, period, tokens, cost, softTokens, softCost, now } = budget;
  return db<[BudgetRow]>`
    insert into model_budgets (app_id, sandbox_id, id, subject, subject_id, period, tokens, cost, soft_tokens, soft_cost,
      created_at, updated_at)
    values (${appId}, ${sandboxId}, ${id}, ${subject}, ${subjectId}, ${period}, ${tokens}, ${cost}, ${softTokens},
      ${softCost}, ${now}, ${now})
    returning *`.first();
}

export async function countBudgets(db: Db, scope: Scope): Promise<number> {
  const [count] = await db<
    [{ total: number }]
  >`select count(*) as total from model_budgets b where ${inScope(db, scope, 'b')}`;
  return count.total;
}

export async function findBudget(db: Db, scope: Scope, id: string): Promise<BudgetRow | undefined> {
  return db<BudgetRow[]>`
    select b.* from model_budgets b where ${inScope(db, scope, 'b')} and b.id = ${id}`.first();
}

export async function listBudgets(db: Db, scope: Scope, page: PageRequest): Promise<[BudgetRow[], number]> {
  const rows = await db<BudgetRow[]>`
    select b.* from model_budgets b where ${inScope(db, scope, 'b')}
    order by b.created_at desc, b.id desc limit ${page.pageSize} offset ${page.offset}`;
  return [rows, await countBudgets(db, scope)];
}

export async function lockBudget(tx: Db, scope: Scope, id: string): Promise<BudgetRow | undefined> {
  return tx<BudgetRow[]>`
    select b.* from model_budgets b where ${inScope(tx, scope, 'b')} and b.id = ${id} for update`.first();
}

/** Sets the limits. Events about them are emitted again. */
export async function updateBudget(tx: Db, row: BudgetRow, limits: BudgetLimits, now: Date): Promise<BudgetRow> {
  const [updated] = await tx<[BudgetRow]>`
    update model_budgets set tokens = ${limits.tokens}, cost = ${limits.cost}, soft_tokens = ${limits.softTokens},
      soft_cost = ${limits.softCost}, updated_at = ${now}
    where app_id = ${row.appId} and id = ${row.id} returning *`;
  await tx`
    update model_budget_uses set soft_at = null, hard_at = null
    where app_id = ${row.appId} and budget_id = ${row.id} and (soft_at is not null or hard_at is not null)`;
  return updated;
}

export async function deleteBudget(db: Db, scope: Scope, id: string): Promise<boolean> {
  return db`delete from model_budgets b where ${inScope(db, scope, 'b')} and b.id = ${id}`.any();
}

export type BudgetUseRow = { subjectId: string; tokens: number; cost: number };

/** Who used how much of a budget in a period, most tokens first. */
export async function listUses(
  db: Db,
  { appId, id }: BudgetRow,
  periodStart: string,
  page: PageRequest,
): Promise<[BudgetUseRow[], number]> {
  const of = db`app_id = ${appId} and budget_id = ${id} and period_start = ${periodStart}::date`;
  return readWithTotal(
    db<BudgetUseRow[]>`
      select subject_id, tokens, cost from model_budget_uses where ${of}
      order by tokens desc, subject_id limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from model_budget_uses where ${of}`,
  );
}

/** Deletes counts that no call can add to. Returns how many. */
export async function deleteOldUses(db: Db, now: Date, count: number): Promise<number> {
  const { count: deleted } = await db`
    delete from model_budget_uses where (app_id, budget_id, subject_id, period_start) in (
      select u.app_id, u.budget_id, u.subject_id, u.period_start from model_budget_uses u
      join model_budgets b on b.app_id = u.app_id and b.id = u.budget_id
      where u.updated_at < ${now}::timestamptz - interval '62 days' and (b.period <> 'total' or b.subject = 'run')
        and ${isInUse(db, 'u.app_id')}
      limit ${count} for update of u skip locked)`;
  return deleted;
}

const groupColumns: Record<UsageDimension, string> = {
  sandbox: 'sandbox_id',
  user: 'user_id',
  agent: 'agent_id',
  automation: 'automation_id',
  run: 'run_id',
  model: 'model',
  day: 'day',
};

export type UsageRow = {
  group: string | null;
  calls: number;
  promptTokens: number;
  completionTokens: number;
  cost: number;
};

type UsageFilter = { by: UsageDimension; since: Date | undefined; until: Date | undefined };

/** What the calls of each group used: the latest days first, or those with the most tokens. */
export async function listUsage(
  db: Db,
  scope: Scope,
  { by, since, until }: UsageFilter,
  page: PageRequest,
): Promise<[UsageRow[], number]> {
  const everySandbox = by === 'sandbox' && scope.sandboxId === production;
  const group = by === 'day' ? db`(c.created_at at time zone 'UTC')::date` : db`${db(`c.${groupColumns[by]}`)}`;
  const grouped = db`
    select ${group}::text as "group", count(*) as calls, coalesce(sum(c.prompt_tokens), 0)::bigint as prompt_tokens,
      coalesce(sum(c.completion_tokens), 0)::bigint as completion_tokens, coalesce(sum(c.cost), 0)::bigint as cost
    from model_calls c
    where ${everySandbox ? db`c.app_id = ${scope.appId}` : inScope(db, scope, 'c')}
      and c.created_at >= ${since ?? '-infinity'}::timestamptz and c.created_at < ${until ?? 'infinity'}::timestamptz
    group by 1`;
  const order = by === 'day' ? db`"group" desc` : db`prompt_tokens + completion_tokens desc, "group"`;
  return readWithTotal(
    db<UsageRow[]>`select * from (${grouped}) g order by ${order} limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from (${grouped}) g`,
  );
}
