import { setTimeout as wait } from 'node:timers/promises';
import type { DatabaseTarget } from '../../db/address.ts';
import { sequences } from '../../db/tables.ts';
import { compareTable, copyChanges, copyShared, copyTable, countRows, type Difference, type Pair } from './copy.ts';
import type { Directory } from './directory.ts';
import { MoveBusyError, MoveError } from './errors.ts';
import { freeze, installFence, removeFence } from './fence.ts';
import { discardHeldJobs, holdJobs, returnHeldJobs, sendHeldJobs } from './held-jobs.ts';
import { dropSession, inTransaction, openSession, quote, type Session } from './session.ts';
import * as store from './store.ts';
import { type AppTable, deleteRows, listAppTables } from './tables.ts';

export { MoveError } from './errors.ts';

type MoveOptions = {
  directory: Directory;
  appId: string;
  /** How long other processes may use what they read from the directory. The app stays frozen for at least this time. */
  routesCachedMs?: number | undefined;
  /** How long the copy on the source is kept after the switch, while its fence refuses late writes with a clear error. */
  sourceKeptMs?: number | undefined;
  report?: (text: string) => void;
  /** Ends the try. A later one continues the move. */
  signal?: AbortSignal | undefined;
  /** Called between steps, for tests that interrupt a move there. */
  onPoint?: (point: string) => Promise<void> | void;
};

/** Rounds copy what changed meanwhile. The app is frozen when one is this short, or after so many. */
const changesFewMax = 500;
const roundsMax = 30;
/** Entries of the audit log arrive up to this long after the response. */
const lateMs = 1_000;
const sourceKeptMs = 10_000;
/** Tables with at most this many rows of the app are compared once more while it is frozen. */
const frozenCompareRowsMax = 50_000;

const jobs = { name: 'jobs', appColumn: 'app_id' };

type Run = {
  options: MoveOptions;
  session: Session;
  pair: Pair;
  move: { id: string; appId: string };
  row: store.MoveRow;
  report(text: string): void;
  at(point: string): Promise<void>;
};

/**
 * Continues the move of an app until it is done, from wherever an earlier try has ended. Any number of tries may
 * follow one another, and a second one at the same time is refused.
 */
export async function continueMove(options: MoveOptions): Promise<store.MoveRow> {
  return withMove(options, async (run) => {
    for (;;) {
      const row = await reread(run);
      run.row = row;
      if (row.ended_at !== null) return row;
      if (row.step === 'aborting') await undo(run);
      else await steps[row.step as keyof typeof steps](run);
    }
  });
}

/**
 * Ends a move before its switch: the app stays where it is. Throws MoveError after the switch, and MoveBusyError if a
 * process that works on the move must notice it first; the move is aborted all the same.
 */
export async function abortMove(options: MoveOptions): Promise<store.MoveRow> {
  const { directory, appId } = options;
  const session = await openSession(directory.target, 'quarry-move');
  try {
    const row = await store.findActiveMove(session, appId);
    if (row === undefined) throw new MoveError('The app is not being moved.');
    if (!(await store.changeStep(session, row, [...abortable, 'aborting'], 'aborting')))
      throw new MoveError(`The app belongs to ${row.target} already. Move it back instead.`);
  } finally {
    dropSession(session);
  }
  return continueMove(options);
}

const changedElsewhere = () => new MoveError('Another process has changed the move.');

const abortable: readonly store.MoveStep[] = ['preparing', 'copying', 'catching_up', 'freezing'];

async function withMove<T>(options: MoveOptions, work: (run: Run) => Promise<T>): Promise<T> {
  const { directory, appId, report = () => {}, onPoint = () => {}, signal } = options;
  const sessions: Session[] = [];
  const drop = () => sessions.forEach(dropSession);
  signal?.addEventListener('abort', drop);
  const open = async (target: DatabaseTarget, name: string) => {
    const session = await openSession(target, name);
    sessions.push(session);
    return session;
  };
  try {
    const session = await open(directory.target, 'quarry-move');
    if (!(await store.takeMoveLock(session, appId))) throw new MoveBusyError();
    const row = await store.findActiveMove(session, appId);
    if (row === undefined) throw new MoveError('The app is not being moved.');
    const name = `quarry-move-${row.id}`;
    const source = await open(directory.targetOf(row.source), name);
    const target = await open(directory.targetOf(row.target), name);
    // The lock is held from before these sessions: none of an earlier try can be opened after this.
    for (const one of [source, target]) await store.endOtherSessions(one);
    const run: Run = {
      ...{ options, session, pair: { source, target }, move: { id: row.id, appId }, row, report },
      async at(point) {
        signal?.throwIfAborted();
        await onPoint(point);
      },
    };
    try {
      return await work(run);
    } catch (error) {
      await store.noteError(session, row, (error as Error).message).catch(() => {});
      throw error;
    }
  } finally {
    signal?.removeEventListener('abort', drop);
    drop();
  }
}

