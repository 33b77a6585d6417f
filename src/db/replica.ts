import { AsyncLocalStorage } from 'node:async_hooks';
import type { Connection, ConnectionOptions } from './connection.ts';
import { ConnectionError, DatabaseError } from './errors.ts';
import { Pool } from './pool.ts';
import { retryOnConflict } from './retry.ts';
import type { Database } from './types.ts';

/** Where a read ran: on the replica, or on the primary because the replica lagged or failed. */
export type ReplicaOutcome = 'replica' | 'lagging' | 'failed';

/** The reads of one request. After one of them used the primary, all later ones do, so none sees an older state. */
type Reading = { mark: Promise<Mark> | undefined; usesPrimary: boolean };
/** A position in the primary's log, and the timeline of that log. Each promotion starts a new timeline. */
type Mark = { position: string; timeline: string };

const readings = new AsyncLocalStorage<Reading | undefined>();

/**
 * Lets statements of this work that only read run on the replica, if the replica has everything that was acknowledged
 * before the work.
 */
export async function preferReplica<T>(work: () => Promise<T>): Promise<T> {
  const reading: Reading = { mark: undefined, usesPrimary: false };
  try {
    return await readings.run(reading, work);
  } finally {
    // What the work leaves behind, such as the rest of a streamed list or the connection's next request, uses the
    // primary.
    reading.usesPrimary = true;
  }
}

/** Runs the statements of this work on the primary. For work that serves several requests. */
export function requirePrimary<T>(work: () => T): T {
  return readings.run(undefined, work);
}

/** The pauses while a read waits for the replica to catch up. After the last one, the primary serves the read. */
const catchUpPausesMs = [1, 2, 5, 10, 20];
/** The limit for the connection and the check together. After it, the primary serves the read. */
const checkMsMax = 250;
/** A read on a replica that stops responding is repeated on the primary. */
const readMsMax = 30_000;
/** How long reads avoid a replica that lagged or failed. Doubled each time until a read succeeds. */
const restMs = 100;
const restMsMax = 5_000;

/** A streaming replica of the primary that `db` connects to. */
export class Replica {
  readonly #db: Database;
  readonly #pool: Pool;
  readonly #count: (outcome: ReplicaOutcome) => void;
  #restMs = restMs;
  #restsUntilMs = 0;
  #running: Promise<unknown> = Promise.resolve();
  #next: Promise<Mark> | undefined;
  #timeline: string | undefined;

  constructor(db: Database, connecting: ConnectionOptions, poolSize: number, count: (outcome: ReplicaOutcome) => void) {
    this.#db = db;
    this.#pool = new Pool(connecting, poolSize);
    this.#count = count;
  }

  /** Runs a read on the replica if that is safe. Otherwise, or if it fails there, runs it on the primary. */
  async read<T>(onReplica: (connection: Connection) => Promise<T>, onPrimary: () => Promise<T>): Promise<T> {
    const reading = readings.getStore();
    if (reading === undefined || reading.usesPrimary || performance.now() < this.#restsUntilMs) {
      this.leave();
      return onPrimary();
    }
    let outcome: ReplicaOutcome = 'failed';
    try {
      reading.mark ??= this.#nextMark();
      const found = await this.#acquireFresh(await reading.mark, reading);
      if (found !== undefined) {
        const result = await this.#finish(found, () => retryOnConflict(() => onReplica(found)));
        this.#count('replica');
        this.#restMs = restMs;
        return result;
      }
      outcome = 'lagging';
    } catch (error) {
      // The work itself threw. It would throw on the primary, too.
      if (!(error instanceof ConnectionError || error instanceof DatabaseError)) throw error;
    }
    this.#count(outcome);
    this.#rest();
    reading.usesPrimary = true;
    return onPrimary();
  }

  /** Reads that fail together count as one failure. */
  #rest(): void {
    if (performance.now() < this.#restsUntilMs) return;
    this.#restsUntilMs = performance.now() + this.#restMs;
    this.#restMs = Math.min(this.#restMs * 2, restMsMax);
  }

  /** Keeps the later reads of this request on the primary, because the request has written or seen a newer state. */
  leave(): void {
    const reading = readings.getStore();
    if (reading !== undefined) reading.usesPrimary = true;
  }

  end(timeoutSeconds: number): Promise<void> {
    return this.#pool.end(timeoutSeconds);
  }

  /**
   * The primary's current position, which includes every write that was acknowledged before this call. Calls that
   * arrive while a statement runs share the next statement.
   */
  #nextMark(): Promise<Mark> {
    this.#next ??= this.#running.then(() => {
      this.#next = undefined;
      const mark = requirePrimary(() => this.#readMark());
      this.#running = mark.catch(() => {});
      return mark;
    });
    return this.#next;
  }

  async #readMark(): Promise<Mark> {
    // Without synchronous commit, a write is acknowledged before it is flushed to the log.
    const [mark] = await this.#db<Mark[]>`
      select position::text, left(pg_walfile_name(position), 8) as timeline
      from (select case current_setting('synchronous_commit')
        when 'off' then pg_current_wal_insert_lsn() else pg_current_wal_flush_lsn() end as position) latest`;
    if (mark === undefined) throw new ConnectionError('NO_POSITION', 'The primary did not report its position.');
    // A server that was left behind by a promotion never receives this row.
    if (this.#timeline !== mark.timeline)
      await this.#db`insert into server_facts (name, value) values ('timeline', ${mark.timeline})
        on conflict (name) do update set value = excluded.value, noted_at = excluded.noted_at
        where server_facts.value <> excluded.value`;
    this.#timeline = mark.timeline;
    return mark;
  }

  /** Returns a connection whose server has replayed the mark and every state that this request has seen. */
  async #acquireFresh(mark: Mark, reading: Reading): Promise<Connection | undefined> {
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => late.reject(new ConnectionError('REPLICA_TIMEOUT', 'The replica did not respond in time.')),
      checkMsMax,
    );
    let isLate = false;
    const acquiring = this.#catchUp(mark, reading, () => isLate);
    try {
      return await Promise.race([acquiring, late.promise]);
    } catch (error) {
      isLate = true;
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  async #catchUp(mark: Mark, reading: Reading, isLate: () => boolean): Promise<Connection | undefined> {
    const connection = await this.#pool.acquire();
    let isFresh = false;
    try {
      for (const pauseMs of [...catchUpPausesMs, 0]) {
        const [state] = await connection.execute(freshness(mark));
        if (state?.isFresh === true && !isLate()) {
          isFresh = true;
          // Another replica behind the same address may be behind this one.
          reading.mark = Promise.resolve({ ...mark, position: String(state.position) });
          return connection;
        }
        if (pauseMs === 0 || isLate()) return undefined;
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
      return undefined;
    } finally {
      if (!isFresh) this.#pool.release(connection);
    }
  }

  async #finish<T>(connection: Connection, work: () => Promise<T>): Promise<T> {
    const timer = setTimeout(() => connection.destroy(), readMsMax);
    try {
      return await work();
    } finally {
      clearTimeout(timer);
      this.#pool.release(connection);
    }
  }
}

const strings = Object.assign(['select replica state'], { raw: ['select replica state'] }) as TemplateStringsArray;

/** Must be a separate statement: a snapshot taken after it contains everything up to the mark. */
function freshness({ position, timeline }: Mark) {
  const text = `select pg_last_wal_replay_lsn()::text as position, pg_is_in_recovery()
    and pg_last_wal_replay_lsn() >= $1::pg_lsn
    and exists (select from server_facts where name = 'timeline' and value = $2) as is_fresh`;
  return { text, values: [position, timeline], types: [0, 0], strings };
}
