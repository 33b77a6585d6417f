import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import type { DatabaseTarget } from '../../db/address.ts';
import { Client, tryServers } from '../../db/client.ts';

/** A session with one of the databases of a move. Its name is the move's, so that a later try can end it. */
export type Session = pg.Client;

/** Opens a session with fixed formats of dates and numbers, and without timeouts of statements. */
export async function openSession(target: DatabaseTarget, name: string): Promise<Session> {
  const session = await tryServers(target, async () => {
    const client = new Client(target, { application_name: name });
    // The next query reports a lost connection. Without a listener, the error would end the process.
    client.on('error', () => {});
    await client.connect();
    return client;
  });
  await session.query(`set datestyle = 'ISO'; set intervalstyle = 'postgres'; set timezone = 'UTC';
    set extra_float_digits = 3; set bytea_output = 'hex'; set statement_timeout = 0;
    set idle_in_transaction_session_timeout = 0; set tcp_user_timeout = 0`);
  return session;
}

/** Closes the connection immediately, even during a COPY. A later `end()` does nothing. */
export function dropSession(session: Session): void {
  session.connection.stream.destroy();
}

/** Runs work in a transaction. */
export async function inTransaction<T>(session: Session, work: () => Promise<T>, mode = ''): Promise<T> {
  await session.query(`begin ${mode}`);
  try {
    const result = await work();
    await session.query('commit');
    return result;
  } catch (error) {
    await session.query('rollback').catch(() => {});
    throw error;
  }
}

/** Lets the transaction write rows as they are: without triggers, and without checks of foreign keys. */
export async function bypassTriggers(session: Session): Promise<void> {
  await session.query('set local session_replication_role = replica');
}

/** Sends the rows of a query on one session to a table on the other. Returns how many. */
export async function copyRows(
  from: { session: Session; query: string },
  to: { session: Session; table: string; columns: readonly string[] },
): Promise<number> {
  const into = to.session.query(copyFrom(`copy ${to.table} (${to.columns.map(quote).join(', ')}) from stdin`));
  await pipeline(from.session.query(copyTo(`copy (${from.query}) to stdout`)), into);
  return into.rowCount;
}

export function quote(name: string): string {
  return pg.escapeIdentifier(name);
}

export function literal(text: string): string {
  return pg.escapeLiteral(text);
}

/** The SQLSTATE of an error of PostgreSQL. */
export function stateOf(error: unknown): string | undefined {
  return (error as { code?: string } | undefined)?.code;
}
