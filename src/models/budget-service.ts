import { type Database, production } from '../db/database.ts';
import type { PageRequest } from '../http/route/pages.ts';
import { readTime } from '../http/route/times.ts';
import type { Clock } from '../lib/clock.ts';
import { found, invalidField } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import type { BudgetRow } from '../llm/budget-store.ts';
import { periodEnd, periodStart, subjectIdKind } from '../llm/budgets.ts';
import type { Caller } from '../tenancy/caller.ts';
import { fieldId, pathId } from '../tenancy/references.ts';
import { requireRoom } from '../tenancy/room.ts';
import type { BudgetCreate, BudgetUpdate, UsageQuery } from './budget-schema.ts';
import * as store from './budget-store.ts';

/** Budgets of production and of each sandbox. Each call looks at all that apply to it. */
const room = { things: 'model budgets', max: 200 };

export type BudgetService = ReturnType<typeof createBudgetService>;

/** Budgets for language models, and what the calls of an app used. */
export function createBudgetService({ db, clock }: { db: Database; clock: Clock }) {
  async function get(caller: Caller, id: string): Promise<BudgetRow> {
    return found(await store.findBudget(db, caller, pathId('modelBudget', id)));
  }

  return {
    get,

    async create(caller: Caller, input: BudgetCreate): Promise<BudgetRow> {
      const limits = readLimits(input, noLimits);
      const { subject, period } = input;
      if ((subject === 'app' || subject === 'sandbox') && caller.sandboxId !== production)
        throw invalidField('subject', 'can be app or sandbox only in production');
      const subjectId = readSubject(input);
      return db.begin(async (tx) => {
        await requireRoom(tx, caller, room, () => store.countBudgets(tx, caller));
        return store.insertBudget(tx, caller, {
          id: newUuid(),
          subject,
          subjectId,
          period,
          ...limits,
          now: clock.now(),
        });
      });
    },

    list: (caller: Caller, page: PageRequest) => store.listBudgets(db, caller, page),

    async update(caller: Caller, id: string, change: BudgetUpdate): Promise<BudgetRow> {
      return db.begin(async (tx) => {
        const row = found(await store.lockBudget(tx, caller, pathId('modelBudget', id)));
        return store.updateBudget(tx, row, readLimits(change, row), clock.now());
      });
    },

    async remove(caller: Caller, id: string): Promise<void> {
      found(await store.deleteBudget(db, caller, pathId('modelBudget', id)));
    },

    /** Who has used how much of the budget in the current period, and when that ends. */
    async listUses(caller: Caller, id: string, page: PageRequest) {
      const budget = await get(caller, id);
      const start = periodStart(budget.period, clock.now());
      const [rows, total] = await store.listUses(db, budget, start, page);
      return { budget, rows, total, resetsAt: periodEnd(budget.period, start) };
    },

    listUsage(caller: Caller, { by = 'day', since, until }: UsageQuery, page: PageRequest) {
      return store.listUsage(
        db,
        caller,
        { by, since: readTime('since', since), until: readTime('until', until) },
        page,
      );
    },
  };
}

/** What is named need not exist yet, or any more: the budget then waits for its calls. */
function readSubject({ subject, subject_id: id }: BudgetCreate): string | null {
  if (id === undefined) return null;
  if (subject === 'app') throw invalidField('subject_id', 'is not for a budget of the app');
  return fieldId(subjectIdKind(subject), 'subject_id', id);
}

const noLimits: store.BudgetLimits = { tokens: null, cost: null, softTokens: null, softCost: null };

/** The limits after a change: null removes one, and at least one must be left. */
function readLimits(change: BudgetUpdate, present: store.BudgetLimits): store.BudgetLimits {
  const limits = {
    tokens: change.tokens === undefined ? present.tokens : change.tokens,
    cost: change.cost === undefined ? present.cost : change.cost,
    softTokens: change.soft_tokens === undefined ? present.softTokens : change.soft_tokens,
    softCost: change.soft_cost === undefined ? present.softCost : change.soft_cost,
  };
  if (Object.values(limits).every((limit) => limit === null))
    throw invalidField('tokens', 'set at least one of tokens, cost, soft_tokens and soft_cost');
  return limits;
}
