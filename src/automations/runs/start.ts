import type { Static } from 'typebox';
import type { Database, Db } from '../../db/database.ts';
import type { Clock } from '../../lib/clock.ts';
import { AppError, notFound } from '../../lib/errors.ts';
import { formatId } from '../../lib/ids.ts';
import { type Caller, canSeeWholeApp } from '../../tenancy/caller.ts';
import { fieldId, findAgent, unknownReference } from '../../tenancy/references.ts';
import { getDefinition } from '../definitions/find.ts';
import { graphLimits } from '../definitions/graph.ts';
import { type AutomationRow, canSeeAutomation } from '../definitions/store.ts';
import type { Expressions } from '../engine/expressions.ts';
import { treeLimitError } from '../nodes/errors.ts';
import { type Child, NodeFailure } from '../nodes/kind.ts';
import type { invokeSchema } from '../schema.ts';
import { requireBacklogRoom } from './backlog.ts';
import { claimInvocation, findInvocation } from './invocation-store.ts';
import { getInvokedRun, readInvocation } from './invocations.ts';
import { chooseIdentity, invokedBy, requireInvokeAuth, requireRunning } from './invoker.ts';
import { newRun } from './new-run.ts';
import { checkPayload } from './payload.ts';
import * as runStore from './store.ts';

type StartDeps = { db: Database; clock: Clock; expressions: Expressions };

/** How callers start runs, and how runs start others on behalf of the caller that they act as. */
export type RunStarts = {
  /** Starts a run, or returns the run that this idempotency key has already started. */
  invoke(caller: Caller, name: string, input: NonNullable<Static<typeof invokeSchema>>): Promise<runStore.RunRow>;
  /** An automation as a tool of a language model: what it does and what it takes. */
  describeInvocable(caller: Caller, name: string): Promise<{ name: string; description: string; parameters: unknown }>;
  /** Prepares a run of another automation for a `run_automation` node; `commit` starts it. */
  prepareChild(
    caller: Caller,
    parent: runStore.RunRow,
    input: { automation: string; payload: unknown },
    childKey: string,
  ): Promise<{ commit(tx: Db): Promise<Child> }>;
};

export function createRunStarts({ db, clock, expressions }: StartDeps): RunStarts {
  function invokedRun(
    caller: Caller,
    automation: AutomationRow,
    more: Partial<runStore.NewRun> & { payload: unknown },
  ): runStore.NewRun {
    const invoker = invokedBy(caller);
    return newRun(automation, clock.now(), { ...more, ...invoker, ...chooseIdentity(automation, invoker) });
  }

  return {
    async invoke(caller, name, input) {
      const automation = await getInvocable(db, caller, name);
      requireInvokeAuth(caller, automation);
      const invocation = readInvocation(caller, automation, input);
      const earlier = invocation && (await findInvocation(db, invocation));
      if (earlier) return getInvokedRun(db, invocation, earlier);
      const payload = input.payload ?? {};
      await checkInvocation(expressions, automation, payload);
      const participants = input.participants ? await readParticipants(db, caller, input.participants) : null;
      const run = invokedRun(caller, automation, { payload, participants });
      if (!invocation && automation.maxPendingRuns === null) return runStore.insertRun(db, run);
      return db.begin(async (tx) => {
        const held = invocation && (await claimInvocation(tx, invocation, run.id));
        if (held) return getInvokedRun(tx, invocation, held);
        await requireBacklogRoom(tx, automation);
        return runStore.insertRun(tx, run);
      });
    },

    async describeInvocable(caller, name) {
      const { name: title, description, inputSchema } = await getInvocable(db, caller, name);
      const parameters = inputSchema ?? { type: 'object', properties: {} };
      return { name: title, description: description ?? title, parameters };
    },

    async prepareChild(caller, parent, input, childKey) {
      const automation = await getInvocable(db, caller, input.automation);
      requireInvokeAuth(caller, automation);
      const payload = input.payload ?? {};
      await checkInvocation(expressions, automation, payload);
      if (parent.depth + 1 > graphLimits.runDepthMax)
        throw new AppError('conflict', `Runs may start other runs at most ${graphLimits.runDepthMax} levels deep.`);
      const treeId = runStore.treeOf(parent);
      const run = invokedRun(caller, automation, {
        payload,
        participants: parent.participants,
        parentRunId: parent.id,
        parentCommandId: childKey,
        depth: parent.depth + 1,
        eventDepth: parent.eventDepth,
        treeId,
      });
      const commit = async (tx: Db): Promise<Child> => {
        const runs = await runStore.countTreeRuns(tx, parent.appId, treeId, 1);
        if (runs === undefined || runs > graphLimits.treeRunsMax)
          throw new NodeFailure(treeLimitError.code, treeLimitError.message);
        return { kind: 'run', id: (await runStore.insertRun(tx, run)).id };
      };
      return { commit };
    },
  };
}

/** The automation to invoke, if its owner allows the caller. An automation without an owner is open to all. */
async function getInvocable(db: Database, caller: Caller, name: string): Promise<AutomationRow> {
  const automation = await getDefinition(db, caller, name);
  if (!canSeeWholeApp(caller) && !(await canSeeAutomation(db, caller, automation.id))) throw notFound();
  return automation;
}

async function checkInvocation(expressions: Expressions, automation: AutomationRow, payload: unknown): Promise<void> {
  if (automation.type !== 'invoked')
    throw new AppError('invalid_parameters', `An automation of type ${automation.type} cannot be invoked.`);
  requireRunning(automation);
  await checkPayload(expressions, automation, payload);
}

/** The agents that an invocation names, whichever alias of the prefix it uses. */
async function readParticipants(
  db: Db,
  caller: Caller,
  named: Record<string, string>,
): Promise<Record<string, string>> {
  const participants: [name: string, agent: string][] = [];
  for (const [name, text] of Object.entries(named)) {
    const field = `participants.${name}`;
    const agent = await findAgent(db, caller, fieldId('agent', field, text));
    if (!agent) throw unknownReference(field);
    participants.push([name, formatId('agent', agent.id)]);
  }
  return Object.fromEntries(participants);
}
