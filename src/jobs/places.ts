import { Lanes } from '../lanes.ts';

/** Places for work that follows a wait, shared by apps: one with a thousand answers keeps no other waiting. */
export class Places {
  readonly #lanes: Lanes<() => void>;
  #isOpen = false;

  constructor(count: number) {
    this.#lanes = new Lanes({ slots: count, waitingMax: Number.POSITIVE_INFINITY });
  }

  /** Waits for a place. The function it returns gives the place back. */
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

  /** Does work in a place. */
  async run<T>(lane: string, work: () => Promise<T>): Promise<T> {
    const giveBack = await this.take(lane);
    try {
      return await work();
    } finally {
      giveBack();
    }
  }

  /** Lets everybody through from now on: this process stops, and what waits has to end. */
  open(): void {
    this.#isOpen = true;
    for (const resolve of this.#lanes.drain()) resolve();
  }

  #next(): void {
    for (let next = this.#lanes.take(); next !== undefined; next = this.#lanes.take()) next.item();
  }
}