async function reread({ session, row }: Run): Promise<store.MoveRow> {
  const { rows } = await session.query<store.MoveRow>('select * from cell_moves where app_id = $1 and id = $2', [
    ...[row.app_id, row.id],
  ]);
  if (rows[0] === undefined) throw new MoveError('The move is gone from the directory.');
  return rows[0];
}

async function advance(run: Run, to: store.MoveStep): Promise<void> {
  if (!(await store.changeStep(run.session, run.row, [run.row.step], to))) throw changedElsewhere();
  await run.at(to);
}

const steps = {
  preparing: prepare,
  copying: copy,
  catching_up: catchUp,
  freezing: switchOver,
  opening: openTarget,
  cleaning: clean,
};

/** Empties the target of the app, closes it there for everyone, and begins to list changes on the source. */
async function prepare(run: Run): Promise<void> {
  const { pair, move } = run;
  const tables = await readTables(run);
  run.report(`preparing: ${tables.length} tables`);
  await requireSameSchema(run);
  for (const session of [pair.source, pair.target]) await requireBypass(session);
  await requireLinked(pair.source);
  await installFence(pair.target, move, 'target', tables);
  await run.at('target fenced');
  for (const table of tables) await deleteRows(pair.target, table, move.appId);
  // A worker that was paused may have added one after the app had left this cell: jobs refer to nothing.
  await deleteRows(pair.target, jobs, move.appId);
  await installFence(pair.source, move, 'source', tables);
  await advance(run, 'copying');
}

/** Copies each table under a snapshot of its own: every later change of its rows is listed. */
async function copy(run: Run): Promise<void> {
  const { pair, move, session, row } = run;
  await copyShared(pair, move.appId);
  for (const table of await readTables(run)) {
    if (row.copied.includes(table.name)) continue;
    const rows = await copyTable(pair, table, move.appId);
    await run.at(`copied ${table.name}`);
    if (!(await store.noteCopied(session, row, table.name, rows))) throw changedElsewhere();
    if (rows > 0) run.report(`copied ${table.name}: ${rows} rows`);
  }
  await advance(run, 'catching_up');
}

/** Copies what has changed since, until little is left, and compares everything as of one snapshot. */
async function catchUp(run: Run): Promise<void> {
  const { pair, move } = run;
  const tables = await readTables(run);
  for (let round = 1; round <= roundsMax; round++) {
    const { changes, differences } = await copyChanges(pair, tables, move.appId);
    requireSame(differences);
    run.report(`round ${round}: ${changes} changes`);
    await run.at('round');
    if (changes <= changesFewMax) break;
  }
  const { changes, differences } = await copyChanges(pair, tables, move.appId, tables);
  requireSame(differences);
  run.report(`compared ${tables.length} tables as of one snapshot; ${changes} changes meanwhile`);
  await advance(run, 'freezing');
}

/** Freezes the app, copies the last changes, and switches the directory in one commit. */
async function switchOver(run: Run): Promise<void> {
  const { pair, move, session, row, options } = run;
  const tables = await readTables(run);
  // What came during the comparison is copied while the app still works.
  requireSame((await copyChanges(pair, tables, move.appId)).differences);
  const startedMs = performance.now();
  await freeze(pair.source, move, 'frozen');
  run.report('frozen');
  await run.at('frozen');
  await holdJobs(pair.source, move.appId);
  await run.at('jobs held');
  requireSame((await copyChanges(pair, tables, move.appId)).differences);
  await run.at('last round');
  const cachedMs = Math.max(lateMs, options.routesCachedMs ?? 0);
  await wait(Math.max(0, startedMs + cachedMs - performance.now()));
  await freeze(pair.source, move, 'sealed');
  const last = await copyChanges(pair, tables, move.appId);
  await copyShared(pair, move.appId);
  await sendHeldJobs(pair, move.appId);
  await run.at('jobs sent');
  await advanceSequences(pair);
  requireSame([...last.differences, ...(await compareFrozen(run, tables))]);
  await run.at('compared');
  await inTransaction(session, async () => {
    if (!(await store.changeStep(session, row, ['freezing'], 'opening'))) throw changedElsewhere();
    await options.directory.switchApp(session, { ...move, cell: row.target });
  });
  run.report(`switched after ${Math.round(performance.now() - startedMs)} ms without writes`);
  await run.at('switched');
}

/** The target works from here on, with the jobs of the app. */
async function openTarget(run: Run): Promise<void> {
  const { pair, move } = run;
  await returnHeldJobs(pair.target, move.appId);
  run.report(`open in ${run.row.target}`);
  await run.at('opened');
  await advance(run, 'cleaning');
}

