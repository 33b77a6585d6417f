import { Lanes } from '../lanes.ts';

/**
 * Turns on the event loop for large bodies and responses, whose work is done in pieces: one piece
 * of an app at a time, and then as long a pause for everything else. So other requests wait for one piece at most, and
 * have half of the time, however many large bodies and responses there are.
 */
class Turns {
  readonly #lanes = new Lanes<() => void>({ slots: 2, waitingMax: Number.POSITIVE_INFINITY });

  async run<T>(app: string, work: () => T | Promise<T>): Promise<T> {
    await new Promise<void>((resolve) => {
      this.#lanes.add(app, resolve);
      this.#next();
    });
    const startedMs = performance.now();
    try {
      return await work();
    } finally {
      const tookMs = performance.now() - startedMs;
      setTimeout(
        () => {
          this.#lanes.release(app, tookMs);
          this.#next();
        },
        Math.min(tookMs, pauseMsMax),
      );
    }
  }

  #next(): void {
    for (let next = this.#lanes.take(); next !== undefined; next = this.#lanes.take()) setImmediate(next.item);
  }
}

/** A piece that waited for the database has not used the event loop for all of its time. */
const pauseMsMax = 25;

/** The turns of this process: all of its requests share one event loop. */
export const turns = new Turns();
