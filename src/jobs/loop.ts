import { setTimeout as wait } from 'node:timers/promises';
import { Batcher } from '../db/batcher.ts';
import type { Database } from '../db/database.ts';
import { Lanes } from '../fairness/lanes.ts';
import type { Logger } from '../lib/log.ts';
import { HeldJob } from './held-job.ts';
import type { JobSlots } from './job-slots.ts';
import * as store from './store.ts';

type LoopOptions = {
  /** The name under which jobs are locked. */
  id: string;
  db: Database;
  tasks: string[];
  /** The maximum number of concurrent jobs of one app in each process. As many slots again are left for other apps. */
  concurrency: number;
  /** Shared by all loops of the process. */
  slots: JobSlots;
  /** The number of processes that take jobs from this database, including this one. */
  workers(): number;
  /** Work of this process that low-priority jobs wait for; undefined while there is none. */
  urgentWork(): Promise<void> | undefined;
  /** Runs a job. Rejects if the job must be retried. */
  run(held: HeldJob): Promise<void>;
  log: Logger;
};

/** Notifications announce due jobs. Polling finds jobs that became due later and those whose notification was lost. */
const pollMs = 1_000;
/** The time between two looks for jobs whose claim succeeded without a response. After a failed claim, there is one at once. */
const lostEveryMs = 10_000;
/** Jobs whose ends share a statement, and such statements at a time. */
const endsMax = 100;
const endBatchesMax = 1;

/**
 * Takes due jobs, runs and ends them, with a lane for each app: an app with a million jobs gets as many slots as an
 * app with two.
 */
export class JobLoop {
  readonly #options: LoopOptions;
  readonly #lanes: Lanes<store.JobPlace>;
  readonly #held = new Map<HeldJob, Promise<void>>();
  readonly #ends: Batcher<store.JobPlace, boolean>;
  readonly #timer: NodeJS.Timeout;
  readonly #leave: () => void;
  readonly #retry = () => {
    this.#isFree = true;
    if (this.#isBlocked) this.#fill();
  };
  #after = store.firstLane;
  /** Whether there may be due jobs that were not read yet. */
  #isNews = false;
  /** When the loop next looks for jobs that are locked in its name and that it does not hold. */
  #lostAtMs = 0;
  /** Whether there are, or may be, due jobs in lanes without a free slot. */
  #isBlocked = false;
  /** Whether a slot was released since the last read began. */
  #isFree = false;
  #filling: Promise<void> | undefined;
  /** The urgent work when it was last checked. */
  #urgent: Promise<void> | undefined;
  #stopped = false;

