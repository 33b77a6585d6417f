import type { Db, Statement } from '../db/database.ts';
import { changeBatch, deleteBatch } from '../db/delete-batch.ts';
import { agentsOf, contentsOf, losesOrg, type Owner } from './contents.ts';

/** Rows that one statement deletes. Automations and agents take more rows along than others. */
const batchRows = 500;
const batchOwners = 50;
/** Runs take their entries along. Apart from its last run, a batch has at most this many. */
const batchRuns = 50;
const batchEntries = 10_000;
/** So many rows and entries are deleted in less than a second. */
const rowsOfOneTransaction = 2_000;

/** Whether deleting an owner with its contents in one transaction would take long. */
export async function hasMuch(db: Db, owner: Owner): Promise<boolean> {
  // What loses its org includes what the org has itself.
  const affected = { ...contentsOf(db, owner, await agentsOf(db, owner)), ...losesOrg(db, owner) };
  const counts = Object.entries(affected).map(([table, where]) => {
    const size = table === 'automation_runs' ? db`1 + t.sequence` : db`1`;
    return db`
      select coalesce(sum(size), 0) as size from (
        select ${size} as size from ${db(table)} t where t.app_id = ${owner.appId} and ${where}
        limit ${rowsOfOneTransaction + 1}) counted`;
  });
  const [first, ...others] = counts;
  if (first === undefined) return false;
  const [row] = await db<[{ isMuch: boolean }]>`
    select sum(size) > ${rowsOfOneTransaction} as is_much
    from (${others.reduce((all, count) => db`${all} union all ${count}`, first)}) sizes`;
  return row.isMuch;
}

/**
 * Deletes what belongs to an owner. Each batch has a transaction of its own: new event streams of all apps and vacuum
 * wait for long ones. Any number of processes may do so; a killed one is continued.
 */
export async function deleteContents(db: Db, owner: Owner, signal?: AbortSignal): Promise<void> {
  const { appId } = owner;
  for (const [table, where] of Object.entries(contentsOf(db, owner, await agentsOf(db, owner)))) {
    const limit = table === 'automations' || table === 'agents' ? batchOwners : batchRows;
    const deleteNext = () =>
      table === 'automation_runs' ? deleteRuns(db, appId, where) : deleteBatch(db, { appId, table, where, limit });
    while ((await deleteNext()).found > 0) signal?.throwIfAborted();
  }
  for (const [table, where] of Object.entries(losesOrg(db, owner)))
    while ((await removeOrg(db, appId, table, where)).found > 0) signal?.throwIfAborted();
}

function removeOrg(db: Db, appId: string, table: string, where: Statement): Promise<{ found: number }> {
  return changeBatch(db, batchRows, async (next) => {
    const { count } = await db`
      update ${db(table)} set org_id = null where app_id = ${appId} and id = any(array(
        select t.id from ${db(table)} t where t.app_id = ${appId} and ${where} ${next}))`;
    return { found: count };
  });
}

function deleteRuns(db: Db, appId: string, where: Statement): Promise<{ found: number }> {
  return changeBatch(db, batchRuns, async (next) => {
    const { count } = await db`
      delete from automation_runs where app_id = ${appId} and id = any(array(
        select id from (
          select id, sum(sequence) over (order by id rows unbounded preceding) - sequence as before
          from (select t.id, t.sequence from automation_runs t
            where t.app_id = ${appId} and ${where} ${next}) first) counted
        where before < ${batchEntries}))`;
    return { found: count };
  });
}
