import type { Db, Statement } from '../../db/database.ts';
import { madeByRuns } from '../../files/of-runs.ts';

/** SQL for the files that go with deleted runs. */

/** Runs that are deleted together, and the extractions that go with them, which have ended. */
export type Removed = { appId: string; runs: readonly string[]; extractions: readonly string[] };

/** A file that removed runs made, and what else keeps it: other runs and extractions that refer to it. */
export type MadeFile = { id: string; runs: string[]; extractions: string[] };

function madeFiles(db: Db, { appId, runs, extractions }: Removed): Statement {
  return madeByRuns(db, appId, runs, db`select unnest(${[...extractions]}::uuid[])`);
}

/** SQL: nobody has changed the file `f` since it was made, and nothing but runs and extractions refers to it. */
function isUnused(db: Db, { appId }: Removed): Statement {
  const names = (table: string, column = 'file_id') =>
    db`exists (select from ${db(table)} t where t.app_id = ${appId} and t.${db(column)} = f.id)`;
  return db`f.updated_at = f.created_at
    and not ${names('agents', 'profile_picture_file_id')} and not ${names('orgs', 'logo_file_id')}
    and not ${names('config_versions')}
    and not ${names('knowledge_documents')} and not ${names('knowledge_versions')}
    and not ${names('knowledge_ingestion_items')} and not ${names('knowledge_sync_items')}`;
}

/** SQL: the other runs that name the file `f`. */
function otherRuns(db: Db, { appId, runs }: Removed): Statement {
  return db`select n.run_id from automation_run_files n
    where n.app_id = ${appId} and n.file_id = f.id and n.run_id <> all(${[...runs]}::uuid[])`;
}

/** SQL: the other extractions that read or wrote the file `f`. */
function otherExtractions(db: Db, { appId, extractions }: Removed): Statement {
  const others = (table: string, column: string) =>
    db`select t.${db(column)} from ${db(table)} t
      where t.app_id = ${appId} and t.file_id = f.id and t.${db(column)} <> all(${[...extractions]}::uuid[])`;
  return db`${others('extractions', 'id')} union all ${others('extraction_outputs', 'extraction_id')}
    union all ${others('extraction_data', 'extraction_id')}`;
}

/** The files that these runs made and that only runs and extractions refer to. */
export async function listMadeFiles(db: Db, removed: Removed): Promise<MadeFile[]> {
  return db<MadeFile[]>`
    select f.id, array(${otherRuns(db, removed)}) as runs, array(${otherExtractions(db, removed)}) as extractions
    from files f where f.app_id = ${removed.appId} and f.id in (${madeFiles(db, removed)}) and ${isUnused(db, removed)}`;
}

/**
 * Deletes some of the files that only these runs made, and that nothing else refers to. Returns how many. A file that is
 * being changed or referred to stays.
 */
export async function deleteFilesOf(db: Db, removed: Removed, countMax: number): Promise<number> {
  const { appId } = removed;
  const isOnlyTheirs = db`f.id in (${madeFiles(db, removed)}) and ${isUnused(db, removed)}
    and not exists (${otherRuns(db, removed)}) and not exists (${otherExtractions(db, removed)})`;
  const locked = await db<{ id: string }[]>`
    select f.id from files f where f.app_id = ${appId} and ${isOnlyTheirs}
    order by f.id limit ${countMax} for update of f skip locked`;
  if (locked.length === 0) return 0;
  // Looks again: what referred to a file before it was locked is visible only to a new statement.
  const { count } = await db`
    delete from files f
    where f.app_id = ${appId} and f.id = any(${locked.map(({ id }) => id)}::uuid[]) and ${isOnlyTheirs}`;
  return count;
}

/** Passes the files that other runs still name on to these: the last one takes them with it. */
export async function passFilesOn(db: Db, removed: Removed): Promise<void> {
  await db`
    update automation_run_files n set made = true
    where n.app_id = ${removed.appId} and n.file_id in (${madeFiles(db, removed)})
      and n.run_id <> all(${[...removed.runs]}::uuid[]) and not n.made`;
}
