import { currentSpan, isTracing, type OpenSpan, runWithin, trace } from '../tracing/trace.ts';
import { requirePrimary } from './replica.ts';
import { Unit } from './unit.ts';

type BatcherOptions<Item, Result> = {
  /** Runs the items in one statement and returns their results in the same order. */
  run: (items: Item[]) => Promise<Result[]>;
  /** Limits of one batch: the number of items and the sum of their sizes. */
  itemsMax: number;
  bytesMax: number;
  sizeOf?: (item: Item) => number;
  /** Two items that share a name are never in one batch: the later one waits for the next batch. */
  namesOf?: (item: Item) => string[];
  /** The maximum number of concurrent batches of a group. Items that arrive meanwhile join the next batch. */
  batchesMax: number;
  /** Whether a single item may have failed the batch. If so, each item is run alone. */
  failsForOne?: (error: unknown) => boolean;
};

type Waiting<Item, Result> = {
  item: Item;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
  span: OpenSpan | undefined;
};
type Group<Item, Result> = { waiting: Waiting<Item, Result>[]; running: number; woken: boolean };

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
        state = { waiting: [], running: 0, woken: false };
        this.#groups.set(group, state);
      }
      state.waiting.push({ item, resolve, reject, span: currentSpan() });
      if (state.woken || state.running >= this.#options.batchesMax) return;
      state.woken = true;
      setImmediate(() => this.#start(group, state));
    });
  }

  #start(name: string, group: Group<Item, Result>): void {
    group.woken = false;
    while (group.waiting.length > 0 && group.running < this.#options.batchesMax) {
      group.running += 1;
      void this.#run(this.#take(group)).finally(() => {
        group.running -= 1;
        if (group.waiting.length > 0) this.#start(name, group);
        else if (group.running === 0 && !group.woken) this.#groups.delete(name);
      });
    }
  }

  #take(group: Group<Item, Result>): Waiting<Item, Result>[] {
    const { itemsMax, bytesMax, sizeOf = () => 0, namesOf = () => [] } = this.#options;
    const taken: Waiting<Item, Result>[] = [];
    const left: Waiting<Item, Result>[] = [];
    const names = new Set<string>();
    let bytes = 0;
    for (const entry of group.waiting) {
      const own = namesOf(entry.item);
      bytes += sizeOf(entry.item);
      const fits = taken.length === 0 || (taken.length < itemsMax && bytes <= bytesMax);
      if (!fits || own.some((name) => names.has(name))) left.push(entry);
      else taken.push(entry);
      for (const name of own) names.add(name);
    }
    group.waiting = left;
    return taken;
  }

  async #run(batch: Waiting<Item, Result>[]): Promise<void> {
    try {
      // The batch runs in the context of one request. The other requests must not get what that one may read.
      const run = () => requirePrimary(() => this.#options.run(batch.map(({ item }) => item)));
      // The shared statement appears in the trace of the first request.
      const results = await (isTracing() ? runWithin(batch[0]?.span, run) : run());
      for (const [i, { resolve }] of batch.entries()) resolve(results[i] as Result);
    } catch (error) {
      const alone = batch.length === 1 || !this.#options.failsForOne?.(error);
      // The next batch does not wait for these: one of them may wait for a lock.
      for (const entry of batch) alone ? entry.reject(error) : void this.#run([entry]);
    }
  }
}
