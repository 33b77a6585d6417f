import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { Job } from 'graphile-worker';
import pg from 'pg';
import { type DatabaseTarget, pgConnection } from '../db/address.ts';
import { Lanes } from '../lanes.ts';
import type { Logger } from '../log.ts';
import { HeldJob } from './held-job.ts';
import { type DueJob, findDueJobs, findTaskIds, lockJobs } from './lane-queue.ts';

type LoopOptions = {
  pool: pg.Pool;
  target: DatabaseTarget;
  tasks: string[];
  /** Jobs of one app that run at the same time; as many more for other apps. */
  concurrency: number;
  /** Does a job. Resolves when the loop may take the next one, and rejects when the job is to be tried again. */
  run(job: Job, poolId: string): Promise<void>;
  log: Logger;
};

/** Due jobs are seen by notification; this finds those that were due later, or whose notification was lost. */
const pollMs = 1_000;
const reconnectMs = 500;

/**
 * Takes due jobs and runs them, a lane for each app: an app with a million jobs takes as many places as another with
 * two. The jobs themselves, how they are added, tried again and found lost, are graphile-worker's.
 */
export class JobLoop {
  /** The name that jobs are locked under. */
  readonly id = `worker-${randomBytes(9).toString('hex')}`;
  readonly #options: LoopOptions;
  readonly #lanes: Lanes<DueJob>;
  readonly #running = new Set<Promise<void>>();
  readonly #timer: NodeJS.Timeout;
  #listener: pg.Client | undefined;
  #tasks: Map<number, string> | undefined;
  #after = '';
  /** Something may be due that was not seen yet. */
  #isNews = false;
  /** Jobs are due for which their lanes had no place. */
  #isBlocked = false;
  #filling: Promise<void> | undefined;
  #stopped = false;

  constructor(options: LoopOptions) {
    this.#options = options;
    this.#lanes = new Lanes({ slots: 2 * options.concurrency, waitingMax: Number.POSITIVE_INFINITY });
    this.#timer = setInterval(() => this.#wake(), pollMs);
    void this.#listen();
    this.#wake();
  }

  /** Takes no more jobs. Resolves when those that run have ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#timer);
    await this.#listener?.end().catch(() => {});
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
        if (!this.#stopped) this.#options.log.warn({ err: error }, 'Due jobs could not be taken');
      })
      .finally(() => {
        this.#filling = undefined;
        if (this.#isNews) this.#fill();
      });
  }

  /** Until nothing is due, or no lane with due jobs may have another place: then the end of a job looks again. */
  async #takeDueJobs(): Promise<void> {
    const { pool, tasks, concurrency } = this.#options;
    this.#isNews = false;
    this.#isBlocked = false;
    this.#tasks ??= await findTaskIds(pool, tasks);
    for (let idlePages = 0; !this.#stopped; ) {
      const from = this.#after;
      const { due, last } = await findDueJobs(pool, [...this.#tasks.keys()], concurrency, from);
      this.#after = last;
      const chosen = this.#choose(due);
      this.#isBlocked ||= due.length > chosen.length;
      if (chosen.length > 0) {
        idlePages = 0;
        await this.#start(chosen);
      } else {
        // A page from somewhere to the end leaves the lanes before it, which the next pages begin with.
        idlePages += 1;
        if (last === '' && (from === '' || idlePages > 1)) return;
      }
    }
  }

  /** Each of these has a place in its lane already. */
  #choose(due: DueJob[]): DueJob[] {
    for (const job of due) this.#lanes.add(job.lane, job);
    const chosen: DueJob[] = [];
    for (let next = this.#lanes.take(); next; next = this.#lanes.take()) chosen.push(next.item);
    this.#lanes.drain();
    return chosen;
  }

  async #start(chosen: DueJob[]): Promise<void> {
    const lanes = new Map(chosen.map(({ id, lane }) => [id, lane]));
    try {
      const ids = chosen.map(({ id }) => id);
      for (const row of await lockJobs(this.#options.pool, this.id, ids)) {
        const lane = lanes.get(String(row.id)) ?? '';
        lanes.delete(String(row.id));
        const running = this.#run({ ...row, task_identifier: this.#tasks?.get(row.task_id) ?? '' }, lane);
        this.#running.add(running);
        void running.finally(() => this.#running.delete(running));
      }
    } finally {
      // Somebody else was faster.
      for (const lane of lanes.values()) this.#lanes.release(lane, 0);
    }
  }

  async #run(job: Job, lane: string): Promise<void> {
    const held = new HeldJob(this.#options.pool, this.id, job);
    const startedMs = performance.now();
    const failure = await this.#options.run(job, this.id).then(
      () => undefined,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
    await this.#untilWritten(() => (failure === undefined ? held.complete() : held.fail(failure)));
    this.#lanes.release(lane, performance.now() - startedMs);
    if (this.#isBlocked) this.#fill();
  }

  /** A job that has ended must not stay locked because the database was away at that moment. */
  async #untilWritten(write: () => Promise<void>): Promise<void> {
    for (;;) {
      try {
        return await write();
      } catch (error) {
        if (this.#stopped) return;
        this.#options.log.warn({ err: error }, 'The end of a job could not be written');
        await wait(pollMs, undefined, { ref: false });
      }
    }
  }

  async #listen(): Promise<void> {
    if (this.#stopped) return;
    const client = new pg.Client({ ...pgConnection(this.#options.target), application_name: 'quarry-jobs-listen' });
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
