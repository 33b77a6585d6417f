/** The time as the rest of the program sees it. Tests put another in its place; nothing else calls Date.now(). */
export type Clock = { now(): Date };

export const systemClock: Clock = { now: () => new Date() };

/** A clock that stands still until it is told to move. */
export class ManualClock implements Clock {
  #now: Date;

  constructor(start = new Date()) {
    this.#now = start;
  }

  now(): Date {
    return new Date(this.#now);
  }

  advance(ms: number): void {
    this.#now = new Date(this.#now.getTime() + ms);
  }
}

/** Node's timers fire at once when they are set for longer. */
const timerMsMax = 2 ** 31 - 1;

/** Calls back after this time, however long it is. Ends by what it returns. */
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
