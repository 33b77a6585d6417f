import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { type DatabaseTarget, pgConnection } from '../db/address.ts';
import type { Logger } from '../log.ts';

/** Half of a 64-bit advisory lock key; the other half is the hash of the worker pool's name. */
export const presenceLockSpace = 7_130_241;
const sweepMs = 1_500;
const reconnectMs = 500;

/**
 * Shows that the worker pool `poolId` lives, by a session lock that the database drops the moment its process dies, and
 * frees the jobs of pools whose lock is gone. A pool counts as dead when two looks in a row miss its lock, so that one
 * that is just starting or connecting anew keeps its jobs.
 */
export class Presence {
  readonly #target: DatabaseTarget;
  readonly #poolId: string;
  readonly #log: Logger;
  readonly #stopping = new AbortController();
  readonly #done: Promise<void>;
  #client: pg.Client | undefined;
  #suspects = new Set<string>();

  constructor(target: DatabaseTarget, poolId: string, log: Logger) {
    this.#target = target;
    this.#poolId = poolId;
    this.#log = log;
    this.#done = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#client?.end().catch(() => {});
    await this.#done;
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      try {
        const client = await this.#connect();
        await this.#sweep(client);
        await this.#pause(sweepMs);
      } catch (error) {
        if (this.#stopping.signal.aborted) return;
        this.#log.warn({ err: error }, 'The job queue cannot see which workers live');
        await this.#client?.end().catch(() => {});
        this.#client = undefined;
        await this.#pause(reconnectMs);
      }
    }
  }

  async #connect(): Promise<pg.Client> {
    if (this.#client) return this.#client;
    const client = new pg.Client({ ...pgConnection(this.#target), application_name: 'quarry-presence' });
    client.on('error', () => {
      if (this.#client === client) this.#client = undefined;
    });
    await client.connect();
    this.#client = client;
    await client.query('select pg_advisory_lock($1, hashtext($2))', [presenceLockSpace, this.#poolId]);
    this.#suspects = new Set();
    return client;
  }

  async #sweep(client: pg.Client): Promise<void> {
    const { rows } = await client.query<{ lockedBy: string }>(
      `select holders.locked_by as "lockedBy"
       from (select distinct locked_by from graphile_worker.jobs where locked_by is not null offset 0) holders
       where holders.locked_by <> $2 and pg_try_advisory_xact_lock($1, hashtext(holders.locked_by))`,
      [presenceLockSpace, this.#poolId],
    );
    const missing = rows.map((row) => row.lockedBy);
    const dead = missing.filter((poolId) => this.#suspects.has(poolId));
    this.#suspects = new Set(missing);
    if (dead.length === 0) return;
    await client.query('select graphile_worker.force_unlock_workers($1)', [dead]);
    await client.query(announceJobs);
    this.#log.warn({ workerPools: dead }, 'Took back the jobs of workers that died');
  }

  async #pause(ms: number): Promise<void> {
    await wait(ms, undefined, { signal: this.#stopping.signal, ref: false }).catch(() => {});
  }
}

/** Wakes idle workers, as the library does when a job is added. */
export const announceJobs = `select pg_notify('jobs:insert', '{"r":' || random()::text || ',"count":100}')`;
