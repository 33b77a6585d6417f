import { setTimeout as wait } from 'node:timers/promises';
import type { Job } from 'graphile-worker';
import type pg from 'pg';
import type { Client } from '../db/client.ts';
import { Lanes } from '../lanes.ts';
import type { Logger } from '../log.ts';
import type { JobConnections } from './connection.ts';
import { HeldJob, releaseOtherJobs } from './held-job.ts';
import { claimJobs, type DueJob, findDueJobs, findTaskIds, lockJobs } from './lane-queue.ts';

type LoopOptions = {
  /** The name under which jobs are locked. */
  id: string;
  pool: pg.Pool;
  connections: JobConnections;
  tasks: string[];
  /** The maximum number of concurrent jobs of one app in each process. As many slots again are left for other apps. */
  concurrency: number;
  /** The number of processes that take jobs from this database, including this one. */
  workers(): number;
  /** Work of this process that low-priority jobs wait for; undefined while there is none. */
  urgentWork(): Promise<void> | undefined;
  /** Runs a job. Resolves when the loop may take the next job, rejects if the job must be retried. */
  run(job: Job): Promise<void>;
  log: Logger;
};

/** Notifications announce due jobs. Polling finds jobs that became due later and those whose notification was lost. */
const pollMs = 1_000;
const reconnectMs = 500;

/**
 * Takes due jobs and runs them, with a lane for each app: an app with a million jobs gets as many slots as an app
 * with two. graphile-worker defines how jobs are stored, added, retried and recovered.
 */
export class JobLoop {
  readonly #options: LoopOptions;
  readonly #lanes: Lanes<DueJob>;
  readonly #running = new Set<Promise<void>>();
  readonly #timer: NodeJS.Timeout;
  #listener: Client | undefined;
  #tasks: Map<number, string> | undefined;
  #after = '';
  /** Whether there may be due jobs that were not read yet. */
  #isNews = false;
  /** Whether a claim failed, perhaps after the database had carried it out. */
  #isUnsure = false;
  readonly #jobIds = new Set<string>();
  /** Whether there are due jobs in lanes without a free slot. */
  #isBlocked = false;
  #filling: Promise<void> | undefined;
  /** The urgent work when it was last checked. */
  #urgent: Promise<void> | undefined;
  #stopped = false;

  constructor(options: LoopOptions) {
    this.#options = options;
    this.#lanes = new Lanes({ slots: 2 * options.concurrency, waitingMax: Number.POSITIVE_INFINITY });
    this.#timer = setInterval(() => this.#wake(), pollMs);
    void this.#listen();
    this.#wake();
  }

