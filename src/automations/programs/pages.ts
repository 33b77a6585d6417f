import type { Db } from '../../db/database.ts';
import type { Secrets } from '../../tenancy/secrets.ts';
import type { RedactedPlace } from '../engine/secret-values.ts';
import type { EntryRow } from '../runs/store.ts';
import { restorePayload } from './fragments.ts';
import { programLimits } from './schema.ts';
import { listFragments } from './store.ts';

/** Parts of a journal as the holder of a claim reads them. */

export type PageRow = EntryRow;

type RunKey = { appId: string; id: string };

/** The entries from after `after` to `last` that fit into one page. */
export async function listPage(db: Db, secrets: Secrets, run: RunKey, after: number, last: number): Promise<PageRow[]> {
  const { pageEntriesMax, pageBytesMax } = programLimits;
  const rows = await db<PageRow[]>`
    select id, sequence, type, node_id, command_id, timer_id, record, created_at
    from (select page.*, sum(octet_length(record::text)) over (order by sequence) as bytes, octet_length(record::text) as own
      from (select * from automation_run_entries
        where app_id = ${run.appId} and run_id = ${run.id} and sequence > ${after} and sequence <= ${last}
        order by sequence limit ${pageEntriesMax}) page) sized
    where bytes <= ${pageBytesMax} or bytes = own
    order by sequence`;
  return restore(db, secrets, run, rows);
}

/** The entries after `after` that the server has added, in this order: those of workers name the version of their code. */
export async function listServerEntries(db: Db, secrets: Secrets, run: RunKey, after: number): Promise<PageRow[]> {
  const rows = await db<PageRow[]>`
    select id, sequence, type, node_id, command_id, timer_id, record, created_at
    from automation_run_entries
    where app_id = ${run.appId} and run_id = ${run.id} and sequence > ${after}
      and record->'environment'->'code_version' is null
    order by sequence limit ${programLimits.pageEntriesMax}`;
  return restore(db, secrets, run, rows);
}

async function restore(db: Db, secrets: Secrets, run: RunKey, rows: PageRow[]): Promise<PageRow[]> {
  const last = rows.at(-1);
  if (last === undefined || !rows.some(({ record }) => record.metadata?.redacted !== undefined)) return rows;
  const stored = await listFragments(db, run, (rows[0]?.sequence ?? 1) - 1, last.sequence);
  const fragments = new Map(stored.map(({ sequence, secrets: wrapped }) => [sequence, wrapped]));
  return rows.map((row) => {
    const { redacted, ...metadata } = row.record.metadata ?? {};
    const wrapped = fragments.get(row.sequence);
    if (redacted === undefined || wrapped === undefined) return row;
    const payload = restorePayload(secrets, row.record.payload, redacted as RedactedPlace[], wrapped);
    return { ...row, record: { ...row.record, payload, metadata } };
  });
}
