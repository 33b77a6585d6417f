import { randomBytes } from 'node:crypto';
import { type DatabaseTarget, withDatabase } from '../../src/db/address.ts';
import { type Database, openDatabase } from '../../src/db/database.ts';

/** Names another template database: the tests of a release run on the schema of the next one. */
export const templateVariable = 'QUARRY_TEST_TEMPLATE';
/** The database that test/run.ts migrates once. Every test file works on a copy. */
export const templateDatabase = process.env[templateVariable] ?? 'quarry_test_template';

export type TestDatabase = {
  target: DatabaseTarget;
  /** A small pool for the test itself. */
  db: Database;
  /** Closes the pool and removes the database with any open connections. */
  drop(): Promise<void>;
};

/** A new database with every migration applied and no rows. */
export const createTestDatabase = () => createDatabase(templateDatabase);

/** A new database without any table. */
export const createEmptyDatabase = () => createDatabase('template1');

async function createDatabase(template: string): Promise<TestDatabase> {
  const server = serverOfRun();
  const name = `quarry_test_${randomBytes(6).toString('hex')}`;
  // Copying files is cheaper than writing each page to the log, in a server that never waits for its disk.
  await administrate(server, (sql) => sql`create database ${sql(name)} template ${sql(template)} strategy file_copy`);
  const target = withDatabase(server, name);
  const db = openDatabase(target, { poolSize: 4, applicationName: 'quarry-test' });
  return {
    target,
    db,
    async drop() {
      await db.end({ timeout: 5 });
      await administrate(server, (admin) => admin`drop database if exists ${admin(name)} with (force)`);
    },
  };
}

/** Ends the connections to a database and refuses new ones. Returns a function that allows them again. */
export async function takeAway({ target, db }: TestDatabase): Promise<() => Promise<void>> {
  const name = typeof target === 'string' ? new URL(target).pathname.slice(1) : target.database;
  const session = await db.reserve();
  await administrate(serverOfRun(), async (sql) => {
    await sql`alter database ${sql(name)} with allow_connections false`;
  });
  await session`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`;
  session.release();
  return () =>
    administrate(serverOfRun(), async (sql) => {
      await sql`alter database ${sql(name)} with allow_connections true`;
    });
}

/** Runs work on a separate connection to the server's maintenance database. */
export async function administrate<T>(target: DatabaseTarget, work: (sql: Database) => Promise<T>): Promise<T> {
  const sql = openDatabase(target, { poolSize: 1, applicationName: 'quarry-test' });
  try {
    return await work(sql);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/** The variable in which test/run.ts passes the address of the database server. */
export const runVariable = 'QUARRY_TEST_RUN_DATABASE';

export function serverOfRun(): DatabaseTarget {
  const value = process.env[runVariable];
  if (value === undefined) throw new Error('Run this file with: node test/run.ts FILE (it starts the database).');
  return JSON.parse(value) as DatabaseTarget;
}
