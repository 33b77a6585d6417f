/**
 * Places for work that goes on after a wait. Lanes that wait for one take turns, so that an app with a thousand
 * answers at one time does not keep the others waiting.
 */
export class Places {
  #free: number;
  readonly #lanes = new Map<string, (() => void)[]>();

  constructor(count: number) {
    this.#free = count;
  }

  async take(lane: string): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    await new Promise<void>((resolve) => {
      const queue = this.#lanes.get(lane);
      if (queue) queue.push(resolve);
      else this.#lanes.set(lane, [resolve]);
    });
  }

  giveBack(): void {
    const [next] = this.#lanes;
    if (next === undefined) {
      this.#free += 1;
      return;
    }
    const [lane, queue] = next;
    const resolve = queue.shift();
    this.#lanes.delete(lane);
    if (queue.length > 0) this.#lanes.set(lane, queue);
    resolve?.();
  }

  /** Lets everybody through from now on: this process stops, and what waits has to end. */
  open(): void {
    this.#free = Number.POSITIVE_INFINITY;
    for (const queue of this.#lanes.values()) for (const resolve of queue) resolve();
    this.#lanes.clear();
  }
}
