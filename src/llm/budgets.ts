import { type Database, type Db, isForeignKeyViolation } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { AppError } from '../lib/errors.ts';
import { formatId, type IdKind } from '../lib/ids.ts';
import * as store from './budget-store.ts';
import type { TokenHold } from './generation.ts';
import type { CallOrigin } from './origin.ts';
import type { Settlements } from './settlements.ts';

/** A budget has reached a limit. `emit` writes an event about it in the transaction. */
type BudgetReached = {
  appId: string;
  sandboxId: string;
  payload: {
    budget: string;
    level: 'soft' | 'hard';
    subject: store.BudgetSubject;
    subject_id: string | null;
    period: store.BudgetPeriod;
    resets_at: string | null;
    tokens: number;
    cost: number;
  };
};

export type BudgetDeps = {
  db: Database;
  clock: Clock;
  settlements: Pick<Settlements, 'reserve'>;
  emitReached(tx: Db, reached: BudgetReached): Promise<unknown>;
};

/** What a call has reserved in the budgets of its origin. */
type BudgetHold = {
  /** Whether one of the budgets counts money. */
  inMoney: boolean;
  settle(tx: Db, used: store.Amount): Promise<void>;
};

const triesMax = 5;

type Applied = { budget: store.AppliedBudget; start: string };

export type Budgets = {
  /**
   * Reserves what `own` does and in all budgets, or nothing. Throws 429 `token_budget_exceeded` if a budget might be
   * exceeded. `cost` is undefined for models without a price.
   */
  reserve(
    origin: CallOrigin,
    amount: { tokens: number; cost: number | undefined },
    own: (tx: Db) => Promise<TokenHold>,
  ): Promise<BudgetHold>;
};

/** Reserves tokens and money before a call, and replaces the reservation by what the call used. */
export function createBudgets({ db, clock, settlements, emitReached }: BudgetDeps): Budgets {
  const reserve: Budgets['reserve'] = async (...call) => {
    for (let tries = 1; ; tries++)
      try {
        return await reserveOnce(...call);
      } catch (error) {
        // A budget was deleted after it was read.
        if (!isForeignKeyViolation(error) || tries === triesMax) throw error;
      }
  };

  const reserveOnce: Budgets['reserve'] = async (origin, amount, own) => {
    const budgets = await store.listAppliedBudgets(db, origin);
    const now = clock.now();
    const applied = budgets.map((budget): Applied => ({ budget, start: periodStart(budget.period, now) }));
    const inMoney = budgets.some(({ cost, softCost }) => cost !== null || softCost !== null);
    if (inMoney && amount.cost === undefined)
      throw new AppError(
        'invalid_parameters',
        'model: has no price, and a budget in money applies to this call. Set the prices of the model.',
        { fields: [{ field: 'model', message: 'has no price, and a budget in money applies to this call' }] },
      );
    const held = { tokens: amount.tokens, cost: amount.cost ?? 0 };
    const settleAll = async (tx: Db, ownHold: TokenHold, used: store.Amount): Promise<void> => {
      await ownHold.settle(tx, used.tokens);
      const change = { tokens: used.tokens - held.tokens, cost: used.cost - held.cost };
      for (const each of applied) {
        const use = await store.settleUse(tx, each.budget, each.start, change);
        if (
          use !== undefined &&
          isSoft(each.budget, use) &&
          (await store.markReached(tx, each.budget, each.start, 'soft'))
        )
          await emitReached(tx, reachedBy(each, 'soft', use));
      }
    };
    let refusing: Applied | undefined;
    try {
      const ownHold = await settlements.reserve(
        async (tx) => {
          const reserved = await own(tx);
          for (const each of applied) {
            if ((await store.reserveUse(tx, each.budget, each.start, held)) !== undefined) continue;
            refusing = each;
            throw exceeded(each.budget, now);
          }
          return reserved;
        },
        (tx, reserved) => settleAll(tx, reserved, { tokens: 0, cost: 0 }),
      );
      return { inMoney, settle: (tx, used) => settleAll(tx, ownHold, used) };
    } catch (error) {
      if (refusing !== undefined) await noteHard(refusing);
      throw error;
    }
  };

  async function noteHard(each: Applied): Promise<void> {
    await db.begin(async (tx) => {
      if (!(await store.markReached(tx, each.budget, each.start, 'hard'))) return;
      const use = (await store.findUse(tx, each.budget, each.start)) ?? { tokens: 0, cost: 0 };
      await emitReached(tx, reachedBy(each, 'hard', use));
    });
  }

  return { reserve };
}

function isSoft({ softTokens, softCost }: store.BudgetRow, { tokens, cost }: store.UseRow): boolean {
  return (softTokens !== null && tokens >= softTokens) || (softCost !== null && cost >= softCost);
}

const idKinds: Record<Exclude<store.BudgetSubject, 'app'>, IdKind> = {
  sandbox: 'sandbox',
  user: 'user',
  agent: 'agent',
  automation: 'automation',
  run: 'automationRun',
};

/** The id of a budget's subject as clients see it; null for the app. */
export function formatSubject(subject: store.BudgetSubject, id: string | null): string | null {
  return subject === 'app' || id === null ? null : formatId(idKinds[subject], id);
}

export function subjectIdKind(subject: Exclude<store.BudgetSubject, 'app'>): IdKind {
  return idKinds[subject];
}

function reachedBy({ budget, start }: Applied, level: 'soft' | 'hard', use: store.UseRow): BudgetReached {
  const { appId, sandboxId, id, subject, period, usesOf } = budget;
  const resets_at = periodEnd(period, start)?.toISOString() ?? null;
  const subject_id = formatSubject(subject, usesOf);
  const { tokens, cost } = use;
  const payload = { budget: formatId('modelBudget', id), level, subject, subject_id, period, resets_at, tokens, cost };
  return { appId, sandboxId, payload };
}

function exceeded(budget: store.AppliedBudget, now: Date): AppError {
  const { id, subject, period, tokens, cost } = budget;
  const ends = periodEnd(period, periodStart(period, now));
  const until = ends === undefined ? '' : ` It resets at ${ends.toISOString()}.`;
  const limits = [tokens === null ? '' : `${tokens} tokens`, cost === null ? '' : `${cost} millionths of money`];
  const words = limits.filter((text) => text !== '').join(' and ');
  const whose = subject === 'app' ? 'the app' : `the ${subject}`;
  return new AppError(
    'token_budget_exceeded',
    `A budget of ${whose} allows ${words} ${period === 'total' ? 'in total' : `per ${period}`}, and this call might exceed it.${until}`,
    {
      details: { budget: formatId('modelBudget', id), resets_at: ends?.toISOString() ?? null },
      headers: ends === undefined ? {} : { 'retry-after': String(Math.ceil((ends.getTime() - now.getTime()) / 1_000)) },
    },
  );
}

/** The first day of the period (UTC) that a time is in. */
export function periodStart(period: store.BudgetPeriod, now: Date): string {
  if (period === 'total') return '1970-01-01';
  const day = now.toISOString().slice(0, 10);
  return period === 'day' ? day : `${day.slice(0, 7)}-01`;
}

/** When a period ends and the budget is whole again. Undefined for `total`. */
export function periodEnd(period: store.BudgetPeriod, start: string): Date | undefined {
  if (period === 'total') return undefined;
  const [year = 0, month = 1, day = 1] = start.split('-').map(Number);
  return period === 'day' ? utcDay(year, month - 1, day + 1) : utcDay(year, month, 1);
}

function utcDay(year: number, month: number, day: number): Date {
  return new Date(Date.UTC(year, month, day));
}
