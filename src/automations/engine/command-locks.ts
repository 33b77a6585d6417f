import type { Database } from '../../db/database.ts';

/**
 * Session advisory locks, one for each node whose work outside is under way: a worker that picks the run up meanwhile
 * sees that somebody lives who does it. They end with the process, whatever ends it. Correctness does not hang on
 * them: a second result for one node is refused by the journal's sequence.
 */
export class CommandLocks {
  readonly #database: Database;
  readonly #held = new Set<string>();

  /** @param database one direct connection, kept open: the locks are its session's. */
  constructor(database: Database) {
    this.#database = database;
  }

  /** True when this process now does the work of this command; false when another one, or this one, already does. */
  async take(commandId: string): Promise<boolean> {
    if (this.#held.has(commandId)) return false;
    this.#held.add(commandId);
    try {
      const [row] = await this.#database<{ taken: boolean }[]>`
        select pg_try_advisory_lock(hashtextextended(${commandId}, 0)) as taken`;
      if (row?.taken) return true;
    } catch (error) {
      this.#held.delete(commandId);
      throw error;
    }
    this.#held.delete(commandId);
    return false;
  }

  async release(commandId: string): Promise<void> {
    if (!this.#held.delete(commandId)) return;
    await this.#database`select pg_advisory_unlock(hashtextextended(${commandId}, 0))`;
  }
}
