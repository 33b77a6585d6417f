import type { Db, Statement } from '../../db/database.ts';
import { parseId } from '../../lib/ids.ts';

/*
 * The files that runs made or name, in `automation_run_files`. A file goes with the run that made it only if no other run
 * names it, so the names are recorded with the payload or entry that has them.
 */

/** The UUIDs of the files that these JSON texts name. */
export function filesNamedIn(texts: readonly (string | null)[]): string[] {
  const found = new Set<string>();
  for (const text of texts) {
    // Most texts name none.
    if (!text?.includes('fil_')) continue;
    for (const [id] of text.matchAll(/fil_[0-9A-Za-z]{22}/g)) {
      const uuid = parseId('file', id);
      if (uuid !== undefined) found.add(uuid);
    }
  }
  return [...found];
}

/** SQL: part of a `with` that records that the run in `table` names these files. */
export function nameFiles(db: Db, table: 'made' | 'moved', files: readonly string[]): Statement {
  if (files.length === 0) return db``;
  return db`named as (
      insert into automation_run_files (app_id, run_id, file_id)
      select r.app_id, r.id, f.id from ${db(table)} r, unnest(${[...files]}::uuid[]) f (id)
      on conflict do nothing),`;
}
