import { Lanes } from '../lanes.ts';

/** Slots for the work after a wait. Apps share them fairly: a thousand responses for one app delay no other app. */
export class WorkSlots {
  readonly #lanes: Lanes<() => void>;
  #isOpen = false;

  constructor(count: number) {
    this.#lanes = new Lanes({ slots: count, waitingMax: Number.POSITIVE_INFINITY });
  }

  /** Waits for a slot. Returns a function that releases it. */
  async take(lane: string): Promise<() => void> {
    if (this.#isOpen) return () => {};
    await new Promise<void>((resolve) => {
      this.#lanes.add(lane, resolve);
      this.#next();
    });
    const takenAt = performance.now();
    return () => {
      this.#lanes.release(lane, performance.now() - takenAt);
      this.#next();
    };
  }

  /** Runs work in a slot. */
  async run<T>(lane: string, work: () => Promise<T>): Promise<T> {
    const release = await this.take(lane);
    try {
      return await work();
    } finally {
      release();
    }
  }

  /** From now on, lets all work pass without a slot, because this process is stopping. */
  open(): void {
    this.#isOpen = true;
    for (const resolve of this.#lanes.drain()) resolve();
  }

  #next(): void {
    for (let next = this.#lanes.take(); next !== undefined; next = this.#lanes.take()) next.item();
  }
}
