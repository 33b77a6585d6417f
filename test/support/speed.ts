import assert from 'node:assert/strict';
import { type TestFn, test } from 'node:test';
import { longestTurnMs } from './loop-meter.ts';

/*
 * How long something takes depends on the machine and on what else it does. `npm test` judges none of it; `npm run prove
 * -- --only speed` does, with nothing beside it.
 */
const judges = process.env.PROVE_SPEED === '1';

/** A test that judges times, of the wall clock or of the processor. Only `npm run prove` runs it. */
export function speedTest(name: string, work: TestFn): void {
  void test(name, { skip: judges ? false : 'npm run prove judges speed' }, work);
}

/** Measures from now on. */
export function startWatch() {
  const startedAt = performance.now();
  const passedMs = () => performance.now() - startedAt;
  return {
    /** For notes, and for limits that grow with the time that has passed. */
    passedMs,
    /** Whether more time has passed, where speed is judged. */
    isLate: (ms: number) => judges && passedMs() > ms,
    /** Fails if more time has passed, where speed is judged. */
    within(ms: number, what: string): void {
      const tookMs = passedMs();
      if (judges) assert.ok(tookMs < ms, `${what} took ${Math.round(tookMs)} ms, and at most ${ms} are allowed`);
    },
  };
}

/** Does the work, and fails if a turn of the event loop took more processor time than it may, where speed is judged. */
export async function inShortTurns(ms: number, what: string, work: () => Promise<unknown>): Promise<void> {
  const tookMs = await longestTurnMs(work);
  if (judges) assert.ok(tookMs < ms, `${what}: a turn took ${tookMs.toFixed(1)} ms, and at most ${ms} are allowed`);
}
