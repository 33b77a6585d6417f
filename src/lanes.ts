/**
 * Shares the slots of one resource (threads, processes, jobs) among apps. Each app has its own lane. A lane gets another
 * slot only while it holds fewer slots than are free, so a single lane gets half of them and the next lane never waits
 * for the first one's work. A free slot goes to the lane that holds the fewest, then to the one that has used the least.
 * A lane that neither waits nor holds a slot costs nothing.
 */
export class Lanes<Item> {
  readonly #slots: number;
  readonly #waitingMax: number;
  readonly #lanes = new Map<string, Lane<Item>>();
  #held = 0;
  #waiting = 0;
  /** The usage of the lane served last. A new lane starts from here and has no credit. */
  #now = 0;

  /** @param waitingMax items that may wait; a single lane may have at most half of them. */
  constructor({ slots, waitingMax }: { slots: number; waitingMax: number }) {
    this.#slots = slots;
    this.#waitingMax = waitingMax;
  }

  /** Waiting items. */
  get waiting(): number {
    return this.#waiting;
  }

  /** False when too many items of this lane, or in total, are waiting. */
  add(name: string, item: Item): boolean {
    const lane = this.#lanes.get(name) ?? { items: [], held: 0, used: this.#now };
    if (lane.items.length >= this.#waitingMax - this.#waiting) return false;
    lane.items.push(item);
    this.#waiting += 1;
    this.#lanes.set(name, lane);
    return true;
  }

  /** Removes a waiting item. False when it is not waiting. */
  remove(name: string, item: Item): boolean {
    const lane = this.#lanes.get(name);
    const index = lane?.items.indexOf(item) ?? -1;
    if (!lane || index < 0) return false;
    lane.items.splice(index, 1);
    this.#waiting -= 1;
    this.#forgetIdle(name, lane);
    return true;
  }

  /** The next item, which then holds a slot of its lane; undefined when no waiting lane may have one. */
  take(): { lane: string; item: Item } | undefined {
    let next: { name: string; lane: Lane<Item> } | undefined;
    for (const [name, lane] of this.#lanes) {
      if (lane.items.length === 0 || !this.#mayHold(lane)) continue;
      if (!next || lane.held < next.lane.held || (lane.held === next.lane.held && lane.used < next.lane.used))
        next = { name, lane };
    }
    const item = next?.lane.items.shift();
    if (!next || item === undefined) return undefined;
    this.#waiting -= 1;
    this.#held += 1;
    next.lane.held += 1;
    this.#now = Math.max(this.#now, next.lane.used);
    return { lane: next.name, item };
  }

  /** Releases a slot. `cost`, in any consistent unit, is the usage of its work. */
  release(name: string, cost: number): void {
    const lane = this.#lanes.get(name);
    if (!lane) return;
    this.#held -= 1;
    lane.held -= 1;
    lane.used += cost;
    this.#forgetIdle(name, lane);
  }

  /** Removes all waiting items from every lane. */
  drain(): Item[] {
    const items = [...this.#lanes.values()].flatMap((lane) => lane.items.splice(0));
    this.#waiting = 0;
    for (const [name, lane] of this.#lanes) this.#forgetIdle(name, lane);
    return items;
  }

  #mayHold(lane: Lane<Item>): boolean {
    return lane.held < this.#slots - this.#held;
  }

  #forgetIdle(name: string, lane: Lane<Item>): void {
    if (lane.items.length === 0 && lane.held === 0) this.#lanes.delete(name);
  }
}

type Lane<Item> = { items: Item[]; held: number; used: number };
