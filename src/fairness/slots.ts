import { Lanes, type Rule } from './lanes.ts';

/** How many pieces of work wait for slots if too many are refused. */
const waitingMax = 10_000;

type SlotsOptions = {
  /** A single app gets half of them. */
  slots: number;
  /** Creates the error for work that finds too much waiting before it. Without it, any amount may wait. */
  tooMany?: () => Error;
  rule?: Rule;
  /** Called when a lane takes a slot, and when it releases one. */
  onHold?: (lane: string, by: 1 | -1) => void;
};

/** Runs work in the lanes of apps: work waits for a slot, and releases it when it has ended. */
export class Slots {
  readonly #lanes: Lanes<() => void>;
  readonly #options: SlotsOptions;
  #isOpen = false;

  constructor(options: SlotsOptions) {
    const { slots, tooMany } = options;
    this.#options = options;
    this.#lanes = new Lanes(tooMany === undefined ? { slots } : { slots, waitingMax });
  }

  /** Runs work in a slot. Throws the signal's reason if it is aborted while the work waits. */
  async run<T>(lane: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const release = await this.take(lane, signal);
    try {
      return await work();
    } finally {
      release();
    }
  }

  /** Waits for a slot. Returns a function that releases it; the cost of the work is the time that it took. */
  async take(lane: string, signal?: AbortSignal): Promise<(cost?: number) => void> {
    if (this.#isOpen) return () => {};
    signal?.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const begin = (): void => {
        signal?.removeEventListener('abort', leave);
        resolve();
      };
      const leave = (): void => {
        if (this.#lanes.remove(lane, begin)) reject(signal?.reason);
      };
      if (!this.#lanes.add(lane, begin)) return reject(this.#options.tooMany?.());
      signal?.addEventListener('abort', leave, { once: true });
      this.#next();
    });
    const takenMs = performance.now();
    return (cost = performance.now() - takenMs) => {
      this.#lanes.release(lane, cost);
      this.#options.onHold?.(lane, -1);
      this.#next();
    };
  }

  /** From now on, lets all work pass without a slot, because this process is stopping. */
  open(): void {
    this.#isOpen = true;
    for (const begin of this.#lanes.drain()) begin();
  }

  #next(): void {
    const { rule, onHold } = this.#options;
    for (let next = this.#lanes.take(rule); next !== undefined; next = this.#lanes.take(rule)) {
      onHold?.(next.lane, 1);
      next.item();
    }
  }
}
