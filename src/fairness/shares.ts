/*
 * Fairness between apps. Tenants do not trust each other and do not know each other's load, so whatever a process
 * shares among them follows one promise:
 *
 *   An app may hold as much as is still free. A single app gets half, two get a third each, and the next app always
 *   finds room, however much the others want.
 *
 * No app has a row or a setting for this: a share exists while its app holds or waits for something.
 *
 * - `Shares` counts what each app holds of a resource that cannot wait, such as memory or open streams. What exceeds
 *   the share is refused or paused by the caller.
 * - `Lanes` adds a queue for each app. A free slot goes to the waiting app that holds the fewest, and among those to the
 *   one that has used the least. The loop of jobs, the parsers and the threads for expressions take from it.
 * - `Slots` runs work in `Lanes`: wait for a slot, work, release it. Calls of models, lookups, pictures, pieces of large
 *   bodies and requests to sites use it.
 *
 * In another process, an app may hold as much again, except for jobs (docs/decisions/0155) and requests to a host
 * (docs/decisions/0083), which are counted over all processes.
 */

/** How much each app holds of one resource of this process. The amount is in any consistent unit. */
export class Shares {
  readonly #max: number;
  readonly #amounts = new Map<string, number>();
  #held = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** What all apps hold together. */
  get held(): number {
    return this.#held;
  }

  get free(): number {
    return this.#max - this.#held;
  }

  of(app: string): number {
    return this.#amounts.get(app) ?? 0;
  }

  /** Whether the app may hold so much more: with it, the app holds no more than was free. */
  fits(app: string, amount = 1): boolean {
    return this.of(app) + amount <= this.free;
  }

  /** Counts more for an app, or less. It is for the caller to ask whether it fits. */
  add(app: string, amount = 1): void {
    const ofApp = this.of(app) + amount;
    this.#held += amount;
    if (ofApp > 0) this.#amounts.set(app, ofApp);
    else this.#amounts.delete(app);
  }
}
