import type { Db, Transaction } from '../../db/database.ts';
import type { Scope } from '../../tenancy/caller.ts';
import { type Owned, sandboxIsThere } from '../../tenancy/visible.ts';
import type { StoredError } from '../store.ts';
import type { Wanted } from './prompts.ts';
import type { JsonObject } from './schema-shape.ts';
import type { Span } from './spans.ts';

export type ExtractionKey = { appId: string; id: string };

/** A running extraction with its schema. */
export type StructureRow = Scope &
  Owned &
  ExtractionKey & {
    destinationKind: 'config' | 'storage';
    causeTreeId: string | null;
    causeDepth: number;
    schema: JsonObject;
    instructions: string | null;
    model: string | null;
  };

/** An output that waits for its data, and its Markdown. Without a blob if the Markdown was deleted. */
export type PendingRow = { outputId: string; filename: string | null; blobKey: string | null; size: number | null };

export type DataRow = {
  outputId: string;
  state: 'pending' | 'done' | 'failed';
  /** Whether `data` and `spans` are in this row, and not only in the file. */
  hasValues: boolean;
  data: unknown;
  spans: Span[] | null;
  error: StoredError | null;
  fileId: string | null;
};

export async function insertSchema(
  db: Db,
  { appId, id }: ExtractionKey,
  { schema, instructions, model }: Wanted,
): Promise<void> {
  await db`
    insert into extraction_schemas (app_id, extraction_id, schema, instructions, model)
    values (${appId}, ${id}, ${JSON.stringify(schema)}::text::json, ${instructions}, ${model})`;
}

export async function findSchema(db: Db, { appId, id }: ExtractionKey): Promise<Wanted | undefined> {
  return db<Wanted[]>`
    select schema, instructions, model from extraction_schemas where app_id = ${appId} and extraction_id = ${id}`.first();
}

/** Marks outputs as waiting for their data. */
export async function insertPending(db: Db, { appId, id }: ExtractionKey, outputIds: readonly string[]): Promise<void> {
  if (outputIds.length === 0) return;
  await db`
    with added as (
      insert into extraction_data (app_id, output_id, extraction_id, state)
      select ${appId}, output, ${id}, 'pending' from unnest(${[...outputIds]}::uuid[]) output)
    update extractions set data_pending = data_pending + ${outputIds.length}
    where app_id = ${appId} and id = ${id}`;
}

export async function findRunningStructure(db: Db, { appId, id }: ExtractionKey): Promise<StructureRow | undefined> {
  return db<StructureRow[]>`
    select e.app_id, e.id, e.sandbox_id, e.org_id, e.team_id, e.user_id, e.agent_id, e.destination_kind,
      e.cause_tree_id, e.cause_depth, s.schema, s.instructions, s.model
    from extractions e join extraction_schemas s on s.app_id = e.app_id and s.extraction_id = e.id
    where e.app_id = ${appId} and e.id = ${id} and e.state = 'running'
      and ${sandboxIsThere(db, 'e.app_id', 'e.sandbox_id')}`.first();
}

export async function isRunning(db: Db, { appId, id }: ExtractionKey): Promise<boolean> {
  return db`
    select 1 from extractions e where e.app_id = ${appId} and e.id = ${id} and e.state = 'running'
      and ${sandboxIsThere(db, 'e.app_id', 'e.sandbox_id')}`.any();
}

/** The next outputs that wait for their data, in order. */
export function listPending(db: Db, { appId, id }: ExtractionKey, count: number): Promise<PendingRow[]> {
  return db<PendingRow[]>`
    select d.output_id, f.filename, f.blob_key, f.size
    from extraction_data d join extraction_outputs o on o.app_id = d.app_id and o.id = d.output_id
    left join files f on f.app_id = o.app_id and f.id = o.file_id
    where d.app_id = ${appId} and d.extraction_id = ${id} and d.state = 'pending'
    order by o.ordinal limit ${count}`;
}

/**
 * The data of the outputs. Only the first output has values and spans here, unless it is a page of a site: all are in
 * files.
 */
export function listData(db: Db, { appId, id }: ExtractionKey): Promise<DataRow[]> {
  return db<DataRow[]>`
    select d.output_id, d.state, shown as has_values, case when shown then d.data end as data,
      case when shown then d.spans end as spans, d.error, d.file_id
    from extraction_data d join extraction_outputs o on o.app_id = d.app_id and o.id = d.output_id
    join extractions e on e.app_id = d.app_id and e.id = d.extraction_id
    cross join lateral (select e.kind <> 'site' and o.ordinal = 0 and d.state = 'done' as shown) s
    where d.app_id = ${appId} and d.extraction_id = ${id}`;
}

