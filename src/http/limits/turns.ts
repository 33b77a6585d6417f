import { setImmediate as nextTurn } from 'node:timers/promises';
import { type RecentApps, recentApps } from '../../fairness/recent-apps.ts';
import { Slots } from '../../fairness/slots.ts';

/**
 * Takes turns on the event loop for large bodies and responses, which are processed in pieces: one piece of an app at
 * a time, then a pause for everything else. The pause is as long as the piece took. While other apps send requests it
 * is longer: pieces then pass at `sharedBytesPerSecond`, because the memory they leave behind is collected in pauses
 * that stop every request.
 */
export class Turns {
  readonly #slots = new Slots({ slots: 2 });
  readonly #apps: RecentApps;

  /** @param apps those that send requests to this event loop */
  constructor(apps: RecentApps = recentApps) {
    this.#apps = apps;
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
        Math.max(Math.min(tookMs, pauseMsMax), this.#apps.hasOthers(app) ? (bytes / sharedBytesPerSecond) * 1_000 : 0),
      );
    }
  }
}

/** A piece that waited for the database did not use the event loop for all of its time. */
const pauseMsMax = 25;
/** A compromise, measured with bench/neighbours.ts: half of this rate did not help the other app more. */
export const sharedBytesPerSecond = 24 * 1024 * 1024;

/** The turns of this process: all of its requests share one event loop. */
export const turns = new Turns();
