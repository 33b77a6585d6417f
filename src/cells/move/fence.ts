import { setTimeout as wait } from 'node:timers/promises';
import { MoveError } from './errors.ts';
import { inTransaction, literal, quote, type Session, stateOf } from './session.ts';
import { type AppTable, deleteRows } from './tables.ts';

/*
 * The fence of a move is in the database: triggers on each table, for rows of this app alone and only while it is
 * moved. On the source they list the keys of changed rows and, once frozen, refuse to write; on the target they refuse
 * from the beginning. A process that was paused, or does not know about the move, is refused like any other.
 */

/** Entries of the audit log are written up to a second after the response, so this table is frozen last. */
const lateTable = 'audit_entries';

type Move = { id: string; appId: string };
type Side = 'source' | 'target';

/** How long a change of a table may wait for its lock, because all other writers of the table wait behind it. */
const lockMs = 200;
/** Every tenth try waits longer: PostgreSQL ends an autovacuum only for a lock that is awaited for a second. */
const patientLockMs = 1_500;
const patientEvery = 10;
const lockPauseMs = 250;
const lockTriesMax = 1_200;
/** How long the freeze may wait for running writes of the app, because its other writes wait behind it. */
const freezeMs = 2_000;
/** After this many tries, the sessions whose transactions prevent the freeze are ended. */
const freezeTriesMax = 3;

/** Adds the fence and its triggers, which may exist already. Every write from then on is known to the fence. */
export async function installFence(
  session: Session,
  move: Move,
  side: Side,
  tables: readonly AppTable[],
): Promise<void> {
  await session.query(
    `insert into app_fences (app_id, move_id, side, frozen, sealed) values ($1, $2, $3, $4, $4)
     on conflict (app_id) do nothing`,
    [move.appId, move.id, side, side === 'target'],
  );
  const { rows } = await session.query<{ name: string }>(
    'select tgrelid::regclass::text as name from pg_trigger where tgname = $1 and tgparentid = 0',
    [triggerName(move, 'delete')],
  );
  const installed = new Set(rows.map(({ name }) => name));
  for (const table of tables) {
    if (installed.has(table.name)) continue;
    await withTableLock(
      session,
      table.name,
      createTriggers(move, table.name, bodyOf(move, side, table), table.appColumn),
    );
  }
  if (!installed.has('jobs')) await withTableLock(session, 'jobs', createTriggers(move, 'jobs', bodyOfJobs(move)));
}

/** Removes the fence, its triggers and what they listed. */
export async function removeFence(session: Session, move: Move): Promise<void> {
  const { rows } = await session.query<{ name: string }>(
    `select c.relname as name from pg_class c where c.relnamespace = current_schema()::regnamespace
       and exists (select 1 from pg_trigger t where t.tgrelid = c.oid and t.tgparentid = 0 and t.tgname = any ($1))`,
    [[triggerName(move, 'put'), triggerName(move, 'delete')]],
  );
  for (const { name } of rows)
    await withTableLock(
      session,
      name,
      `drop trigger if exists ${triggerName(move, 'put')} on ${quote(name)};
       drop trigger if exists ${triggerName(move, 'delete')} on ${quote(name)}`,
    );
  const functions = await session.query<{ name: string }>(
    `select proname as name from pg_proc where pronamespace = current_schema()::regnamespace
       and starts_with(proname, $1)`,
    [functionName(move, '')],
  );
  for (const { name } of functions.rows) await session.query(`drop function if exists ${quote(name)}()`);
  await deleteRows(session, { name: 'app_changes', appColumn: 'app_id' }, move.appId);
  await session.query('delete from app_fences where app_id = $1 and move_id = $2', [move.appId, move.id]);
}

/** Refuses writes of the app from now on, and returns when those that began before have ended. */
export async function freeze(session: Session, { appId }: Move, what: 'frozen' | 'sealed'): Promise<void> {
  for (let tries = 1; ; tries++)
    try {
      return await inTransaction(session, async () => {
        await session.query(`set local lock_timeout = ${freezeMs}`);
        await session.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`move/${appId}`]);
        await session.query(`update app_fences set ${what} = true where app_id = $1`, [appId]);
      });
    } catch (error) {
      if (stateOf(error) !== '55P03') throw error;
      if (tries === 10 * freezeTriesMax)
        throw new MoveError('Transactions of the app do not end, so its writes cannot be frozen.');
      if (tries % freezeTriesMax === 0) await endWriters(session, appId);
      await wait(lockPauseMs);
    }
}

