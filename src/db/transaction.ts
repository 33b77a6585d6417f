import { currentTraceparent, isTracing } from '../tracing/trace.ts';
import type { Connection } from './connection.ts';
import { type CopiedRow, copyOutOf, createRowReader } from './copy-out.ts';
import { DatabaseError } from './errors.ts';
import { isForEveryApp } from './fences.ts';
import { isStalePlan, type Try } from './retry.ts';
import { type Compiled, compile, createSql, type Result, type Row, type Statement } from './sql.ts';
import { traceStatement } from './tracing.ts';
import type { Db, Transaction, TransactionMode } from './types.ts';

type Work<T> = (tx: Transaction, scope: Scope) => Promise<T>;

export async function execute(connection: Connection, compiled: Compiled): Promise<Result<Row[]>> {
  try {
    if (isTracing()) return await traceStatement(compiled, () => connection.execute(compiled));
    return await connection.execute(compiled);
  } catch (error) {
    if (isStalePlan(error)) connection.forget(compiled.text);
    throw error;
  }
}

/** Begins a transaction. Triggers store its trace with the events that they emit. */
function beginScript(mode: TransactionMode | undefined): string {
  const begin = mode === undefined ? 'begin' : `begin ${mode}`;
  const everyApp = isForEveryApp() ? "; set local quarry.every_app = 'on'" : '';
  const traceparent = currentTraceparent();
  const trace = traceparent === undefined ? '' : `; set local quarry.traceparent = '${traceparent}'`;
  return `${begin}${everyApp}${trace}`;
}

export async function runTransaction<T>(
  connection: Connection,
  mode: TransactionMode | undefined,
  work: Work<T>,
  attempt?: Try,
): Promise<T> {
  if (attempt) attempt.isWithoutEffect = true;
  const script = beginScript(mode);
  const sent: { begin?: Promise<string>; commit?: Promise<string> } = {};
  const begin = () => {
    sent.begin ??= connection.runScript(script);
    return sent.begin;
  };
  const commit = () => {
    if (attempt) attempt.isWithoutEffect = false;
    sent.commit ??= connection.runScript('commit');
    return sent.commit;
  };
  // A plain `begin` cannot fail on a working session, so it is sent together with the first statement.
  if (mode !== undefined) await begin();
  const scope = new Scope(
    connection,
    0,
    () => void begin().catch(() => {}),
    () => void commit().catch(() => {}),
  );
  try {
    const result = await scope.run(work);
    if (sent.begin === undefined) return result;
    await sent.begin;
    if ((await commit()) !== 'COMMIT') throw new Error('A statement of the transaction failed before the commit.');
    return result;
  } catch (error) {
    // A commit that was sent behind a failed statement has rolled back.
    if (sent.begin !== undefined) await (sent.commit ?? connection.runScript('rollback')).catch(() => {});
    throw error;
  }
}

/**
 * A transaction or savepoint while its work runs. A failed statement fails the scope even if the work caught the
 * error, because PostgreSQL has already aborted it.
 */
export class Scope {
  readonly #connection: Connection;
  readonly #depth: number;
  /** Begins the transaction if it has not begun. */
  readonly #begin: () => void;
  /** Commits the transaction; undefined in a savepoint. */
  readonly #commit: (() => void) | undefined;
  #failure: { error: unknown } | undefined;
  #isOver = false;
  #cursors = 0;

  constructor(connection: Connection, depth: number, begin: () => void, commit?: () => void) {
    this.#connection = connection;
    this.#depth = depth;
    this.#begin = begin;
    this.#commit = commit;
  }

  async run<T>(work: Work<T>): Promise<T> {
    try {
      const result = await work(this.#sql(), this);
      if (this.#failure) throw this.#failure.error;
      return result;
    } catch (error) {
      // "The transaction is aborted" would hide the original error.
      const isConsequence = error instanceof DatabaseError && error.code === '25P02';
      throw isConsequence && this.#failure ? this.#failure.error : error;
    } finally {
      this.#isOver = true;
    }
  }

  async execute(compiled: Compiled): Promise<Result<Row[]>> {
    if (this.#isOver) throw new Error('The transaction is over.');
    this.#begin();
    try {
      return await execute(this.#connection, compiled);
    } catch (error) {
      this.#failure ??= { error };
      throw error;
    }
  }

  /** Sends the commit directly behind the statement. If the statement fails, it rolls back instead. */
  executeLast(compiled: Compiled): Promise<Result<Row[]>> {
    const commit = this.#commit;
    if (commit === undefined) return this.execute(compiled);
    const onSent = () => {
      commit();
      this.#isOver = true;
    };
    return this.execute({ ...compiled, onSent });
  }

  async runSavepoint<T>(work: Work<T>): Promise<T> {
    if (this.#isOver) throw new Error('The transaction is over.');
    this.#begin();
    const name = `s${this.#depth + 1}`;
    // The work's first statement is sent immediately after it, and the next one after the release. Both fail only if the
    // transaction or its session is lost, and then so does every statement behind them, and the commit.
    const saved = this.#connection.runScript(`savepoint ${name}`);
    saved.catch(() => {});
    try {
      const result = await new Scope(this.#connection, this.#depth + 1, this.#begin).run(work);
      await saved;
      this.#connection.runScript(`release savepoint ${name}`).catch(() => {});
      return result;
    } catch (error) {
      await this.#connection.runScript(`rollback to savepoint ${name}; release savepoint ${name}`);
      throw error;
    }
  }

  #sql(): Transaction {
    return createSql((compiled) => this.execute(compiled), {
      begin: ((work: (tx: Transaction) => Promise<unknown>) => this.runSavepoint(work)) as Db['begin'],
      runLast: <Rows extends readonly unknown[]>(statement: Statement<Rows>) =>
        this.executeLast(compile(statement)) as unknown as Promise<Rows>,
      cursor: <Rows extends readonly unknown[]>(statement: Statement<Rows>, size: number) =>
        this.#readBatches(statement, size),
      copyOut: async (statement: Statement, take: (row: CopiedRow) => void) => {
        await this.execute({ ...copyOutOf(compile(statement)), onCopied: createRowReader(take) });
      },
    });
  }

  async *#readBatches<Rows extends readonly unknown[]>(statement: Statement<Rows>, size: number): AsyncGenerator<Rows> {
    const name = `c${this.#depth}_${++this.#cursors}`;
    const compiled = compile(statement);
    // Neither statement is prepared: the next cursor of this name may have other columns.
    await this.execute({ ...compiled, text: `declare ${name} no scroll cursor for ${compiled.text}`, once: true });
    const fetch = { ...compiled, text: `fetch ${size} from ${name}`, values: [], types: [], once: true };
    for (let isMore = true; isMore; ) {
      const rows = (await this.execute(fetch)) as unknown as Rows;
      if (rows.length > 0) yield rows;
      isMore = rows.length === size;
    }
    await this.#connection.runScript(`close ${name}`);
  }
}
