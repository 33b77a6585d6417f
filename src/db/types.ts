import type { CopiedRow } from './copy-out.ts';
import type { Sql, Statement } from './sql.ts';

/** What a store needs: the pool, a connection or a transaction. */
export type Db = Sql & {
  /**
   * Runs the last statement of a transaction: the commit is sent behind it. So the statement must fail, instead of
   * having another result, if nothing may be committed.
   */
  runLast<Rows extends readonly unknown[]>(statement: Statement<Rows>): Promise<Rows>;
  /**
   * Runs work in a transaction or, within one, in a savepoint of it. If PostgreSQL aborts the whole transaction
   * because of a deadlock or a serialisation failure, or its session ends before the commit, the work is repeated: it
   * must have no effect other than its statements.
   */
  begin<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
};
export type Transaction = Db & {
  /** Reads the rows of a statement in batches of `size`, without holding all of them in memory. */
  cursor<Rows extends readonly unknown[]>(statement: Statement<Rows>, size: number): AsyncGenerator<Rows>;
  /**
   * Passes each row of a statement to `take`, with its columns in PostgreSQL's binary format: bytes arrive in a fifth of
   * the time that other statements take, which send them as text. The values must be text or numbers.
   */
  copyOut(statement: Statement, take: (row: CopiedRow) => void): Promise<void>;
};
/** One session: statements run in the order in which they are awaited. */
export type Session = Db & {
  /** Runs SQL without values, possibly several statements. */
  runScript(text: string): Promise<void>;
  /** Returns the connection to the pool. */
  release(): void;
};
/**
 * The pool. A statement outside a transaction is repeated if PostgreSQL aborts it because of a deadlock. A statement
 * that only reads is also repeated if its session ends.
 */
export type Database = Db & {
  begin<T>(mode: TransactionMode, work: (tx: Transaction) => Promise<T>): Promise<T>;
  /**
   * Runs work so that its statements on this pool, and those of `finish`, commit together: see `Unit`. Statements in
   * `runApart` do not take part.
   */
  combine<T>(work: () => Promise<T>, finish: (tx: Transaction, result: T) => Promise<void>): Promise<T>;
  /** Reserves a connection for one caller, for session-level features. */
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

export type TransactionMode = 'read write' | 'read only' | 'isolation level repeatable read read only';
