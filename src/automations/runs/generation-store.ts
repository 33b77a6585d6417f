import type { Db } from '../../db/database.ts';
import { isInUse } from '../../db/fences.ts';
import { changeChannel } from '../../http/streams/sse.ts';
import type { RunStatus } from '../engine/fold.ts';

/** SQL for requests of runs to the language model: the tokens used, and the text while it is written. */

export type RunKey = { appId: string; id: string };

/** A part of a text, or the beginning or end of one. */
export type OutputPart = { kind: 'started' | 'text' | 'ended'; text: string };
export type OutputRow = OutputPart & { position: number; nodeId: string; commandId: string; attempt: number };

type RunOutput = {
  status: RunStatus;
  position: number;
  /** The position of the last part that is no longer kept. */
  keptAfter: number;
  rows: OutputRow[];
};

/** Parts kept for one run. */
const partsMax = 1_000;
/** Parts per read. */
const readMax = 200;

/** Adds to the tokens of a run. Returns false, and adds nothing, if that would exceed the limit. */
export async function useRunTokens(tx: Db, run: RunKey, tokens: number, max: number): Promise<boolean> {
  const { count } = await tx`
    insert into automation_run_generations as g (app_id, run_id, tokens)
    select ${run.appId}::uuid, ${run.id}::uuid, ${tokens}::bigint where ${tokens}::bigint <= ${max}::bigint
    on conflict (app_id, run_id) do update set tokens = g.tokens + excluded.tokens, updated_at = excluded.updated_at
    where g.tokens + excluded.tokens <= ${max}::bigint`;
  return count > 0;
}

/** Replaces a reservation by the tokens used: `change` is the difference. */
export async function settleRunTokens(tx: Db, run: RunKey, change: number): Promise<void> {
  await tx`
    update automation_run_generations set tokens = tokens + ${change}
    where app_id = ${run.appId} and run_id = ${run.id}`;
}

/**
 * Appends parts and notifies the streams. Locks the run's row until the commit, so positions are committed in order.
 */
export async function appendOutput(
  db: Db,
  run: RunKey,
  of: { nodeId: string; commandId: string; attempt: number },
  parts: readonly OutputPart[],
): Promise<void> {
  await db`
    with moved as (
      insert into automation_run_generations as g (app_id, run_id, position)
      select r.app_id, r.id, ${parts.length} from automation_runs r where r.app_id = ${run.appId} and r.id = ${run.id}
      on conflict (app_id, run_id) do update set position = g.position + excluded.position,
        updated_at = excluded.updated_at,
        kept_after = greatest(g.kept_after, g.position + excluded.position - ${partsMax})
      returning g.app_id, g.run_id, g.position, g.kept_after),
    added as (
      insert into automation_run_output (app_id, run_id, position, node_id, command_id, attempt, kind, text)
      select m.app_id, m.run_id, m.position - ${parts.length} + p.number, ${of.nodeId}, ${of.commandId}, ${of.attempt},
        p.kind, p.text
      from moved m, unnest(${parts.map(({ kind }) => kind)}::text[], ${parts.map(({ text }) => text)}::text[])
        with ordinality p (kind, text, number)),
    dropped as (
      delete from automation_run_output o using moved m
      where o.app_id = m.app_id and o.run_id = m.run_id and o.position <= m.kept_after)
    select pg_notify(${changeChannel}, 'run_output/' || m.app_id || '/' || m.run_id) from moved m`;
}

/** The parts after a position, at most one read; undefined if the run was deleted. */
export async function readOutput(db: Db, run: RunKey, after: number): Promise<RunOutput | undefined> {
  const [found] = await db<Omit<RunOutput, 'rows'>[]>`
    select r.status, coalesce(g.position, 0) as position, coalesce(g.kept_after, 0) as kept_after
    from automation_runs r
    left join automation_run_generations g on g.app_id = r.app_id and g.run_id = r.id
    where r.app_id = ${run.appId} and r.id = ${run.id}`;
  if (found === undefined) return undefined;
  const rows = await db<OutputRow[]>`
    select position, node_id, command_id, attempt, kind, text from automation_run_output
    where app_id = ${run.appId} and run_id = ${run.id} and position > ${after} and position <= ${found.position}
    order by position limit ${readMax}`;
  return { ...found, rows: [...rows] };
}

/** Runs whose text one statement deletes. */
const runsSwept = 50;

/** Deletes the text of runs to which nothing was added since. The journal has the outputs of their nodes. */
export async function deleteOldOutput(db: Db, before: Date): Promise<void> {
  for (let found = runsSwept; found === runsSwept; ) {
    const { count } = await db`
      with next as materialized (
        select g.app_id, g.run_id from automation_run_generations g
        where g.updated_at < ${before} and g.kept_after < g.position and ${isInUse(db, 'g.app_id')}
        limit ${runsSwept} for update skip locked),
      old as (
        update automation_run_generations g set kept_after = position from next
        where g.app_id = next.app_id and g.run_id = next.run_id returning g.app_id, g.run_id, g.position),
      gone as (
        delete from automation_run_output o using old
        where o.app_id = old.app_id and o.run_id = old.run_id and o.position <= old.position)
      select from next`;
    found = count;
  }
}
