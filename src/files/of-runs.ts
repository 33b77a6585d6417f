import type { Db, Statement } from '../db/database.ts';
import type { Caller } from '../tenancy/caller.ts';
import { requireScope } from '../tenancy/key-scopes.ts';
import { runVisible } from '../tenancy/visible.ts';

/** SQL for the files that automation runs made. */

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
