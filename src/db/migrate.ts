import { hash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Database, Db, Session } from './database.ts';
import { DatabaseError } from './errors.ts';
import { createFacts, findFact, putFact } from './server-facts.ts';

/** A migration as a database or a backup records it. */
export type AppliedMigration = { version: number; name: string; checksum: string };
export type Migration = AppliedMigration & {
  sql: string;
  /**
   * The oldest schema whose code can use the database after this migration. A migration that only adds has none; one
   * that takes away what older code uses names it in a line `-- serves-from: 0027`.
   */
  servesFrom?: number | undefined;
};

const directory = fileURLToPath(new URL('../../migrations/', import.meta.url));
/** The key of the lock that lets one process migrate at a time. The number only has to be unique within Quarry. */
const lockKey = 7_130_241_001;

/** Reads the migrations of this release, in order. Throws if a number repeats. */
export async function readMigrations(from = directory): Promise<Migration[]> {
  const names = (await readdir(from)).filter((name) => name.endsWith('.sql')).sort();
  const migrations: Migration[] = [];
  for (const name of names) {
    const version = Number(name.slice(0, 4));
    const last = migrations.at(-1)?.version ?? 0;
    if (!(version > last)) throw new Error(`Migration ${name} should have a number above ${last}.`);
    const sql = await readFile(`${from}/${name}`, 'utf8');
    const checksum = hash('sha256', sql);
    migrations.push({ version, name, checksum, sql, servesFrom: readServesFrom(sql) });
  }
  return migrations;
}

function readServesFrom(sql: string): number | undefined {
  const [, number] = /^-- serves-from: (\d{4})$/m.exec(sql) ?? [];
  return number === undefined ? undefined : Number(number);
}

/**
 * Brings the database to this release: runs each migration once, in order and in its own transaction, however many
 * processes start together. Returns the names of the migrations it applied. A database that a newer release has
 * migrated is left as it is, if that release says that this one can use it. Throws if the database has other migrations
 * that do not match this release, or if a restore into it is incomplete.
 * @param options.restoring the backup that the caller is restoring
 */
export async function migrate(
  db: Database,
  migrations?: Migration[],
  options: { restoring?: string } = {},
): Promise<string[]> {
  const wanted = migrations ?? (await readMigrations());
  const connection = await db.reserve();
  try {
    await connection`select pg_advisory_lock(${lockKey})`;
    await createFacts(connection);
    const restoring = await findFact(connection, 'restoring');
    if (restoring !== options.restoring)
      throw new Error(
        `The backup ${restoring ?? options.restoring} was not restored completely. Run \`quarry restore\` with it again, or empty the database.`,
      );
    await connection`
      create table if not exists schema_migrations (
        version integer primary key, name text not null, checksum text not null,
        applied_at timestamptz not null default now())`;
    const applied = await connection<AppliedMigration[]>`
      select version, name, checksum from schema_migrations order by version`;
    const servesFrom = await readServedSchema(connection);
    const mismatch = findMismatch(applied, wanted, servesFrom);
    if (mismatch !== undefined) throw new SchemaMismatchError(mismatch);
    const names: string[] = [];
    for (const migration of wanted.filter(({ version }) => !applied.some((row) => row.version === version))) {
      await applyWithoutBlocking(connection, migration);
      names.push(migration.name);
    }
    return names;
  } finally {
    await connection`select pg_advisory_unlock(${lockKey})`.catch(() => {});
    connection.release();
  }
}

/**
 * Applies a migration while requests use the database. A statement that waits for a table's lock makes all queries of
 * that table wait behind it, for as long as a backup or a report reads. So a migration waits a short time, gives way,
 * and tries again; it also does if a request won a deadlock, or committed a row that the migration was about to add and
 * could not see yet: the next attempt sees it.
 */
async function applyWithoutBlocking(connection: Session, migration: Migration): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await apply(connection, migration);
    } catch (error) {
      const triesMax = (error instanceof DatabaseError && triesAfter[error.code ?? '']) || 1;
      if (tries >= triesMax) throw new Error(`Migration ${migration.name} failed and was undone.`, { cause: error });
      await wait(lockPauseMs);
    }
  }
}

