import type { Database } from '../../db/database.ts';
import type { Clock } from '../../lib/clock.ts';
import { AppError } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { Identity } from '../../tenancy/caller.ts';

/** The groups of routes. Stored with the budgets, so treat the names as public. */
const routeGroups = ['reads', 'writes', 'uploads', 'extractions', 'search', 'invocations'] as const;
export type RouteGroup = (typeof routeGroups)[number];

/** Requests per minute that one credential may make in each group. 0 means unlimited. */
type RatesPerMinute = Record<RouteGroup, number>;

type RateLimiterDeps = {
  db: Database;
  clock: Clock;
  log: Logger;
  ratesPerMinute: RatesPerMinute;
  /** Called for each refused request. */
  onRefused?: (group: RouteGroup) => void;
};

/** What this process knows about a credential's budget in one group. */
type Budget = {
  readonly credentialId: string;
  readonly group: RouteGroup;
  readonly line: Line;
  /** Requests that may still pass before the database responds. */
  credit: number;
  /** Requests that passed but are not charged yet. */
  spent: number;
  /** Requests whose charge failed. */
  owed: number;
  /**
   * The last balance from the database, and its arrival time by this process's clock. Used when the database does not
   * respond.
   */
  tokens: number;
  toldAtMs: number;
  /** Every request is refused for this long after `toldAtMs`. */
  refusedForMs: number;
  settling: Promise<void> | undefined;
};

/** The limit of a group. The bucket holds one minute's requests. */
type Line = { perMinute: number; credit: number; dueAt: number };

/**
 * The part of a budget, and at least one request, that a process may spend before it asks what other processes used.
 */
const creditShare = 0.01;
const dueSoonMs = 100;
const dueLaterMs = 5_000;
const chargeTimeoutMs = 1_000;
const retryMs = 1_000;
const batchMax = 1_000;
const credentialsMax = 20_000;

/**
 * Limits how often each credential calls each group of routes, over all processes on one database. A budget is a
 * token bucket in the database. A process lets requests pass on credit and charges them afterwards: many budgets with
 * one statement, ten times a second at most, so a request costs one subtraction. All processes together exceed the
 * limit by at most their credit, one hundredth of the limit (at least one request) each, which is charged later, so a
 * bucket may go negative. Only a caller that has used up the credit waits for the database.
 *
 * While the database is unavailable, each process continues from the last known balance.
 */
export class RateLimiter {
  readonly #deps: RateLimiterDeps;
  readonly #lines: Partial<Record<RouteGroup, Line>> = {};
  /**
   * Two generations. When the younger one is full, entries of the older one are dropped unless they were used
   * meanwhile.
   */
  #young = new Map<string, Partial<Record<RouteGroup, Budget>>>();
  #old = new Map<string, Partial<Record<RouteGroup, Budget>>>();
  readonly #due = new Set<Budget>();
  readonly #later = new Set<Budget>();
  #soon: NodeJS.Timeout | undefined;
  #tick: NodeJS.Timeout | undefined;
  #urgent: Promise<void> | undefined;
  #closed = false;

  constructor(deps: RateLimiterDeps) {
    this.#deps = deps;
    for (const group of routeGroups) {
      const perMinute = deps.ratesPerMinute[group];
      if (perMinute === 0) continue;
      const credit = Math.max(1, Math.floor(perMinute * creditShare));
      this.#lines[group] = { perMinute, credit, dueAt: Math.ceil(credit / 2) };
    }
  }

  /**
   * Counts one request. Returns undefined if it may pass, or a promise that resolves when it may. Throws or rejects
   * with 429 `rate_limited`.
   */
  take(identity: Identity, group: RouteGroup): Promise<void> | undefined {
    const line = this.#lines[group];
    if (line === undefined) return undefined;
    const id = credentialOf(identity);
    if (id === undefined) return undefined;
    const budget = this.#budget(id, group, line);
    if (budget.credit < 1) return this.#waitAndSpend(budget);
    this.#spend(budget);
    return undefined;
  }

