import type { Static } from 'typebox';
import type { Database, Db } from '../../db/database.ts';
import { emitEvent } from '../../events/emit.ts';
import type { PageRequest } from '../../http/route/pages.ts';
import { readTime } from '../../http/route/times.ts';
import type { Clock } from '../../lib/clock.ts';
import { AppError, found, invalidField, notFound } from '../../lib/errors.ts';
import { formatId, newUuid, parseId } from '../../lib/ids.ts';
import { limits } from '../../lib/limits.ts';
import { type Caller, canSeeWholeApp, nameCaller, type Scope } from '../../tenancy/caller.ts';
import { fieldId, findAgent, pathId, unknownReference } from '../../tenancy/references.ts';
import type { Secrets } from '../../tenancy/secrets.ts';
import { type Graph, graphLimits } from '../definitions/graph.ts';
import type { AutomationService } from '../definitions/service.ts';
import type { AutomationRow } from '../definitions/store.ts';
import { canSeeAutomation } from '../definitions/store.ts';
import { ExpressionError, type Expressions } from '../engine/expressions.ts';
import type { DraftEntry } from '../engine/journal.ts';
import { treeLimitError } from '../nodes/errors.ts';
import { type Child, NodeFailure } from '../nodes/kind.ts';
import { createRetries } from '../rewind/service.ts';
import type { invokeSchema, listVisibleRunsQuery } from '../schema.ts';
import { requireBacklogRoom } from './backlog.ts';
import { readCursor, writeCursor } from './cursor.ts';
import { claimInvocation } from './invocation-store.ts';
import { digestInvocation, findInvocation, getInvokedRun } from './invocations.ts';
import { chooseIdentity, hidesPayloads, invokedBy, requireInvokeAuth, requireRunning } from './invoker.ts';
import { findPendingFor, type PendingFor } from './pending.ts';
import { createProgramWork } from './program-work.ts';
import { appendSignal } from './signals.ts';
import * as runStore from './store.ts';
import { type EntryRow, isTerminal, type NewRun, type RunRow } from './store.ts';
import { turnKeysOf } from './turn-keys.ts';
import * as turns from './turn-store.ts';
import { findVisibleRun, listRuns, listVisibleRuns, type RunFilter, type RunSummaryRow } from './visible-store.ts';
import { wrongState } from './wrong-state.ts';

type RunDeps = {
  db: Database;
  clock: Clock;
  secrets: Secrets;
  expressions: Expressions;
  automations: AutomationService;
  loadGraph(run: RunRow): Promise<Graph>;
  /** Stores a signal for a run that a program executes. */
  signalProgram(run: RunRow, signal: { name: string; payload: unknown }): Promise<RunRow>;
};

type JournalPage = {
  run: RunRow;
  entries: EntryRow[];
  hasMore: boolean;
  cursor: string | undefined;
  /** The payloads of entries are withheld from this caller. */
  withheld: boolean;
};

type RunPage = { rows: RunSummaryRow[]; hasMore: boolean; cursor: string | undefined };

const payloadBytesMax = graphLimits.outputBytesMax;

export type RunService = ReturnType<typeof createRunService>;

