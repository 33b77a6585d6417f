import type { DatabaseTarget } from './address.ts';
import type { Connection } from './connection.ts';
import { DatabaseError } from './errors.ts';
import { Listener } from './listener.ts';
import { Pool } from './pool.ts';
import { isStalePlan, retryOnConflict } from './retry.ts';
import { type Compiled, compile, createSql, type Result, type Row, type Sql, type Statement } from './sql.ts';

export {
  brokenReference,
  isDatabaseError,
  isForeignKeyViolation,
  isRefusedStatement,
  isUniqueViolation,
} from './errors.ts';
export type { Identifier, Statement } from './sql.ts';

/** What a store needs: the pool, a connection or a transaction. */
export type Db = Sql & {
  /**
   * Runs work in a transaction; within one, in a savepoint of it. When PostgreSQL aborts the whole transaction with a
   * deadlock or a serialisation failure, it is repeated, so work must have no effect other than its statements.
   */
  begin<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
};
export type Transaction = Db & {
  /** The rows of a statement in batches of `size`, without keeping all of them in memory. */
  cursor<Rows extends readonly unknown[]>(statement: Statement<Rows>, size: number): AsyncGenerator<Rows>;
};
/** One session: statements run in the order in which they are awaited. */
type Session = Db & {
  /** SQL without values, possibly several statements. */
  runScript(text: string): Promise<void>;
  /** Returns the connection to the pool. */
  release(): void;
};
/** The pool. A statement outside a transaction is repeated when PostgreSQL aborts it with a deadlock. */
export type Database = Db & {
  begin<T>(mode: TransactionMode, work: (tx: Transaction) => Promise<T>): Promise<T>;
  /** A connection for one caller, for session-level features. */
  reserve(): Promise<Session>;
  /** Listens on a notification channel; see `Listener`. */
  listen(
    channel: string,
    hear: (payload: string) => void,
    onListen?: () => void,
  ): Promise<{ unlisten(): Promise<void> }>;
  notify(channel: string, payload: string): Promise<void>;
  /** Waits for running statements, for at most this many seconds. */
  end(options?: { timeout?: number }): Promise<void>;
};
type TransactionMode = 'read only' | 'isolation level repeatable read read only';

/** The sandbox id of production. */
export const production = '00000000-0000-0000-0000-000000000000';

/** The owner id of resources that belong to the app itself or have no owner. */
export const nobody = '00000000-0000-0000-0000-000000000000';

type DatabaseOptions = {
  poolSize: number;
  /** Shown in pg_stat_activity. */
  applicationName: string;
  /** False when a transaction pooler does not support prepared statements. */
  prepare?: boolean;
};

const endTimeoutSeconds = 5;

/** Opens a pool. It connects at the first statement. */
export function openDatabase(target: DatabaseTarget, options: DatabaseOptions): Database {
  const connecting = { target, applicationName: options.applicationName, prepare: options.prepare ?? true };
  const pool = new Pool(connecting, options.poolSize);
  let listener: Listener | undefined;

  async function withConnection<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = await pool.acquire();
    try {
      return await work(connection);
    } finally {
      pool.release(connection);
    }
  }

  // A statement outside a transaction is its own transaction, so it is repeated like one.
  const runAlone = (compiled: Compiled) =>
    retryOnConflict(() => withConnection((connection) => execute(connection, compiled)));
  const database: Database = createSql(runAlone, {
    begin: beginner((mode, work) => withConnection((connection) => runTransaction(connection, mode, work))),
    async reserve() {
      const connection = await pool.acquire();
      return createSession(connection, () => pool.release(connection));
    },
    listen(channel: string, hear: (payload: string) => void, onListen?: () => void) {
      listener ??= new Listener({ ...connecting, prepare: false });
      return listener.listen(channel, hear, onListen);
    },
    async notify(channel: string, payload: string) {
      await database`select pg_notify(${channel}, ${payload})`;
    },
    async end({ timeout = endTimeoutSeconds }: { timeout?: number } = {}) {
      await Promise.all([pool.end(timeout), listener?.end()]);
    },
  });
  return database;
}

type Begin = Database['begin'];
type Work<T> = (tx: Transaction) => Promise<T>;

