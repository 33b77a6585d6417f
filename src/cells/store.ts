import type { Db } from '../db/database.ts';

/** Which database of which installation this is. `cell` is null for a directory that is not a cell. */
export type Identity = { installation: string; database: string; cell: string | null };
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
export type PlacedApp = { id: string; developerId: string; name: string; createdAt: Date; updatedAt: Date };

/** Processes cache the places of apps until the payload, an app, is announced. An empty payload means all apps. */
export const placesChannel = 'quarry_cells';

export async function findIdentity(db: Db): Promise<Identity | undefined> {
  const [row] = await db<Identity[]>`select installation, database, cell from cell_identity`;
  return row;
}

/** Does nothing if the database already has an identity. */
export async function insertIdentity(db: Db, { installation, database, cell }: Identity): Promise<void> {
  await db`insert into cell_identity (installation, database, cell)
    values (${installation}, ${database}, ${cell}) on conflict do nothing`;
}

/** Turns a directory into a cell as well. */
export async function nameIdentity(db: Db, cell: string): Promise<void> {
  await db`update cell_identity set cell = ${cell} where cell is null`;
}

export async function hasApps(db: Db): Promise<boolean> {
  const rows = await db`select from apps limit 1`;
  return rows.length > 0;
}

export async function insertCell(db: Db, name: string): Promise<boolean> {
  const inserted = await db`insert into cells (name) values (${name}) on conflict do nothing`;
  return inserted.count > 0;
}

/** Cells in the order of their names, each with the number of its apps. */
export function listCells(db: Db): Promise<CellRow[]> {
  return db<CellRow[]>`
    select name, database, state, release, opened_at,
      (select count(*) from cell_apps a where a.cell = cells.name) as apps
    from cells order by name`;
}

export async function findCell(db: Db, name: string): Promise<CellRow | undefined> {
  const [row] = await db<CellRow[]>`
    select name, database, state, release, opened_at,
      (select count(*) from cell_apps a where a.cell = cells.name) as apps
    from cells where name = ${name}`;
  return row;
}

/** Returns false if there is no such cell. */
export async function setCellState(db: Db, name: string, state: CellRow['state']): Promise<boolean> {
  const changed = await db`update cells set state = ${state} where name = ${name}`;
  return changed.count > 0;
}

/** Notes that this release opened the cell. Returns false if the directory knows the cell with another database. */
export async function noteOpened(db: Db, name: string, database: string, release: string): Promise<boolean> {
  const changed = await db`
    update cells set database = ${database}, release = ${release}, opened_at = clock_timestamp()
    where name = ${name} and (database is null or database = ${database})`;
  return changed.count > 0;
}

/** The cells that apps are in but the directory does not list, which only a change by hand can cause. */
export function listUnknownCells(db: Db): Promise<{ cell: string }[]> {
  return db<{ cell: string }[]>`
    select distinct cell from cell_apps where cell not in (select name from cells) order by cell`;
}

export async function findPlace(db: Db, appId: string): Promise<Place | undefined> {
  const [row] = await db<Place[]>`select cell, state, move_id from cell_apps where app_id = ${appId}`;
  return row;
}

export async function insertPlace(db: Db, cell: string, app: PlacedApp): Promise<void> {
  await db`insert into cell_apps (app_id, cell, developer_id, name, created_at, updated_at)
    values (${app.id}, ${cell}, ${app.developerId}, ${app.name}, ${app.createdAt}, ${app.updatedAt})`;
}

/** Adds the apps of the directory's own database that it does not list yet. Returns how many. */
export async function insertOwnApps(db: Db, cell: string): Promise<number> {
  const inserted = await db`
    insert into cell_apps (app_id, cell, developer_id, name, created_at, updated_at)
    select id, ${cell}, developer_id, name, created_at, updated_at from apps
    on conflict (app_id) do nothing`;
  return inserted.count;
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
  const rows = await db<PlacedApp[]>`
    select app_id as id, developer_id, name, created_at, updated_at from cell_apps where developer_id = ${developerId}
    order by created_at desc, app_id desc limit ${page.pageSize} offset ${page.offset}`;
  const [count] = await db<[{ total: number }]>`
    select count(*) as total from cell_apps where developer_id = ${developerId}`;
  return [rows, count.total];
}

/** The apps of a cell in the order of their ids, after this one. */
export function listAppsOfCell(db: Db, cell: string, after: string, limit: number): Promise<{ appId: string }[]> {
  return db<{ appId: string }[]>`
    select app_id from cell_apps where cell = ${cell} and app_id > ${after} order by app_id limit ${limit}`;
}

/** Tells every process that the place of this app has changed. Call it in the transaction of the change. */
export function announcePlace(db: Db, appId: string) {
  return db`select pg_notify(${placesChannel}, ${appId})`;
}
