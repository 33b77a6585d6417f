import { setTimeout as wait } from 'node:timers/promises';
import { prepareDirectory } from '../../cells/identity.ts';
import { Directory } from '../../cells/move/directory.ts';
import { MoveBusyError, MoveError } from '../../cells/move/errors.ts';
import { abortMove, continueMove } from '../../cells/move/move.ts';
import { dropSession, openSession } from '../../cells/move/session.ts';
import { listMoves, type MoveRow } from '../../cells/move/store.ts';
import type { CellSettings } from '../../cells/settings.ts';
import { inspectCells } from '../../cells/status.ts';
import type { Config } from '../../config/config.ts';
import type { DatabaseTarget } from '../../db/address.ts';
import type { Database } from '../../db/database.ts';
import { formatId, parseId } from '../../lib/ids.ts';
import { UsageError } from '../errors.ts';
import { onDirectory, readSecrets } from './cells.ts';

const movesMax = 100;
const followEveryMs = 500;

/** Moves an app to another cell, or continues a move that was interrupted. */
export function move(app: string, { to }: { to?: string }): Promise<number> {
  const appId = readApp(app);
  return onTargets(async ({ db, cells, config, directory }) => {
    await prepareDirectory(db, cells, readSecrets(config));
    const { active } = await findMoves(directory, appId);
    if (active === undefined && to === undefined) throw new UsageError('--to names the cell that the app is moved to.');
    if (active !== undefined && to !== undefined && active.target !== to)
      throw new MoveError(`The app is already being moved to ${active.target}. Continue that move, or abort it first.`);
    await requireUsable(db, cells, active?.target ?? to);
    if (active === undefined) await directory.addMove(appId, to ?? '');
    const ended = await follow(directory, appId, () => continueMove({ directory, appId, report }));
    process.stdout.write(`${describe(ended)}\n`);
    return ended.step === 'done' ? 0 : 1;
  });
}

/** Ends a move before its switch. */
export function abort(app: string): Promise<number> {
  const appId = readApp(app);
  return onTargets(async ({ directory }) => {
    const ended = await follow(directory, appId, () => abortMove({ directory, appId, report }));
    process.stdout.write(`${describe(ended)}\n`);
    return ended.step === 'aborted' ? 0 : 1;
  });
}

/** Shows the moves that have not ended, and the latest others. */
export function list({ json }: { json?: boolean }): Promise<number> {
  return onTargets(async ({ directory }) => {
    const { rows } = await findMoves(directory);
    if (json === true) process.stdout.write(`${JSON.stringify(rows.map(present))}\n`);
    else for (const row of rows) process.stdout.write(`${describe(row)}\n`);
    return 0;
  });
}

type Targets = { db: Database; cells: CellSettings[]; config: Config; directory: Directory };

/** Runs work with the direct targets of the directory and the cells. */
function onTargets(work: (targets: Targets) => Promise<number>): Promise<number> {
  return onDirectory(async (db, cells, config, target) => {
    const direct = ({ directTarget, target: own }: CellSettings): DatabaseTarget => directTarget ?? own ?? target;
    const directory = new Directory(
      target,
      cells.map((cell) => ({ name: cell.name, target: direct(cell), acceptsNewApps: cell.acceptsNewApps })),
    );
    try {
      return await work({ db, cells, config, directory });
    } catch (error) {
      if (!(error instanceof MoveError)) throw error;
      process.stderr.write(`${error.message}\n`);
      return 1;
    }
  });
}

/** Works on the move, or waits while a worker or another command does. */
async function follow(directory: Directory, appId: string, work: () => Promise<MoveRow>): Promise<MoveRow> {
  for (let step = ''; ; ) {
    const { active } = await findMoves(directory, appId);
    try {
      return await work();
    } catch (error) {
      if (active !== undefined && error instanceof MoveError) {
        const { rows } = await findMoves(directory, appId);
        const row = rows.find(({ id }) => id === active.id);
        if (row !== undefined && row.ended_at !== null) return row;
        if (row !== undefined && row.step !== step) report(`a worker continues the move: ${row.step}`);
        step = row?.step ?? step;
      }
      if (!(error instanceof MoveBusyError)) throw error;
    }
    await wait(followEveryMs);
  }
}

async function findMoves(directory: Directory, appId?: string): Promise<{ rows: MoveRow[]; active?: MoveRow }> {
  const session = await openSession(directory.target, 'quarry-move');
  try {
    const rows = await listMoves(session, movesMax);
    const active = rows.find((row) => row.app_id === appId && row.ended_at === null);
    return { rows, ...(active && { active }) };
  } finally {
    dropSession(session);
  }
}

/** A cell that servers cannot use is refused before anything changes. */
async function requireUsable(db: Database, cells: readonly CellSettings[], name: string | undefined): Promise<void> {
  const cell = (await inspectCells(db, cells)).find((each) => each.name === name);
  if (cell?.problem !== undefined) throw new MoveError(`${cell.name}: ${cell.problem}`);
}

function readApp(app: string): string {
  const id = parseId('app', app);
  if (id === undefined) throw new UsageError(`${app} is not the id of an app.`);
  return id;
}

function report(text: string): void {
  process.stdout.write(`${text}\n`);
}

function present(row: MoveRow) {
  const { app_id, id, copied, copied_rows, ...rest } = row;
  return { ...rest, app: formatId('app', app_id), copied_tables: copied.length, copied_rows: Number(copied_rows) };
}

function describe({ app_id, source, target, step, copied_rows, started_at, error }: MoveRow): string {
  const facts = `${formatId('app', app_id)}  ${source} -> ${target}  ${step}  ${copied_rows} rows  since ${started_at.toISOString()}`;
  return error === null ? facts : `${facts}\n    ${error}`;
}
