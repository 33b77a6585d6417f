import { Shares } from './shares.ts';

/** What decides beside the slots of these lanes. */
export type Rule = {
  /** For work that any process may take: the free slots of the others. */
  free?: number;
  /** How many slots a lane holds beside those here: in other processes, or in lanes of the same app. */
  heldBeside?(lane: string): number;
  /** Whether the lane, which holds so many here, may have another slot at all. */
  mayTake?(lane: string, held: number): boolean;
};

type LanesOptions = {
  slots: number;
  /** Counts the slots together with other lanes, which share them. */
  shares?: Shares | undefined;
  /** The number of items that may wait. A single lane may have at most half of them. */
  waitingMax?: number;
  /**
   * Lanes active within this time share half of the slots, at least one each, so that their next work does not find the
   * other lanes using all slots.
   */
  recentMs?: number;
};

/**
 * Shares the slots of one resource (threads, processes, jobs, connections) among apps: see `shares.ts` for the promise.
 * Each app has its own lane. A lane that neither waits nor holds a slot costs nothing.
 */
export class Lanes<Item> {
  readonly #slots: number;
  readonly #waitingMax: number;
  readonly #recentMs: number;
  /** When lanes that neither wait nor hold a slot were last active. */
  readonly #recent = new Map<string, number>();
  readonly #lanes = new Map<string, Lane<Item>>();
  readonly #shares: Shares;
  #waiting = 0;
  /** The usage of the lane served last. A new lane starts with this value and so gets no credit. */
  #now = 0;

  constructor({
    slots,
    shares = new Shares(slots),
    waitingMax = Number.POSITIVE_INFINITY,
    recentMs = 0,
  }: LanesOptions) {
    this.#slots = slots;
    this.#waitingMax = waitingMax;
    this.#recentMs = recentMs;
    this.#shares = shares;
  }

  /** The number of waiting items. */
  get waiting(): number {
    return this.#waiting;
  }

  /** The number of slots that a lane holds. */
  heldBy(name: string): number {
    return this.#shares.of(name);
  }

  /** Returns false if too many items of this lane, or in total, are waiting. */
  add(name: string, item: Item): boolean {
    const lane = this.#lanes.get(name) ?? { items: [], used: this.#now };
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
  canTake(rule: Rule = {}): boolean {
    return this.#next(rule) !== undefined;
  }

  /** Returns the next item, which then holds a slot of its lane. Undefined if no waiting lane may have one. */
  take(rule: Rule = {}): { lane: string; item: Item } | undefined {
    const next = this.#next(rule);
    const item = next?.lane.items.shift();
    if (!next || item === undefined) return undefined;
    this.#waiting -= 1;
    this.hold(next.name);
    this.#now = Math.max(this.#now, next.lane.used);
    return { lane: next.name, item };
  }

  /** Counts a slot that the lane holds without having waited. */
  hold(name: string): void {
    if (!this.#lanes.has(name)) this.#lanes.set(name, { items: [], used: this.#now });
    this.#shares.add(name);
  }

  /** Releases a slot. `cost` is the usage of its work, in any consistent unit. */
  release(name: string, cost: number): void {
    const lane = this.#lanes.get(name);
    if (!lane) return;
    this.#shares.add(name, -1);
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

  /** The waiting lane that holds the fewest slots, and among those the one that has used the least here. */
  #next(rule: Rule): Next<Item> | undefined {
    if (this.#waiting === 0) return undefined;
    const share = this.#share();
    const { free } = this.#shares;
    let next: Next<Item> | undefined;
    for (const [name, lane] of this.#lanes) {
      if (lane.items.length === 0 || this.#shares.of(name) >= share || !this.#shares.fits(name)) continue;
      if (rule.mayTake?.(name, this.#shares.of(name)) === false) continue;
      const held = this.#shares.of(name) + (rule.heldBeside?.(name) ?? 0);
      if (rule.free !== undefined && held >= free + rule.free) continue;
      if (!next || held < next.held || (held === next.held && lane.used < next.lane.used)) next = { name, lane, held };
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
    if (lane.items.length > 0 || this.#shares.of(name) > 0) return;
    this.#lanes.delete(name);
    if (this.#recentMs > 0) this.#recent.set(name, performance.now());
  }
}

type Lane<Item> = { items: Item[]; used: number };
type Next<Item> = { name: string; lane: Lane<Item>; held: number };
