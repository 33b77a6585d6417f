import { setImmediate as nextLoop } from 'node:timers/promises';
import type { Db } from '../../db/database.ts';
import { formatId } from '../../lib/ids.ts';
import { trace, traceFrom } from '../../tracing/trace.ts';
import { prepareApproval } from '../approvals/request.ts';
import type { Graph, GraphNode } from '../definitions/graph.ts';
import { requireNodeScopes } from '../definitions/graph-scopes.ts';
import type { ApproveMembers } from '../nodes/approve.ts';
import { nodeErrorOf } from '../nodes/errors.ts';
import { findKind } from '../nodes/index.ts';
import type { Child, NodeKind, Prepared } from '../nodes/kind.ts';
import { expiryOf, fanOutPayload, signalEntry } from '../nodes/members.ts';
import { CallsTools } from '../nodes/tool-turns.ts';
import * as store from '../runs/store.ts';
import type { AdvanceDeps, JobControls } from './advance-deps.ts';
import { draftChildEnd, draftChildStart, wakeForChildren } from './children.ts';
import { type Command, decide } from './decide.ts';
import {
  type Attempt,
  attemptOf,
  draftEnd,
  draftFailure,
  draftNodeEntry,
  draftOutput,
  draftStart,
  type EntryContext,
} from './draft-entries.ts';
import { Effects, SharedFailure } from './effects.ts';
import type { Execution } from './fold.ts';
import type { DraftEntry } from './journal.ts';
import { NodeInput } from './node-input.ts';
import { type FinishedWork, OutsideWork } from './outside-work.ts';
import { JournalConflict, JournalWriteError, RunJournal, type SleepState } from './run-journal.ts';
import type { OpenSecrets } from './run-secrets.ts';
import type { SecretValues } from './secret-values.ts';

const stepsMax = 100_000;
/** How long a run that left work to another worker waits before it checks whether that worker still does it. */
const lookAgainMs = 60_000;

/** Advances a run until it ends, waits, or another process works on it. */
export async function advanceRun(
  deps: AdvanceDeps,
  key: { appId: string; runId: string },
  controls: JobControls,
): Promise<void> {
  const row = await store.findWork(deps.db, key.appId, key.runId);
  if (!row || row.graphVersion === null || (row.status !== 'pending' && row.status !== 'running')) return;
  if (row.program) return deps.advanceProgram(row);
  const graph = await deps.loadGraph(row);
  const secrets = await deps.secrets.of(deps.db, row, row.secretsVersion);
  const advance = new Advance(deps, row, graph, secrets, controls);
  const attributes = { 'quarry.app': row.appId, 'quarry.run': row.id, 'quarry.automation': row.automationId };
  await traceFrom('run', { continues: row.traceparent, attributes }, async () => {
    try {
      await advance.run();
    } finally {
      await advance.close();
    }
  });
}

/** The result of external work: an output, or a change that has yet to be written. */
type Worked = { output: unknown } | { prepared: Prepared<Db> };

type StartCommand = Extract<Command, { do: 'start' }>;

/** An attempt of a node whose members are resolved. */
type NodeStart = {
  attempt: Attempt;
  members: Record<string, unknown>;
  started: DraftEntry;
  context: Record<string, unknown>;
  around: EntryContext;
};

class Advance {
  readonly #deps: AdvanceDeps;
  readonly #row: store.WorkRow;
  readonly #graph: Graph;
  readonly #stopping: AbortSignal;
  readonly #waitOutside: JobControls['waitOutside'];
  readonly #giveWay: JobControls['giveWay'];
  readonly #journal: RunJournal;
  readonly #outside: OutsideWork<Worked>;
  readonly #input: NodeInput;
  readonly #effects: Effects;
  readonly #secretValues: SecretValues;
  /** Children that were already checked. */
  readonly #checked = new Set<string>();
  /** Commands whose work another worker does. */
  readonly #doneElsewhere = new Set<string>();
  /** When to check whether that work is still being done. */
  #lookAtMs = Number.POSITIVE_INFINITY;

