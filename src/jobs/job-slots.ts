import { availableParallelism } from 'node:os';
import { type RecentApps, recentApps } from '../fairness/recent-apps.ts';
import { Shares } from '../fairness/shares.ts';
import { Slots } from '../fairness/slots.ts';
import type { Clock } from '../lib/clock.ts';
import { type WaitBounds, WaitingJobs } from './waiting-jobs.ts';

const longMs = 1_000;

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
  readonly #loops = new Set<() => void>();
  readonly #apps: RecentApps;
  readonly #besideOthers: number;
  /** Those that run in a slot, by app. */
  readonly #jobs = new Map<string, Set<{ sinceMs: number }>>();

  /** @param concurrency the maximum number of jobs of one app that run */
  constructor(concurrency: number, options: JobSlotsOptions = {}) {
    const { waits = {}, clock, apps = recentApps, processors = availableParallelism() } = options;
    this.running = new Shares(2 * concurrency);
    this.resumed = new Slots({ slots: concurrency });
    this.waiting = new WaitingJobs(waits, clock);
    this.#apps = apps;
    this.#besideOthers = processors;
  }

  /**
   * Whether an app that holds so many slots may have another one. While other apps send requests to this process, it
   * may have taken only as many within the last second as the machine has processors: jobs share the event loop and the
   * database with those requests. One that runs for longer mostly waits for something else, and keeps no other waiting.
   */
  mayTake(app: string, held: number): boolean {
    return !this.#apps.hasOthers(app) || held - this.#countLong(app) < this.#besideOthers;
  }

  /** Notes that a job of the app runs in a slot. Returns a function that notes its end. */
  begin(app: string): () => void {
    const jobs = this.#jobs.get(app) ?? new Set();
    this.#jobs.set(app, jobs);
    const job = { sinceMs: this.#apps.nowMs() };
    jobs.add(job);
    return () => {
      jobs.delete(job);
      if (jobs.size === 0 && this.#jobs.get(app) === jobs) this.#jobs.delete(app);
    };
  }

  #countLong(app: string): number {
    const nowMs = this.#apps.nowMs();
    return [...(this.#jobs.get(app) ?? [])].filter(({ sinceMs }) => nowMs - sinceMs >= longMs).length;
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
