import type { DatabaseTarget } from '../db/address.ts';
import { formatId } from '../lib/ids.ts';
import { removeFence } from './move/fence.ts';
import { discardHeldJobs, returnHeldJobs } from './move/held-jobs.ts';
import { dropSession, inTransaction, openSession, type Session } from './move/session.ts';
import { changeStep, listActiveMoves, type MoveRow } from './move/store.ts';
import { deleteRows, listAppTables } from './move/tables.ts';
import { placesChannel } from './store.ts';

/*
 * A database that was restored is in the past, and the other databases of its installation are not. Apps have moved
 * meanwhile, and a copy of an app that is elsewhere would run its jobs and schedules a second time. Such a cell is
 * refused until it agrees with the directory again.
 */

type Databases = {
  directory: DatabaseTarget;
  /** Cells with a database of their own. */
  cells: readonly { name: string; target: DatabaseTarget }[];
};

/** Ids of apps, in the form of the API. */
export type Reconciled = {
  /** Copies that were deleted, because the app is in another cell. */
  deleted: string[];
  /** Apps that the directory did not know, or knew in another cell. */
  listed: string[];
  /** Apps that the directory knew here and the database does not have, or only a part of. They are no longer listed. */
  missing: string[];
};

type Fence = { move_id: string; side: 'source' | 'target'; frozen: boolean };
type FoundApp = {
  id: string;
  developer_id: string;
  name: string;
  created_at: string;
  updated_at: string;
  fence: Fence | null;
};

const sessionName = 'quarry-reconcile';

/**
 * Makes a cell that was restored agree with the directory: deletes copies of apps that have moved away, lists apps that
 * the directory does not know, and ends moves that the restore has interrupted. May be repeated.
 */
export function reconcileCell(databases: Databases, name: string): Promise<Reconciled> {
  return withSessions(databases, [name], async (directory, [cell]) => {
    if (cell === undefined) throw new Error(`There is no cell ${name}.`);
    await interruptMoves(directory, name);
    return obeyDirectory(directory, cell);
  });
}

/**
 * Makes a directory that was restored agree with its cells: an app is where it works. All of them must respond; one whose
 * database is empty, because it is restored next, keeps its apps. Returns what changed in each database; `own` is the
 * cell in the directory's database. May be repeated.
 */
export function reconcileDirectory(databases: Databases, own: string | undefined): Promise<Map<string, Reconciled>> {
  const names = databases.cells.map(({ name }) => name);
  return withSessions(databases, names, async (directory, all) => {
    const others: Cell[] = [];
    for (const cell of all) if (await isComplete(cell.session)) others.push(cell);
    const cells = own === undefined ? others : [...others, { name: own, session: directory }];
    const listed = await placeApps(directory, cells);
    await directory.query(
      `update cell_moves set step = 'aborted', ended_at = clock_timestamp(), error = 'The directory was restored.'
       where ended_at is null`,
    );
    const found = new Map<string, Reconciled>();
    for (const cell of cells) {
      const changed = await obeyDirectory(directory, cell);
      found.set(cell.name, { ...changed, listed: [...(listed.get(cell.name) ?? []), ...changed.listed] });
    }
    return found;
  });
}

type Cell = { name: string; session: Session };

async function withSessions<T>(
  { directory, cells }: Databases,
  names: readonly string[],
  work: (directory: Session, cells: Cell[]) => Promise<T>,
): Promise<T> {
  const sessions: Session[] = [];
  const open = async (target: DatabaseTarget) => {
    const session = await openSession(target, sessionName);
    sessions.push(session);
    return session;
  };
  try {
    const home = await open(directory);
    const opened: Cell[] = [];
    for (const { name, target } of cells) if (names.includes(name)) opened.push({ name, session: await open(target) });
    return await work(home, opened);
  } finally {
    sessions.forEach(dropSession);
  }
}

/** Whether the database has the tables of a cell, and no restore of it has still to end. */
async function isComplete(session: Session): Promise<boolean> {
  const { rows } = await session.query<{ exists: boolean }>(
    "select to_regclass('cell_identity') is not null as exists",
  );
  if (rows[0]?.exists !== true) return false;
  const { rows: restoring } = await session.query("select 1 from server_facts where name = 'restoring'");
  return restoring.length === 0;
}

/** Every app of the database, with the fence of the move that it had when the database was copied. */
async function listApps(session: Session): Promise<FoundApp[]> {
  const { rows } = await session.query<FoundApp>(
    `select a.id, a.developer_id, a.name, a.created_at::text, a.updated_at::text,
       case when f.app_id is not null
         then json_build_object('move_id', f.move_id, 'side', f.side, 'frozen', f.frozen) end as fence
     from apps a left join app_fences f on f.app_id = a.id order by a.id`,
  );
  return rows;
}

/** A target that is closed has only a part of the app. */
const isPart = ({ fence }: FoundApp) => fence?.side === 'target' && fence.frozen;

