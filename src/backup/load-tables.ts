import type { DatabaseTarget } from '../db/address.ts';
import type { Database } from '../db/database.ts';
import { migrate, readMigrations } from '../db/migrate.ts';
import type { Archive } from './archive.ts';
import { BackupError } from './error.ts';
import { readManifest } from './manifest.ts';
import { loadRows, selectMigrations } from './restore.ts';
import * as store from './store.ts';

/**
 * Loads some tables of a backup into an empty database, to read them there: without foreign keys, without other tables
 * and without file contents. No server may run on the database.
 */
export async function loadTables(
  { db, target }: { db: Database; target: DatabaseTarget },
  archive: Archive,
  names: readonly string[],
): Promise<void> {
  const manifest = await readManifest(archive);
  const wanted = manifest.tables.filter(({ name }) => names.includes(name));
  const missing = names.filter((name) => wanted.every((table) => table.name !== name));
  if (missing.length > 0)
    throw new BackupError(`The backup is from a release that had no table ${missing.join(', ')}.`);
  await migrate(db, selectMigrations(manifest, await readMigrations()));
  const session = await store.openSession(target);
  try {
    await session.query('begin');
    await store.prepareLoad(session, await store.listTables(session));
    for (const table of wanted) await loadRows(session, archive, store.copyIn(table), table);
    await session.query('commit');
  } finally {
    await session.end().catch(() => {});
  }
}
