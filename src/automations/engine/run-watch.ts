import type { Db } from '../../db/database.ts';
import type { Logger } from '../../lib/log.ts';
import { listChangedRuns } from '../runs/store.ts';

/** The interval of checks. The requests of a cancelled run are aborted within twice this time. */
const checkMs = 1_000;

type Watched = { appId: string; id: string; sequence: number; onMoved: () => void };

/** Checks with one query whether other processes have changed the runs whose external work this process does. */
export class RunWatch {
  readonly #db: Db;
  readonly #log: Logger;
  readonly #watched = new Set<Watched>();
  #timer: NodeJS.Timeout | undefined;

  constructor(db: Db, log: Logger) {
    this.#db = db;
    this.#log = log;
  }

  /** Calls `onMoved` once if the journal grows beyond `sequence` or the run is deleted. Returns a function to stop. */
  add(run: { appId: string; id: string }, sequence: number, onMoved: () => void): () => void {
    const watched = { appId: run.appId, id: run.id, sequence, onMoved };
    this.#watched.add(watched);
    this.#schedule();
    return () => this.#watched.delete(watched);
  }

  #schedule(): void {
    this.#timer ??= setTimeout(() => void this.#checkRuns(), checkMs).unref();
  }

  async #checkRuns(): Promise<void> {
    const looked = [...this.#watched];
    try {
      const moved = looked.length === 0 ? [] : await listChangedRuns(this.#db, looked);
      for (const place of moved) {
        const watched = looked[place];
        if (watched !== undefined && this.#watched.delete(watched)) watched.onMoved();
      }
    } catch (error) {
      this.#log.warn({ err: error }, 'Could not check the runs that wait for responses');
    }
    this.#timer = undefined;
    if (this.#watched.size > 0) this.#schedule();
  }
}