/** Sets the number of pieces of an output's text, even if the text is divided again. */
export async function setPieces(db: Db, { appId, id }: ExtractionKey, outputId: string, pieces: number): Promise<void> {
  await db.begin(async (tx) => {
    await tx`select 1 from extractions where app_id = ${appId} and id = ${id} for update`;
    await tx`
      with before as (
        select pieces from extraction_data where app_id = ${appId} and output_id = ${outputId}),
      changed as (
        update extraction_data set pieces = ${pieces} where app_id = ${appId} and output_id = ${outputId})
      update extractions set data_pieces = data_pieces + ${pieces} - coalesce((select pieces from before), 0),
        version = version + 1, updated_at = now()
      where app_id = ${appId} and id = ${id}`;
  });
}

export async function findPart(
  db: Db,
  appId: string,
  outputId: string,
  key: string,
): Promise<{ result: unknown } | undefined> {
  const [row] = await db<{ result: string }[]>`
    select result::text from extraction_parts where app_id = ${appId} and output_id = ${outputId} and key = ${key}`;
  return row && { result: JSON.parse(row.result) as unknown };
}

/** Stores what the model returned, once. */
export async function insertPart(
  db: Db,
  { appId, id }: ExtractionKey,
  part: { outputId: string; key: string; result: unknown; isPiece: boolean },
): Promise<void> {
  await db`
    with added as (
      insert into extraction_parts (app_id, output_id, key, result)
      select ${appId}::uuid, ${part.outputId}::uuid, ${part.key}, ${JSON.stringify(part.result)}::text::json
      where exists (select 1 from extraction_data where app_id = ${appId} and output_id = ${part.outputId})
      on conflict do nothing returning 1)
    update extractions set data_pieces_done = data_pieces_done + 1, version = version + 1, updated_at = now()
    where app_id = ${appId} and id = ${id} and ${part.isPiece} and exists (select 1 from added)`;
}

/**
 * Adds to the tokens of a running extraction. Returns false if that would exceed the limit or the extraction has
 * ended.
 */
export async function useTokens(tx: Db, { appId, id }: ExtractionKey, tokens: number, max: number): Promise<boolean> {
  const { count } = await tx`
    update extractions set tokens = tokens + ${tokens}, requests = requests + 1
    where app_id = ${appId} and id = ${id} and state = 'running' and tokens + ${tokens} <= ${max}`;
  return count > 0;
}

/** Corrects a reservation to the tokens that were used. */
export async function settleTokens(tx: Db, { appId, id }: ExtractionKey, change: number): Promise<void> {
  await tx`update extractions set tokens = tokens + ${change} where app_id = ${appId} and id = ${id}`;
}

type DataEnd =
  | { state: 'done'; data: unknown; spans: readonly Span[]; fileId: string }
  | { state: 'failed'; error: StoredError };

/**
 * Ends an output that waits for its data. Returns false if it no longer waits. The caller has locked the extraction.
 */
export async function endData(
  tx: Transaction,
  { appId, id }: ExtractionKey,
  outputId: string,
  end: DataEnd,
): Promise<boolean> {
  const { data, spans, error, fileId } = { data: undefined, spans: undefined, error: null, fileId: null, ...end };
  const { count } = await tx`
    update extraction_data set state = ${end.state}, file_id = ${fileId},
      data = ${data === undefined ? null : JSON.stringify(data)}::text::json,
      spans = ${spans === undefined ? null : JSON.stringify(spans)}::text::json,
      error = ${error === null ? null : JSON.stringify(error)}::text::jsonb
    where app_id = ${appId} and output_id = ${outputId} and state = 'pending'`;
  if (count === 0) return false;
  await tx`delete from extraction_parts where app_id = ${appId} and output_id = ${outputId}`;
  await tx`
    update extractions set data_pending = data_pending - 1, data_done = data_done + ${end.state === 'done' ? 1 : 0},
      data_failed = data_failed + ${end.state === 'failed' ? 1 : 0}, version = version + 1, updated_at = now()
    where app_id = ${appId} and id = ${id}`;
  return true;
}

/** The number of outputs with data, and the first error of those without. */
export async function findOutcome(
  tx: Db,
  { appId, id }: ExtractionKey,
): Promise<{ done: number; total: number; error: StoredError | null }> {
  return tx<[{ done: number; total: number; error: StoredError | null }]>`
    select count(*) filter (where d.state = 'done')::integer as done, count(*)::integer as total,
      (array_agg(d.error order by o.ordinal) filter (where d.state = 'failed'))[1] as error
    from extraction_data d join extraction_outputs o on o.app_id = d.app_id and o.id = d.output_id
    where d.app_id = ${appId} and d.extraction_id = ${id}`.first();
}
