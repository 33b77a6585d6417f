import { setTimeout as wait } from 'node:timers/promises';
import type pg from 'pg';
import type { Client } from '../db/client.ts';
import type { Logger } from '../log.ts';
import type { JobConnections } from './connection.ts';
import { announceJobs, crashColumns, crashesMax, suspectsQueue } from './held-job.ts';

/** Half of a 64-bit advisory lock key; the other half is the hash of the worker pool's name. */
export const presenceLockSpace = 7_130_241;
const sweepMs = 1_500;
/** The library releases a job that has been locked for four hours. This renews the lock well before. */
const keepMs = 30 * 60_000;
const reconnectMs = 500;

/**
 * Shows that the worker pool `poolId` is alive, through a session lock that the database drops when the process dies,
 * and releases the jobs of pools without a lock. A pool counts as dead when two checks in a row miss its lock, so a
 * pool that is starting or reconnecting keeps its jobs.
 */
export class Presence {
  readonly #connections: JobConnections;
  readonly #poolId: string;
  readonly #log: Logger;
  readonly #stopping = new AbortController();
  readonly #done: Promise<void>;
  #client: Client | undefined;
  #suspects = new Set<string>();
  #keptAt = performance.now();
  #workers = 1;
  readonly #onCrash: (task: string) => void;

  /** @param onCrash is called for each job that was active when its process died. */
  constructor(connections: JobConnections, poolId: string, log: Logger, onCrash: (task: string) => void) {
    this.#onCrash = onCrash;
    this.#connections = connections;
    this.#poolId = poolId;
    this.#log = log;
    this.#done = this.#run();
  }

  /** The number of living worker pools, including this one, at the last check. */
  get workers(): number {
    return this.#workers;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#end();
    await this.#done;
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      try {
        const client = await this.#connect();
        await this.#count(client);
        await this.#sweep(client);
        await this.#keep(client);
        await this.#pause(sweepMs);
      } catch (error) {
        if (this.#stopping.signal.aborted) return;
        this.#log.warn({ err: error }, 'Could not check which workers are alive');
        await this.#end();
        await this.#pause(reconnectMs);
      }
    }
  }

  async #connect(): Promise<Client> {
    if (this.#client) return this.#client;
    const client = this.#connections.open('quarry-presence');
    client.on('error', () => {
      if (this.#client === client) this.#client = undefined;
    });
    this.#client = client;
    await client.connect();
    await client.query('select pg_advisory_lock($1, hashtext($2))', [presenceLockSpace, this.#poolId]);
    this.#suspects = new Set();
    return client;
  }

  async #end(): Promise<void> {
    const client = this.#client;
    if (client === undefined) return;
    await client.endSoon();
    this.#client = undefined;
  }

  async #count(client: pg.Client): Promise<void> {
    const workers = await countWorkers(client);
    if (workers !== this.#workers) this.#log.info({ workers }, 'Jobs are shared with other processes');
    this.#workers = workers;
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
    await this.#noteCrashes(client, dead);
    await client.query('select graphile_worker.force_unlock_workers($1)', [dead]);
    await client.query(announceJobs);
    this.#log.warn({ workerPools: dead }, 'Released the jobs of dead workers');
  }

  /**
   * A waiting job did not cause the crash, so it gets its attempt back. Neither did a suspect, which never runs in this
   * process. Another active job may have: after its second crash, it runs alone. It keeps one attempt, because only a
   * failure may be the last one.
   */
  async #noteCrashes(client: pg.Client, dead: string[]): Promise<void> {
    await client.query(
      'insert into graphile_worker._private_job_queues (queue_name) values ($1) on conflict do nothing',
      [suspectsQueue],
    );
    const { rows } = await client.query<{ id: string; task: string; setAside: boolean }>(
      `with waited as (
         update graphile_worker._private_jobs set flags = flags - 'waits', attempts = greatest(attempts - 1, 0)
         where locked_by = any ($1) and ${isInnocent}),
       crashed as (
         update graphile_worker._private_jobs set ${crashColumns('least(attempts, max_attempts - 1)')}, job_queue_id = coalesce(job_queue_id,
           case when flags ? 'crashes' then (select id from graphile_worker._private_job_queues where queue_name = $2) end)
         where locked_by = any ($1) and not ${isInnocent}
         returning id, task_id, attempts >= max_attempts as set_aside)
       select crashed.id, tasks.identifier as task, crashed.set_aside as "setAside"
       from crashed join graphile_worker._private_tasks tasks on tasks.id = crashed.task_id`,
      [dead, suspectsQueue, 'The process died while it ran this job.'],
    );
    for (const { id, task, setAside } of rows) {
      this.#onCrash(task);
      if (setAside) this.#log.error({ jobId: id, task }, 'Set aside a job that was active in too many crashes');
    }
  }

  /** Shows the library that the jobs of this pool are not stale. */
  async #keep(client: pg.Client): Promise<void> {
    if (performance.now() - this.#keptAt < keepMs) return;
    await client.query('update graphile_worker._private_jobs set locked_at = now() where locked_by = $1', [
      this.#poolId,
    ]);
    this.#keptAt = performance.now();
  }

  async #pause(ms: number): Promise<void> {
    await wait(ms, undefined, { signal: this.#stopping.signal, ref: false }).catch(() => {});
  }
}

/** SQL condition: the job cannot have caused the end of the process that held it. */
const isInnocent = `(coalesce(flags ? 'waits', false) or coalesce((flags->>'crashes')::integer, 0) >= ${crashesMax - 1})`;

async function countWorkers(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    `select count(distinct objid)::integer as count from pg_locks
     where locktype = 'advisory' and classid = $1::bigint::oid and objsubid = 2 and granted
       and database = (select oid from pg_database where datname = current_database())`,
    [presenceLockSpace],
  );
  return Math.max(1, rows[0]?.count ?? 1);
}
