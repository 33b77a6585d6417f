import type { Clock } from '../../src/lib/clock.ts';

/** A clock that moves only when a test moves it. */
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
