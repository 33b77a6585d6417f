import { setTimeout as wait } from 'node:timers/promises';
import type { DatabaseTarget } from '../db/address.ts';
import { type Database, openDatabase } from '../db/database.ts';
import type { Session } from '../db/types.ts';
import type { Logger } from '../lib/log.ts';
import * as store from './store.ts';

const sweepMs = 1_500;
const reconnectMs = 500;
const endSeconds = 1;

type PresenceOptions = {
  target: DatabaseTarget;
  timeoutMs?: number | undefined;
  poolId: string;
  /** Called with the task of each job that was active when its process died. */
  onCrash(task: string): void;
  log: Logger;
};

/**
 * Shows that the worker pool `poolId` is alive, through a session lock that the database drops when the process dies,
 * and releases the jobs of pools without a lock. A pool counts as dead when two checks in a row miss its lock, so a
 * pool that is starting or reconnecting keeps its jobs.
 */
export class Presence {
  readonly #options: PresenceOptions;
  readonly #db: Database;
  readonly #stopping = new AbortController();
  readonly #done: Promise<void>;
  #session: Session | undefined;
  #suspects = new Set<string>();
  #workers = 1;

  constructor(options: PresenceOptions) {
    const { target, timeoutMs } = options;
    this.#options = options;
    this.#db = openDatabase(target, {
      ...{ poolSize: 1, applicationName: 'quarry-presence', ...(timeoutMs && { timeoutMs }) },
    });
    this.#done = this.#run();
  }

  /** The number of living worker pools, including this one, at the last check. */
  get workers(): number {
    return this.#workers;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([this.#db.end({ timeout: endSeconds }), this.#done]);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const pauseMs = await this.#check().catch((error: unknown) => {
        if (!signal.aborted) this.#options.log.warn({ err: error }, 'Could not check which workers are alive');
        this.#leave();
        return reconnectMs;
      });
      await wait(pauseMs, undefined, { signal, ref: false }).catch(() => {});
    }
    this.#leave();
  }

  async #check(): Promise<number> {
    const { log } = this.#options;
    this.#session ??= await this.#enter();
    const pools = await store.checkPools(this.#session, this.#options.poolId);
    const workers = Math.max(1, pools.workers);
    if (workers !== this.#workers) log.info({ workers }, 'Jobs are shared with other processes');
    this.#workers = workers;
    await this.#release(this.#session, pools.missing);
    return sweepMs;
  }

  /** The session that holds the lock of this pool. */
  async #enter(): Promise<Session> {
    this.#suspects = new Set();
    const session = await this.#db.reserve();
    this.#session = session;
    await session`select pg_advisory_lock(${store.presenceLockSpace}, hashtext(${this.#options.poolId}))`;
    return session;
  }

  #leave(): void {
    this.#session?.release();
    this.#session = undefined;
  }

  /** Releases the jobs of pools that were already missing at the last check. */
  async #release(session: Session, missing: string[]): Promise<void> {
    const { onCrash, log } = this.#options;
    const dead = missing.filter((holder) => this.#suspects.has(holder));
    this.#suspects = new Set(missing);
    if (dead.length === 0) return;
    for (const task of await store.releaseDeadPools(session, dead)) onCrash(task);
    log.warn({ workerPools: dead }, 'Released the jobs of dead workers');
  }
}