  constructor(
    deps: AdvanceDeps,
    row: store.WorkRow,
    graph: Graph,
    secrets: OpenSecrets,
    { signal, waitOutside, giveWay }: JobControls,
  ) {
    this.#waitOutside = waitOutside;
    this.#giveWay = giveWay;
    this.#deps = deps;
    this.#row = row;
    this.#graph = graph;
    this.#stopping = signal;
    this.#secretValues = secrets.finder;
    this.#journal = new RunJournal(deps, row, graph, this.#secretValues, () => this.#restAfter());
    this.#input = new NodeInput(deps, this.#journal, secrets, waitOutside);
    this.#effects = new Effects({ db: deps.db, journal: this.#journal, input: this.#input, signal, giveWay });
    this.#outside = new OutsideWork(deps.claims.forRun(row), signal);
  }

  async run(): Promise<void> {
    await this.#journal.load();
    this.#journal.treeIsSpent = await this.#deps.treeBudget.isSpent(this.#row);
    for (let step = 0; step < stepsMax; step++) {
      const nextTurn = this.#giveWay();
      if (nextTurn) {
        // Readers of the journal do not wait for it.
        if (this.#journal.isHolding && !(await this.#append([]))) return;
        await nextTurn;
      }
      const decision = this.#decide();
      if (decision.ended) return;
      // If this throws, the job is released and the run resumes in another process.
      this.#stopping.throwIfAborted();
      this.#outside.abortExcept((commandId) => this.#journal.state.active.has(commandId));
      const finished = this.#outside.next;
      const command = finished ? undefined : decision.commands.find((candidate) => this.#isOurs(candidate));
      const isForOwnJob =
        command !== undefined && this.#waitOutside === undefined && (isOutside(command) || this.#input.mustWait);
      if (finished) {
        if (!(await this.#deliver(finished))) return;
      } else if (command && !isForOwnJob) {
        if (!(await this.#execute(command))) return;
      } else if (this.#journal.isHolding) {
        if (!(await this.#append([]))) return;
      } else if (isForOwnJob) {
        return store.queueAdvance(this.#deps.db, this.#row);
      } else if (this.#outside.isActive) {
        if (!(await this.#waitForResult(decision.wakeAtMs))) return;
      } else {
        await this.#journal.sleep(this.#wakeAt(decision.wakeAtMs));
        return;
      }
    }
    throw new Error('A run did not stop after its maximum number of steps.');
  }

  /**
   * Waits until external work has a result, a timer is due, or another process has written to the run. If the run was
   * cancelled, its external work is aborted. Returns false if the run was deleted.
   */
  async #waitForResult(wakeAtMs: number | undefined): Promise<boolean> {
    const delayMs = wakeAtMs === undefined ? undefined : Math.max(0, wakeAtMs - this.#deps.clock.now().getTime());
    const wait = () => this.#outside.wait(delayMs);
    let isMoved = false;
    const unwatch = this.#deps.watch.add(this.#row, this.#journal.state.sequence, () => {
      isMoved = true;
      this.#outside.wake();
    });
    try {
      await (this.#waitOutside === undefined ? wait() : this.#waitOutside(wait));
    } finally {
      unwatch();
    }
    if (!isMoved) return true;
    this.#forgetOthers();
    return this.#journal.reload();
  }

  close(): Promise<void> {
    return this.#outside.close();
  }

  #decide() {
    return decide(this.#graph, this.#journal.state, this.#journal.entryContext());
  }

  #isOurs(command: Command): boolean {
    if (command.do === 'write') return true;
    // The work of the previous attempt may still be ending.
    const { commandId } = command.do === 'start' ? command : command.execution;
    if (command.do === 'check' && this.#checked.has(commandId)) return false;
    return !this.#doneElsewhere.has(commandId) && !this.#outside.has(commandId);
  }

  /** Claims the work of a command. False if another worker does it: it writes the result, but it may also fail. */
  async #take(commandId: string): Promise<boolean> {
    if (await this.#outside.take(commandId)) return true;
    this.#doneElsewhere.add(commandId);
    this.#lookAtMs = Math.min(this.#lookAtMs, this.#deps.clock.now().getTime() + lookAgainMs);
    return false;
  }

  /** Checks everything again that depends on others. */
  #forgetOthers(): void {
    this.#checked.clear();
    this.#doneElsewhere.clear();
    this.#lookAtMs = Number.POSITIVE_INFINITY;
  }

  /** Returns false if another process has continued this run. */
  async #execute(command: Command): Promise<boolean> {
    switch (command.do) {
      case 'write':
        return command.entries[0]?.type === 'run_started' ? this.#hold(command.entries) : this.#append(command.entries);
      case 'start':
        return this.#start(command);
      case 'work':
        return this.#resume(command.execution);
      case 'check':
        return this.#check(command.execution);
    }
  }

  async #start(command: StartCommand): Promise<boolean> {
    const { node } = command;
    const work = findKind(node.kind)?.work;
    if (!work) throw new Error(`Unknown node kind "${node.kind}".`);
    const around = this.#journal.entryContext();
    const attempt = attemptOf(command, around);
    let context: Record<string, unknown> | undefined;
    const before = this.#journal.state.sequence;
    try {
      const resolvedFromMs = performance.now();
      const { members, shown } = await this.#journal.flushDuring(this.#input.resolve(node, command));
      // What follows takes as long again for large values. The first of the two ends before others have had a turn.
      if (performance.now() - resolvedFromMs > 5) await nextLoop().then(() => nextLoop());
      context = { input: shown };
      requireNodeScopes(this.#row, node.kind, members);
      const started = draftStart(command, around, { context });
      return await this.#begin(command, work, { attempt, members, started, context, around });
    } catch (error) {
      if (error instanceof JournalConflict) return this.#handleConflict();
      if (error instanceof SharedFailure) return this.#journal.reload();
      if (error instanceof JournalWriteError) throw error.cause;
      if (this.#journal.state.sequence !== before) throw error;
      return this.#append([
        draftStart(command, around, context ? { context } : {}),
        ...draftFailure(node, attempt, nodeErrorOf(error, this.#deps.log), this.#journal.entryContext()),
      ]);
    }
  }

  /** Writes the start of a node with what follows at once: its end, or what it waits for. */
  async #begin(command: StartCommand, work: NodeKind['work'], start: NodeStart): Promise<boolean> {
    const { node } = command;
    const { attempt, members, started, context, around } = start;
    switch (work.style) {
      case 'pure': {
        const output = work.run(members, { input: this.#journal.state.input });
        return this.#hold([started, ...draftEnd(node, attempt, output, this.#journal.entryContext())]);
      }
      case 'effect': {
        const nodeContext = await this.#input.context(command);
        const run = (tx: Db) => work.run<Db>(tx, members, nodeContext);
        await this.#effects.write({ node, attempt, started, run });
        return true;
      }
      case 'child': {
        const nodeContext = await this.#input.context(command);
        // Nothing requests a second connection while it holds one; otherwise all could wait for each other.
        const prepared = await this.#journal.flushDuring(work.prepare<Db>(members, nodeContext));
        return this.#deps.db.begin(async (tx) => {
          const committed = await prepared.commit(tx);
          if (!('child' in committed)) throw new Error('A node that waits for a child did not create one.');
          await this.#journal.append([started, await this.#childEntry(tx, attempt, committed.child)], tx);
          return true;
        });
      }
      case 'external':
      case 'prepared': {
        if (!(await this.#take(command.commandId))) return true;
        const written = await this.#append([started]);
        // The attempt after a failed one may first have to finish the tools that were called.
        const isWorking = this.#journal.state.active.get(command.commandId)?.phase === 'working';
        if (written && isWorking) this.#launch(command.commandId, command.attempt, node, members, work);
        else await this.#outside.release(command.commandId);
        return written;
      }
      case 'timer': {
        const payload = { fires_at: work.dueAt(members, new Date(around.nowMs)).toISOString() };
        const timer = draftNodeEntry(attempt, around, 'timer_started', { payload });
        return this.#append([started, { ...timer, timerId: around.newTimerId() }]);
      }
      case 'signal':
        return this.#append([started, signalEntry(node, { name: members.name }, attempt, around)]);
      case 'approval':
        return this.#ask(node, start);
      case 'fan-out': {
        const payload = fanOutPayload(node, members);
        return this.#hold([draftStart(command, around, { context, payload })]);
      }
    }
  }

  /** Starts a node that waits for people: its approval is written with its entries. */
  async #ask(node: GraphNode, { members, attempt, started, around }: NodeStart): Promise<boolean> {
    const place = { ...attempt, nodeId: node.id, expiresAt: expiryOf(node, around) };
    const prepared = await prepareApproval(this.#deps, this.#row, this.#secretValues, place, members as ApproveMembers);
    const awaited = { name: node.id, approval: formatId('approval', prepared.id) };
    return this.#deps.db.begin(async (tx) => {
      await prepared.write(tx, new Date(around.nowMs));
      await this.#journal.append([started, signalEntry(node, awaited, attempt, around)], tx);
      return true;
    });
  }

  /** Resumes a node that was started and has no result: another process died, or is still working on it. */
  async #resume(execution: Execution): Promise<boolean> {
    const node = this.#graph.nodes.get(execution.nodeId);
    const work = node && findKind(node.kind)?.work;
    if (!node || (work?.style !== 'external' && work?.style !== 'prepared')) {
      // Only a node with external work can be started without its next entry in the same commit.
      throw new Error(`Node "${execution.nodeId}" was started without a next entry.`);
    }
    if (!(await this.#take(execution.commandId))) return true;
    // The worker that held the claim may have written the result after this one read the journal.
    if (!(await this.#journal.reload())) return false;
    const now = this.#journal.state.active.get(execution.commandId);
    if (now?.phase !== execution.phase || now.attempt !== execution.attempt) {
      await this.#outside.release(execution.commandId);
      return true;
    }
    try {
      const { members } = await this.#input.resolve(node, execution);
      requireNodeScopes(this.#row, node.kind, members);
      this.#launch(execution.commandId, execution.attempt, node, members, work);
    } catch (error) {
      this.#outside.finish({
        commandId: execution.commandId,
        attempt: execution.attempt,
        outcome: { error: nodeErrorOf(error, this.#deps.log) },
      });
    }
    return true;
  }

  #launch(
    commandId: string,
    attempt: number,
    node: GraphNode,
    members: Record<string, unknown>,
    work: Extract<NodeKind['work'], { style: 'external' | 'prepared' }>,
  ): void {
    this.#outside.launch({
      commandId,
      attempt,
      timeoutSeconds: node.timeout_seconds ?? work.timeoutSeconds,
      run: (signal) =>
        trace(`node ${node.kind}`, { attributes: { 'quarry.node': node.id, 'quarry.attempt': attempt } }, async () => {
          const context = await this.#input.context({ commandId, attempt, node }, signal);
          return work.style === 'prepared'
            ? { prepared: await work.prepare<Db>(members, context) }
            : { output: await work.run<Db>(members, context) };
        }),
      describe: (error) => nodeErrorOf(error, this.#deps.log),
    });
  }

  /** Applies the result of external work. Throws a fault of the infrastructure, so that the job is retried. */
  async #deliver(finished: FinishedWork<Worked>): Promise<boolean> {
    const { outcome } = finished;
    if ('fault' in outcome) throw outcome.fault;
    const execution = this.#findWorking(finished);
    const node = execution && this.#graph.nodes.get(execution.nodeId);
    if (node) {
      const around = this.#journal.entryContext();
      const written =
        'error' in outcome
          ? await this.#append(draftFailure(node, execution, outcome.error, around))
          : 'prepared' in outcome.output
            ? await this.#commit(node, execution, outcome.output.prepared)
            : await this.#append(draftOutput(node, execution, outcome.output.output, around));
      if (!written) return false;
      // After a conflict, the state has changed and the result has yet to be applied.
      if (this.#findWorking(finished)) return true;
    } else if ('output' in outcome && 'prepared' in outcome.output) {
      await outcome.output.prepared.discard();
    }
    this.#outside.drop(finished);
    await this.#outside.release(finished.commandId);
    return true;
  }

  #findWorking({ commandId, attempt, outcome }: FinishedWork<Worked>): Execution | undefined {
    const execution = this.#journal.state.active.get(commandId);
    if (execution?.phase !== 'working' || execution.attempt !== attempt) return undefined;
    const output = 'output' in outcome && 'output' in outcome.output ? outcome.output.output : undefined;
    const isReceived = output instanceof CallsTools && output.turn !== (execution.generation?.turns.length ?? 0);
    return isReceived ? undefined : execution;
  }

  /** Writes a prepared change in the transaction of its entry: the node's end, or its child. */
  async #commit(node: GraphNode, execution: Execution, prepared: Prepared<Db>): Promise<boolean> {
    const before = this.#journal.state.sequence;
    try {
      await this.#deps.db.begin(async (tx) => {
        const committed = await prepared.commit(tx);
        const entries =
          'child' in committed
            ? [await this.#childEntry(tx, execution, committed.child)]
            : this.#effects.endOf(node, execution, committed.output);
        await this.#journal.append(entries, tx);
      });
      return true;
    } catch (error) {
      if (error instanceof JournalConflict) return this.#handleConflict();
      if (error instanceof JournalWriteError) throw error.cause;
      if (this.#journal.state.sequence !== before) throw error;
      const failure = nodeErrorOf(error, this.#deps.log);
      await prepared.discard();
      return this.#append(draftFailure(node, execution, failure, this.#journal.entryContext()));
    }
  }

  async #childEntry(tx: Db, attempt: Attempt, child: Child): Promise<DraftEntry> {
    // A run cannot end before this commits, but an extraction may end immediately.
    if (child.kind === 'run') this.#checked.add(attempt.commandId);
    else await store.insertChild(tx, this.#row, child, attempt.commandId);
    return draftChildStart(attempt, child, this.#journal.entryContext());
  }

  async #check(execution: Execution): Promise<boolean> {
    this.#checked.add(execution.commandId);
    const child = execution.child as Child | undefined;
    const node = this.#graph.nodes.get(execution.nodeId);
    if (!child || !node) return true;
    const end = await this.#deps.findChildEnd(this.#row, child);
    if (!end) return true;
    return this.#append(draftChildEnd(node, execution, child, end, this.#journal.entryContext()));
  }

  async #append(entries: DraftEntry[]): Promise<boolean> {
    try {
      await this.#journal.append(entries);
      return true;
    } catch (error) {
      if (error instanceof JournalConflict) return this.#handleConflict();
      throw error instanceof JournalWriteError ? error.cause : error;
    }
  }

  /** Adds entries on which nothing outside depends, such as those of a pure node. They are written with the next ones. */
  async #hold(entries: DraftEntry[]): Promise<boolean> {
    return this.#journal.hold(entries) || this.#append([]);
  }

  /** How the run sleeps after the last applied entry; undefined if there is more to do. */
  #restAfter(): SleepState {
    if (this.#outside.isBusy) return undefined;
    const next = this.#decide();
    if (next.ended || next.commands.some((command) => this.#isOurs(command))) return undefined;
    return { wakeAtMs: this.#wakeAt(next.wakeAtMs) };
  }

  #wakeAt(timerMs: number | undefined): number | undefined {
    const wakeAtMs = wakeForChildren(this.#journal.state, timerMs, this.#deps.clock.now().getTime());
    const nextMs = Math.min(wakeAtMs ?? Number.POSITIVE_INFINITY, this.#lookAtMs);
    return Number.isFinite(nextMs) ? nextMs : undefined;
  }

  /**
   * Handles a write by another process. A worker without external work stops: the other process continues, or has
   * queued a job. A worker with external work reads the journal again, to apply the results. The end of a child is in
   * no journal, and the other process may have checked for it too early, so a running run is queued for another check.
   * (A pending run is not, or it would be checked forever.)
   */
  async #handleConflict(): Promise<boolean> {
    this.#journal.forget();
    if (!this.#outside.isBusy) {
      if (this.#row.status === 'running') await store.queueAdvance(this.#deps.db, this.#row);
      return false;
    }
    if (!(await this.#journal.reload())) return false;
    this.#forgetOthers();
    return true;
  }
}

/** Whether the command starts external work. */
function isOutside(command: Command): boolean {
  if (command.do === 'work') return true;
  const style = command.do === 'start' ? findKind(command.node.kind)?.work.style : undefined;
  return style === 'external' || style === 'prepared';
}
