import pg from 'pg';
import type { DatabaseTarget } from '../db/address.ts';
import { Client, tryServers } from '../db/client.ts';
import type { AppliedMigration, Migration } from '../db/migrate.ts';
import { backupLockKey } from '../files/store.ts';

/*
 * Rows are copied with COPY in text format on one session, by the driver whose COPY streams report every error
 * (docs/decisions/0025).
 */
export type Session = pg.Client;

/** Opens a session with fixed formats of dates and numbers, and without timeouts. */
export async function openSession(target: DatabaseTarget): Promise<Session> {
  const session = await tryServers(target, async () => {
    const client = new Client(target, { application_name: 'quarry-backup' });
    // The next query reports a lost connection. Without a listener, the error would end the process.
    client.on('error', () => {});
    await client.connect();
    return client;
  });
  // A slow disk may pause the copy for longer than a dead machine would be silent.
  await session.query(`set datestyle = 'ISO'; set intervalstyle = 'postgres'; set timezone = 'UTC';
    set extra_float_digits = 3; set statement_timeout = 0; set idle_in_transaction_session_timeout = 0;
    set tcp_user_timeout = 0`);
  return session;
}

/** Closes the connection immediately, even during a query. A later `end()` does nothing. */
export function dropSession(session: Session): void {
  session.connection.stream.destroy();
}

/**
 * Prevents the removal of blobs until the session ends. False when another backup or a restore is running. Waits a moment
 * for the lock of one that has just ended: PostgreSQL may notice later that its connection is closed.
 */
export async function takeBackupLock(session: Session): Promise<boolean> {
  await session.query("set lock_timeout = '3s'");
  try {
    await session.query('select pg_advisory_lock($1)', [backupLockKey]);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === lockNotAvailable) return false;
    throw error;
  } finally {
    await session.query('set lock_timeout = 0');
  }
}

/** The SQLSTATE of a statement that waited for longer than lock_timeout. */
const lockNotAvailable = '55P03';

export async function releaseBackupLock(session: Session): Promise<void> {
  await session.query('select pg_advisory_unlock($1)', [backupLockKey]);
}

/** Which database of an installation with cells this is; undefined for an installation without. */
export async function readCell(session: Session): Promise<{ installation: string; name: string | null } | undefined> {
  const { rows: tables } = await session.query("select to_regclass('cell_identity') is not null as exists");
  if (tables[0]?.exists !== true) return undefined;
  const { rows } = await session.query<{ installation: string; name: string | null }>(
    'select installation, cell as name from cell_identity',
  );
  return rows[0];
}

/** The server version and the applied migrations; none when the database was never used. */
export async function readState(session: Session): Promise<{
  postgres: string;
  migrations: AppliedMigration[];
  restoring: string | undefined;
  /** Whether the database has its own table of jobs. Release 0.1.0 used another. */
  hasJobs: boolean;
}> {
  const postgres = await session.query("select current_setting('server_version') as version");
  const exists = await session.query(
    `select to_regclass('schema_migrations') is not null as schema, to_regclass('server_facts') is not null as facts,
       to_regclass('jobs') is not null as jobs`,
  );
  const { schema, facts, jobs } = exists.rows[0] ?? {};
  const migrations = schema
    ? await session.query('select version, name, checksum from schema_migrations order by version')
    : { rows: [] };
  const restoring = facts
    ? await session.query("select value from server_facts where name = 'restoring'")
    : { rows: [] };
  return {
    postgres: postgres.rows[0]?.version ?? '',
    migrations: migrations.rows,
    restoring: restoring.rows[0]?.value,
    hasJobs: jobs,
  };
}

type Table = { name: string; columns: string[] };

/**
 * The tables that hold rows, with their stored columns, ordered by name. A restore creates the tables of the schema and
 * the server itself, a crash empties unlogged tables anyway, and jobs are copied in a format of their own.
 */
export async function listTables(session: Session): Promise<Table[]> {
  const { rows } = await session.query<Table>(
    `select c.relname as name,
       array_agg(a.attname::text order by a.attnum) filter (where a.attgenerated = '') as columns
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
       join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where n.nspname = current_schema() and c.relkind in ('r', 'p') and not c.relispartition
       and c.relpersistence = 'p' and c.relname not in ('schema_migrations', 'server_facts', 'jobs')
     group by c.relname order by c.relname`,
  );
  return rows;
}

/** The names of the tables that migrations create. A restore changes no other tables of the schema. */
export function ownTables(migrations: readonly Migration[]): Set<string> {
  return new Set(
    migrations.flatMap(({ sql }) =>
      [...sql.matchAll(/create (?:unlogged )?table (?:if not exists )?(\w+)/g)].map((match) => match[1] ?? ''),
    ),
  );
}

/** Prevents schema changes to these tables until the transaction ends. Reads and writes continue. */
export async function lockTables(session: Session, tables: readonly Table[]): Promise<void> {
  const names = [...tables.map(({ name }) => quote(name)), 'jobs'];
  await session.query(`lock table ${names.join(', ')} in access share mode`);
}

