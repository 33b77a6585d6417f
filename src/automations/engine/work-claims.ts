import type { Database } from '../../db/database.ts';
import { hasEnded } from '../../db/holder-lock.ts';

/** Half of an advisory lock key; the other half is the hash of the worker's name. */
const workerLockSpace = 7_130_244;

/**
 * Claims on the external work of nodes: a row for each claim, and a session lock that shows other processes that this
 * one is alive. A second worker that loads the run does not repeat work that is still active.
 * Correctness does not depend on it: the journal's sequence refuses a second result for a node.
 */
export class WorkClaims {
  readonly #session: Database;
  readonly #worker: string;
  readonly #held = new Set<string>();
  #hasClaimed = false;

  /**
   * @param session one direct connection, kept open: it holds the lock.
   * @param worker this process's name.
   */
  constructor(session: Database, worker: string) {
    this.#session = session;
    this.#worker = worker;
  }

  /** The claims on nodes of one run. */
  forRun(run: { appId: string; id: string }): RunClaims {
    return { take: (commandId) => this.#take(run, commandId), release: (commandIds) => this.#release(run, commandIds) };
  }

  /**
   * Deletes claims in the name of this process that it does not hold: the database may carry out a claim long after its
   * connection was lost, and a release may fail. Other processes would leave that work to this one.
   */
  async releaseLost(): Promise<void> {
    if (!this.#hasClaimed) return;
    // No claim is sent between reading those that are held and this statement, because there is one connection.
    const connection = await this.#session.reserve();
    try {
      await connection`
        delete from automation_work_claims lost where worker = ${this.#worker}
          and not exists (select from unnest(${[...this.#held]}::text[]) held where held = lost.command_id)`;
    } finally {
      connection.release();
    }
  }

  async #take(run: { appId: string; id: string }, commandId: string): Promise<boolean> {
    if (this.#held.has(commandId)) return false;
    this.#held.add(commandId);
    this.#hasClaimed = true;
    try {
      // Takes the lock each time, because it ends with a lost connection.
      const rows = await this.#session`
        with present as materialized (select pg_try_advisory_lock(${workerLockSpace}, hashtext(${this.#worker})))
        insert into automation_work_claims as held (app_id, run_id, command_id, worker)
        select ${run.appId}, ${run.id}, ${commandId}, ${this.#worker} from present
        on conflict (app_id, run_id, command_id) do update set worker = excluded.worker
        where held.worker = excluded.worker or ${hasEnded(this.#session, workerLockSpace, this.#session`held.worker`)}
        returning 1`;
      if (rows.length > 0) return true;
    } catch (error) {
      this.#held.delete(commandId);
      throw error;
    }
    this.#held.delete(commandId);
    return false;
  }

  async #release(run: { appId: string; id: string }, commandIds: string[]): Promise<void> {
    for (const commandId of commandIds) this.#held.delete(commandId);
    await this.#session`
      delete from automation_work_claims
      where app_id = ${run.appId} and run_id = ${run.id} and command_id = any (${commandIds}) and worker = ${this.#worker}`;
  }
}

export type RunClaims = {
  /** Returns true if this process must do the command's work, false if another one or this one already does it. */
  take(commandId: string): Promise<boolean>;
  /** Releases claims that were taken. Even if this fails, this process does not hold them any longer. */
  release(commandIds: string[]): Promise<void>;
};
