import { setImmediate as nextTurn } from 'node:timers/promises';

/** Work that takes longer without a pause would delay other requests. */
const turnMs = 10;

/** Divides long work into turns of the event loop. */
export class Pace {
  #beganAt = performance.now();

  /** Lets other work run if this turn has taken long. */
  async keep(): Promise<void> {
    if (performance.now() - this.#beganAt < turnMs) return;
    await nextTurn();
    this.#beganAt = performance.now();
  }
}
