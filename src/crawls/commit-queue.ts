type CommitQueueOptions<Item> = {
  /** Commits items. If it rejects, they stay in the queue, and so does what waits with them (`drain`). */
  commit: (items: Item[]) => Promise<void>;
  /** The number of items of a commit. */
  itemsMax: number;
  /** How long the first item waits for others. */
  waitMsMax: number;
  /** Whether no further item is worth waiting for, given how many wait. Asked when an item is added. */
  isWhole: (waiting: number) => boolean;
};

/** Commits items in their order, one commit at a time, and several together: one alone takes nearly as long. */
export class CommitQueue<Item> {
  readonly #options: CommitQueueOptions<Item>;
  readonly #waiting: Item[] = [];
  #running: Promise<void> | undefined;
  #whole = Promise.withResolvers<void>();

  constructor(options: CommitQueueOptions<Item>) {
    this.#options = options;
  }

  /** Resolves when the item has been in a commit. Rejects if a commit does while it waits. */
  async add(item: Item): Promise<void> {
    this.#waiting.push(item);
    if (this.#isWhole) this.#whole.resolve();
    // Items that are added during a commit share the next one.
    while (this.#waiting.includes(item)) {
      this.#running ??= this.#commitNext().finally(() => {
        this.#running = undefined;
      });
      await this.#running;
    }
  }

  /** The commit that runs or gathers its items. */
  get running(): Promise<void> | undefined {
    return this.#running;
  }

  /** Removes and returns the items that wait. */
  drain(): Item[] {
    return this.#waiting.splice(0);
  }

  get #isWhole(): boolean {
    return this.#options.isWhole(this.#waiting.length);
  }

  async #commitNext(): Promise<void> {
    if (!this.#isWhole) await this.#gather();
    const items = this.#waiting.slice(0, this.#options.itemsMax);
    await this.#options.commit(items);
    this.#waiting.splice(0, items.length);
  }

  async #gather(): Promise<void> {
    this.#whole = Promise.withResolvers();
    const timer = setTimeout(this.#whole.resolve, this.#options.waitMsMax);
    await this.#whole.promise;
    clearTimeout(timer);
  }
}
