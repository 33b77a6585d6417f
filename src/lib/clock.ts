/**
 * The time of day for the rest of the program; tests replace it. Durations are of performance.now(), because a clock may
 * be set, and what processes must agree on is timed by the database's clock: the machines' may differ.
 */
export type Clock = { now(): Date };

export const systemClock: Clock = { now: () => new Date() };

/** Whole seconds since 1970. */
export function nowSeconds(clock: Clock): number {
  return Math.floor(clock.now().getTime() / 1_000);
}

/** Node's timers fire immediately if set for longer. */
const timerMsMax = 2 ** 31 - 1;

/** Like setTimeout, for any duration. Returns a function that cancels it. */
export function callAfter(ms: number, callback: () => void): () => void {
  let timer: NodeJS.Timeout;
  const wait = (leftMs: number): void => {
    timer = setTimeout(
      () => (leftMs > timerMsMax ? wait(leftMs - timerMsMax) : callback()),
      Math.min(leftMs, timerMsMax),
    );
  };
  wait(ms);
  return () => clearTimeout(timer);
}

const countPollMs = 25;

/** Waits until nothing is counted any more, at most so many milliseconds. */
export async function untilNone(count: () => number, timeoutMs: number): Promise<void> {
  const until = performance.now() + timeoutMs;
  while (count() > 0 && performance.now() < until) await new Promise((resolve) => setTimeout(resolve, countPollMs));
}

/**
 * The result of the work. Throws if it takes longer; the work itself continues. A response that has arrived while the
 * event loop was busy is in time: timers come before what sockets have received.
 */
export async function withinTime<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => setImmediate(reject, new Error('No response in time.')), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
