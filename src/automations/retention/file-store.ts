import type { Db, Statement } from '../../db/database.ts';

/** SQL for the files that go with deleted runs. */

type RemovedRuns = { appId: string; runs: readonly string[]; extractions: readonly string[] };

/** SQL: the files that these runs made: with nodes that write files, and by extractions that only they started. */
function madeFiles(db: Db, { appId, runs, extractions }: RemovedRuns): Statement {
  return db`
    with ended as materialized (
      select id from extractions
      where app_id = ${appId} and id = any(${[...extractions]}::uuid[]) and state <> 'running'),
    files_made as (
      select n.file_id as id from automation_run_files n
      where n.app_id = ${appId} and n.run_id = any(${[...runs]}::uuid[]) and n.made
      union
      select o.file_id from extraction_outputs o
      where o.app_id = ${appId} and o.extraction_id in (select id from ended) and o.file_id is not null
      union
      select d.file_id from extraction_data d
      where d.app_id = ${appId} and d.extraction_id in (select id from ended) and d.file_id is not null)`;
}

/** SQL: only these runs and their extractions refer to the file `f`, and nobody has changed it since it was made. */
function isOnlyTheirs(db: Db, { runs }: RemovedRuns): Statement {
  const names = (table: string, column = 'file_id') =>
    db`exists (select from ${db(table)} t where t.app_id = f.app_id and t.${db(column)} = f.id)`;
  const others = (table: string, column: string) =>
    db`exists (select from ${db(table)} t where t.app_id = f.app_id and t.file_id = f.id
      and t.${db(column)} not in (select id from ended))`;
  return db`f.updated_at = f.created_at
    and not exists (select from automation_run_files n where n.app_id = f.app_id and n.file_id = f.id
      and n.run_id <> all(${[...runs]}::uuid[]))
    and not ${names('agents', 'profile_picture_file_id')} and not ${names('orgs', 'logo_file_id')}
    and not ${names('config_versions')}
    and not ${names('knowledge_documents')} and not ${names('knowledge_versions')}
    and not ${names('knowledge_ingestion_items')} and not ${names('knowledge_sync_items')}
    and not ${others('extractions', 'id')} and not ${others('extraction_outputs', 'extraction_id')}
    and not ${others('extraction_data', 'extraction_id')}`;
}

export async function countFilesOf(db: Db, removed: RemovedRuns): Promise<number> {
  const [row] = await db<[{ files: number }]>`
    ${madeFiles(db, removed)}
    select count(*) as files from files f
    where f.app_id = ${removed.appId} and f.id in (select id from files_made) and ${isOnlyTheirs(db, removed)}`;
  return row.files;
}

/**
 * Deletes some of the files that only these runs made, and that nothing else refers to. Returns how many. A file that is
 * being changed or referred to stays.
 */
export async function deleteFilesOf(db: Db, removed: RemovedRuns, countMax: number): Promise<number> {
  const { appId } = removed;
  const locked = await db<{ id: string }[]>`
    ${madeFiles(db, removed)}
    select f.id from files f
    where f.app_id = ${appId} and f.id in (select id from files_made) and ${isOnlyTheirs(db, removed)}
    order by f.id limit ${countMax} for update of f skip locked`;
  if (locked.length === 0) return 0;
  // Looks again: what referred to a file before it was locked is visible only to a new statement.
  const gone = await db`
    ${madeFiles(db, removed)}
    delete from files f where f.app_id = ${appId} and f.id = any(${locked.map(({ id }) => id)}::uuid[])
      and f.id in (select id from files_made) and ${isOnlyTheirs(db, removed)}`;
  return gone.count;
}

/** Passes the files that other runs still name on to these: the last one takes them with it. */
export async function passFilesOn(db: Db, removed: RemovedRuns): Promise<void> {
  await db`
    ${madeFiles(db, removed)}
    update automation_run_files n set made = true
    where n.app_id = ${removed.appId} and n.file_id in (select id from files_made)
      and n.run_id <> all(${[...removed.runs]}::uuid[]) and not n.made`;
}