export function copyOut({ name, columns }: Table): string {
  return `copy (select ${columns.map(quote).join(', ')} from ${quote(name)}) to stdout`;
}

export function copyIn({ name, columns }: Table): string {
  return `copy ${quote(name)} (${columns.map(quote).join(', ')}) from stdin`;
}

/**
 * Jobs in the format of the first release, whose table of jobs was another. A running job is written as if it never
 * started. For each of its crashes, a job has the flag `crashes`.
 */
export const jobsTable: Table = {
  name: 'restored_jobs',
  columns: [
    ...['identifier', 'payload', 'queue_name', 'run_at', 'max_attempts', 'job_key', 'priority', 'flags'],
    ...['attempts', 'last_error'],
  ],
};

export const copyJobsOut = `copy (
  select task, payload, null, run_at, max_attempts, key, priority, array_fill('crashes'::text, array[crashes::integer]),
    case when locked_by is null then attempts else greatest(attempts - 1, 0) end, last_error
  from jobs order by id) to stdout`;

/** Creates the table that the jobs of a backup are copied into. */
export async function createJobsTable(session: Session): Promise<void> {
  await session.query(`create table restored_jobs (
    identifier text, payload json, queue_name text, run_at timestamptz, max_attempts integer, job_key text,
    priority integer, flags text[], attempts integer, last_error text)`);
}

/** Turns them into jobs. If the backup has no table of jobs, the migration that creates it does so. */
export async function takeRestoredJobs(session: Session): Promise<void> {
  const { rows } = await session.query("select to_regproc('take_restored_jobs') is not null as exists");
  if (rows[0]?.exists) await session.query('select take_restored_jobs()');
}

/** The blobs that files refer to, ordered by key, as lines of key, size and SHA-256. */
export const copyBlobListOut = `copy (select blob_key, size, encode(checksum, 'hex') from files order by blob_key) to stdout`;

type Sequence = { name: string; last_value: string; is_called: boolean };

export async function readSequences(session: Session): Promise<Sequence[]> {
  const { rows } = await session.query<{ name: string }>(
    `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = current_schema() and c.relkind = 'S' and c.relname <> 'jobs_id_seq'
     order by c.relname`,
  );
  const sequences: Sequence[] = [];
  for (const { name } of rows) {
    const read = await session.query(`select last_value::text as last_value, is_called from ${quote(name)}`);
    sequences.push({ name, ...read.rows[0] });
  }
  return sequences;
}

export async function setSequence(session: Session, { name, last_value, is_called }: Sequence): Promise<void> {
  await session.query('select setval($1::regclass, $2::bigint, $3)', [quote(name), last_value, is_called]);
}

type ForeignKey = { table: string; name: string; definition: string };

/** Truncates the tables, drops their foreign keys and disables their triggers, which would run for each row. */
export async function prepareLoad(session: Session, tables: readonly Table[]): Promise<ForeignKey[]> {
  const names = tables.map(({ name }) => name);
  const { rows } = await session.query<ForeignKey>(
    `select c.relname as table, k.conname as name, pg_get_constraintdef(k.oid) as definition
     from pg_constraint k join pg_class c on c.oid = k.conrelid join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = current_schema() and k.contype = 'f' and c.relname = any ($1) and k.conparentid = 0`,
    [names],
  );
  // Cascades to the unlogged tables, which are not in a backup and are empty here.
  await session.query(`truncate ${names.map(quote).join(', ')} cascade`);
  for (const key of rows) await session.query(`alter table ${quote(key.table)} drop constraint ${quote(key.name)}`);
  for (const name of names) await session.query(`alter table ${quote(name)} disable trigger user`);
  return rows;
}

/** Enables the triggers and restores the foreign keys. PostgreSQL checks all rows: a violation fails the load. */
export async function finishLoad(
  session: Session,
  tables: readonly Table[],
  keys: readonly ForeignKey[],
): Promise<void> {
  for (const { name } of tables) await session.query(`alter table ${quote(name)} enable trigger user`);
  for (const { table, name, definition } of keys)
    await session.query(`alter table ${quote(table)} add constraint ${quote(name)} ${definition}`);
}

/** For a backup from before this table: each credential's app, read from the tables that own the credentials. */
export async function fillCredentials(session: Session): Promise<void> {
  await session.query(`insert into credentials (digest, app_id)
    select digest, app_id from api_keys union all select digest, app_id from refresh_tokens
    union all select digest, app_id from personal_tokens`);
}

/** The wrapped key of any app, to test the root secret. */
export async function findWrappedKey(session: Session): Promise<Buffer | undefined> {
  const { rows } = await session.query('select capability_key from apps order by id limit 1');
  return rows[0]?.capability_key;
}

function quote(name: string): string {
  return pg.escapeIdentifier(name);
}
