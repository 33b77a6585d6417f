import { Lanes } from './lanes.ts';

/** Lanes for callers that wait until they may begin, such as requests to one server that all apps share. */
export class LaneSlots {
  readonly #lanes: Lanes<() => void>;

  /** @param slotsOfLane concurrent work of one lane; as much more for other lanes. */
  constructor({ slotsOfLane, waitingMax }: { slotsOfLane: number; waitingMax: number }) {
    this.#lanes = new Lanes({ slots: 2 * slotsOfLane, waitingMax });
  }

  /**
   * Runs the work when the lane has a slot. Throws what `refuse` returns when too much of this lane waits, and the
   * signal's reason when that is aborted first.
   */
  async run<T>(lane: string, signal: AbortSignal | undefined, work: () => Promise<T>, refuse: () => Error): Promise<T> {
    signal?.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const begin = (): void => {
        signal?.removeEventListener('abort', leave);
        resolve();
      };
      const leave = (): void => {
        if (this.#lanes.remove(lane, begin)) reject(signal?.reason);
      };
      if (!this.#lanes.add(lane, begin)) return reject(refuse());
      signal?.addEventListener('abort', leave, { once: true });
      this.#next();
    });
    const startedMs = performance.now();
    try {
      return await work();
    } finally {
      this.#lanes.release(lane, performance.now() - startedMs);
      this.#next();
    }
  }

  #next(): void {
    for (let turn = this.#lanes.take(); turn; turn = this.#lanes.take()) turn.item();
  }
}
