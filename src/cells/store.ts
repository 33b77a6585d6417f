import type { Db } from '../db/database.ts';

/** Which database of which installation this is. `cell` is null for a directory that is not a cell. */
type Identity = { installation: string; database: string; cell: string | null };
export type CellRow = {
  name: string;
  database: string | null;
  state: 'active' | 'draining';
  release: string | null;
  openedAt: Date | null;
  apps: number;
};

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

/** Adds the apps of the directory's own database that it does not list yet. Returns how many. */
export async function insertOwnApps(db: Db, cell: string): Promise<number> {
  const inserted = await db`
    insert into cell_apps (app_id, cell, developer_id, name, created_at, updated_at)
    select id, ${cell}, developer_id, name, created_at, updated_at from apps
    on conflict (app_id) do nothing`;
  return inserted.count;
}
