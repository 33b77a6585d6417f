import type { Database, Db } from '../../db/database.ts';
import type { Clock } from '../../lib/clock.ts';
import { graphLimits } from '../definitions/graph.ts';
import type { FullAutomation } from '../definitions/store.ts';
import { ExpressionError, type Expressions } from '../engine/expressions.ts';
import { truthy } from '../nodes/conditional.ts';
import { treeLimitError } from '../nodes/errors.ts';
import { chooseIdentity } from '../runs/invoker.ts';
import type { RunService } from '../runs/service.ts';
import { countTreeRuns, insertRun } from '../runs/store.ts';
import { type EventRow, findEvent, listListeners, markDispatched, wakeParents } from './store.ts';

const eventDepthMax = 8;

type DispatchDeps = { db: Database; clock: Clock; expressions: Expressions; runs: RunService };

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
    if (!(await markDispatched(tx, event, deps.clock.now()))) return;
    const places = await countRunsLeft(tx, event, matches.length);
    for (const [index, { automation, error }] of matches.slice(0, places + refusedShownMax).entries())
      await insertRun(
        tx,
        deps.runs.newRun(automation, {
          payload: event.payload,
          input: { trigger: event.name, payload: event.payload },
          eventId: event.id,
          eventDepth: event.depth,
          treeId: event.treeId,
          error: error ?? (index < places ? null : treeLimitError),
          ...chooseIdentity(automation, undefined),
        }),
      );
    if (event.subjectId !== null) await wakeParents(tx, event);
  });
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
async function matchEvent(deps: DispatchDeps, automation: FullAutomation, event: EventRow) {
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
