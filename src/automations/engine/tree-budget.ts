import type { Database } from '../../db/database.ts';
import type { Clock } from '../../lib/clock.ts';
import { graphLimits } from '../definitions/graph.ts';
import * as store from '../runs/store.ts';

const cachedMs = 1_000;
const cachedMax = 10_000;

/** Tells whether a tree's runs have used up their journal entries, which it counts once a second, not for each run. */
export class TreeBudget {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #counted = new Map<string, { entries: number; atMs: number }>();

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  async isSpent(run: store.WorkRow): Promise<boolean> {
    if (!run.inTree) return false;
    const treeId = store.treeOf(run);
    const nowMs = this.#clock.now().getTime();
    let counted = this.#counted.get(treeId);
    if (!counted || nowMs - counted.atMs >= cachedMs) {
      counted = { entries: await store.countTreeEntries(this.#db, run.appId, treeId), atMs: nowMs };
      if (this.#counted.size >= cachedMax) this.#counted.clear();
      this.#counted.set(treeId, counted);
    }
    return counted.entries >= graphLimits.treeEntriesMax;
  }
}
