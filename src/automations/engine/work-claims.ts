import type { Database } from '../../db/database.ts';

/** Half of an advisory lock key; the other half is the hash of the worker's name. */
const workerLockSpace = 7_130_244;

/**
 * Who does the work outside of which node: a row for each, and one session lock for the whole process, by which others
 * see that it lives. So a worker that picks the run up meanwhile does not repeat what somebody is still waiting for.
 * Correctness does not hang on it: a second result for one node is refused by the journal's sequence.
 */
export class WorkClaims {
  readonly #session: Database;
  readonly #worker: string;
  readonly #held = new Set<string>();

  /**
   * @param session one direct connection, kept open: the lock is its session's.
   * @param worker this process's name.
   */
  constructor(session: Database, worker: string) {
    this.#session = session;
    this.#worker = worker;
  }

  /** The claims on nodes of one run. */
  of(run: { appId: string; id: string }): RunClaims {
    return { take: (commandId) => this.#take(run, commandId), release: (commandId) => this.#release(run, commandId) };
  }

  async #take(run: { appId: string; id: string }, commandId: string): Promise<boolean> {
    if (this.#held.has(commandId)) return false;
    this.#held.add(commandId);
    try {
      // The lock is taken each time, since a connection that was lost has lost it.
      const rows = await this.#session`
        with present as materialized (select pg_try_advisory_lock(${workerLockSpace}, hashtext(${this.#worker})))
        insert into automation_work_claims as held (app_id, run_id, command_id, worker)
        select ${run.appId}, ${run.id}, ${commandId}, ${this.#worker} from present
        on conflict (app_id, run_id, command_id) do update set worker = excluded.worker
        where held.worker = excluded.worker or pg_try_advisory_xact_lock(${workerLockSpace}, hashtext(held.worker))
        returning 1`;
      if (rows.length > 0) return true;
    } catch (error) {
      this.#held.delete(commandId);
      throw error;
    }
    this.#held.delete(commandId);
    return false;
  }

  async #release(run: { appId: string; id: string }, commandId: string): Promise<void> {
    if (!this.#held.delete(commandId)) return;
    await this.#session`
      delete from automation_work_claims
      where app_id = ${run.appId} and run_id = ${run.id} and command_id = ${commandId} and worker = ${this.#worker}`;
  }
}

export type RunClaims = {
  /** True when this process now does the work of this command; false when another one, or this one, already does. */
  take(commandId: string): Promise<boolean>;
  release(commandId: string): Promise<void>;
};
