import { currentSpan, isTracing, type OpenSpan, runWithin, trace } from '../tracing/trace.ts';
import { preferReplica, requirePrimary } from './replica.ts';
import { Unit } from './unit.ts';

type BatcherOptions<Item, Result> = {
  /** Runs the items in one statement and returns their results in the same order. */
  run: (items: Item[]) => Promise<Result[]>;
  /** Limits of one batch: the number of items and the sum of their sizes. */
  itemsMax: number;
  bytesMax: number;
  sizeOf?: (item: Item) => number;
  /**
   * Two items that share a name are never in one batch, nor in two that run at the same time, where one would wait for the
   * other's lock: the later one waits here.
   */
  namesOf?: (item: Item) => string[];
  /** The maximum number of concurrent batches of a group. Items that arrive meanwhile join the next batch. */
  batchesMax: number;
  /** Whether batches may run on the replica. By default, they run on the primary. */
  prefersReplica?: boolean;
  /** Whether a single item may have failed the batch. If so, each item is run alone, and later ones of its names wait. */
  failsForOne?: (error: unknown) => boolean;
};

type Waiting<Item, Result> = {
  item: Item;
  names: string[];
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
  span: OpenSpan | undefined;
};
type Group<Item, Result> = {
  waiting: Waiting<Item, Result>[];
  running: number;
  woken: boolean;
  /** The names of the items that run, in batches or alone. */
  names: Set<string>;
};

/**
 * Combines small operations of many requests: those that arrive in one turn of the event loop, or while earlier
 * batches run, share a statement. A single operation waits only until the end of its turn.
 */
export class Batcher<Item, Result> {
  readonly #options: BatcherOptions<Item, Result>;
  readonly #groups = new Map<string, Group<Item, Result>>();

  constructor(options: BatcherOptions<Item, Result>) {
    this.#options = options;
  }

  /** Runs the item together with others of its group. Different groups never share a statement. */
  async add(group: string, item: Item): Promise<Result> {
    // A statement in a unit belongs to that transaction, so it cannot be shared.
    if (Unit.current() !== undefined) return (await this.#options.run([item]))[0] as Result;
    return isTracing() ? trace('shared statement', {}, () => this.#wait(group, item)) : this.#wait(group, item);
  }

  #wait(group: string, item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      let state = this.#groups.get(group);
      if (state === undefined) {
        state = { waiting: [], running: 0, woken: false, names: new Set() };
        this.#groups.set(group, state);
      }
      const names = this.#options.namesOf?.(item) ?? [];
      state.waiting.push({ item, names, resolve, reject, span: currentSpan() });
      if (state.woken || state.running >= this.#options.batchesMax) return;
      state.woken = true;
      setImmediate(() => this.#start(group, state));
    });
  }

  #start(name: string, group: Group<Item, Result>): void {
    group.woken = false;
    while (group.waiting.length > 0 && group.running < this.#options.batchesMax) {
      const batch = this.#take(group);
      // All that wait share a name with a running batch. Its end starts the next one.
      if (batch.length === 0) return;
      group.running += 1;
      for (const entry of batch) for (const taken of entry.names) group.names.add(taken);
      void this.#runTogether(name, group, batch);
    }
  }

  async #runTogether(name: string, group: Group<Item, Result>, batch: Waiting<Item, Result>[]): Promise<void> {
    const again = await this.#run(batch);
    group.running -= 1;
    if (again.length === 0) this.#release(group, batch);
    // The next batch does not wait for these, because one of them may wait for a lock. Later items of their names do.
    for (const entry of again)
      void this.#run([entry]).then(() => {
        this.#release(group, [entry]);
        this.#startNext(name, group);
      });
    this.#startNext(name, group);
  }

  #release(group: Group<Item, Result>, ended: Waiting<Item, Result>[]): void {
    for (const { names } of ended) for (const name of names) group.names.delete(name);
  }

  #startNext(name: string, group: Group<Item, Result>): void {
    if (group.waiting.length > 0) this.#start(name, group);
    else if (group.running === 0 && group.names.size === 0 && !group.woken) this.#groups.delete(name);
  }

  #take(group: Group<Item, Result>): Waiting<Item, Result>[] {
    const { itemsMax, bytesMax, sizeOf = () => 0 } = this.#options;
    const taken: Waiting<Item, Result>[] = [];
    const left: Waiting<Item, Result>[] = [];
    // An item that waits keeps its place before later ones of its names.
    const names = new Set(group.names);
    let bytes = 0;
    for (const entry of group.waiting) {
      const size = sizeOf(entry.item);
      const fits = taken.length === 0 || (taken.length < itemsMax && bytes + size <= bytesMax);
      if (fits && !entry.names.some((name) => names.has(name))) {
        taken.push(entry);
        bytes += size;
      } else left.push(entry);
      for (const name of entry.names) names.add(name);
    }
    group.waiting = left;
    return taken;
  }

  /** Runs the items in one statement. Returns those that have no result yet and are to be run alone. */
  async #run(batch: Waiting<Item, Result>[]): Promise<Waiting<Item, Result>[]> {
    try {
      // The batch runs in the context of one request. The other requests must not get what that one may read: the replica
      // must have what was acknowledged before the last of them.
      const readFrom = this.#options.prefersReplica ? preferReplica : requirePrimary;
      const run = () => readFrom(() => this.#options.run(batch.map(({ item }) => item)));
      // The shared statement appears in the trace of the first request.
      const results = await (isTracing() ? runWithin(batch[0]?.span, run) : run());
      for (const [i, { resolve }] of batch.entries()) resolve(results[i] as Result);
    } catch (error) {
      if (batch.length > 1 && this.#options.failsForOne?.(error)) return batch;
      for (const { reject } of batch) reject(error);
    }
    return [];
  }
}