/** Moves that have not switched are aborted by the next worker. One that just has goes back to where all rows still are. */
async function interruptMoves(directory: Session, name: string): Promise<void> {
  for (const { id } of await listActiveMoves(directory))
    await inTransaction(directory, async () => {
      const { rows } = await directory.query<MoveRow>('select * from cell_moves where id = $1 for update', [id]);
      const [row] = rows;
      if (row === undefined || (row.source !== name && row.target !== name)) return;
      const before = ['preparing', 'copying', 'catching_up', 'freezing'] as const;
      if (await changeStep(directory, row, before, 'aborting')) return;
      if (row.target !== name || !(await changeStep(directory, row, ['opening'], 'aborting'))) return;
      await directory.query(`update cell_apps set cell = $2, state = 'moving', move_id = $3 where app_id = $1`, [
        ...[row.app_id, row.source, row.id],
      ]);
    });
}

/** Puts every app where it works: of two places, the one that the directory does not remember is the later one. */
async function placeApps(directory: Session, cells: readonly Cell[]): Promise<Map<string, string[]>> {
  const { rows } = await directory.query<{ app_id: string; cell: string }>('select app_id, cell from cell_apps');
  const places = new Map(rows.map(({ app_id, cell }) => [app_id, cell]));
  const holders = new Map<string, { cell: string; app: FoundApp }[]>();
  for (const { name, session } of cells)
    for (const app of await listApps(session))
      if (!isPart(app)) holders.set(app.id, [...(holders.get(app.id) ?? []), { cell: name, app }]);
  const listed = new Map<string, string[]>();
  for (const [id, held] of holders) {
    const open = held.filter(({ app }) => app.fence?.frozen !== true);
    const candidates = open.length > 0 ? open : held;
    const known = places.get(id);
    const chosen = candidates.find(({ cell }) => cell !== known) ?? candidates[0];
    if (chosen === undefined || chosen.cell === known) continue;
    await list(directory, chosen.cell, chosen.app);
    listed.set(chosen.cell, [...(listed.get(chosen.cell) ?? []), formatId('app', id)]);
  }
  await directory.query("update cell_apps set state = 'here', move_id = null where state <> 'here'");
  await announce(directory);
  return listed;
}

/** Leaves exactly those apps in the cell that the directory knows there, and opens them. */
async function obeyDirectory(directory: Session, { name, session }: Cell): Promise<Reconciled> {
  const found: Reconciled = { deleted: [], listed: [], missing: [] };
  const { rows } = await directory.query<{ app_id: string; cell: string }>('select app_id, cell from cell_apps');
  const places = new Map(rows.map(({ app_id, cell }) => [app_id, cell]));
  const apps = await listApps(session);
  const kept = new Set<string>();
  for (const app of apps) {
    const place = places.get(app.id);
    const id = formatId('app', app.id);
    if (isPart(app) || (place !== undefined && place !== name)) {
      await deleteApp(session, app);
      if (place !== name) found.deleted.push(id);
      continue;
    }
    kept.add(app.id);
    if (app.fence !== null) {
      await returnHeldJobs(session, app.id);
      await removeFence(session, { id: app.fence.move_id, appId: app.id });
    }
    if (place !== undefined) continue;
    await list(directory, name, app);
    found.listed.push(id);
  }
  // A move that had just begun has fenced an app that is not there yet.
  const fences = await session.query<{ app_id: string; move_id: string }>(
    'select app_id, move_id from app_fences where app_id not in (select id from apps)',
  );
  for (const { app_id, move_id } of fences.rows) {
    await discardHeldJobs(session, app_id);
    await removeFence(session, { id: move_id, appId: app_id });
  }
  for (const { app_id, cell } of rows) {
    if (cell !== name || kept.has(app_id)) continue;
    await directory.query('delete from cell_apps where app_id = $1 and cell = $2', [app_id, name]);
    found.missing.push(formatId('app', app_id));
  }
  await announce(directory);
  return found;
}

async function deleteApp(session: Session, { id, fence }: FoundApp): Promise<void> {
  await discardHeldJobs(session, id);
  // The app itself goes last: until then, a repetition finds it.
  const tables = (await listAppTables(session)).toSorted((one, other) =>
    one.name === 'apps' ? 1 : other.name === 'apps' ? -1 : 0,
  );
  for (const table of [{ name: 'jobs', appColumn: 'app_id' }, ...tables]) await deleteRows(session, table, id);
  if (fence !== null) await removeFence(session, { id: fence.move_id, appId: id });
}

async function list(directory: Session, cell: string, app: FoundApp): Promise<void> {
  await directory.query(
    `insert into cell_apps (app_id, cell, developer_id, name, created_at, updated_at) values ($1, $2, $3, $4, $5, $6)
     on conflict (app_id) do update set cell = excluded.cell, state = 'here', move_id = null`,
    [app.id, cell, app.developer_id, app.name, app.created_at, app.updated_at],
  );
}

async function announce(directory: Session): Promise<void> {
  await directory.query('select pg_notify($1, $2)', [placesChannel, '']);
}
