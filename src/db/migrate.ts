import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Database } from './database.ts';
import { createFacts, findFact } from './server-facts.ts';

export type Migration = { version: number; name: string; checksum: string; sql: string };

const directory = fileURLToPath(new URL('../../migrations/', import.meta.url));
/** One process migrates at a time; the number only has to be ours. */
const lockKey = 7_130_241_001;

/** The migrations of this release, in order. Throws when numbers repeat. */
export async function readMigrations(from = directory): Promise<Migration[]> {
  const names = (await readdir(from)).filter((name) => name.endsWith('.sql')).sort();
  const migrations: Migration[] = [];
  for (const name of names) {
    const version = Number(name.slice(0, 4));
    const last = migrations.at(-1)?.version ?? 0;
    if (!(version > last)) throw new Error(`Migration ${name} should have a number above ${last}.`);
    const sql = await readFile(`${from}/${name}`, 'utf8');
    migrations.push({ version, name, checksum: createHash('sha256').update(sql).digest('hex'), sql });
  }
  return migrations;
}

/**
 * Brings the database to this release: each migration in a transaction of its own, in order, once, however many
 * processes start together. Answers the names that were applied. Throws when the database holds a migration that
 * this release does not know or that was edited after it was applied, or that a restore was begun in and not ended.
 * @param options.restoring the backup that is being restored by whoever calls.
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
        `The backup ${restoring ?? options.restoring} was not restored to its end. Run \`quarry restore\` with it once more, or empty the database.`,
      );
    await connection`
      create table if not exists schema_migrations (
        version integer primary key, name text not null, checksum text not null,
        applied_at timestamptz not null default now())`;
    const applied = await connection<{ version: number; name: string; checksum: string }[]>`
      select version, name, checksum from schema_migrations order by version`;
    for (const row of applied) {
      const known = wanted.find((migration) => migration.version === row.version);
      if (!known) throw new Error(`The database is newer than this release: it has migration ${row.name}.`);
      if (known.checksum !== row.checksum) throw new Error(`Migration ${row.name} was edited after it was applied.`);
    }
    const names: string[] = [];
    for (const migration of wanted.filter(({ version }) => !applied.some((row) => row.version === version))) {
      await connection`begin`;
      try {
        await connection.unsafe(migration.sql);
        await connection`insert into schema_migrations (version, name, checksum)
          values (${migration.version}, ${migration.name}, ${migration.checksum})`;
        await connection`commit`;
      } catch (error) {
        await connection`rollback`;
        throw new Error(`Migration ${migration.name} failed and was undone.`, { cause: error });
      }
      names.push(migration.name);
    }
    return names;
  } finally {
    await connection`select pg_advisory_unlock(${lockKey})`.catch(() => {});
    connection.release();
  }
}