/** Ends the sessions whose open transactions have written rows of the app. */
async function endWriters(session: Session, appId: string): Promise<void> {
  await session.query(
    `select pg_terminate_backend(l.pid) from pg_locks l
     where l.locktype = 'advisory' and l.granted and l.mode = 'ShareLock' and l.objsubid = 1
       and l.database = (select oid from pg_database where datname = current_database())
       and (l.classid::bigint << 32 | l.objid::bigint) = hashtextextended($1, 0)`,
    [`move/${appId}`],
  );
}

/** Changes a table as soon as its lock is free, without making other writers wait for long. */
async function withTableLock(session: Session, table: string, change: string): Promise<void> {
  for (let tries = 1; ; tries++)
    try {
      return void (await inTransaction(session, async () => {
        await session.query(`set local lock_timeout = ${tries % patientEvery === 0 ? patientLockMs : lockMs}`);
        await session.query(change);
      }));
    } catch (error) {
      if (stateOf(error) !== '55P03' && stateOf(error) !== '40P01') throw error;
      if (tries === lockTriesMax)
        throw new MoveError(`The table ${table} stays locked, by a backup or a long transaction. Try again later.`);
      await wait(lockPauseMs);
    }
}

/** The last digits of an id are random. */
const shortId = ({ id }: Move) => id.replaceAll('-', '').slice(-12);
/** Triggers run in the order of their names, so these are the first of their table. */
const triggerName = (move: Move, what: 'put' | 'delete') => `a_move_${shortId(move)}_${what}`;
const functionName = (move: Move, table: string) => `app_move_${shortId(move)}_${table}`;

function createTriggers(move: Move, table: string, body: string, appColumn?: string): string {
  const name = quote(functionName(move, table));
  // A generated column has no value yet when these triggers run.
  const isOf = (row: string) =>
    `${appColumn === undefined ? `app_of_job(${row}.payload)` : `${row}.${quote(appColumn)}`} = ${literal(move.appId)}`;
  return `create or replace function ${name}() returns trigger language plpgsql as $move$ ${body} $move$;
    create or replace trigger ${triggerName(move, 'put')} before insert or update on ${quote(table)}
      for each row when (${isOf('new')}) execute function ${name}();
    create or replace trigger ${triggerName(move, 'delete')} before delete on ${quote(table)}
      for each row when (${isOf('old')}) execute function ${name}()`;
}

function bodyOf({ appId }: Move, side: Side, { name, key }: AppTable): string {
  const mayWrite = `app_may_write(${literal(appId)}, ${name === lateTable})`;
  const keyOf = (row: string) =>
    `jsonb_build_object(${key.map((column) => `${literal(column.name)}, ${row}.${quote(column.name)}`).join(', ')})`;
  const note = (row: string) =>
    side === 'target'
      ? ''
      : `insert into app_changes (app_id, relation, key) values (${literal(appId)}, ${literal(name)}, ${keyOf(row)});`;
  return `begin
      if not ${mayWrite} then return null; end if;
      if tg_op = 'DELETE' then
        ${note('old')}
        return old;
      end if;
      ${note('new')}
      if tg_op = 'UPDATE' then
        if ${keyOf('old')} is distinct from ${keyOf('new')} then
          ${side === 'target' ? 'null;' : note('old')}
        end if;
      end if;
      return new;
    end`;
}

/**
 * A statement that claims or ends jobs of many apps must not fail because of one of them, so it leaves those of a frozen
 * app as they are. New jobs of the app are refused.
 */
function bodyOfJobs({ appId }: Move): string {
  return `begin
      begin
        if not app_may_write(${literal(appId)}, false) then return null; end if;
      exception when sqlstate 'QM001' then
        if tg_op = 'INSERT' then raise; end if;
        return null;
      end;
      if tg_op = 'DELETE' then return old; end if;
      return new;
    end`;
}
