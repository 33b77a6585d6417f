import type { Db } from '../db/database.ts';
import { newUuid } from '../lib/ids.ts';
import { currentTraceparent } from '../tracing/trace.ts';

/**
 * The outbox of events. An event is written in the transaction of the change that it reports, so none is lost and
 * none is invented. Jobs of the same transaction deliver it to the automations that it triggers, to webhooks and to
 * streams.
 */
type NewEvent = {
  appId: string;
  sandboxId: string;
  name: string;
  /** JSON that the automation's graph can read as `$.payload`. */
  payload: unknown;
  /**
   * The owner of the resource. An automation with an owner receives only its owner's events. Absent: the event
   * belongs to the app.
   */
  owner?: { orgId: string | null; teamId: string | null; userId: string | null; agentId: string | null };
  /** The extraction or ingestion that ended, for which a run may be waiting, or the approval that people may answer. */
  subject?: { kind: 'extraction' | 'ingestion' | 'approval'; id: string };
  /** The number of runs in the chain of events that led to this one. */
  depth?: number;
  /** The tree of runs that caused the event. */
  treeId?: string;
};

/**
 * Emits an event. Unless `always` is set, it is written only if an automation, a webhook or a stream takes it or a
 * run waits for its subject.
 * Returns the event's uuid, or undefined if it was not written.
 */
export async function emitEvent(db: Db, event: NewEvent, always = false): Promise<string | undefined> {
  const { owner, subject } = event;
  const traceparent = currentTraceparent() ?? null;
  const rows = await db<{ id: string }[]>`
    with written as (
      insert into events (app_id, id, sandbox_id, name, payload, depth, tree_id, org_id, team_id, user_id, agent_id,
        subject_kind, subject_id, traceparent)
      select ${event.appId}::uuid, ${newUuid()}::uuid, ${event.sandboxId}::uuid, ${event.name},
        ${JSON.stringify(event.payload ?? null)}::text::json, ${event.depth ?? 0}::integer,
        ${event.treeId ?? null}::uuid, ${owner?.orgId ?? null}::uuid,
        ${owner?.teamId ?? null}::uuid, ${owner?.userId ?? null}::uuid, ${owner?.agentId ?? null}::uuid,
        ${subject?.kind ?? null}::text, ${subject?.id ?? null}::uuid, ${traceparent}::text
      where ${always}
        or exists (select 1 from automations a where a.app_id = ${event.appId} and a.sandbox_id = ${event.sandboxId}
          and a.trigger = ${event.name} and a.type = 'trigger' and a.status = 'running')
        or event_is_heard(${event.appId}::uuid, ${event.sandboxId}::uuid, ${event.name})
        or exists (select 1 from automation_run_children c where c.app_id = ${event.appId}
          and c.child_kind = ${subject?.kind ?? null} and c.child_id = ${subject?.id ?? null})
      returning app_id, id),
    job as (
      select written.id, add_job('dispatch_event',
        json_strip_nulls(json_build_object('appId', written.app_id, 'eventId', written.id,
          'traceparent', ${traceparent}::text))) from written)
    select id from job`;
  return rows[0]?.id;
}

/** The cause of the changes in a transaction: a run's tree, and the depth of the events that the run's changes emit. */
export type EventCause = { treeId: string; depth: number };

/** Sets the cause of this transaction's events, and of the extractions and ingestions that it starts. */
export async function setEventCause(tx: Db, { treeId, depth }: EventCause): Promise<void> {
  await tx`select set_config('quarry.cause_tree', ${treeId}, true), set_config('quarry.cause_depth', ${String(depth)}, true)`;
}
