import type { Db } from '../db/database.ts';
import { readWithTotal } from '../db/pages.ts';

/** Which database of which installation this is. `cell` is null for a directory that is not a cell. */
type Identity = { installation: string; database: string; cell: string | null; secretCheck: Buffer | null };
export type CellRow = {
  name: string;
  database: string | null;
  state: 'active' | 'draining';
  release: string | null;
  openedAt: Date | null;
  apps: number;
};
/** Where an app is. While it moves, `cell` is still the one that it leaves. */
export type Place = { cell: string; state: 'here' | 'moving'; moveId: string | null };
type PlacedApp = { id: string; developerId: string; name: string; createdAt: Date; updatedAt: Date };

/** Processes cache the places of apps until the payload, an app, is announced. An empty payload means all apps. */
export const placesChannel = 'quarry_cells';

export async function findIdentity(db: Db): Promise<Identity | undefined> {
  return db<Identity[]>`select installation, database, cell, secret_check from cell_identity`.first();
}

/** Does nothing if the database already has an identity. */
export async function insertIdentity(
  db: Db,
  { installation, database, cell }: Omit<Identity, 'secretCheck'>,
): Promise<void> {
  await db`insert into cell_identity (installation, database, cell)
    values (${installation}, ${database}, ${cell}) on conflict do nothing`;
}

export async function setSecretCheck(db: Db, secretCheck: Buffer): Promise<void> {
  await db`update cell_identity set secret_check = ${secretCheck}`;
}

/** Turns a directory into a cell as well. */
export async function nameIdentity(db: Db, cell: string): Promise<void> {
  await db`update cell_identity set cell = ${cell} where cell is null`;
}

/** The app of a key or a personal token, which may be revoked. */
export async function findAppOfCredential(db: Db, digest: Buffer): Promise<string | undefined> {
  const [row] = await db<{ appId: string }[]>`select app_id from credentials where digest = ${digest}`;
  return row?.appId;
}

export async function findTables(db: Db): Promise<{ hasIdentity: boolean; hasApps: boolean }> {
  return db<[{ hasIdentity: boolean; hasApps: boolean }]>`
    select to_regclass('cell_identity') is not null as has_identity, to_regclass('apps') is not null as has_apps`.first();
}

/** Whether the database of a cell has the app, and not the copy of one that belongs to another cell. */
export async function hasApp(db: Db, appId: string): Promise<boolean> {
  const [row] = await db<[{ found: boolean }]>`
    select exists (select from apps where id = ${appId})
      and not exists (select from app_fences where app_id = ${appId} and frozen) as found`;
  return row.found;
}

/** Apps that the database of a cell works on: without copies that a move has closed. */
export async function listOpenApps(db: Db): Promise<string[]> {
  const rows = await db<{ id: string }[]>`
    select id from apps where not exists (select from app_fences f where f.app_id = apps.id and f.frozen)`;
  return rows.map(({ id }) => id);
}

/** Of these apps, those that the directory knows in another cell. */
export async function listPlacedElsewhere(db: Db, appIds: readonly string[], cell: string): Promise<string[]> {
  const rows = await db<{ appId: string }[]>`
    select app_id from cell_apps where app_id = any (${appIds}) and cell <> ${cell} order by app_id`;
  return rows.map(({ appId }) => appId);
}

export async function measureDatabase(db: Db): Promise<number> {
  const [row] = await db<[{ bytes: number }]>`select pg_database_size(current_database())::float8 as bytes`;
  return row.bytes;
}

export async function findDeveloperName(directory: Db, id: string): Promise<string | undefined> {
  const [row] = await directory<{ name: string }[]>`select name from developers where id = ${id}`;
  return row?.name;
}

/** Apps refer to their developer, so the cell has a copy of the row. */
export async function copyDeveloper(db: Db, id: string, name: string): Promise<void> {
  await db`insert into developers (id, name) values (${id}, ${name}) on conflict (id) do nothing`;
}

export async function hasApps(db: Db): Promise<boolean> {
  return db`select from apps limit 1`.any();
}