  constructor(options: LoopOptions) {
    this.#options = options;
    const { concurrency, slots, db, id } = options;
    this.#ends = new Batcher({
      run: (jobs) => store.deleteJobs(db, id, jobs),
      ...{ itemsMax: endsMax, bytesMax: Number.POSITIVE_INFINITY, batchesMax: endBatchesMax },
    });
    this.#lanes = new Lanes({ slots: 2 * concurrency, shares: slots.running });
    this.#leave = slots.join(this.#retry);
    this.#timer = setInterval(() => this.wake(), pollMs);
    this.wake();
  }

  /** Looks for due jobs. */
  wake(): void {
    this.#isNews = true;
    this.#fill();
  }

  /** Stops taking jobs. Resolves when those in progress have ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#timer);
    this.#leave();
    await this.#filling;
    await Promise.allSettled(this.#held.values());
  }

  #fill(): void {
    if (this.#stopped) return;
    this.#filling ??= this.#takeDueJobs()
      .catch((error: unknown) => {
        this.#lostAtMs = 0;
        if (!this.#stopped) this.#options.log.warn({ err: error }, 'Could not take due jobs');
      })
      .finally(() => {
        this.#filling = undefined;
        if (this.#isNews || (this.#isBlocked && this.#isFree)) this.#fill();
      });
  }

  /**
   * Takes jobs until none is due or no lane with due jobs has a free slot. In the second case, the end of a job
   * starts the next read.
   */
  async #takeDueJobs(): Promise<void> {
    const { id, db, tasks, concurrency } = this.#options;
    this.#isNews = false;
    this.#isBlocked = false;
    // No claim is in progress here but those whose response was given up: the database may carry them out much later.
    if (performance.now() >= this.#lostAtMs) {
      await store.releaseJobs(db, id, { except: [...this.#held.keys()].map(({ job }) => job.id) });
      this.#lostAtMs = performance.now() + lostEveryMs;
    }
    for (let idlePages = 0; !this.#stopped; ) {
      const after = this.#after;
      this.#isFree = false;
      const { due, last, isFull } = await store.findDueJobs(db, {
        ...{ tasks, lowPriority: !this.#isUrgent(), ofLaneMax: concurrency, after },
      });
      this.#after = last;
      const { chosen, claimed } = await this.#claim(due);
      this.#isBlocked ||= isFull || due.length > chosen;
      // This read has covered all lanes. What is added after it is announced, and what is blocked waits for a slot.
      if (after === store.firstLane && last === store.firstLane && claimed === chosen) return;
      if (chosen > 0) idlePages = 0;
      else {
        // A page that starts in the middle does not cover the lanes before it. The next pages start with those.
        idlePages += 1;
        if (last === store.firstLane && (after === store.firstLane || idlePages > 1)) return;
      }
    }
  }

  /** Whether the process has urgent work. When it ends, the next read starts. */
  #isUrgent(): boolean {
    const urgent = this.#options.urgentWork();
    if (urgent !== undefined && urgent !== this.#urgent) void urgent.then(() => this.wake());
    this.#urgent = urgent;
    return urgent !== undefined;
  }

  /** Starts the due jobs whose lanes have a free slot. Returns how many those are, and how many no other process took. */
  async #claim(due: store.JobPlace[]): Promise<{ chosen: number; claimed: number }> {
    const { id, db, concurrency, slots, workers } = this.#options;
    // Jobs of no app are the operator's own.
    const mayTake = (lane: string, held: number) => lane === id || slots.turns.mayTake(lane, held);
    for (const job of due) this.#lanes.add(laneOf(id, job.appId), job);
    const chosen: store.JobPlace[] = [];
    const choose = (held: Map<string, number>): store.JobPlace[] => {
      const heldElsewhere = [...held.values()].reduce((sum, count) => sum + count, 0);
      // Assumes that each other process has as many slots as this one.
      const free = (workers() - 1) * 2 * concurrency - heldElsewhere;
      const rule = { free, mayTake, heldBeside: (lane: string) => held.get(lane === id ? store.firstLane : lane) ?? 0 };
      for (let next = this.#lanes.take(rule); next; next = this.#lanes.take(rule)) chosen.push(next.item);
      return chosen;
    };
    let jobs: store.ClaimedJob[] = [];
    try {
      if (!this.#lanes.canTake({ mayTake })) return { chosen: 0, claimed: 0 };
      if (workers() > 1) jobs = await store.claimJobs(db, id, choose);
      else jobs = await store.lockJobs(db, id, choose(new Map()));
    } finally {
      this.#lanes.drain();
      this.#start(jobs, chosen);
    }
    return { chosen: chosen.length, claimed: jobs.length };
  }

  /** Each chosen job already holds a slot in its lane. */
  #start(jobs: store.ClaimedJob[], chosen: store.JobPlace[]): void {
    const claimed = new Set(jobs.map(({ id }) => id));
    for (const job of jobs) void this.#run(job);
    // Another process claimed these first.
    for (const { id, appId } of chosen) if (!claimed.has(id)) this.#lanes.release(laneOf(this.#options.id, appId), 0);
  }

  async #run(job: store.ClaimedJob): Promise<void> {
    const { db, id, slots } = this.#options;
    const lane = laneOf(id, job.appId);
    const turn = slots.turns.begin(lane);
    const held = new HeldJob(db, id, job, turn, (ended) => this.#delete(ended));
    const startedMs = performance.now();
    const ended = this.#end(held);
    this.#held.set(held, ended);
    await Promise.race([ended, held.left]);
    this.#lanes.release(lane, performance.now() - startedMs);
    turn.rest();
    this.#retry();
    slots.announceFree(this.#retry);
    await ended;
    turn.rest();
  }

  async #delete(job: store.JobPlace): Promise<void> {
    const { db, id } = this.#options;
    if (!(await this.#ends.add('', job))) await store.deleteJob(db, id, job);
  }

  /** Runs a job and stores its outcome. */
  async #end(held: HeldJob): Promise<void> {
    const failure = await this.#options.run(held).then(
      () => undefined,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
    await this.#endWhenPossible(held, failure);
    this.#held.delete(held);
  }

  /**
   * Retries the write, so that a finished job does not stay locked because the database was briefly unavailable. Until
   * then, the job takes no slot, which jobs in other databases may need.
   */
  async #endWhenPossible(held: HeldJob, failure: string | undefined): Promise<void> {
    for (;;) {
      try {
        return await held.end(failure);
      } catch (error) {
        if (this.#stopped) return;
        held.leave();
        this.#options.log.warn({ err: error }, 'Could not store the outcome of a job');
        await wait(pollMs, undefined, { ref: false });
      }
    }
  }
}

/**
 * The lane of a job: its app, or the worker pool for jobs of no app, which would otherwise share one lane with those of
 * the other databases of the process.
 */
export function laneOf(poolId: string, appId: string): string {
  return appId === store.firstLane ? poolId : appId;
}