/** `begin` with and without a mode, repeated on conflict. */
function beginner(run: <T>(mode: TransactionMode | undefined, work: Work<T>) => Promise<T>): Begin {
  const begin = <T>(first: TransactionMode | Work<T>, second?: Work<T>) =>
    retryOnConflict(() => (typeof first === 'string' ? run(first, second as Work<T>) : run(undefined, first)));
  return begin as Begin;
}

async function execute(connection: Connection, compiled: Compiled): Promise<Result<Row[]>> {
  try {
    return await connection.execute(compiled);
  } catch (error) {
    if (isStalePlan(error)) connection.forget(compiled.text);
    throw error;
  }
}

function createSession(connection: Connection, release: () => void): Session {
  return createSql((compiled) => retryOnConflict(() => execute(connection, compiled)), {
    begin: beginner((mode, work) => runTransaction(connection, mode, work)),
    async runScript(text: string) {
      await connection.runScript(text);
    },
    release,
  });
}

async function runTransaction<T>(connection: Connection, mode: TransactionMode | undefined, work: Work<T>): Promise<T> {
  const begun = connection.runScript(mode === undefined ? 'begin' : `begin ${mode}`);
  // The first statement is sent directly after a plain `begin`, which cannot fail on a working session.
  if (mode === undefined) begun.catch(() => {});
  else await begun;
  const scope = new Scope(connection);
  try {
    const result = await scope.run(work);
    await begun;
    if ((await connection.runScript('commit')) !== 'COMMIT') throw new Error('The transaction had failed before.');
    return result;
  } catch (error) {
    await connection.runScript('rollback').catch(() => {});
    throw error;
  }
}

/**
 * A transaction or savepoint while its work runs. A failed statement fails it even when the work caught the error:
 * PostgreSQL has already aborted it.
 */
class Scope {
  readonly #connection: Connection;
  readonly #depth: number;
  #failure: { error: unknown } | undefined;
  #isOver = false;
  #cursors = 0;

  constructor(connection: Connection, depth = 0) {
    this.#connection = connection;
    this.#depth = depth;
  }

  async run<T>(work: Work<T>): Promise<T> {
    try {
      const result = await work(this.#sql());
      if (this.#failure) throw this.#failure.error;
      return result;
    } catch (error) {
      // "The transaction is aborted" says less than the original error.
      const isConsequence = error instanceof DatabaseError && error.code === '25P02';
      throw isConsequence && this.#failure ? this.#failure.error : error;
    } finally {
      this.#isOver = true;
    }
  }

  #sql(): Transaction {
    return createSql((compiled) => this.#execute(compiled), {
      begin: <T>(work: Work<T>) => this.#runSavepoint(work),
      cursor: <Rows extends readonly unknown[]>(statement: Statement<Rows>, size: number) =>
        this.#readBatches(statement, size),
    });
  }

  async #execute(compiled: Compiled): Promise<Result<Row[]>> {
    if (this.#isOver) throw new Error('The transaction is over.');
    try {
      return await execute(this.#connection, compiled);
    } catch (error) {
      this.#failure ??= { error };
      throw error;
    }
  }

  async #runSavepoint<T>(work: Work<T>): Promise<T> {
    if (this.#isOver) throw new Error('The transaction is over.');
    const name = `s${this.#depth + 1}`;
    await this.#connection.runScript(`savepoint ${name}`);
    try {
      const result = await new Scope(this.#connection, this.#depth + 1).run(work);
      await this.#connection.runScript(`release savepoint ${name}`);
      return result;
    } catch (error) {
      await this.#connection.runScript(`rollback to savepoint ${name}; release savepoint ${name}`);
      throw error;
    }
  }

  async *#readBatches<Rows extends readonly unknown[]>(statement: Statement<Rows>, size: number): AsyncGenerator<Rows> {
    const name = `c${this.#depth}_${++this.#cursors}`;
    const compiled = compile(statement);
    // Neither is prepared: the next cursor of this name may have other columns.
    await this.#execute({ ...compiled, text: `declare ${name} no scroll cursor for ${compiled.text}`, once: true });
    const fetch = { ...compiled, text: `fetch ${size} from ${name}`, values: [], types: [], once: true };
    for (let isMore = true; isMore; ) {
      const rows = (await this.#execute(fetch)) as unknown as Rows;
      if (rows.length > 0) yield rows;
      isMore = rows.length === size;
    }
    await this.#connection.runScript(`close ${name}`);
  }
}
