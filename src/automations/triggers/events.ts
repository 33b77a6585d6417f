import type { Clock } from '../../clock.ts';
import type { Database, Db } from '../../db/database.ts';
import type { Logger } from '../../log.ts';
import { latestTick, nextTick } from '../definitions/cron.ts';
import { graphLimits } from '../definitions/graph.ts';
import type { FullAutomation } from '../definitions/store.ts';
import { ExpressionError, type Expressions } from '../engine/expressions.ts';
import { truthy } from '../nodes/conditional.ts';
import { treeLimitError } from '../nodes/errors.ts';
import { actsAs } from './invoker.ts';
import type { RunService } from './service.ts';
import * as runStore from './store.ts';

/** Runs started by events and by schedules. */

const eventDepthMax = 8;

type DispatchDeps = {
  db: Database;
  clock: Clock;
  log: Logger;
  expressions: Expressions;
  runs: RunService;
};

type EventRow = {
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

/** Starts the runs that an event triggers, and wakes the runs that wait for its subject. Idempotent. */
export async function dispatchEvent(deps: DispatchDeps, key: { appId: string; eventId: string }): Promise<void> {
  const { db } = deps;
  const event = await findEvent(db, key);
  if (!event) return;
  const matches: { automation: FullAutomation; error: { code: string; message: string } | null }[] = [];
  for (const automation of await listListeners(db, event)) {
    const match = await matchEvent(deps, automation, event);
    if (match !== false) matches.push({ automation, error: match });
  }
  await db.begin(async (tx) => {
    const [taken] = await tx`
      update events set dispatched_at = ${deps.clock.now()}
      where app_id = ${event.appId} and id = ${event.id} and dispatched_at is null returning 1`;
    if (!taken) return;
    const places = await countRunsLeft(tx, event, matches.length);
    for (const [index, { automation, error }] of matches.slice(0, places + refusedShownMax).entries())
      await runStore.insertRun(
        tx,
        deps.runs.newRun(automation, {
          payload: event.payload,
          input: { trigger: event.name, payload: event.payload },
          eventId: event.id,
          eventDepth: event.depth,
          treeId: event.treeId,
          error: error ?? (index < places ? null : treeLimitError),
          ...actsAs(automation, undefined),
        }),
      );
    if (event.subjectId !== null) await wakeParents(tx, event);
  });
}

/** One failed run for each event shows that its tree may have no more runs. */
const refusedShownMax = 1;

/** How many more runs the event's tree may have. */
async function countRunsLeft(tx: Db, { appId, treeId }: EventRow, wanted: number): Promise<number> {
  if (treeId === null || wanted === 0) return wanted;
  const runs = await runStore.countTreeRuns(tx, appId, treeId, wanted);
  return runs === undefined ? 0 : Math.max(0, Math.min(wanted, graphLimits.treeRunsMax - runs + wanted));
}

/** False when the event is not for this automation; the reason why the run cannot start, or null. */
async function matchEvent(deps: DispatchDeps, automation: FullAutomation, event: EventRow) {
  if (automation.filter !== null) {
    try {
      const scope = { input: event.payload, nodes: {}, participants: {}, run: {}, secrets: {} };
      if (!truthy(await deps.expressions.evaluate(event.appId, automation.filter, scope))) return false;
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error;
      return { code: 'filter_failed', message: error.message };
    }
  }
  if (event.depth < eventDepthMax) return null;
  const message = `Runs that start each other through events are limited to depth ${eventDepthMax}.`;
  return { code: 'event_depth', message };
}

async function findEvent(db: Db, key: { appId: string; eventId: string }): Promise<EventRow | undefined> {
  const [row] = await db<EventRow[]>`
    select * from events where app_id = ${key.appId} and id = ${key.eventId} and dispatched_at is null`;
  return row;
}

/** An automation without an owner receives all events of its app; others receive their owner's and the app's. */
async function listListeners(db: Db, event: EventRow): Promise<FullAutomation[]> {
  return db<FullAutomation[]>`
    select a.* from automations a
    where a.app_id = ${event.appId} and a.sandbox_id = ${event.sandboxId} and a.trigger = ${event.name}
      and a.type = 'trigger' and a.status = 'running'
      and (num_nonnulls(a.org_id, a.team_id, a.user_id) = 0
        or num_nonnulls(${event.orgId}::uuid, ${event.teamId}::uuid, ${event.userId}::uuid, ${event.agentId}::uuid) = 0
        or a.user_id = ${event.userId} or a.team_id = ${event.teamId}
        or (a.user_id is null and a.team_id is null and a.org_id = ${event.orgId}))
    order by a.created_at, a.id limit 1000`;
}

async function wakeParents(tx: Db, event: EventRow): Promise<void> {
  await tx`
    select graphile_worker.add_job('advance_run', json_strip_nulls(json_build_object('appId', c.app_id, 'runId', c.run_id,
      'traceparent', r.traceparent)))
    from automation_run_children c join automation_runs r on r.app_id = c.app_id and r.id = c.run_id
    where c.app_id = ${event.appId} and c.child_kind = ${event.subjectKind} and c.child_id = ${event.subjectId}`;
}

const dueMax = 100;

/**
 * Starts one run for every due scheduled automation; of several missed ticks only the latest counts.
 * The automation's row is locked meanwhile, so each tick is one run however many processes check. Returns how many.
 */
export async function startDueSchedules(deps: DispatchDeps): Promise<number> {
  const { db, clock, runs, log } = deps;
  return db.begin(async (tx) => {
    const now = clock.now();
    const due = await tx<FullAutomation[]>`
      select * from automations where next_tick_at <= ${now}
      order by next_tick_at limit ${dueMax} for update skip locked`;
    for (const automation of due) {
      const { schedule, timezone, nextTickAt } = automation;
      if (schedule === null || nextTickAt === null) continue;
      const tick = latestTick(schedule, timezone, nextTickAt, now) ?? nextTickAt;
      const next = nextTick(schedule, timezone, now) ?? null;
      await tx`
        update automations set next_tick_at = ${next} where app_id = ${automation.appId} and id = ${automation.id}`;
      const payload = { scheduled_at: tick.toISOString() };
      await runStore.insertRun(
        tx,
        runs.newRun(automation, {
          payload,
          input: { trigger: 'workflow.scheduled', payload },
          scheduledAt: tick,
          ...actsAs(automation, undefined),
        }),
      );
      log.debug({ automation: automation.id, tick }, 'scheduled run');
    }
    return due.length;
  });
}
