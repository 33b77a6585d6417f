import { Unit } from '../db/unit.ts';
import type { ClaimedJob } from './store.ts';

/** The id and the holder of a job that is added as a claimed one. */
export type NewClaim = { id: number; poolId: string };

/** A slot that is kept for a job while it is added. */
export type NewPlace = NewClaim & {
  /** Runs the job, which has been added. */
  start(job: ClaimedJob): void;
  /** Releases the slot: the job was not added, or nobody knows whether it was. */
  release(): void;
};

/**
 * Jobs that a process claims in the statement that adds them, instead of announcing and finding them. `take` keeps a
 * slot for such a job, if one is free and no other process could run it.
 */
export class NewJobs {
  #take: (appId: string) => NewPlace | undefined = () => undefined;

  /** Called by the loop that runs the jobs of this database. */
  serve(take: (appId: string) => NewPlace | undefined): void {
    this.#take = take;
  }

  /**
   * Adds a job. `insert` adds it in a statement that commits by itself: as a claimed one if it gets a claim, otherwise as
   * one that is due.
   */
  async add<T>(
    { appId, task, payload }: { appId: string; task: string; payload: object },
    insert: (claim: NewClaim | undefined) => Promise<T>,
  ): Promise<T> {
    // What a unit adds exists only after its commit.
    const place = Unit.current() === undefined ? this.#take(appId) : undefined;
    if (place === undefined) return insert(undefined);
    const { id, poolId } = place;
    try {
      const added = await insert({ id, poolId });
      place.start({ appId, id, task, payload, attempts: 1, maxAttempts: 25, crashes: 0 });
      return added;
    } catch (error) {
      place.release();
      throw error;
    }
  }
}