/** Deletes the copy on the source, which its fence closes until it is empty. */
async function clean(run: Run): Promise<void> {
  const { pair, move } = run;
  await removeFence(pair.target, move);
  await run.at('target unfenced');
  // A process that was paused for longer finds no rows to change, and foreign keys refuse what it adds.
  const { rows } = await run.session.query<{ ms: number }>(
    'select 1000 * extract(epoch from clock_timestamp() - switched_at)::float8 as ms from cell_moves where app_id = $1 and id = $2',
    [move.appId, move.id],
  );
  await wait(Math.max(0, (run.options.sourceKeptMs ?? sourceKeptMs) - (rows[0]?.ms ?? 0)));
  await removeCopy(run, pair.source);
  // Credentials of the app that processes have cached for this database are no longer valid here.
  await pair.source.query("select pg_notify('quarry_tenancy', '')");
  run.report(`deleted the copy in ${run.row.source}`);
  await advance(run, 'done');
}

/** Opens the source again and deletes the copy on the target. */
async function undo(run: Run): Promise<void> {
  const { pair, move, session, row, options } = run;
  await returnHeldJobs(pair.source, move.appId);
  await run.at('source opened');
  await inTransaction(session, () => options.directory.keepApp(session, move));
  await removeFence(pair.source, move);
  await run.at('source unfenced');
  await removeCopy(run, pair.target);
  await store.changeStep(session, row, ['aborting'], 'aborted');
  run.report('aborted');
}

async function removeCopy(run: Run, session: Session): Promise<void> {
  const { move } = run;
  await discardHeldJobs(session, move.appId);
  for (const table of await readTables(run)) {
    await deleteRows(session, table, move.appId);
    await run.at(`deleted ${table.name}`);
  }
  await deleteRows(session, jobs, move.appId);
  await removeFence(session, move);
}

function readTables({ pair }: Run): Promise<AppTable[]> {
  return listAppTables(pair.source);
}

async function requireSameSchema({ pair, row }: Run): Promise<void> {
  const read = async (session: Session) => {
    const { rows } = await session.query<{ list: string }>(
      "select string_agg(name || ' ' || checksum, ',' order by version) as list from schema_migrations",
    );
    return rows[0]?.list;
  };
  if ((await read(pair.source)) !== (await read(pair.target)))
    throw new MoveError(
      `${row.source} and ${row.target} have different schemas. Migrate both to the same release first.`,
    );
}

/** Journals from before the ledger are linked in one walk over all apps, which a moved app would miss. */
async function requireLinked(source: Session): Promise<void> {
  const { rows } = await source.query('select 1 from ledger_inheritance');
  if (rows.length > 0)
    throw new MoveError('The journals of an earlier release are still being linked. Try again in a few minutes.');
}

/** Rows are copied and deleted without triggers, which PostgreSQL lets only some users do. */
async function requireBypass(session: Session): Promise<void> {
  try {
    await session.query('set session_replication_role = replica; set session_replication_role = default');
  } catch (error) {
    const { rows } = await session.query('select current_user as name, current_database() as database');
    throw new MoveError(
      `The database user ${rows[0]?.name} of ${rows[0]?.database} may not copy rows without triggers. As a superuser: GRANT SET ON PARAMETER session_replication_role TO ${quote(rows[0]?.name)}`,
      { cause: error },
    );
  }
}

/** What the app writes on the target gets larger numbers than everything it ever wrote on the source. */
async function advanceSequences({ source, target }: Pair): Promise<void> {
  for (const [name, kind] of Object.entries(sequences)) {
    if (kind === 'stays') continue;
    const { rows } = await source.query<{ last: string }>(`select last_value as last from ${quote(name)}`);
    await inTransaction(target, async () => {
      // Takes a lock that nextval() waits for, and changes nothing.
      await target.query(`alter sequence ${quote(name)} no cycle`);
      await target.query(`select setval($1, $2::bigint) where $2::bigint > (select last_value from ${quote(name)})`, [
        name,
        rows[0]?.last,
      ]);
    });
  }
}

async function compareFrozen({ pair, move }: Run, tables: readonly AppTable[]): Promise<Difference[]> {
  const differences: Difference[] = [];
  for (const table of tables) {
    const rows = await countRows(pair.source, table, move.appId);
    if (rows <= frozenCompareRowsMax) differences.push(...(await compareTable(pair, table, move.appId)));
    else if (rows !== (await countRows(pair.target, table, move.appId)))
      differences.push({ table: table.name, source: `${rows} rows`, target: 'another number' });
  }
  return differences;
}

function requireSame(differences: readonly Difference[]): void {
  if (differences.length === 0) return;
  const list = differences.map(({ table, source, target }) => `${table} (${source}; copy: ${target})`);
  throw new MoveError(`The copy differs from the source: ${list.join(', ')}. Abort the move and start it again.`);
}
