import assert from 'node:assert/strict';
import { startWatch } from './speed.ts';

/** One response to a concurrent caller. */
type Attempt = { status: number; body?: unknown; text?: string };

export type LimitCase = {
  /** Its name in docs/limits.md: a setting, or the first cell of the row. */
  limit: string;
  /** How many callers may pass. */
  max: number;
  attempts: number;
  /** Prepares an app of its own, and returns what each caller does. `held` counts what is then there. */
  prepare(): Promise<{
    attempt(number: number): Promise<Attempt>;
    held(): Promise<number>;
    /** The most that `held` may return; by default `max`. */
    heldMax?: number;
    end?(): Promise<void>;
  }>;
  refusal: { status: number; code?: string };
  /** How many more may pass, for limits that say so, after this many milliseconds. */
  slack?(elapsedMs: number): number;
};

/**
 * Sends all attempts at the same time. As many pass as the limit says, not one more, every other one gets the documented
 * refusal, and what is stored afterwards is within the limit.
 */
export async function tryLimit({ limit, max, attempts, prepare, refusal, slack }: LimitCase): Promise<void> {
  const { attempt, held, heldMax = max, end } = await prepare();
  try {
    const watch = startWatch();
    const responses = await Promise.all(Array.from({ length: attempts }, (_, number) => attempt(number)));
    const more = slack?.(watch.passedMs()) ?? 0;
    const refused = responses.filter(({ status }) => status === refusal.status);
    const passed = attempts - refused.length;
    assert.ok(
      passed >= max && passed <= max + more,
      `${limit}: ${passed} of ${attempts} passed, the limit is ${max}: ${JSON.stringify(responses.map(({ status }) => status))}`,
    );
    for (const { status, text } of responses) assert.ok(status < 500, `${limit}: ${status} ${text}`);
    for (const { body, text } of refused)
      if (refusal.code !== undefined)
        assert.equal((body as { error?: { code: string } }).error?.code, refusal.code, `${limit}: ${text}`);
    const kept = await held();
    assert.ok(kept <= heldMax + more, `${limit}: ${kept} are held, the limit is ${heldMax}`);
  } finally {
    await end?.();
  }
}

/** The limits that docs/limits.md names: settings, and the rows of its counted limits without one. */
export function namesOfLimits(text: string): Set<string> {
  const settings = text.match(/QUARRY_[A-Z_]+/g) ?? [];
  const counted = text.split('## Counted limits')[1]?.split('\n\n')[1] ?? '';
  const rows = counted
    .split('\n')
    .slice(2)
    .filter((row) => row.startsWith('|') && !row.includes('QUARRY_'))
    .map((row) => row.split('|')[1]?.trim() ?? '');
  return new Set([...settings, ...rows]);
}
