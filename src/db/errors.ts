import pg from 'pg';

/** An error that PostgreSQL returned; `code` is its SQLSTATE, `constraint` the name of the violated constraint. */
export const DatabaseError = pg.DatabaseError;
export type DatabaseError = InstanceType<typeof pg.DatabaseError>;

/** There is no session with PostgreSQL, or it was lost. It is unknown whether the statement took effect. */
export class ConnectionError extends Error {
  readonly code: string;

  constructor(code: string, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ConnectionError';
    this.code = code;
  }

  /** Converts an error from a connection attempt. An error that PostgreSQL itself returned stays as it is. */
  static from(error: unknown): unknown {
    if (error instanceof DatabaseError || error instanceof ConnectionError) return error;
    const { code, message } = error as { code?: string; message?: string };
    if (message === 'timeout expired')
      return new ConnectionError('CONNECT_TIMEOUT', 'The database did not accept a connection in time.', error);
    return new ConnectionError(code ?? 'CONNECTION_CLOSED', `The database cannot be reached: ${message}`, error);
  }

  /** Converts an error from a statement: the driver reports a lost session as a plain error. */
  static fromDriver(error: unknown): unknown {
    if (error instanceof DatabaseError || error instanceof ConnectionError) return error;
    const { code, message = '' } = error as { code?: string; message?: string };
    if (/^Connection terminated|not queryable/.test(message))
      return new ConnectionError('CONNECTION_CLOSED', 'The connection to the database was lost.', error);
    if (code !== undefined && /^E[A-Z]+$/.test(code))
      return new ConnectionError(code, `The connection to the database was lost: ${message}`, error);
    return error;
  }
}

/** True for a violation of the named unique constraint or index (SQLSTATE 23505). */
export function isUniqueViolation(error: unknown, constraint: string): boolean {
  return isDatabaseError(error, '23505') && (error as DatabaseError).constraint === constraint;
}

/** True for a violation of any foreign key (SQLSTATE 23503): the referenced row is gone. */
export function isForeignKeyViolation(error: unknown): boolean {
  return isDatabaseError(error, '23503');
}

/** The table of the row that violates a foreign key, and the referencing column other than app_id. */
export function brokenReference(error: unknown): { table: string; column: string } | undefined {
  if (!isForeignKeyViolation(error)) return undefined;
  const { table = '', constraint = '' } = error as DatabaseError;
  return {
    table,
    column: constraint
      .slice(table.length + 1)
      .replace(/^app_id_/, '')
      .replace(/_fkey$/, ''),
  };
}

/** True for a database error with this SQLSTATE, including those that our own triggers raise. */
export function isDatabaseError(error: unknown, code: string): boolean {
  return error instanceof DatabaseError && error.code === code;
}

/**
 * True if there is no session, or PostgreSQL is starting, stopping, out of resources or not the primary (SQLSTATE
 * classes 08, 57P and 53, and 25006): the same statement may succeed later.
 */
export function isDatabaseUnavailable(error: unknown): boolean {
  return (
    error instanceof ConnectionError || (error instanceof DatabaseError && /^(08|57P|53|25006)/.test(error.code ?? ''))
  );
}

/** True if the database refused the statement: the database works, and another statement may succeed. */
export function isRefusedStatement(error: unknown): boolean {
  return error instanceof DatabaseError;
}
