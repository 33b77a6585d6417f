import type { DatabaseTarget } from '../db/address.ts';
import { type Database, openDatabase } from '../db/database.ts';
import { requireMigrated, SchemaMismatchError } from '../db/migrate.ts';
import { CellRefused, refuseStrayApps } from './identity.ts';
import type { CellSettings } from './settings.ts';
import * as store from './store.ts';

/** What a command finds out about one cell. */
export type CellStatus = {
  name: string;
  /** `unlisted`: QUARRY_CELLS does not name it. `new`: no server has opened it yet. */
  state: 'active' | 'draining' | 'new' | 'unlisted';
  apps: number;
  /** The size of its database; undefined if it cannot be read. */
  bytes?: number;
  release?: string;
  /** Why servers cannot use it; undefined if they can. */
  problem?: string;
};

const timeoutMs = 3_000;

/** Opens the database of a cell for a command, and closes it afterwards. */
export async function withCell<T>(
  { target, directTarget }: Pick<CellSettings, 'target' | 'directTarget'>,
  directory: Database,
  work: (db: Database) => Promise<T>,
): Promise<T> {
  const own: DatabaseTarget | undefined = directTarget ?? target;
  if (own === undefined) return work(directory);
  const db = openDatabase(own, { poolSize: 2, applicationName: 'quarry-cli', timeoutMs });
  try {
    return await work(db);
  } finally {
    await db.end({ timeout: 1 });
  }
}

/** The state of every cell that the settings or the directory name. Cells are asked concurrently. */
export async function inspectCells(directory: Database, settings: readonly CellSettings[]): Promise<CellStatus[]> {
  const rows = await store.listCells(directory);
  const installation = (await store.findIdentity(directory))?.installation;
  const named = settings.map(async (cell): Promise<CellStatus> => {
    const row = rows.find(({ name }) => name === cell.name);
    const known: CellStatus = { name: cell.name, state: row?.state ?? 'new', apps: row?.apps ?? 0 };
    if (row?.release != null) known.release = row.release;
    const inspected = withCell(cell, directory, (db) =>
      inspectCell(directory, db, { name: cell.name, installation, row }),
    );
    return { ...known, ...(await inspected.catch((error: unknown) => ({ problem: reasonOf(error) }))) };
  });
  const unlisted = rows
    .filter(({ name }) => settings.every((cell) => cell.name !== name))
    .map((row): CellStatus => ({ name: row.name, state: 'unlisted', apps: row.apps, problem: 'not in QUARRY_CELLS' }));
  return [...(await Promise.all(named)), ...unlisted];
}

type Known = { name: string; installation: string | undefined; row: store.CellRow | undefined };

async function inspectCell(
  directory: Database,
  db: Database,
  { name, installation, row }: Known,
): Promise<{ bytes?: number; problem?: string }> {
  const bytes = await store.measureDatabase(db);
  if (row?.database == null) return { bytes };
  if (!(await store.findTables(db)).hasIdentity)
    return {
      bytes,
      problem: `its database is empty: quarry restore DIRECTORY/${name} --cell ${name} restores a backup`,
    };
  await requireMigrated(db);
  const identity = await store.findIdentity(db);
  if (identity === undefined) return { bytes, problem: 'its database is not that of a cell' };
  if (identity.installation !== installation) return { bytes, problem: 'its database belongs to another installation' };
  if (identity.cell !== name) return { bytes, problem: `its database is that of ${identity.cell ?? 'the directory'}` };
  if (identity.database !== row.database) return { bytes, problem: 'its database is another one than before' };
  try {
    await refuseStrayApps(directory, db, name);
  } catch (error) {
    if (error instanceof CellRefused) return { bytes, problem: error.message };
    throw error;
  }
  return { bytes };
}

function reasonOf(error: unknown): string {
  if (error instanceof SchemaMismatchError) return error.message;
  return `unreachable (${error instanceof Error ? error.message : String(error)})`;
}