/** How often a migration is tried that requests prevented, by SQLSTATE: a lock, a deadlock, a row that exists now. */
const triesAfter: Readonly<Record<string, number>> = { '55P03': 200, '40P01': 200, '23505': 5 };
const lockWaitMs = 2_000;
const lockPauseMs = 1_000;

async function apply(connection: Session, migration: Migration): Promise<void> {
  const { version, name, checksum, sql, servesFrom = 1 } = migration;
  await connection`begin`;
  try {
    await connection`select set_config('lock_timeout', ${String(lockWaitMs)}, true)`;
    await connection.runScript(sql);
    await connection`insert into schema_migrations (version, name, checksum) values (${version}, ${name}, ${checksum})`;
    const earlier = (await readServedSchema(connection)) ?? 1;
    await putFact(connection, 'serves_from', String(Math.max(servesFrom, earlier)));
    await connection`commit`;
  } catch (error) {
    await connection`rollback`;
    throw error;
  }
}

/** The oldest schema whose code can use this database. Undefined if only releases migrated it that did not record it. */
export async function readServedSchema(db: Db): Promise<number | undefined> {
  const value = await findFact(db, 'serves_from');
  return value === undefined ? undefined : Number(value);
}

/** Whether code whose last migration is `own` can use the database, which a newer release may have migrated meanwhile. */
export async function canServe(db: Db, own: number): Promise<boolean> {
  const [row] = await db<{ version: number | null; servesFrom: number | null }[]>`
    select max(version) as version,
      (select value::integer from server_facts where name = 'serves_from') as serves_from from schema_migrations`;
  if (!row || row.version === null || row.version < own) return false;
  return row.version === own || (row.servesFrom !== null && row.servesFrom <= own);
}

/** For commands that only read: throws SchemaMismatchError unless this release's migrations are applied. */
export async function requireMigrated(db: Database): Promise<void> {
  const [row] = await db<{ exists: boolean }[]>`select to_regclass('schema_migrations') is not null as exists`;
  if (!row?.exists)
    throw new SchemaMismatchError(
      'The database has no tables of Quarry yet. `quarry serve` creates them, and so does `quarry migrate`; if it should have them, check DATABASE_URL and QUARRY_DATA_DIR.',
    );
  const applied = await db<AppliedMigration[]>`select version, name, checksum from schema_migrations order by version`;
  const known = await readMigrations();
  const mismatch = findMismatch(applied, known);
  if (mismatch !== undefined) throw new SchemaMismatchError(mismatch);
  if (applied.length < known.length)
    throw new SchemaMismatchError(
      `Only ${applied.length} of the ${known.length} migrations of this release are applied. Run \`quarry migrate\` first.`,
    );
}

/** The message says why this release cannot use the database and what to do. */
export class SchemaMismatchError extends Error {}

/**
 * Why this release cannot use a database with these migrations, or undefined if it can.
 * @param servesFrom the oldest schema whose code can use the database. Without it, newer migrations are refused.
 */
export function findMismatch(
  applied: readonly AppliedMigration[],
  known: readonly AppliedMigration[],
  servesFrom?: number,
): string | undefined {
  if (hasOldNumbering(applied))
    return 'The database was created by a pre-release version of Quarry, whose migrations have other numbers. Nothing was changed. To keep its data, run `quarry backup DIRECTORY --include-secret` with the version that created it, then `quarry restore DIRECTORY` with this one into a new database and a new data directory or bucket. See docs/upgrading.md.';
  const own = known.at(-1)?.version ?? 0;
  for (const row of applied) {
    const same = known.find(({ version }) => version === row.version);
    const isServed = servesFrom !== undefined && servesFrom <= own && row.version > own;
    if (same === undefined && isServed) continue;
    if (same === undefined) return `The database is newer than this release: it has migration ${row.name}.`;
    if (same.checksum !== row.checksum) return `Migration ${row.name} was edited after it was applied.`;
  }
  return undefined;
}

/**
 * Before the first release, 14 other migrations created the same tables and columns. Their first one identifies them.
 */
export function hasOldNumbering([first]: readonly AppliedMigration[]): boolean {
  return first?.checksum === '373ea1a461a092e84b792ef16e72c67777cfa80203dd1678201c4d223ef653f7';
}
export const oldMigrationsCount = 14;
/** The last of the migrations that replaced those 14. */
export const replacingVersion = 11;
