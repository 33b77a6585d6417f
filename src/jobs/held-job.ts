import type { Db } from '../db/database.ts';
import * as store from './store.ts';
import type { JobTurn } from './turns.ts';

/**
 * A job that this process holds: its row is locked in the name of the worker pool. The loop ends it, in a slot or
 * detached from it, unless it was released first.
 */
export class HeldJob {
  readonly job: store.ClaimedJob;
  /** Resolves when the job has left the slot that it started in. */
  readonly left: Promise<void>;
  readonly turn: JobTurn;
  readonly #db: Db;
  readonly #poolId: string;
  readonly #deleteJob: (job: store.JobPlace) => Promise<void>;
  readonly #leave: () => void;
  #state: 'in a slot' | 'detached' | 'released' = 'in a slot';

  /** @param deleteJob deletes a job of this pool, together with others that end meanwhile */
  constructor(
    db: Db,
    poolId: string,
    job: store.ClaimedJob,
    turn: JobTurn,
    deleteJob: (job: store.JobPlace) => Promise<void>,
  ) {
    const left = Promise.withResolvers<void>();
    this.#db = db;
    this.#poolId = poolId;
    this.job = job;
    this.turn = turn;
    this.#deleteJob = deleteJob;
    this.left = left.promise;
    this.#leave = left.resolve;
  }

  get isDetached(): boolean {
    return this.#state === 'detached';
  }

  /** Lets the job wait outside its slot. It stays locked, so it is recovered if the process dies. False if it was lost. */
  async detach(): Promise<boolean> {
    if (!(await store.markWaiting(this.#db, this.#poolId, this.job))) return false;
    this.#state = 'detached';
    this.#leave();
    return true;
  }

  /** Releases the slot of a job that has ended, before its outcome is stored. */
  leave(): void {
    this.#leave();
  }

  /** Ends the attempt: deletes the job or, after a failure, schedules its next attempt. */
  async end(failure: string | undefined): Promise<void> {
    if (this.#state === 'released') return;
    if (failure === undefined) await this.#deleteJob(this.job);
    else await store.failJob(this.#db, this.#poolId, this.job, failure);
  }

  /** Ends a run of a recurring job: the job waits for the next one. False if it must be ended and added otherwise. */
  async repeat(everySeconds: number): Promise<boolean> {
    const isRepeated = await store.repeatJob(this.#db, this.#poolId, this.job, everySeconds);
    if (isRepeated) this.#state = 'released';
    return isRepeated;
  }

  /** Releases the job as if it had never started. It becomes due after `delayMs`. */
  async release(delayMs = 0): Promise<void> {
    this.#state = 'released';
    await store.releaseJobs(this.#db, this.#poolId, { only: [this.job.id], delayMs });
  }

  /** Records an uncaught exception of the job. The third one sets it aside. */
  async noteCrash(): Promise<void> {
    await store.noteCrash(this.#db, this.#poolId, this.job);
  }
}
