import { defined } from '../lib/defined.ts';

/** How to reach a PostgreSQL server. `host` is a host name, or the directory of its Unix socket. */
export type DatabaseAddress = {
  host: string;
  port: number;
  database: string;
  username: string;
  password?: string;
};

/** The embedded server's address, or a connection URL such as DATABASE_URL. */
export type DatabaseTarget = DatabaseAddress | string;

/** The connection settings of the `pg` driver. */
type PgConnection =
  | { connectionString: string }
  | { host: string; port: number; database: string; user: string; password?: string; ssl: false };

/** Converts a target to a connection configuration of `pg`. */
export function pgConnection(target: DatabaseTarget): PgConnection {
  if (typeof target === 'string') return { connectionString: target };
  const { host, port, database, username, password } = target;
  return { host, port, database, user: username, ssl: false, ...defined({ password }) };
}

/** Returns the target of another database on the same server. */
export function withDatabase<T extends DatabaseTarget>(target: T, database: string): T;
export function withDatabase(target: DatabaseTarget, database: string): DatabaseTarget {
  if (typeof target !== 'string') return { ...target, database };
  // `new URL` would reject several hosts with ports.
  return target.replace(/^(\w+:\/\/(?:[^/?]*@)?[^/?]*)[^?]*/, `$1/${encodeURIComponent(database)}`);
}

/** The socket file that a server with this directory and port listens on. */
export function socketPath(address: Pick<DatabaseAddress, 'host' | 'port'>): string {
  return `${address.host}/.s.PGSQL.${address.port}`;
}