  /** Stops taking jobs. Resolves when the active ones have ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#timer);
    await this.#listener?.endSoon();
    await this.#filling;
    await Promise.allSettled(this.#running);
  }

  #wake(): void {
    this.#isNews = true;
    this.#fill();
  }

  #fill(): void {
    if (this.#stopped) return;
    this.#filling ??= this.#takeDueJobs()
      .catch((error: unknown) => {
        this.#isUnsure = true;
        if (!this.#stopped) this.#options.log.warn({ err: error }, 'Could not take due jobs');
      })
      .finally(() => {
        this.#filling = undefined;
        if (this.#isNews) this.#fill();
      });
  }

  /**
   * Takes jobs until none is due or no lane with due jobs has a free slot. In the second case, the end of a job
   * starts the next read.
   */
  async #takeDueJobs(): Promise<void> {
    const { id, pool, tasks, concurrency } = this.#options;
    this.#isNews = false;
    this.#isBlocked = false;
    if (this.#isUnsure) await releaseOtherJobs(pool, id, [...this.#jobIds]);
    this.#isUnsure = false;
    this.#tasks ??= await findTaskIds(pool, tasks);
    for (let idlePages = 0; !this.#stopped; ) {
      const from = this.#after;
      const lowPriority = !this.#isUrgent();
      const { due, last } = await findDueJobs(pool, {
        taskIds: [...this.#tasks.keys()],
        lowPriority,
        ofLaneMax: concurrency,
        after: from,
      });
      this.#after = last;
      const chosen = await this.#claim(due);
      this.#isBlocked ||= due.length > chosen;
      if (chosen > 0) idlePages = 0;
      else {
        // A page that starts in the middle does not cover the lanes before it. The next pages start with those.
        idlePages += 1;
        if (last === '' && (from === '' || idlePages > 1)) return;
      }
    }
  }

  /** Whether the process has urgent work. When it ends, the next read starts. */
  #isUrgent(): boolean {
    const urgent = this.#options.urgentWork();
    if (urgent !== undefined && urgent !== this.#urgent) void urgent.then(() => this.#wake());
    this.#urgent = urgent;
    return urgent !== undefined;
  }

  /** Starts the due jobs whose lanes have a free slot. Returns the number of jobs it started. */
  async #claim(due: DueJob[]): Promise<number> {
    const { id, pool, concurrency, workers } = this.#options;
    for (const job of due) this.#lanes.add(job.lane, job);
    const chosen: DueJob[] = [];
    const choose = (held: Map<string, number>): string[] => {
      const heldElsewhere = [...held.values()].reduce((sum, count) => sum + count, 0);
      // Assumes that each other process has as many slots as this one.
      const elsewhere = { free: (workers() - 1) * 2 * concurrency - heldElsewhere, held };
      for (let next = this.#lanes.take(elsewhere); next; next = this.#lanes.take(elsewhere)) chosen.push(next.item);
      return chosen.map(({ id }) => id);
    };
    let rows: Awaited<ReturnType<typeof lockJobs>> = [];
    try {
      if (workers() > 1 && this.#lanes.canTake) rows = await claimJobs(pool, id, choose);
      else if (this.#lanes.canTake) rows = await lockJobs(pool, id, choose(new Map()));
    } finally {
      this.#lanes.drain();
      this.#start(rows, chosen);
    }
    return chosen.length;
  }

  /** Each chosen job already holds a slot in its lane. */
  #start(rows: Omit<Job, 'task_identifier'>[], chosen: DueJob[]): void {
    const lanes = new Map(chosen.map(({ id, lane }) => [id, lane]));
    for (const row of rows) {
      const lane = lanes.get(String(row.id)) ?? '';
      lanes.delete(String(row.id));
      const running = this.#run({ ...row, task_identifier: this.#tasks?.get(row.task_id) ?? '' }, lane);
      this.#running.add(running);
      void running.finally(() => this.#running.delete(running));
    }
    // Another process claimed the job first.
    for (const lane of lanes.values()) this.#lanes.release(lane, 0);
  }

  async #run(job: Job, lane: string): Promise<void> {
    const held = new HeldJob(this.#options.pool, this.#options.id, job);
    const startedMs = performance.now();
    this.#jobIds.add(job.id);
    const failure = await this.#options.run(job).then(
      () => undefined,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
    await this.#retryUntilWritten(() => (failure === undefined ? held.complete() : held.fail(failure)));
    this.#jobIds.delete(job.id);
    this.#lanes.release(lane, performance.now() - startedMs);
    if (this.#isBlocked) this.#fill();
  }

  /** Retries the write, so that a finished job does not stay locked because the database was briefly unavailable. */
  async #retryUntilWritten(write: () => Promise<void>): Promise<void> {
    for (;;) {
      try {
        return await write();
      } catch (error) {
        if (this.#stopped) return;
        this.#options.log.warn({ err: error }, 'Could not store the outcome of a job');
        await wait(pollMs, undefined, { ref: false });
      }
    }
  }

  async #listen(): Promise<void> {
    if (this.#stopped) return;
    const client = this.#options.connections.open('quarry-jobs-listen');
    const again = (): void => {
      if (this.#listener !== client) return;
      this.#listener = undefined;
      setTimeout(() => void this.#listen(), reconnectMs).unref();
    };
    this.#listener = client;
    client.on('error', again);
    client.on('end', again);
    client.on('notification', () => this.#wake());
    try {
      await client.connect();
      await client.query('listen "jobs:insert"');
      this.#wake();
    } catch {
      again();
    }
  }
}
