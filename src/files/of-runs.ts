import type { Db, Statement } from '../db/database.ts';
import { AppError } from '../lib/errors.ts';
import { type Caller, canSeeWholeApp } from '../tenancy/caller.ts';
import { requireScope } from '../tenancy/key-scopes.ts';
import { fieldId, unknownReference } from '../tenancy/references.ts';
import { runVisible } from '../tenancy/visible.ts';

/** SQL for the files that automation runs made. */

const field = 'automation_run';

/**
 * The run that an upload says made its file: programs upload the files of runs that they execute. 403 unless the caller
 * may execute runs, 422 unless they see this one.
 */
export async function findMaker(db: Db, caller: Caller, run: string | undefined): Promise<string | undefined> {
  if (run === undefined) return undefined;
  if (!canSeeWholeApp(caller))
    throw new AppError('forbidden', 'Only secret keys and developers can say which run made a file.');
  requireScope(caller.scopes, { area: 'automations', reads: false }, { what: 'naming a run' });
  const id = fieldId('automationRun', field, run);
  const [found] = await db`
    select from automation_runs r where r.id = ${id} and ${runVisible(db, caller, 'r')}`;
  if (found === undefined) throw unknownReference(field);
  return id;
}

/** Records which run made a file, if one did, in the transaction that writes the file. 422 if the run was deleted. */
export async function insertMadeFile(
  db: Db,
  file: { appId: string; id: string },
  run: string | undefined,
): Promise<void> {
  if (run === undefined) return;
  const recorded = await db`
    insert into automation_run_files (app_id, run_id, file_id, made)
    select r.app_id, r.id, ${file.id}::uuid, true from automation_runs r
    where r.app_id = ${file.appId} and r.id = ${run} for key share
    on conflict (app_id, run_id, file_id) do update set made = true`;
  if (recorded.count === 0) throw unknownReference(field);
}

/** SQL: the ids of the files that these runs wrote, or that these extractions of theirs did. Some may be deleted. */
export function madeByRuns(db: Db, appId: string, runs: readonly string[], extractions: Statement): Statement {
  return db`
    select n.file_id as id from automation_run_files n
    where n.app_id = ${appId} and n.run_id = any(${[...runs]}::uuid[]) and n.made
    union
    select o.file_id from extraction_outputs o
    where o.app_id = ${appId} and o.extraction_id in (${extractions}) and o.file_id is not null
    union
    select d.file_id from extraction_data d
    where d.app_id = ${appId} and d.extraction_id in (${extractions}) and d.file_id is not null`;
}

/** SQL: the file `f` was made by this run, which the caller sees. 403 unless the caller's key may read runs, too. */
export function isMadeBy(db: Db, caller: Caller, run: string): Statement {
  requireScope(caller.scopes, { area: 'automations', reads: true }, { what: 'naming a run' });
  const { appId } = caller;
  const started = db`
    select c.child_id from automation_run_children c
    where c.app_id = ${appId} and c.run_id = ${run} and c.child_kind = 'extraction'`;
  return db`f.id in (${madeByRuns(db, appId, [run], started)})
    and exists (select from automation_runs r where r.id = ${run} and ${runVisible(db, caller, 'r')})`;
}