  /** Charges everything outstanding, so a restart cancels no charge. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#soon);
    clearTimeout(this.#tick);
    this.#chargeLater();
    while (this.#due.size > 0) {
      const before = this.#due.size;
      await this.#chargeDue();
      if (this.#due.size >= before) return;
    }
  }

  #budget(id: string, group: RouteGroup, line: Line): Budget {
    let budgets = this.#young.get(id);
    if (budgets === undefined) {
      budgets = this.#old.get(id) ?? {};
      if (this.#young.size >= credentialsMax) {
        this.#old = this.#young;
        this.#young = new Map();
      }
      this.#young.set(id, budgets);
    }
    let budget = budgets[group];
    if (budget === undefined) {
      const { credit, perMinute: tokens } = line;
      const fresh = { credit, spent: 0, owed: 0, tokens, toldAtMs: this.#now(), refusedForMs: 0, settling: undefined };
      budget = { credentialId: id, group, line, ...fresh };
      budgets[group] = budget;
    }
    return budget;
  }

  #spend(budget: Budget): void {
    budget.credit -= 1;
    budget.spent += 1;
    if (budget.spent === budget.line.dueAt) {
      this.#due.add(budget);
      this.#chargeSoon();
    } else if (budget.spent === 1) {
      this.#later.add(budget);
      this.#tick ??= this.#after(dueLaterMs, () => {
        this.#tick = undefined;
        this.#chargeLater();
        this.#chargeSoon();
      });
    }
  }

  async #waitAndSpend(budget: Budget): Promise<void> {
    for (;;) {
      if (budget.credit >= 1) return this.#spend(budget);
      const passedMs = this.#now() - budget.toldAtMs;
      // A clock that was set back must not extend the refusal.
      if (passedMs >= 0 && passedMs < budget.refusedForMs) {
        this.#deps.onRefused?.(budget.group);
        throw tooManyRequests(budget, budget.refusedForMs - passedMs);
      }
      await this.#chargeNow(budget);
    }
  }

  /** Charges now, in one statement shared with all callers that wait at this moment. */
  async #chargeNow(budget: Budget): Promise<void> {
    if (budget.settling !== undefined) return budget.settling;
    this.#due.add(budget);
    this.#urgent ??= new Promise<void>((resolve) => {
      setImmediate(() => {
        this.#urgent = undefined;
        this.#chargeDue().then(resolve, resolve);
      });
    });
    await this.#urgent;
  }

  #chargeLater(): void {
    for (const budget of this.#later) if (budget.spent > 0) this.#due.add(budget);
    this.#later.clear();
  }

  #chargeSoon(afterMs = dueSoonMs): void {
    if (this.#due.size === 0 || this.#closed) return;
    this.#soon ??= this.#after(afterMs, () => {
      this.#soon = undefined;
      void this.#chargeDue().finally(() => this.#chargeSoon());
    });
  }

  /** Charges what is due: a bounded number of budgets per statement. */
  async #chargeDue(): Promise<void> {
    const batch: Budget[] = [];
    for (const budget of this.#due) {
      if (budget.settling !== undefined) continue;
      this.#due.delete(budget);
      batch.push(budget);
      if (batch.length >= batchMax) break;
    }
    if (batch.length === 0) return;
    const settling = this.#chargeBatch(batch).finally(() => {
      for (const budget of batch) budget.settling = undefined;
    });
    for (const budget of batch) budget.settling = settling;
    await settling;
  }

  async #chargeBatch(batch: Budget[]): Promise<void> {
    const sent = batch.map(({ spent }) => spent);
    const charges = batch.map(({ spent, owed, line }) => Math.min(spent + owed, line.perMinute));
    for (const budget of batch) budget.spent = 0;
    try {
      const tokens = await withinTime(charge(this.#deps.db, batch, charges));
      for (const budget of batch) {
        budget.owed = 0;
        this.#updateBalance(budget, tokens.get(keyOf(budget)) ?? 0);
      }
      this.#chargeSoon();
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'The database is unavailable: this process limits rates by itself');
      for (const [i, budget] of batch.entries()) this.#limitLocally(budget, sent[i] ?? 0);
      this.#chargeSoon(retryMs);
    }
  }

  /** Sets the balance to that of the bucket minus the requests spent since. */
  #updateBalance(budget: Budget, tokens: number): void {
    const { line, spent } = budget;
    budget.tokens = tokens;
    budget.toldAtMs = this.#now();
    const left = tokens - spent;
    budget.credit = Math.max(0, Math.min(line.credit - spent, Math.floor(left)));
    budget.refusedForMs = left >= 1 ? 0 : (1 - left) * msPerToken(line);
    if (spent >= line.dueAt) this.#due.add(budget);
  }

  /** Uses a bucket of this process alone, filled by its own clock. Uncharged requests stay owed. */
  #limitLocally(budget: Budget, sent: number): void {
    const { line } = budget;
    const filled = Math.max(0, this.#now() - budget.toldAtMs) / msPerToken(line);
    budget.owed = Math.min(budget.owed + sent, line.perMinute);
    this.#updateBalance(budget, Math.min(line.perMinute, budget.tokens + filled - sent));
    this.#due.add(budget);
  }

  #now(): number {
    return this.#deps.clock.now().getTime();
  }

  #after(ms: number, work: () => void): NodeJS.Timeout {
    const timer = setTimeout(work, ms);
    timer.unref();
    return timer;
  }
}

