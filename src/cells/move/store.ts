import { MoveError } from './errors.ts';
import { type Session, stateOf } from './session.ts';

/** The directory's list of moves. Everything that a try needs to continue another one is in it. */

export type MoveStep =
  | 'preparing'
  | 'copying'
  | 'catching_up'
  | 'freezing'
  | 'opening'
  | 'cleaning'
  | 'aborting'
  | 'done'
  | 'aborted';

export type MoveRow = {
  app_id: string;
  id: string;
  source: string;
  target: string;
  step: MoveStep;
  copied: string[];
  copied_rows: string;
  error: string | null;
  started_at: Date;
  frozen_at: Date | null;
  switched_at: Date | null;
  ended_at: Date | null;
};

/** Adds a move. Throws MoveError if the app has another one that has not ended. */
export async function insertMove(
  session: Session,
  { appId, id, source, target }: { appId: string; id: string; source: string; target: string },
): Promise<void> {
  const active = await findActiveMove(session, appId);
  const refuse = (to = 'another cell') => {
    throw new MoveError(`The app is already being moved to ${to}. Continue that move, or abort it first.`);
  };
  if (active !== undefined) refuse(active.target);
  try {
    await session.query(
      "insert into cell_moves (app_id, id, source, target, step) values ($1, $2, $3, $4, 'preparing')",
      [...[appId, id, source, target]],
    );
  } catch (error) {
    if (stateOf(error) !== '23505') throw error;
    refuse();
  }
}

export async function findActiveMove(session: Session, appId: string): Promise<MoveRow | undefined> {
  const { rows } = await session.query<MoveRow>('select * from cell_moves where app_id = $1 and ended_at is null', [
    appId,
  ]);
  return rows[0];
}

/** The moves that have not ended, oldest first. */
export async function listActiveMoves(session: Session): Promise<{ id: string; appId: string }[]> {
  const { rows } = await session.query<{ id: string; app_id: string }>(
    'select id, app_id from cell_moves where ended_at is null order by started_at, id',
  );
  return rows.map(({ id, app_id }) => ({ id, appId: app_id }));
}

/** The moves that have not ended, and the latest others. */
export async function listMoves(session: Session, max: number): Promise<MoveRow[]> {
  const { rows } = await session.query<MoveRow>(
    'select * from cell_moves order by ended_at is not null, started_at desc, id desc limit $1',
    [max],
  );
  return rows;
}

/** Goes to another step. False if the move is not in the expected one, so that another try has changed it. */
export async function changeStep(
  session: Session,
  { app_id, id }: MoveRow,
  from: readonly MoveStep[],
  to: MoveStep,
): Promise<boolean> {
  const { rowCount } = await session.query(
    `update cell_moves set step = $3, error = null,
       frozen_at = case when $3 = 'freezing' then coalesce(frozen_at, clock_timestamp()) else frozen_at end,
       switched_at = case when $3 = 'opening' then clock_timestamp() else switched_at end,
       ended_at = case when $3 in ('done', 'aborted') then clock_timestamp() end
     where app_id = $1 and id = $2 and step = any ($4)`,
    [app_id, id, to, [...from]],
  );
  return (rowCount ?? 0) > 0;
}

/** Returns false if the move is not being copied any more, because it was aborted. */
export async function noteCopied(
  session: Session,
  { app_id, id }: MoveRow,
  table: string,
  rows: number,
): Promise<boolean> {
  const { rowCount } = await session.query(
    `update cell_moves set copied = array_append(copied, $3), copied_rows = copied_rows + $4
     where app_id = $1 and id = $2 and step = 'copying'`,
    [app_id, id, table, rows],
  );
  return (rowCount ?? 0) > 0;
}

export async function noteError(session: Session, { app_id, id }: MoveRow, error: string): Promise<void> {
  await session.query('update cell_moves set error = $3 where app_id = $1 and id = $2', [app_id, id, error]);
}

/** Only the process with this lock works on the moves of the app. It ends with the session. */
export async function takeMoveLock(session: Session, appId: string): Promise<boolean> {
  const { rows } = await session.query('select pg_try_advisory_lock(hashtextextended($1, 0)) as taken', [
    `cell_move/${appId}`,
  ]);
  return rows[0]?.taken === true;
}

/** Ends the sessions of earlier tries that may still write, such as those of a process that was paused. */
export async function endOtherSessions(session: Session): Promise<void> {
  for (let left = 1; left > 0; ) {
    const { rowCount } = await session.query(
      `select pg_terminate_backend(pid, 5000) from pg_stat_activity
       where datname = current_database() and application_name = current_setting('application_name')
         and pid <> pg_backend_pid()`,
    );
    left = rowCount ?? 0;
  }
}
