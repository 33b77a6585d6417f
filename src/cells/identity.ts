import type { Database, Db } from '../db/database.ts';
import { formatId, newUuid } from '../lib/ids.ts';
import { version } from '../lib/version.ts';
import { unwrapsStoredKeys } from '../tenancy/rotation-store.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import type { CellSettings } from './settings.ts';
import * as store from './store.ts';

/** This process must not use the cell. The message says why and what to do. */
export class CellRefused extends Error {}

/**
 * Makes the database a directory, once, and lists these cells in it. If one of them is in the directory's own
 * database, its apps are listed too. Returns the id of the installation.
 */
export async function prepareDirectory(
  db: Database,
  cells: readonly CellSettings[],
  secrets: Secrets | undefined,
): Promise<string> {
  const own = cells.find(({ target }) => target === undefined);
  return db.begin(async (tx) => {
    await store.insertIdentity(tx, { installation: newUuid(), database: newUuid(), cell: own?.name ?? null });
    const identity = await store.findIdentity(tx);
    if (identity === undefined) throw new Error('The identity of the directory is missing.');
    await requireSecret(tx, identity, secrets);
    const { installation, database, cell } = identity;
    if (own !== undefined && cell === null) await store.nameIdentity(tx, own.name);
    else if (own !== undefined && cell !== own.name)
      throw new CellRefused(`DATABASE_URL is the database of the cell ${cell}, not of ${own.name}.`);
    if (own === undefined && (cell !== null || (await store.hasApps(tx))))
      throw new CellRefused(
        `The database of DATABASE_URL has apps${cell === null ? '' : ` as the cell ${cell}`}: name it in QUARRY_CELLS as a cell without database_url.`,
      );
    for (const { name } of cells) await store.insertCell(tx, name);
    if (own !== undefined) {
      await store.insertOwnApps(tx, own.name);
      if (!(await store.noteOpened(tx, own.name, database, version))) throw otherDatabase(own.name);
    }
    return installation;
  });
}

/** All processes and all cells have one root secret, because an app takes what it has wrapped to any cell. */
async function requireSecret(
  tx: Db,
  { installation, secretCheck }: { installation: string; secretCheck: Buffer | null },
  secrets: Secrets | undefined,
): Promise<void> {
  if (secrets === undefined) throw new CellRefused('Set QUARRY_SECRET to the secret of this installation.');
  const check = () => {
    try {
      return secretCheck === null ? undefined : secrets.unwrap(secretCheck);
    } catch {
      throw new CellRefused(
        'QUARRY_SECRET is not the secret of this installation. All of its processes and cells need the same one.',
      );
    }
  };
  if (check()?.stale !== false) await store.setSecretCheck(tx, secrets.wrap(Buffer.from(installation)));
}

/** Throws CellRefused if the keys in the database of a cell are wrapped with another secret. */
export async function requireCellSecret(db: Database, name: string, secrets: Secrets): Promise<void> {
  if (!(await unwrapsStoredKeys(db, secrets)))
    throw new CellRefused(`QUARRY_SECRET is not the secret of the cell ${name}.`);
}

type Named = { name: string; installation: string };

/**
 * Throws CellRefused if the database cannot be the cell of this name. Changes nothing; it may have no tables yet. A cell
 * that had another database is refused before that is migrated, because a restore needs an empty one.
 */
export async function refuseForeign(directory: Db, db: Db, { name, installation }: Named): Promise<void> {
  const { hasIdentity, hasApps } = await store.findTables(db);
  const identity = hasIdentity ? await store.findIdentity(db) : undefined;
  const known = await store.findDatabaseOf(directory, name);
  if (identity === undefined) {
    if (known !== undefined) throw otherDatabase(name);
    if (!hasApps || !(await store.hasApps(db))) return;
    throw new CellRefused(
      `The database of the cell ${name} already has apps that this directory does not know. Use an empty database.`,
    );
  }
  if (identity.installation !== installation)
    throw new CellRefused(`The database of the cell ${name} belongs to another installation.`);
  if (identity.cell === null)
    throw new CellRefused(`The database of the cell ${name} is the directory: leave out its database_url.`);
  if (identity.cell !== name) throw new CellRefused(`The cells ${name} and ${identity.cell} have the same database.`);
  if (known !== undefined && identity.database !== known) throw otherDatabase(name);
}

/**
 * Throws CellRefused if the cell would work on apps that the directory knows in another one. A database that was restored
 * from an earlier time does, and would run their schedules and jobs twice.
 */
export async function refuseStrayApps(directory: Db, db: Db, name: string): Promise<void> {
  const elsewhere = await store.listPlacedElsewhere(directory, await store.listOpenApps(db), name);
  // One that has just moved away was open when it was listed, and is not any more.
  const checked = await Promise.all(elsewhere.map(async (id) => ((await store.hasApp(db, id)) ? [id] : [])));
  const [first, ...more] = checked.flat();
  if (first === undefined) return;
  const others = more.length === 0 ? '' : ` and ${more.length} more`;
  throw new CellRefused(
    `The cell ${name} has ${formatId('app', first)}${others}, which the directory knows in another cell. If a database was restored, run: quarry cells reconcile ${name} (or: quarry cells reconcile directory, if that was restored).`,
  );
}

/** Makes a migrated database the cell of this name, once. Throws CellRefused if it cannot be. */
export async function claimCell(directory: Database, db: Database, named: Named): Promise<void> {
  const { name, installation } = named;
  const database = await db.begin(async (tx) => {
    await refuseForeign(directory, tx, named);
    await store.insertIdentity(tx, { installation, database: newUuid(), cell: name });
    await refuseForeign(directory, tx, named);
    return (await store.findIdentity(tx))?.database;
  });
  if (database === undefined) throw new Error('The identity of the cell is missing.');
  if (!(await store.noteOpened(directory, name, database, version))) throw otherDatabase(name);
}

function otherDatabase(name: string): CellRefused {
  return new CellRefused(
    `The directory knows the cell ${name} with another database. Name that database again, or restore a backup into an empty one: quarry restore DIRECTORY/${name} --cell ${name}`,
  );
}