export async function insertCell(db: Db, name: string): Promise<boolean> {
  return db`insert into cells (name) values (${name}) on conflict do nothing`.any();
}

/** Cells in the order of their names, each with the number of its apps. */
export function listCells(db: Db): Promise<CellRow[]> {
  return db<CellRow[]>`
    select name, database, state, release, opened_at,
      (select count(*) from cell_apps a where a.cell = cells.name) as apps
    from cells order by name`;
}

/** The database that the directory knows as the cell of this name; undefined if no server has opened the cell yet. */
export async function findDatabaseOf(directory: Db, name: string): Promise<string | undefined> {
  const [row] = await directory<{ database: string | null }[]>`select database from cells where name = ${name}`;
  return row?.database ?? undefined;
}

/** Returns false if there is no such cell. */
export async function setCellState(db: Db, name: string, state: CellRow['state']): Promise<boolean> {
  return db`update cells set state = ${state} where name = ${name}`.any();
}

/** Notes that this release opened the cell. Returns false if the directory knows the cell with another database. */
export async function noteOpened(db: Db, name: string, database: string, release: string): Promise<boolean> {
  return db`
    update cells set database = ${database}, release = ${release}, opened_at = clock_timestamp()
    where name = ${name} and (database is null or database = ${database})`.any();
}

/** The cells that apps are in but the directory does not list, which only a change by hand can cause. */
export function listUnknownCells(db: Db): Promise<{ cell: string }[]> {
  return db<{ cell: string }[]>`
    select distinct cell from cell_apps where cell not in (select name from cells) order by cell`;
}

export async function findPlace(db: Db, appId: string): Promise<Place | undefined> {
  return db<Place[]>`select cell, state, move_id from cell_apps where app_id = ${appId}`.first();
}

/** The cell of the oldest app. */
export async function findFirstPlace(db: Db): Promise<{ appId: string; cell: string } | undefined> {
  return db<{ appId: string; cell: string }[]>`
    select app_id, cell from cell_apps order by app_id limit 1`.first();
}

export async function insertPlace(db: Db, cell: string, app: PlacedApp): Promise<void> {
  await db`insert into cell_apps (app_id, cell, developer_id, name, created_at, updated_at)
    values (${app.id}, ${cell}, ${app.developerId}, ${app.name}, ${app.createdAt}, ${app.updatedAt})`;
}

/** Adds the apps of the directory's own database that it does not list yet. Returns how many. */
export async function insertOwnApps(db: Db, cell: string): Promise<number> {
  const { count } = await db`
    insert into cell_apps (app_id, cell, developer_id, name, created_at, updated_at)
    select id, ${cell}, developer_id, name, created_at, updated_at from apps
    on conflict (app_id) do nothing`;
  return count;
}

/** Repeats the name of an app in the directory. */
export async function updatePlacedApp(db: Db, { id, name, updatedAt }: PlacedApp): Promise<void> {
  await db`update cell_apps set name = ${name}, updated_at = ${updatedAt} where app_id = ${id}`;
}

/** The apps of a developer in all cells, newest first, and how many there are. */
export async function listPlacedApps(
  db: Db,
  developerId: string,
  page: { pageSize: number; offset: number },
): Promise<[PlacedApp[], number]> {
  return readWithTotal(
    db<PlacedApp[]>`
      select app_id as id, developer_id, name, created_at, updated_at from cell_apps where developer_id = ${developerId}
      order by created_at desc, app_id desc limit ${page.pageSize} offset ${page.offset}`,
    db`select count(*) as total from cell_apps where developer_id = ${developerId}`,
  );
}

export async function listPlacedIds(db: Db, developerId: string, max: number): Promise<string[]> {
  const rows = await db<{ appId: string }[]>`
    select app_id from cell_apps where developer_id = ${developerId} order by app_id limit ${max}`;
  return rows.map(({ appId }) => appId);
}

/** Whether an app is being moved. */
export async function isMovingApp(db: Db): Promise<boolean> {
  const { count } = await db`select from cell_moves where ended_at is null limit 1`;
  return count > 0;
}
