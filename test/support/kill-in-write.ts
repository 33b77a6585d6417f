import assert from 'node:assert/strict';
import type { Database, Db, Statement } from '../../src/db/database.ts';
import type { ServedProcess } from './serve.ts';
import { until } from './until.ts';

const lockKey = 4711;

/**
 * Kills a server in the middle of a transaction, when it is about to update this column, and waits until PostgreSQL
 * has ended its sessions. `when` chooses the rows, as the condition of a trigger.
 * @param send sends the request whose transaction that is, and may not get a response
 */
export async function killInWrite(
  db: Database,
  server: ServedProcess,
  { table, column, when }: { table: string; column: string; when?: (db: Db) => Statement },
  send: () => Promise<unknown>,
): Promise<void> {
  await db`create or replace function wait_here() returns trigger language plpgsql as
    'begin perform pg_advisory_xact_lock(4711); return new; end'`;
  await db`create trigger wait_here before update of ${db(column)} on ${db(table)}
    for each row ${when === undefined ? db`` : db`when (${when(db)})`} execute function wait_here()`;
  const lock = await db.reserve();
  await lock`select pg_advisory_lock(${lockKey})`;
  const lost = send().catch(() => undefined);
  const waiting = () => db`
    select 1 from pg_locks where locktype = 'advisory' and objid = ${lockKey} and not granted
      and database = (select oid from pg_database where datname = current_database())`;
  await until(async () => (await waiting()).length > 0);
  await server.kill();
  assert.equal(await lost, undefined);
  await lock`select pg_advisory_unlock(${lockKey})`;
  lock.release();
  const sessions = () => db`
    select 1 from pg_stat_activity where application_name = 'quarry' and datname = current_database()`;
  await until(async () => (await sessions()).length === 0);
  await db`drop trigger wait_here on ${db(table)}`;
}
