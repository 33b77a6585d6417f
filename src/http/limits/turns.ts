import { setImmediate as nextTurn } from 'node:timers/promises';
import { Slots } from '../../fairness/slots.ts';

/**
 * Takes turns on the event loop for large bodies and responses, which are processed in pieces: one piece of an app at
 * a time, then a pause for everything else. The pause is as long as the piece took. While other apps send requests it
 * is longer: pieces then pass at `sharedBytesPerSecond`, because the memory they leave behind is collected in pauses
 * that stop every request.
 */
export class Turns {
  readonly #slots = new Slots({ slots: 2 });
  /** The app of the last request, and the app that sent a request before it. */
  #last = { app: '', atMs: Number.NEGATIVE_INFINITY };
  #other = this.#last;

  /** Notes that an app has sent a request. */
  noteRequest(app: string): void {
    if (app !== this.#last.app) this.#other = this.#last;
    this.#last = { app, atMs: performance.now() };
  }

  /** @param bytesOf returns the number of bytes that the piece read or wrote */
  async run<T>(app: string, work: () => T | Promise<T>, bytesOf: (result: T) => number): Promise<T> {
    const release = await this.#slots.take(app);
    await nextTurn();
    const startedMs = performance.now();
    let bytes = 0;
    try {
      const result = await work();
      bytes = bytesOf(result);
      return result;
    } finally {
      const tookMs = performance.now() - startedMs;
      setTimeout(
        () => release(tookMs),
        Math.max(Math.min(tookMs, pauseMsMax), this.#isShared(app) ? (bytes / sharedBytesPerSecond) * 1_000 : 0),
      );
    }
  }

  /** Whether another app has sent a request recently. */
  #isShared(app: string): boolean {
    const { atMs } = this.#last.app === app ? this.#other : this.#last;
    return performance.now() - atMs < recentMs;
  }
}

/** A piece that waited for the database did not use the event loop for all of its time. */
const pauseMsMax = 25;
/** A compromise, measured with bench/neighbours.ts: half of this rate did not help the other app more. */
export const sharedBytesPerSecond = 24 * 1024 * 1024;
const recentMs = 1_000;

/** The turns of this process: all of its requests share one event loop. */
export const turns = new Turns();
