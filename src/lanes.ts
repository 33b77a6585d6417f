/** The usage of the same resource in other processes: free slots, and how many slots each lane holds. */
type Elsewhere = { free: number; held: ReadonlyMap<string, number> };
const nowhere: Elsewhere = { free: 0, held: new Map() };

/**
 * Shares the slots of one resource (threads, processes, jobs) among apps. Each app has its own lane. A lane gets
 * another slot only while it holds fewer slots than are free, so a single lane gets half of them, and the next lane
 * never waits for the first one's work. A free slot goes to the lane that holds the fewest, and among those to the
 * one that has used the least. A lane that neither waits nor holds a slot costs nothing.
 */
export class Lanes<Item> {
  readonly #slots: number;
  readonly #waitingMax: number;
  readonly #recentMs: number;
  /** When lanes that neither wait nor hold a slot were last active. */
  readonly #recent = new Map<string, number>();
  readonly #lanes = new Map<string, Lane<Item>>();
  #held = 0;
  #waiting = 0;
  /** The usage of the lane served last. A new lane starts with this value and so gets no credit. */
  #now = 0;

  /**
   * @param waitingMax the number of items that may wait; a single lane may have at most half of them
   * @param recentMs lanes active within this time share half of the slots, at least one each, so that their next work
   * does not find the other lanes using all slots
   */
  constructor({ slots, waitingMax, recentMs = 0 }: { slots: number; waitingMax: number; recentMs?: number }) {
    this.#slots = slots;
    this.#waitingMax = waitingMax;
    this.#recentMs = recentMs;
  }

  /** The number of waiting items. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Returns false if too many items of this lane, or in total, are waiting. */
  add(name: string, item: Item): boolean {
    const lane = this.#lanes.get(name) ?? { items: [], held: 0, used: this.#now };
    if (lane.items.length >= this.#waitingMax - this.#waiting) return false;
    lane.items.push(item);
    this.#waiting += 1;
    this.#lanes.set(name, lane);
    this.#recent.delete(name);
    return true;
  }

  /** Removes a waiting item. Returns false if it is not waiting. */
  remove(name: string, item: Item): boolean {
    const lane = this.#lanes.get(name);
    const index = lane?.items.indexOf(item) ?? -1;
    if (!lane || index < 0) return false;
    lane.items.splice(index, 1);
    this.#waiting -= 1;
    this.#forgetIdle(name, lane);
    return true;
  }

  /** Whether a waiting lane may have a slot. */
  get canTake(): boolean {
    return this.#next(nowhere) !== undefined;
  }

  /**
   * Returns the next item, which then holds a slot of its lane. Undefined if no waiting lane may have one.
   * @param elsewhere for work that any process may take: the rule then applies both here and over all processes
   */
  take(elsewhere: Elsewhere = nowhere): { lane: string; item: Item } | undefined {
    const next = this.#next(elsewhere);
    const item = next?.lane.items.shift();
    if (!next || item === undefined) return undefined;
    this.#waiting -= 1;
    this.#held += 1;
    next.lane.held += 1;
    this.#now = Math.max(this.#now, next.lane.used);
    return { lane: next.name, item };
  }

  /** Releases a slot. `cost` is the usage of its work, in any consistent unit. */
  release(name: string, cost: number): void {
    const lane = this.#lanes.get(name);
    if (!lane) return;
    this.#held -= 1;
    lane.held -= 1;
    lane.used += cost;
    this.#forgetIdle(name, lane);
  }

  /** Removes and returns all waiting items of every lane. */
  drain(): Item[] {
    const items = [...this.#lanes.values()].flatMap((lane) => lane.items.splice(0));
    this.#waiting = 0;
    for (const [name, lane] of this.#lanes) this.#forgetIdle(name, lane);
    return items;
  }

  /**
   * The waiting lane that holds the fewest slots in all processes, and among those the one that has used the least
   * here.
   */
  #next(elsewhere: Elsewhere): { name: string; lane: Lane<Item>; heldByAll: number } | undefined {
    const share = this.#share();
    const free = this.#slots - this.#held;
    let next: { name: string; lane: Lane<Item>; heldByAll: number } | undefined;
    for (const [name, lane] of this.#lanes) {
      const heldByAll = lane.held + (elsewhere.held.get(name) ?? 0);
      if (lane.items.length === 0 || lane.held >= Math.min(share, free) || heldByAll >= free + elsewhere.free) continue;
      if (!next || heldByAll < next.heldByAll || (heldByAll === next.heldByAll && lane.used < next.lane.used))
        next = { name, lane, heldByAll };
    }
    return next;
  }

  /** The number of slots that a lane may hold. */
  #share(): number {
    if (this.#recentMs === 0) return this.#slots;
    const now = performance.now();
    for (const [name, endedMs] of this.#recent) if (now - endedMs > this.#recentMs) this.#recent.delete(name);
    return Math.max(1, Math.floor(this.#slots / 2 / (this.#lanes.size + this.#recent.size)));
  }

  #forgetIdle(name: string, lane: Lane<Item>): void {
    if (lane.items.length > 0 || lane.held > 0) return;
    this.#lanes.delete(name);
    if (this.#recentMs > 0) this.#recent.set(name, performance.now());
  }
}

type Lane<Item> = { items: Item[]; held: number; used: number };