/** Runs: how they start, how they are read, and how a caller may change them. */
export function createRunService({ db, clock, secrets, expressions, automations, loadGraph, signalProgram }: RunDeps) {
  async function get(caller: Caller, id: string): Promise<RunRow> {
    return found(await findVisibleRun(db, caller, pathId('automationRun', id)));
  }

  /** The automation to invoke, if its owner allows the caller. An automation without an owner is open to all. */
  async function getInvocable(caller: Caller, name: string): Promise<AutomationRow> {
    const automation = await automations.getDefinition(caller, name);
    if (!canSeeWholeApp(caller) && !(await canSeeAutomation(db, caller, automation.id))) throw notFound();
    return automation;
  }

  async function checkInvocation(automation: AutomationRow, input: { payload?: unknown }): Promise<void> {
    if (automation.type !== 'invoked')
      throw new AppError('invalid_parameters', `An automation of type ${automation.type} cannot be invoked.`);
    requireRunning(automation);
    const payload = input.payload ?? {};
    if (Buffer.byteLength(JSON.stringify(payload)) > payloadBytesMax)
      throw invalidField('payload', `must be at most ${payloadBytesMax} bytes`);
    await checkPayload(automation, payload);
  }

  /** The agents that an invocation names, whichever alias of the prefix it uses. */
  async function readParticipants(caller: Caller, named: Record<string, string>): Promise<Record<string, string>> {
    const participants: [name: string, agent: string][] = [];
    for (const [name, text] of Object.entries(named)) {
      const field = `participants.${name}`;
      const agent = await findAgent(db, caller, fieldId('agent', field, text));
      if (!agent) throw unknownReference(field);
      participants.push([name, formatId('agent', agent.id)]);
    }
    return Object.fromEntries(participants);
  }

  async function checkPayload(automation: AutomationRow, payload: unknown): Promise<void> {
    if (automation.inputSchema === null) return;
    let problems: { path: string; message: string }[];
    try {
      problems = await expressions.checkSchema(automation.appId, automation.inputSchema, payload, automation.id);
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error;
      throw invalidField('payload', `cannot be checked: ${error.message}`);
    }
    if (problems.length === 0) return;
    const fields = problems.map(({ path, message }) => ({
      field: `payload${path.replaceAll('/', '.')}`,
      message,
    }));
    throw new AppError('invalid_parameters', `${fields[0]?.field}: ${fields[0]?.message}`, { fields });
  }

  function newRun(automation: AutomationRow, more: Partial<NewRun> & { payload: unknown }): NewRun {
    return {
      appId: automation.appId,
      sandboxId: automation.sandboxId,
      id: newUuid(),
      automationId: automation.id,
      graphVersion: automation.graphVersion,
      program: automation.program,
      type: automation.type,
      orgId: automation.orgId,
      teamId: automation.teamId,
      userId: automation.userId,
      timeoutSeconds: automation.timeoutSeconds,
      ...turnKeysOf(automation, more.payload),
      createdAt: clock.now(),
      ...more,
    };
  }

  /** Cancels an active run and the runs that it started. The limit of each run's automation is locked first. */
  async function cancelTree(tx: Db, appId: string, id: string): Promise<RunRow | undefined> {
    const found = await runStore.findRun(tx, appId, id);
    if (!found) return undefined;
    await turns.lockLimit(tx, appId, found.automationId);
    const row = await runStore.lockRun(tx, appId, id);
    if (!row || isTerminal(row)) return row;
    const now = clock.now();
    const timestamp = now.toISOString();
    const entries: DraftEntry[] =
      row.graphVersion === null
        ? []
        : [
            { type: 'run_cancel_requested', record: { timestamp } },
            { type: 'run_cancelled', record: { timestamp } },
          ];
    await runStore.appendEntries(tx, {
      run: row,
      automation: formatId('automation', row.automationId),
      expected: row.sequence,
      entries,
      status: 'cancelled',
      waiting: false,
      wakeAt: null,
      wakeTimer: null,
      now,
    });
    await turns.queueNextPending(tx, row, now);
    for (const child of await runStore.listChildRuns(tx, row)) await cancelTree(tx, appId, child);
    return runStore.findRun(tx, appId, id);
  }

  return {
    /**
     * Why a pending run has not started; undefined if no limit delays it. It counts the runs of others, so only those who
     * see the whole app learn it.
     */
    async pendingFor(caller: Caller, run: RunRow): Promise<PendingFor | undefined> {
      if (run.status !== 'pending' || run.graphVersion === null || !canSeeWholeApp(caller)) return undefined;
      return findPendingFor(db, run, clock.now());
    },

    get,
    newRun,
    checkPayload,
    cancelTree,

    /** Checks that the caller may see the run and that it can be streamed. */
    async getStreamable(caller: Caller, id: string): Promise<RunRow> {
      const row = await get(caller, id);
      if (row.type !== 'invoked') throw new AppError('not_found', hasNoStream);
      return row;
    },

    /** Returns a run if the caller may read its texts while they are generated. */
    async getOutput(caller: Caller, id: string): Promise<RunRow> {
      const row = await get(caller, id);
      if (hidesPayloads(caller, row)) throw notFound();
      return row;
    },

    async list(caller: Caller, automation: string, status: string | undefined, page: PageRequest) {
      const { id } = await automations.getDefinition(caller, automation);
      return listRuns(db, caller, id, status, page);
    },

    /** Lists the runs of all visible automations. A filter that names nothing visible matches no run. */
    async listVisible(caller: Caller, query: Static<typeof listVisibleRunsQuery>): Promise<RunPage> {
      const count = Math.min(query.limit ?? limits.pageSizeDefault, limits.pageSizeMax);
      const before = query.after_cursor === undefined ? undefined : parseId('automationRun', query.after_cursor);
      if (query.after_cursor !== undefined && before === undefined)
        throw new AppError('invalid_cursor', 'The cursor does not belong to this list.');
      const filter: RunFilter = {
        status: query.status,
        retriedFrom:
          query.retried_from === undefined ? undefined : fieldId('automationRun', 'retried_from', query.retried_from),
        since: readTime('since', query.since),
        until: readTime('until', query.until),
        search: query.search === undefined ? undefined : readSearch(query.search),
      };
      if (query.automation !== undefined) {
        filter.automationId = await automations.findDefinitionId(caller, query.automation);
        if (filter.automationId === undefined) return { rows: [], hasMore: false, cursor: undefined };
      }
      const found = await listVisibleRuns(db, caller, filter, before, count + 1);
      const rows = found.slice(0, count);
      const last = rows.at(-1);
      return {
        rows,
        hasMore: found.length > count,
        cursor: last === undefined ? query.after_cursor : formatId('automationRun', last.id),
      };
    },

    /** An automation as a tool of a language model: what it does and what it takes. */
    async describeInvocable(caller: Caller, name: string) {
      const { name: title, description, inputSchema } = await getInvocable(caller, name);
      const parameters = inputSchema ?? { type: 'object', properties: {} };
      return { name: title, description: description ?? title, parameters };
    },

    /** Starts a run, or returns the run that this idempotency key has already started. */
    async invoke(caller: Caller, name: string, input: NonNullable<Static<typeof invokeSchema>>): Promise<RunRow> {
      const automation = await getInvocable(caller, name);
      requireInvokeAuth(caller, automation);
      const key = input.idempotency_key;
      const digest = key === undefined ? undefined : digestInvocation(input);
      if (key !== undefined && digest !== undefined) {
        const held = await findInvocation(db, caller, automation, key);
        if (held) return getInvokedRun(db, caller, held, digest);
      }
      await checkInvocation(automation, input);
      const run = newRun(automation, {
        payload: input.payload ?? {},
        participants: input.participants ? await readParticipants(caller, input.participants) : null,
        ...invokedBy(caller),
        ...chooseIdentity(automation, invokedBy(caller)),
      });
      const hasLimit = automation.maxPendingRuns !== null;
      if (!hasLimit && (key === undefined || digest === undefined)) return runStore.insertRun(db, run);
      const outcome = await db.begin(async (tx) => {
        const held =
          key === undefined || digest === undefined
            ? undefined
            : await claimInvocation(tx, {
                appId: caller.appId,
                automationId: automation.id,
                caller: nameCaller(caller),
                idempotencyKey: key,
                requestDigest: digest,
                runId: run.id,
              });
        if (held && digest) return { held, digest };
        await requireBacklogRoom(tx, automation);
        return { row: await runStore.insertRun(tx, run) };
      });
      return 'row' in outcome ? outcome.row : getInvokedRun(db, caller, outcome.held, outcome.digest);
    },

    /** Prepares a run of another automation for a `run_automation` node; `commit` starts it. */
    async prepareChild(
      caller: Caller,
      parent: RunRow,
      input: { automation: string; payload: unknown },
      childKey: string,
    ): Promise<{ commit(tx: Db): Promise<Child> }> {
      const automation = await getInvocable(caller, input.automation);
      requireInvokeAuth(caller, automation);
      const payload = (input.payload ?? {}) as Record<string, unknown>;
      await checkInvocation(automation, { payload });
      if (parent.depth + 1 > graphLimits.runDepthMax)
        throw new AppError('conflict', `Runs may start other runs at most ${graphLimits.runDepthMax} levels deep.`);
      const run = newRun(automation, {
        payload,
        participants: parent.participants,
        parentRunId: parent.id,
        parentCommandId: childKey,
        depth: parent.depth + 1,
        eventDepth: parent.eventDepth,
        treeId: runStore.treeOf(parent),
        ...invokedBy(caller),
        ...chooseIdentity(automation, invokedBy(caller)),
      });
      const commit = async (tx: Db): Promise<Child> => {
        const runs = await runStore.countTreeRuns(tx, parent.appId, runStore.treeOf(parent), 1);
        if (runs === undefined || runs > graphLimits.treeRunsMax)
          throw new NodeFailure(treeLimitError.code, treeLimitError.message);
        return { kind: 'run', id: (await runStore.insertRun(tx, run)).id };
      };
      return { commit };
    },

    async journal(caller: Caller, id: string, limit: number | undefined, after: string | undefined) {
      const run = await get(caller, id);
      if (run.graphVersion === null && run.sequence === 0) return undefined;
      const from = after === undefined ? 0 : readCursor(secrets, run, after);
      const count = Math.min(limit ?? limits.journalPageSizeDefault, limits.pageSizeMax);
      const rows = await runStore.listEntries(db, run, from, count + 1);
      const entries = rows.slice(0, count);
      const last = entries.at(-1);
      return {
        run,
        entries,
        hasMore: rows.length > count,
        // Without new entries it is the given cursor, so that a polling client never starts from the beginning.
        cursor: last === undefined ? after : writeCursor(secrets, run, last.sequence),
        withheld: hidesPayloads(caller, run),
      } satisfies JournalPage;
    },

    async cancel(caller: Caller, id: string): Promise<RunRow> {
      const run = await get(caller, id);
      return db.begin(async (tx) => {
        await turns.lockLimit(tx, run.appId, run.automationId);
        const before = found(await runStore.lockRun(tx, run.appId, run.id));
        if (isTerminal(before)) throw wrongState(before, 'cannot be cancelled');
        return (await cancelTree(tx, run.appId, run.id)) ?? before;
      });
    },

    ...createRetries({ db, clock, secrets, automations, get, newRun, checkPayload, loadGraph }),

    /** Stores a signal for the run, which may already wait for it or do so later. */
    async signal(caller: Caller, id: string, name: string, payload: unknown): Promise<RunRow> {
      const run = await get(caller, id);
      if (Buffer.byteLength(JSON.stringify(payload ?? null)) > payloadBytesMax)
        throw invalidField('payload', `must be at most ${payloadBytesMax} bytes`);
      if (run.program) return signalProgram(run, { name, payload });
      const graph = run.graphVersion === null ? undefined : await loadGraph(run);
      return db.begin(async (tx) => {
        const row = found(await runStore.lockRun(tx, run.appId, run.id));
        if (isTerminal(row)) throw wrongState(row, 'takes no signals');
        if (!graph) throw wrongState(row, 'is executed by an external worker and takes no signals');
        await appendSignal(tx, row, graph, { name, payload }, clock.now());
        await runStore.queueAdvance(tx, row);
        return (await runStore.findRun(tx, row.appId, row.id)) ?? row;
      });
    },

    ...createProgramWork({ db, clock, automations, get }),

    /** Writes an event of the app itself. Returns its UUID. */
    async emit(caller: Scope, name: string, payload: unknown): Promise<string> {
      if (Buffer.byteLength(JSON.stringify(payload ?? null)) > payloadBytesMax)
        throw invalidField('payload', `must be at most ${payloadBytesMax} bytes`);
      const { appId, sandboxId } = caller;
      const id = await emitEvent(db, { appId, sandboxId, name, payload: payload ?? {} }, true);
      if (id === undefined) throw new Error('The event was not written.');
      return id;
    },
  };
}

const hasNoStream =
  'This stream follows runs that an invocation started. Follow this run by its journal: GET /api/v1/automation_runs/{automation_run}/journal.';

function readSearch(text: string): NonNullable<RunFilter['search']> {
  const runId = parseId('automationRun', text);
  return runId === undefined ? { text } : { runId };
}
