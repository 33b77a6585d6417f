import type { Db } from '../db/database.ts';
import type { Scope } from '../tenancy/caller.ts';

/** SQL for the journals that a verification reads. */

export type RunLinks = {
  appId: string;
  id: string;
  status: string;
  sequence: number;
  link: Buffer | null;
  linked: number;
  /** Whether the run is older than the upgrade to ledgers and is not linked yet. */
  isInherited: boolean;
  /** Whether the run shows the status, result and error of its last entry. */
  showsEnd: boolean;
  /** `link` in hex. */
  anchors: { sequence: number; link: string }[];
};

export async function listRunLinks(
  db: Db,
  { appId, sandboxId }: Scope,
  after: string,
  countMax: number,
): Promise<RunLinks[]> {
  return db<RunLinks[]>`
    select r.app_id, r.id, r.status, r.sequence, r.link, r.linked,
      exists (select 1 from ledger_inheritance i where (r.app_id, r.id) > (i.app_id, i.run_id)) as is_inherited,
      exists (select 1 from automation_run_entries e
        where e.app_id = ${appId} and e.run_id = r.id and e.sequence = r.sequence and e.type = 'run_' || r.status
          and coalesce(r.result::text, 'null') =
            case r.status when 'completed' then coalesce((e.record -> 'payload')::text, 'null') else 'null' end
          and coalesce(r.error::text, 'null') =
            case r.status when 'failed' then coalesce((e.record -> 'payload')::text, 'null') else 'null' end) as shows_end,
      coalesce((select json_agg(json_build_object('sequence', a.sequence, 'link', encode(a.link, 'hex')))
        from run_anchors a where a.app_id = ${appId} and a.run_id = r.id), '[]') as anchors
    from automation_runs r where r.app_id = ${appId} and r.sandbox_id = ${sandboxId} and r.id > ${after}
    order by r.id limit ${countMax}`;
}

/** Reads entries with their canonical fields. */
export async function listEntryFields(
  db: Db,
  run: { appId: string; id: string },
  after: number,
  countMax: number,
): Promise<{ sequence: number; fields: (string | null)[]; link: Buffer | null }[]> {
  return db`
    select sequence, link, array['quarry:run-entry:1', app_id::text, run_id::text, sequence::text, id::text, type, node_id,
      command_id, timer_id, record::text, ledger_time(created_at)] as fields
    from automation_run_entries where app_id = ${run.appId} and run_id = ${run.id} and sequence > ${after}
    order by sequence limit ${countMax}`;
}
