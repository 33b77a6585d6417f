import type { DatabaseTarget } from '../../db/address.ts';
import { newUuid } from '../../lib/ids.ts';
import { placesChannel } from '../store.ts';
import { MoveError } from './errors.ts';
import { dropSession, inTransaction, openSession, type Session } from './session.ts';
import { insertMove } from './store.ts';

/** A cell as the settings name it, with a target that is not a transaction pooler. */
type MoveCell = { name: string; target: DatabaseTarget; acceptsNewApps: boolean };

/** The directory's database and the cells of an installation. */
export class Directory {
  readonly target: DatabaseTarget;
  readonly #cells: readonly MoveCell[];

  constructor(target: DatabaseTarget, cells: readonly MoveCell[]) {
    this.target = target;
    this.#cells = cells;
  }

  /** The database of a cell. Throws MoveError for a name that is not configured. */
  targetOf(name: string): DatabaseTarget {
    return this.#find(name).target;
  }

  /** Adds the move of an app to another cell. Throws MoveError with the reason if it cannot be moved there. */
  async addMove(appId: string, cell: string): Promise<void> {
    const { acceptsNewApps } = this.#find(cell);
    if (!acceptsNewApps) throw new MoveError(`${cell} is full: QUARRY_CELLS lets no more apps in (accepts_new_apps).`);
    const session = await openSession(this.target, 'quarry-move');
    try {
      await inTransaction(session, () => insertMoveTo(session, appId, cell, (name) => this.#find(name)));
    } finally {
      dropSession(session);
    }
  }

  /** The app belongs to the other cell from this commit on. */
  async switchApp(session: Session, { appId, id, cell }: { appId: string; id: string; cell: string }): Promise<void> {
    const { rowCount } = await session.query(
      `update cell_apps set cell = $3, state = 'here', move_id = null where app_id = $1 and move_id = $2`,
      [appId, id, cell],
    );
    if (rowCount !== 1) throw new MoveError('The directory does not say that the app is being moved.');
    await announce(session, appId);
  }

  /** The app stays where it is. */
  async keepApp(session: Session, { appId, id }: { appId: string; id: string }): Promise<void> {
    await session.query(`update cell_apps set state = 'here', move_id = null where app_id = $1 and move_id = $2`, [
      ...[appId, id],
    ]);
    await announce(session, appId);
  }

  #find(name: string): MoveCell {
    const cell = this.#cells.find((each) => each.name === name);
    if (cell === undefined) throw new MoveError(`QUARRY_CELLS has no cell ${name}.`);
    return cell;
  }
}

async function insertMoveTo(
  session: Session,
  appId: string,
  target: string,
  find: (name: string) => MoveCell,
): Promise<void> {
  const apps = await session.query<{ cell: string }>('select cell from cell_apps where app_id = $1 for update', [
    appId,
  ]);
  const source = apps.rows[0]?.cell;
  if (source === undefined) throw new MoveError('The directory has no such app.');
  if (source === target) throw new MoveError(`The app is in ${target} already.`);
  find(source);
  const cells = await session.query<{ name: string; state: string; database: string | null }>(
    'select name, state, database from cells where name = any ($1) for share',
    [[source, target]],
  );
  const row = cells.rows.find(({ name }) => name === target);
  if (row?.database == null) throw new MoveError(`No server has opened ${target} yet: quarry cells add ${target}`);
  if (row.state === 'draining') throw new MoveError(`${target} is being drained: it takes no apps.`);
  const id = newUuid();
  await insertMove(session, { appId, id, source, target });
  await session.query(`update cell_apps set state = 'moving', move_id = $2 where app_id = $1`, [appId, id]);
  await announce(session, appId);
}

/** Processes read the place of the app again when the transaction is committed. */
async function announce(session: Session, appId: string): Promise<void> {
  await session.query('select pg_notify($1, $2)', [placesChannel, appId]);
}
