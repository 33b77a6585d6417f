import type { Target } from './fixtures.ts';
import { type CallerName, callerNames, type Ownership, ownerships } from './tenants.ts';

/** `ok` is the operation's own success status. A number is the status of an error. */
type Outcome = 'ok' | number;

/** What a request sends, and its path if that is not the route's own. */
export type Sent = { path?: string; body?: unknown; headers?: Record<string, string> };
/** What callers get on one route. */
export type Expectation = {
  table: Row[];
  /** Creates a resource of this ownership. Without it, the request names no resource. */
  make?: (whose: Ownership) => Promise<Target>;
  /** The request. By default the path with the resource's id, and an empty body if the method has one. */
  send?: (target: Target, caller: CallerName) => Sent | Promise<Sent>;
  /** Whether success deletes the resource, so that each success needs a new one. */
  consumes?: boolean;
  /** The status of `ok` if the resource's state does not allow the operation. */
  admitted?: number;
};

/** One row: what each caller receives for a resource of this ownership. */
export type Row = { whose: Ownership; outcomes: Map<CallerName, Outcome> };

/**
 * Reads a table of outcomes from text: the first line names the callers, and each further line an ownership.
 * `users` stands for all end users without a column.
 */
export function readMatrix(text: string): Row[] {
  const [head = [], ...lines] = text
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter((words) => words[0] !== '');
  return lines.map(([whose, ...cells]) => {
    const named = new Map(head.map((name, index) => [name, readOutcome(cells[index])]));
    const outcomes = callerNames.map((name) => {
      const outcome = named.get(name) ?? (/key$/i.test(name) ? undefined : named.get('users'));
      if (outcome === undefined) throw new Error(`The matrix has no column for ${name}.`);
      return [name, outcome] as const;
    });
    if (!(ownerships as readonly string[]).includes(whose ?? '')) throw new Error(`${whose} is not an ownership.`);
    return { whose: whose as Ownership, outcomes: new Map(outcomes) };
  });
}

function readOutcome(cell: string | undefined): Outcome {
  if (cell === 'ok') return 'ok';
  const status = Number(cell);
  if (!Number.isInteger(status)) throw new Error(`${cell} is not an outcome.`);
  return status;
}

/** Runs the checks, a few at a time, and returns the failures. */
export async function runChecks(checks: (() => Promise<string | undefined>)[], concurrency = 8): Promise<string[]> {
  const problems: string[] = [];
  const queue = checks.values();
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      for (const check of queue) {
        const problem = await check();
        if (problem !== undefined) problems.push(problem);
      }
    }),
  );
  return problems;
}
