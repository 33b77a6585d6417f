import type { Db } from '../../db/database.ts';
import { isInUse } from '../../db/fences.ts';
import { sandboxIsThere } from '../../tenancy/visible.ts';
import type { FullAutomation } from '../definitions/store.ts';

/** SQL for the triggers of runs: events and due schedules. */

export type EventRow = {
  appId: string;
  id: string;
  sandboxId: string;
  name: string;
  payload: unknown;
  depth: number;
  treeId: string | null;
  orgId: string | null;
  teamId: string | null;
  userId: string | null;
  agentId: string | null;
  subjectKind: string | null;
  subjectId: string | null;
};

type EventKey = { appId: string; eventId: string };

export async function findUndispatched(db: Db, key: EventKey): Promise<EventRow | undefined> {
  return db<EventRow[]>`
    select * from events where app_id = ${key.appId} and id = ${key.eventId} and dispatched_at is null`.first();
}

export async function findEvent(db: Db, key: EventKey): Promise<EventRow | undefined> {
  return db<EventRow[]>`select * from events where app_id = ${key.appId} and id = ${key.eventId}`.first();
}

/** Marks the event as dispatched. Returns false if another process has already done so. */
export async function markDispatched(tx: Db, event: EventRow, now: Date): Promise<boolean> {
  return tx`
    update events set dispatched_at = ${now}
    where app_id = ${event.appId} and id = ${event.id} and dispatched_at is null returning 1`.any();
}

/**
 * An automation without an owner receives all events of its app; others receive their owner's and the app's.
 * @param only the id of the only automation to return
 */
export async function listListeners(db: Db, event: EventRow, only?: string): Promise<FullAutomation[]> {
  return db<FullAutomation[]>`
    select a.* from automations a
    where a.app_id = ${event.appId} and a.sandbox_id = ${event.sandboxId} and a.trigger = ${event.name}
      and a.type = 'trigger' and a.status = 'running' and (${only ?? null}::uuid is null or a.id = ${only ?? null})
      and (num_nonnulls(a.org_id, a.team_id, a.user_id) = 0
        or num_nonnulls(${event.orgId}::uuid, ${event.teamId}::uuid, ${event.userId}::uuid, ${event.agentId}::uuid) = 0
        or a.user_id = ${event.userId} or a.team_id = ${event.teamId}
        or (a.user_id is null and a.team_id is null and a.org_id = ${event.orgId}))
    order by a.created_at, a.id limit 1000`;
}

export type Match = { appId: string; eventId: string; automationId: string; runId: string };

/** Queues a job that matches an event with one automation alone. */
export async function queueMatch(tx: Db, { appId, eventId, automationId, runId }: Match): Promise<void> {
  await tx`
    select add_job('match_event', json_build_object('appId', ${appId}::uuid, 'eventId', ${eventId}::uuid,
      'automationId', ${automationId}::uuid, 'runId', ${runId}::uuid))`;
}

/** Locks the event until the transaction ends. Returns false if it is gone or the run exists. */
export async function lockUnmatched(tx: Db, { appId, eventId, runId }: Match): Promise<boolean> {
  const locked = await tx`select 1 from events where app_id = ${appId} and id = ${eventId} for update`;
  if (locked.length === 0) return false;
  const runs = await tx`select 1 from automation_runs where app_id = ${appId} and id = ${runId}`;
  return runs.length === 0;
}

/** Wakes the runs that wait for the event's subject. */
export async function wakeParents(tx: Db, event: EventRow): Promise<void> {
  await tx`
    select add_job('advance_run', json_strip_nulls(json_build_object('appId', c.app_id, 'runId', c.run_id,
      'traceparent', r.traceparent)))
    from automation_run_children c join automation_runs r on r.app_id = c.app_id and r.id = c.run_id
    where c.app_id = ${event.appId} and c.child_kind = ${event.subjectKind} and c.child_id = ${event.subjectId}`;
}

/** Locks and returns automations with a due schedule. Other processes skip them until the transaction ends. */
export async function lockDueSchedules(tx: Db, now: Date, countMax: number): Promise<FullAutomation[]> {
  return tx<FullAutomation[]>`
    select * from automations a where next_tick_at <= ${now} and ${isInUse(tx, 'a.app_id')}
      and ${sandboxIsThere(tx, 'a.app_id', 'a.sandbox_id')}
    order by next_tick_at limit ${countMax} for update skip locked`;
}

export async function setNextTick(tx: Db, automation: { appId: string; id: string }, at: Date | null): Promise<void> {
  await tx`update automations set next_tick_at = ${at} where app_id = ${automation.appId} and id = ${automation.id}`;
}
