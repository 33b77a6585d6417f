import type { Database, Db } from '../../db/database.ts';
import type { WaitOutside } from '../../jobs/task.ts';
import type { Clock } from '../../lib/clock.ts';
import { defined } from '../../lib/defined.ts';
import { newUuid } from '../../lib/ids.ts';
import { graphLimits } from '../definitions/graph.ts';
import type { FullAutomation } from '../definitions/store.ts';
import { ExpressionError, type Expressions } from '../engine/expressions.ts';
import { truthy } from '../nodes/conditional.ts';
import { treeLimitError } from '../nodes/errors.ts';
import { chooseIdentity } from '../runs/invoker.ts';
import { newRun } from '../runs/new-run.ts';
import { countTreeRuns, insertRun } from '../runs/store.ts';
import { listReceivers } from './receivers.ts';
import {
  type EventRow,
  findEvent,
  findUndispatched,
  lockUnmatched,
  type Match,
  markDispatched,
  queueMatch,
  wakeParents,
} from './store.ts';

const eventDepthMax = 8;

type DispatchDeps = { db: Database; clock: Clock; expressions: Expressions };

/**
 * Starts the runs that an event triggers, and wakes the runs that wait for its subject. A filter that would wait behind
 * others of its automation is left to a job of its own, so that it delays no other automation. Idempotent.
 */
export async function dispatchEvent(deps: DispatchDeps, key: { appId: string; eventId: string }): Promise<void> {
  const { db } = deps;
  const event = await findUndispatched(db, key);
  if (!event) return;
  const matches: Started[] = [];
  const left: FullAutomation[] = [];
  for (const automation of await listReceivers(db, event)) {
    if (mustWait(deps, automation)) {
      left.push(automation);
      continue;
    }
    const error = await matchEvent(deps, automation, event);
    if (error !== false) matches.push({ automation, error });
  }
  await db.begin(async (tx) => {
    if (!(await markDispatched(tx, event, deps.clock.now()))) return;
    await startRuns(deps, tx, event, matches);
    for (const { id } of left) await queueMatch(tx, { ...key, automationId: id, runId: newUuid() });
    if (event.subjectId !== null) await wakeParents(tx, event);
  });
}

/** Starts the run of one automation that was left to this job. Waits for its turn without a job slot. Idempotent. */
export async function matchAlone(deps: DispatchDeps, match: Match, waitOutside: WaitOutside): Promise<void> {
  const { db } = deps;
  const event = await findEvent(db, match);
  const [automation] = event ? await listReceivers(db, event, match.automationId) : [];
  if (!event || !automation) return;
  const evaluate = () => matchEvent(deps, automation, event);
  const error = await (mustWait(deps, automation) ? waitOutside(evaluate) : evaluate());
  if (error === false) return;
  await db.begin(async (tx) => {
    if (await lockUnmatched(tx, match)) await startRuns(deps, tx, event, [{ automation, error, id: match.runId }]);
  });
}

type Started = { automation: FullAutomation; error: RunError | null; id?: string };
type RunError = { code: string; message: string };

function mustWait({ expressions }: DispatchDeps, { appId, id, filter }: FullAutomation): boolean {
  return filter !== null && expressions.mustWait(appId, id);
}

async function startRuns(deps: DispatchDeps, tx: Db, event: EventRow, matches: Started[]): Promise<void> {
  const places = await countRunsLeft(tx, event, matches.length);
  for (const [index, { automation, error, id }] of matches.slice(0, places + refusedShownMax).entries())
    await insertRun(
      tx,
      newRun(automation, deps.clock.now(), {
        payload: event.payload,
        input: { trigger: event.name, payload: event.payload },
        eventId: event.id,
        eventDepth: event.depth,
        treeId: event.treeId,
        error: error ?? (index < places ? null : treeLimitError),
        ...chooseIdentity(automation, undefined),
        ...defined({ id }),
      }),
    );
}

/** Per event, the number of failed runs which show that its tree may have no more runs. */
const refusedShownMax = 1;

/** How many more runs the event's tree may have. */
async function countRunsLeft(tx: Db, { appId, treeId }: EventRow, wanted: number): Promise<number> {
  if (treeId === null || wanted === 0) return wanted;
  const runs = await countTreeRuns(tx, appId, treeId, wanted);
  return runs === undefined ? 0 : Math.max(0, Math.min(wanted, graphLimits.treeRunsMax - runs + wanted));
}

/** Returns false if the event is not for this automation, the error if its run cannot start, otherwise null. */
async function matchEvent(
  deps: DispatchDeps,
  automation: FullAutomation,
  event: EventRow,
): Promise<RunError | null | false> {
  if (automation.filter !== null) {
    try {
      const scope = { input: event.payload, nodes: {}, participants: {}, run: {}, secrets: {} };
      if (!truthy(await deps.expressions.evaluate(event.appId, automation.filter, scope, automation.id))) return false;
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error;
      return { code: 'filter_failed', message: error.message };
    }
  }
  if (event.depth < eventDepthMax) return null;
  const message = `Runs that start each other through events are limited to depth ${eventDepthMax}.`;
  return { code: 'event_depth', message };
}