/** The key of the budget: the user or developer, not the token, so that many tokens share one budget. */
function credentialOf(identity: Identity): string | undefined {
  switch (identity.kind) {
    case 'user':
      return identity.userId;
    case 'server':
      return identity.keyId;
    case 'developer':
    case 'developer-without-app':
      return identity.developerId;
    default:
      // Clients share a publishable key: one client that used up its budget would keep all others from signing in.
      return undefined;
  }
}

function msPerToken(line: Line): number {
  return 60_000 / line.perMinute;
}

function keyOf(budget: { credentialId: string; group: string }): string {
  return `${budget.credentialId}/${budget.group}`;
}

/** Charges the buckets, which fill by the database's clock. Returns the new balance of each. */
async function charge(db: Database, batch: Budget[], charges: number[]): Promise<Map<string, number>> {
  const perMinute = Object.fromEntries(batch.map(({ group, line }) => [group, line.perMinute]));
  const rows = await db<{ credentialId: string; routeGroup: RouteGroup; tokens: number }[]>`
    with sizes as (select ${JSON.stringify(perMinute)}::text::jsonb as of)
    insert into rate_budgets as b (credential_id, route_group, tokens, filled_at)
    select given.id, given.route_group, (sizes.of -> given.route_group)::float8 - given.charge, clock_timestamp()
    from sizes, unnest(${batch.map(({ credentialId }) => credentialId)}::uuid[],
      ${batch.map(({ group }) => group)}::text[], ${charges}::float8[]) as given (id, route_group, charge)
    order by given.id, given.route_group
    on conflict (credential_id, route_group) do update set
      -- A full bucket holds a minute's requests; the new row's tokens are that less the charge.
      tokens = excluded.tokens - greatest(0,
        (select (sizes.of -> b.route_group)::float8 from sizes)
        - b.tokens - greatest(0, extract(epoch from clock_timestamp() - b.filled_at))
          * (select (sizes.of -> b.route_group)::float8 from sizes) / 60),
      filled_at = clock_timestamp()
    returning credential_id, route_group, tokens`;
  return new Map(
    rows.map(({ credentialId, routeGroup, tokens }) => [keyOf({ credentialId, group: routeGroup }), tokens]),
  );
}

async function withinTime<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('The database did not respond in time.')), chargeTimeoutMs);
  });
  work.catch(() => {});
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function tooManyRequests({ group, line }: Budget, waitMs: number): AppError {
  const seconds = Math.max(1, Math.ceil(waitMs / 1_000));
  return new AppError('rate_limited', `More than ${line.perMinute} ${group} a minute. Try again in ${seconds} s.`, {
    details: { group, limit: line.perMinute, window_seconds: 60 },
    headers: {
      'retry-after': String(seconds),
      'ratelimit-limit': String(line.perMinute),
      'ratelimit-remaining': '0',
      'ratelimit-reset': String(seconds),
      'ratelimit-policy': `${line.perMinute};w=60`,
    },
  });
}
