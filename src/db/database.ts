import postgres from 'postgres';
import { type DatabaseTarget, postgresArguments } from './address.ts';

/** A connection pool or an open transaction: whatever a store function needs. */
export type Db = postgres.Sql<Types> | postgres.TransactionSql<Types>;
/** The pool itself: what can open a transaction. */
export type Database = postgres.Sql<Types>;
export type Transaction = postgres.TransactionSql<Types>;

type Types = { bigint: number };

/** The sandbox id that stands for production. */
export const production = '00000000-0000-0000-0000-000000000000';

/** The owner id that stands for the app itself, or for nobody in particular. */
export const nobody = '00000000-0000-0000-0000-000000000000';

export type DatabaseOptions = {
  poolSize: number;
  /** Shown in pg_stat_activity. */
  applicationName: string;
};

/**
 * Opens a pool of prepared-statement connections. Columns come back in camelCase, bigint as number (exact up to
 * 2^53 − 1, which our counts and sizes never pass), timestamps as Date.
 */
export function openDatabase(target: DatabaseTarget, options: DatabaseOptions): Database {
  const settings = {
    max: options.poolSize,
    connect_timeout: 10,
    idle_timeout: 0,
    max_lifetime: 60 * 60,
    onnotice: () => {},
    connection: { application_name: options.applicationName },
    transform: { column: { from: postgres.toCamel, to: postgres.fromCamel }, undefined: null },
    types: {
      bigint: {
        to: 20,
        from: [20],
        serialize: (value: number) => String(value),
        parse: (text: string) => Number(text),
      },
    },
  } satisfies postgres.Options<Record<string, postgres.PostgresType>>;
  const [url, all] = postgresArguments(target, settings);
  return postgres(url, all);
}

/** True for a violation of the named unique constraint or index (SQLSTATE 23505). */
export function isUniqueViolation(error: unknown, constraint: string): boolean {
  return isPostgresError(error, '23505') && error.constraint_name === constraint;
}

/** True for a violation of any foreign key (SQLSTATE 23503): what the row refers to is gone. */
export function isForeignKeyViolation(error: unknown): boolean {
  return isPostgresError(error, '23503');
}

/** True for an error of the database with this SQLSTATE, such as one that a trigger of ours raises. */
export function isDatabaseError(error: unknown, code: string): boolean {
  return isPostgresError(error, code);
}

/** True when the database itself refused the statement, so that it works and another statement may pass. */
export function isRefusedStatement(error: unknown): boolean {
  return error instanceof postgres.PostgresError;
}

function isPostgresError(error: unknown, code: string): error is postgres.PostgresError {
  return error instanceof postgres.PostgresError && error.code === code;
}

/**
 * A transaction as a database of its own: what begins a transaction on it gets a savepoint. Lets a service that opens
 * its own transaction work inside another's.
 */
export function nestedDatabase(db: Db): Database {
  if (!('savepoint' in db)) return db;
  return new Proxy(db, {
    get: (transaction, name) =>
      name === 'begin'
        ? (...given: unknown[]) => transaction.savepoint(given.at(-1) as (tx: Transaction) => Promise<unknown>)
        : Reflect.get(transaction, name),
  }) as unknown as Database;
}
