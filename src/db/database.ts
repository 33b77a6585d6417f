import type { RecentApps } from '../fairness/recent-apps.ts';
import type { DatabaseTarget } from './address.ts';
import type { Connection } from './connection.ts';
import { isForEveryApp } from './fences.ts';
import { Listener } from './listener.ts';
import { Pool } from './pool.ts';
import { Replica, type ReplicaOutcome } from './replica.ts';
import { retryOnConflict, type Try } from './retry.ts';
import { type Compiled, createSql } from './sql.ts';
import { execute, runTransaction } from './transaction.ts';
import type { Database, Session, Transaction, TransactionMode } from './types.ts';
import { isRead, type OpenTransaction, Unit } from './unit.ts';

export type { CopiedRow } from './copy-out.ts';
export {
  brokenReference,
  isDatabaseError,
  isForeignKeyViolation,
  isRefusedStatement,
  isUniqueViolation,
} from './errors.ts';
export { preferReplica, type ReplicaOutcome } from './replica.ts';
export type { Identifier, Statement } from './sql.ts';
export type { Database, Db, Session, Transaction } from './types.ts';
export { isInOpenUnit, isInUnit, runAfterwards, runApart } from './unit.ts';

/** The sandbox id of production. */
export const production = '00000000-0000-0000-0000-000000000000';

/** The owner id of resources that belong to the app itself or have no owner. */
export const nobody = '00000000-0000-0000-0000-000000000000';

type DatabaseOptions = {
  poolSize: number;
  /** Shown in pg_stat_activity. */
  applicationName: string;
  /** Set to false for a transaction pooler that does not support prepared statements. */
  prepare?: boolean;
  /** Whether the target is a transaction pooler. */
  behindPooler?: boolean;
  /** How long a connection attempt may take, and how long PostgreSQL may be silent before it counts as unresponsive. */
  timeoutMs?: number;
  /** A streaming replica for the reads of `preferReplica`. */
  replica?: { target: DatabaseTarget; onRead: (outcome: ReplicaOutcome) => void } | undefined;
  /** Those that send requests to this process. */
  apps?: RecentApps;
};

const endTimeoutSeconds = 5;
const timeoutMsDefault = 10_000;

/** Opens a pool, which connects at the first statement. */
export function openDatabase(target: DatabaseTarget, options: DatabaseOptions): Database {
  const { applicationName, prepare = true, behindPooler = false, timeoutMs = timeoutMsDefault } = options;
  const connecting = { target, applicationName, prepare, behindPooler, timeoutMs };
  const pool = new Pool(connecting, options.poolSize, options.apps);
  let listener: Listener | undefined;
  let replica: Replica | undefined;

  // A statement outside a transaction is a transaction by itself, so it is repeated like one.
  const runAlone = (compiled: Compiled) => {
    const frame = unitOf(pool);
    if (frame !== undefined && !frame.unit.mayRunOutside(compiled.text)) return frame.unit.execute(frame, compiled);
    const run = () =>
      retryOnConflict((attempt) =>
        withConnection(pool, attempt, (connection) => {
          if (isForEveryApp() && !isRead(compiled.text))
            return runTransaction(connection, undefined, (_tx, scope) => scope.execute(compiled), attempt);
          attempt.isWithoutEffect = isRead(compiled.text);
          return execute(connection, compiled);
        }),
      );
    if (replica === undefined || frame !== undefined) return run();
    if (isRead(compiled.text)) return replica.read((connection) => execute(connection, compiled), run);
    replica.leave();
    return run();
  };
  const beginAlone = createBegin((mode, work, attempt) =>
    withConnection(pool, attempt, (connection) => runTransaction(connection, mode, work, attempt)),
  );
  const begin = <T>(first: TransactionMode | Work<T>, second?: Work<T>): Promise<T> => {
    const frame = unitOf(pool);
    const reads = typeof first === 'string';
    const work = reads ? (second as Work<T>) : first;
    if (frame !== undefined && (!reads || frame.unit.isOpen)) return frame.unit.begin(frame, work);
    if (reads) {
      const run = () => beginAlone(first, work);
      if (replica === undefined || frame !== undefined) return run();
      return replica.read((connection) => runTransaction(connection, first, work), run);
    }
    replica?.leave();
    return beginAlone(work);
  };
  const database: Database = createSql(runAlone, {
    runLast,
    begin: begin as Begin,
    combine: <T>(work: () => Promise<T>, finish: (tx: Transaction, result: T) => Promise<void>) =>
      new Unit(pool, unitOpener(pool)).run(work, finish),
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
      await Promise.all([pool.end(timeout), replica?.end(timeout), listener?.end()]);
    },
  });
  if (options.replica !== undefined) {
    const { target: place, onRead } = options.replica;
    replica = new Replica(database, { ...connecting, target: place, behindPooler: false }, options.poolSize, onRead);
  }
  return database;
}

/** The open unit, if its statements go through this pool. */
function unitOf(pool: Pool) {
  const frame = Unit.current();
  return frame?.unit.pool === pool ? frame : undefined;
}

async function withConnection<T>(pool: Pool, attempt: Try, work: (connection: Connection) => Promise<T>): Promise<T> {
  const connection = await (attempt.afterLoss ? pool.acquireWorking() : pool.acquire());
  try {
    return await work(connection);
  } finally {
    pool.release(connection);
  }
}

/** Only the beginning of a unit can be repeated: by then, its work has already started. */
function unitOpener(pool: Pool): OpenTransaction {
  return (inOne) =>
    retryOnConflict((attempt) =>
      withConnection(pool, attempt, (connection) => {
        const begun: typeof inOne = (tx, scope) => {
          attempt.isWithoutEffect = false;
          return inOne(tx, scope);
        };
        return runTransaction(connection, 'read write', begun, attempt);
      }),
    );
}

type Begin = Database['begin'];
type Work<T> = (tx: Transaction) => Promise<T>;

/** A statement outside a transaction commits by itself. */
const runLast: Database['runLast'] = async (statement) => statement;

/** `begin` with and without a mode, repeated after a conflict. */
function createBegin(run: <T>(mode: TransactionMode | undefined, work: Work<T>, attempt: Try) => Promise<T>): Begin {
  const begin = <T>(first: TransactionMode | Work<T>, second?: Work<T>) =>
    retryOnConflict((attempt) =>
      typeof first === 'string' ? run(first, second as Work<T>, attempt) : run(undefined, first, attempt),
    );
  return begin as Begin;
}

function createSession(connection: Connection, release: () => void): Session {
  return createSql((compiled) => retryOnConflict(() => execute(connection, compiled)), {
    runLast,
    begin: createBegin((mode, work) => runTransaction(connection, mode, work)),
    async runScript(text: string) {
      await connection.runScript(text);
    },
    release,
  });
}
