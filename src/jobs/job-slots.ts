import { Shares } from '../fairness/shares.ts';
import { Slots } from '../fairness/slots.ts';
import type { Clock } from '../lib/clock.ts';
import { type WaitBounds, WaitingJobs } from './waiting-jobs.ts';

/** The slots for jobs of one process, which its workers share, whatever their databases. */
export class JobSlots {
  /** Twice the jobs that a single app may run. */
  readonly running: Shares;
  /** Slots for jobs that resume after a wait. */
  readonly resumed: Slots;
  readonly waiting: WaitingJobs;
  readonly #loops = new Set<() => void>();

  constructor(concurrency: number, waits: Record<string, WaitBounds> = {}, clock?: Clock) {
    this.running = new Shares(2 * concurrency);
    this.resumed = new Slots({ slots: concurrency });
    this.waiting = new WaitingJobs(waits, clock);
  }

  /** Calls `retry` when a job of another loop has released its slot. Returns a function that ends this. */
  join(retry: () => void): () => void {
    this.#loops.add(retry);
    return () => this.#loops.delete(retry);
  }

  /** Tells the other loops that a slot is free. */
  announceFree(own: () => void): void {
    for (const retry of this.#loops) if (retry !== own) retry();
  }
}
