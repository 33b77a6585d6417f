import type { RecentApps } from '../fairness/recent-apps.ts';
import { Shares } from '../fairness/shares.ts';
import { Slots } from '../fairness/slots.ts';
import type { Clock } from '../lib/clock.ts';
import { Turns } from './turns.ts';
import { type WaitBounds, WaitingJobs } from './waiting-jobs.ts';

type JobSlotsOptions = {
  waits?: Record<string, WaitBounds>;
  clock?: Clock;
  /** Those that send requests to this process. */
  apps?: RecentApps;
  /** The processors of the machine. */
  processors?: number;
};

/** The slots for jobs of one process, which its workers share, whatever their databases. */
export class JobSlots {
  /** Twice the jobs that a single app may run. */
  readonly running: Shares;
  /** Slots for jobs that resume after a wait. */
  readonly resumed: Slots;
  readonly waiting: WaitingJobs;
  readonly turns: Turns;
  readonly #loops = new Set<() => void>();

  /** @param concurrency the maximum number of jobs of one app that run */
  constructor(concurrency: number, { waits = {}, clock, apps, processors }: JobSlotsOptions = {}) {
    this.running = new Shares(2 * concurrency);
    this.resumed = new Slots({ slots: concurrency });
    this.waiting = new WaitingJobs(waits, clock);
    this.turns = new Turns({
      ...{ apps, processors, heldBy: (app) => this.running.of(app), onFree: () => this.announceFree() },
    });
  }

  /** Calls `retry` when a job of another loop has released its slot. Returns a function that ends this. */
  join(retry: () => void): () => void {
    this.#loops.add(retry);
    return () => this.#loops.delete(retry);
  }

  /** Tells the loops, or those other than `own`, that a slot is free. */
  announceFree(own?: () => void): void {
    for (const retry of this.#loops) if (retry !== own) retry();
  }
}
