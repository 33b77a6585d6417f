import type { Clock } from '../clock.ts';
import type { Database, Db } from '../db/database.ts';
import { AppError } from '../errors.ts';
import { formatId, newUuid } from '../ids.ts';
import type { Logger } from '../log.ts';
import type { CommandLocks } from './command-locks.ts';
import {
  applyEntry,
  attemptOf,
  type Command,
  decide,
  type Execution,
  endEntries,
  failureEntries,
  foldJournal,
  itemOf,
  nodeDraft,
  type RunState,
  type Surroundings,
  startEntry,
} from './engine.ts';
import { ExpressionError, type Expressions, type Scope } from './expressions.ts';
import {
  bareExpression,
  type Graph,
  type GraphNode,
  graphLimits,
  memberProblem,
  nestedNodes,
  ownMembers,
} from './graph.ts';
import type { DraftEntry } from './journal.ts';
import { nodeKinds } from './nodes/index.ts';
import { type Child, type NodeContext, type NodeError, NodeFailure, type NodeServices } from './nodes/kind.ts';
import type { RunRow } from './run-store.ts';
import * as store from './run-store.ts';
import { redactInput, resolveTemplates } from './template.ts';

export type AdvanceDeps = {
  db: Database;
  clock: Clock;
  log: Logger;
  locks: CommandLocks;
  expressions: Expressions;
  /** Who writes: shown in every entry's environment. */
  environment: { worker: string; version: string };
  loadGraph(run: RunRow): Promise<Graph>;
  loadSecrets(run: RunRow): Promise<Record<string, string>>;
  /** What nodes may do, bound to the identity that the run acts as. Throws NodeFailure when that identity is gone. */
  servicesFor(run: RunRow): Promise<NodeServices<Db>>;
  /** How a child has ended; undefined while it has not. */
  findChildEnd(run: RunRow, child: Child): Promise<ChildEnd | undefined>;
};

export type ChildEnd = { output: unknown } | { error: NodeError };

const stepsMax = 100_000;
/** Extractions and ingestions may be deleted while they are waited for; then no event comes. */
const childCheckMs = 60_000;

/** Advances a run as far as it goes now: until it ends, waits, or somebody else is at it. */
export async function advanceRun(
  deps: AdvanceDeps,
  key: { appId: string; runId: string },
  stopping: AbortSignal,
): Promise<void> {
  const row = await store.findWork(deps.db, key.appId, key.runId);
  if (!row || row.graphVersion === null || (row.status !== 'pending' && row.status !== 'running')) return;
  const advance = new Advance(deps, row, await deps.loadGraph(row), stopping);
  try {
    await advance.load();
    await advance.go();
  } finally {
    await advance.close();
  }
}

/** Ends a run that cannot be advanced: its job has failed for the last time. */
export async function giveUpRun(deps: AdvanceDeps, key: { appId: string; runId: string }): Promise<void> {
  await deps.db.begin(async (tx) => {
    const found = await store.findRun(tx, key.appId, key.runId);
    if (!found) return;
    await store.lockLimit(tx, key.appId, found.automationId);
    const row = await store.lockRun(tx, key.appId, key.runId);
    if (!row || row.graphVersion === null || (row.status !== 'pending' && row.status !== 'running')) return;
    const now = deps.clock.now();
    const error = { code: 'internal_error', message: 'The run could not be advanced for a reason inside the server.' };
    await store.appendEntries(tx, {
      run: row,
      automation: formatId('automation', row.automationId),
      expected: row.sequence,
      entries: [
        {
          type: 'run_failed',
          record: { payload: error, environment: deps.environment, timestamp: now.toISOString() },
        },
      ],
      status: 'failed',
      error,
      waiting: false,
      wakeAt: null,
      now,
    });
    await store.queueNextPending(tx, row.appId, row.automationId);
  });
}

type Finished = { commandId: string; attempt: number; outcome: { output: unknown } | { error: NodeError } };

class Advance {
  readonly #deps: AdvanceDeps;
  readonly #row: store.WorkRow;
  readonly #graph: Graph;
  readonly #stopping: AbortSignal;
  #state: RunState;
  /** Entries that are decided and go into the next commit. */
  #held: DraftEntry[] = [];
  /** What was last written of the run's sleep. */
  #slept: { waiting: boolean; wakeAtMs: number | undefined };
  #services: Promise<NodeServices<Db>> | undefined;
  #secrets: Promise<Record<string, string>> | undefined;
  readonly #inFlight = new Map<string, AbortController>();
  readonly #finished: Finished[] = [];
  /** Children that were looked at, and work that another process does. */
  readonly #leftAlone = new Set<string>();
  #wake: () => void = () => {};

  constructor(deps: AdvanceDeps, row: store.WorkRow, graph: Graph, stopping: AbortSignal) {
    this.#deps = deps;
    this.#row = row;
    this.#graph = graph;
    this.#stopping = stopping;
    this.#state = foldJournal(graph, []);
    this.#slept = { waiting: row.waiting, wakeAtMs: row.wakeAt?.getTime() };
  }

  async load(): Promise<void> {
    const entries = this.#row.sequence === 0 ? [] : await store.listEntries(this.#deps.db, this.#row);
    this.#state = foldJournal(this.#graph, entries.map(store.readEntry));
  }

  async go(): Promise<void> {
    for (let step = 0; step < stepsMax; step++) {
      const decision = decide(this.#graph, this.#state, this.#around());
      if (decision.ended) return;
      // Thrown, the job is given back and the run goes on elsewhere.
      this.#stopping.throwIfAborted();
      this.#abortAbandoned();
      const finished = this.#finished.shift();
      const command = finished ? undefined : decision.commands.find((candidate) => this.#isOurs(candidate));
      if (finished) {
        if (!(await this.#deliver(finished))) return;
      } else if (command) {
        if (!(await this.#carryOut(command))) return;
      } else if (this.#inFlight.size > 0) {
        await this.#waitForWork(decision.wakeAtMs);
      } else {
        await this.#sleep(decision.wakeAtMs);
        return;
      }
    }
    throw new Error('A run did not come to rest.');
  }

  async close(): Promise<void> {
    for (const [commandId, controller] of this.#inFlight) {
      controller.abort();
      await this.#deps.locks.release(commandId);
    }
    for (const { commandId } of this.#finished) await this.#deps.locks.release(commandId);
  }

  #isOurs(command: Command): boolean {
    if (command.do === 'start' || command.do === 'write') return true;
    const { commandId } = command.execution;
    return !this.#leftAlone.has(commandId) && !this.#inFlight.has(commandId);
  }

  /** False when somebody else has gone on with this run. */
  async #carryOut(command: Command): Promise<boolean> {
    switch (command.do) {
      case 'write':
        return this.#append(command.entries);
      case 'start':
        return this.#start(command);
      case 'work':
        return this.#resume(command.execution);
      case 'check':
        return this.#check(command.execution);
    }
  }

  async #start(command: Extract<Command, { do: 'start' }>): Promise<boolean> {
    const { node } = command;
    const work = nodeKinds.get(node.kind)?.work;
    if (!work) throw new Error(`There is no node kind "${node.kind}".`);
    const around = this.#around();
    const attempt = attemptOf(command, around);
    const fail = (error: NodeError, context?: Record<string, unknown>) =>
      this.#append([
        startEntry(command, around, context ? { context } : {}),
        ...failureEntries(node, attempt, error, this.#around()),
      ]);
    let context: Record<string, unknown> | undefined;
    const before = this.#state.sequence;
    try {
      const { members, shown } = await this.#resolve(node, command.parent, command.index);
      context = { input: shown };
      const started = startEntry(command, around, { context });
      switch (work.style) {
        case 'pure': {
          const output = work.run(members, { input: this.#state.input });
          return await this.#append([started, ...endEntries(node, attempt, output, this.#around())]);
        }
        case 'effect': {
          const nodeContext = await this.#context(command.commandId, new AbortController().signal);
          return await this.#deps.db.begin(async (tx) => {
            const output = await work.run<Db>(tx, members, nodeContext);
            const ends = endEntries(node, attempt, output, this.#around());
            // An output over the limit fails the node, and then its effect must not stay.
            if (ends[0]?.type === 'node_failed') throw new NodeFailure('output_too_large', 'The output is too large.');
            return this.#appendOrThrow(tx, [started, ...ends]);
          });
        }
        case 'child': {
          const nodeContext = await this.#context(command.commandId, new AbortController().signal);
          return await this.#deps.db.begin(async (tx) => {
            const child = await work.start<Db>(tx, members, nodeContext);
            // A run cannot have ended before this is committed; an extraction may have done so at once.
            if (child.kind === 'run') this.#leftAlone.add(command.commandId);
            else await store.insertChild(tx, this.#row, child, command.commandId);
            const shownChild = { kind: child.kind, id: formatId(childIdKinds[child.kind], child.id) };
            const entry = nodeDraft(attempt, around, 'child_run_started', { payload: shownChild });
            return this.#appendOrThrow(tx, [started, entry]);
          });
        }
        case 'external': {
          if (!(await this.#deps.locks.take(command.commandId))) return false;
          const written = await this.#append([started]);
          if (written) this.#launch(command.commandId, command.attempt, node, members, work);
          else await this.#deps.locks.release(command.commandId);
          return written;
        }
        case 'timer': {
          const payload = { fires_at: work.dueAt(members, new Date(around.nowMs)).toISOString() };
          const timer = nodeDraft(attempt, around, 'timer_started', { payload });
          return await this.#append([started, { ...timer, timerId: around.newTimerId() }]);
        }
        case 'signal':
          return await this.#append([started, signalEntry(node, members, attempt, around)]);
        case 'fan-out': {
          const payload = fanOutPayload(node, members);
          return await this.#append([startEntry(command, around, { context, payload })]);
        }
      }
    } catch (error) {
      if (error instanceof Conflict) return this.#lost();
      if (error instanceof NotWritten) throw error.cause;
      if (this.#state.sequence !== before) throw error;
      return fail(nodeErrorOf(error, this.#deps.log), context);
    }
  }

  /** A node that was started before and has no result: another process died, or lives and is at it. */
  async #resume(execution: Execution): Promise<boolean> {
    const node = this.#graph.nodes.get(execution.nodeId);
    const work = node && nodeKinds.get(node.kind)?.work;
    if (!node || work?.style !== 'external') {
      // Only a node with work outside can be started without what comes next in the same commit.
      throw new Error(`Node "${execution.nodeId}" has started and nothing else.`);
    }
    if (!(await this.#deps.locks.take(execution.commandId))) {
      this.#leftAlone.add(execution.commandId);
      return true;
    }
    try {
      const { members } = await this.#resolve(node, execution.parent, execution.index);
      this.#launch(execution.commandId, execution.attempt, node, members, work);
    } catch (error) {
      this.#finish({
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
    work: Extract<NonNullable<ReturnType<typeof nodeKinds.get>>['work'], { style: 'external' }>,
  ): void {
    const controller = new AbortController();
    this.#inFlight.set(commandId, controller);
    const seconds = node.timeout_seconds ?? work.timeoutSeconds;
    const signal = AbortSignal.any([controller.signal, this.#stopping, AbortSignal.timeout(seconds * 1_000)]);
    const timedOut = { code: 'timeout', message: `The node took longer than ${seconds} seconds.` };
    void this.#context(commandId, signal)
      .then((context) => work.run<Db>(members, context))
      .then(
        (output) => ({ output }),
        (error: unknown) => ({
          error:
            signal.reason instanceof DOMException && signal.reason.name === 'TimeoutError'
              ? timedOut
              : nodeErrorOf(error, this.#deps.log),
        }),
      )
      .then((outcome) => {
        this.#inFlight.delete(commandId);
        if (!this.#stopping.aborted) this.#finish({ commandId, attempt, outcome });
        else this.#wake();
      });
  }

  #finish(finished: Finished): void {
    this.#finished.push(finished);
    this.#wake();
  }

  async #deliver(finished: Finished): Promise<boolean> {
    const execution = this.#state.active.get(finished.commandId);
    const node = execution && this.#graph.nodes.get(execution.nodeId);
    if (node && execution.phase === 'working' && execution.attempt === finished.attempt) {
      const around = this.#around();
      const entries =
        'error' in finished.outcome
          ? failureEntries(node, execution, finished.outcome.error, around)
          : endEntries(node, execution, finished.outcome.output, around);
      this.#finished.unshift(finished);
      if (!(await this.#append(entries))) return false;
      // After a conflict the state is a new one and the result still to be delivered.
      if (this.#state.active.get(finished.commandId) === execution && execution.phase === 'working') return true;
      this.#finished.splice(this.#finished.indexOf(finished), 1);
    }
    await this.#deps.locks.release(finished.commandId);
    return true;
  }

  async #check(execution: Execution): Promise<boolean> {
    this.#leftAlone.add(execution.commandId);
    const child = execution.child as Child | undefined;
    const node = this.#graph.nodes.get(execution.nodeId);
    if (!child || !node) return true;
    const end = await this.#deps.findChildEnd(this.#row, child);
    if (!end) return true;
    const around = this.#around();
    const ended = nodeDraft(execution, around, 'child_run_ended', {
      payload: { ...child, ...('error' in end ? { error: end.error } : {}) },
    });
    const rest =
      'error' in end
        ? failureEntries(node, execution, end.error, around)
        : endEntries(node, execution, end.output, around);
    return this.#append([ended, ...rest]);
  }

  /** A node's members with their templates filled in, and what of them the journal may show. */
  async #resolve(node: GraphNode, parent: string | undefined, index: number) {
    const kind = nodeKinds.get(node.kind);
    const own = ownMembers(node);
    const inside = itemOf(this.#state, parent, index);
    const secrets = JSON.stringify(own).includes('$secrets') ? await this.#loadSecrets() : {};
    const scope: Scope = {
      input: this.#state.input,
      nodes: this.#state.outputs,
      participants: this.#row.participants ?? {},
      run: {
        id: formatId('automationRun', this.#row.id),
        automation: formatId('automation', this.#row.automationId),
        created_at: this.#row.createdAt.toISOString(),
      },
      secrets,
      ...(inside ?? {}),
    };
    const evaluate = (expression: string) => this.#deps.expressions.evaluate(expression, scope);
    const members: Record<string, unknown> = {};
    const shown: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(own)) {
      if (kind?.expressions?.includes(name)) {
        members[name] = (await evaluate(bareExpression(String(value)))) ?? null;
        shown[name] = members[name];
      } else {
        const resolved = await resolveTemplates(value, evaluate);
        // A template that selects nothing leaves an optional member out.
        if (resolved.value !== null || value === null) members[name] = resolved.value;
        shown[name] = resolved.shown;
      }
    }
    const problem = memberProblem(node.kind, members);
    if (problem !== undefined) throw new NodeFailure('invalid_members', `The node's ${problem}.`);
    return { members, shown: redactInput(shown, Object.values(secrets)) };
  }

  async #context(commandId: string, signal: AbortSignal): Promise<NodeContext<Db>> {
    this.#services ??= this.#deps.servicesFor(this.#row);
    return {
      input: this.#state.input,
      commandId,
      now: this.#deps.clock.now(),
      signal,
      services: await this.#services,
    };
  }

  #loadSecrets(): Promise<Record<string, string>> {
    this.#secrets ??= this.#deps.loadSecrets(this.#row);
    return this.#secrets;
  }

  async #append(entries: DraftEntry[]): Promise<boolean> {
    try {
      return await this.#appendOrThrow(this.#deps.db, entries);
    } catch (error) {
      if (error instanceof Conflict) return this.#lost();
      throw error instanceof NotWritten ? error.cause : error;
    }
  }

  /**
   * Writes entries, and with them what was held back and what follows from them alone. The first entry of a run is held
   * for its first node's commit; an end goes with the last node's.
   */
  async #appendOrThrow(db: Db, entries: DraftEntry[]): Promise<boolean> {
    const all = [...this.#held, ...entries];
    const expected = this.#state.sequence - this.#held.length;
    const apply = (drafts: readonly DraftEntry[]) => {
      for (const draft of drafts)
        applyEntry(this.#graph, this.#state, { ...draft, sequence: this.#state.sequence + 1 });
    };
    apply(entries);
    if (entries[0]?.type === 'run_started' && !this.#row.limited) {
      this.#held = all;
      return true;
    }
    if (this.#state.ending !== undefined) {
      const end = decide(this.#graph, this.#state, this.#around());
      const write = end.ended ? undefined : end.commands[0];
      if (write?.do === 'write') {
        all.push(...write.entries);
        apply(write.entries);
      }
    }
    this.#held = [];
    const sleep = this.#sleepAfter();
    const last = all.at(-1);
    const now = this.#deps.clock.now();
    const write = (connection: Db) =>
      store.appendEntries(connection, {
        run: this.#row,
        automation: formatId('automation', this.#row.automationId),
        expected,
        entries: all.map((entry) => ({
          ...entry,
          record: { ...entry.record, environment: this.#deps.environment },
        })),
        status: this.#state.status,
        ...(last?.type === 'run_completed' ? { result: last.record.payload ?? null } : {}),
        ...(last?.type === 'run_failed' ? { error: last.record.payload } : {}),
        waiting: sleep !== undefined,
        wakeAt: sleep?.wakeAtMs === undefined ? null : new Date(sleep.wakeAtMs),
        now,
      });
    let written: boolean;
    try {
      written = await (this.#row.limited ? this.#writeLimited(db, all[0]?.type === 'run_started', write) : write(db));
    } catch (error) {
      throw new NotWritten(error);
    }
    if (!written) throw new Conflict();
    this.#slept = { waiting: sleep !== undefined, wakeAtMs: sleep?.wakeAtMs };
    return true;
  }

  /** Of an automation with a limit: begins only when there is a place, and gives its place on when it ends. */
  async #writeLimited(db: Db, begins: boolean, write: (db: Db) => Promise<boolean>): Promise<boolean> {
    const within = async (tx: Db) => {
      const ended = this.#state.status !== 'running';
      if (begins && !(await store.mayStartRun(tx, this.#row.appId, this.#row.automationId))) return false;
      if (ended) await store.lockLimit(tx, this.#row.appId, this.#row.automationId);
      const written = await write(tx);
      if (written && ended) await store.queueNextPending(tx, this.#row.appId, this.#row.automationId);
      return written;
    };
    return 'begin' in db ? db.begin(within) : within(db);
  }

  /** How the run sleeps after what was just applied; undefined when there is something to do. */
  #sleepAfter(): { wakeAtMs: number | undefined } | undefined {
    if (this.#inFlight.size > 0 || this.#finished.length > 0) return undefined;
    const next = decide(this.#graph, this.#state, this.#around());
    if (next.ended || next.commands.some((command) => this.#isOurs(command))) return undefined;
    return { wakeAtMs: this.#wakeAt(next.wakeAtMs) };
  }

  #wakeAt(decided: number | undefined): number | undefined {
    const outside = [...this.#state.active.values()].some(
      (execution) => execution.phase === 'child' && execution.child?.kind !== 'run',
    );
    if (!outside) return decided;
    const check = this.#deps.clock.now().getTime() + childCheckMs;
    return decided === undefined ? check : Math.min(decided, check);
  }

  async #sleep(decidedWakeAtMs: number | undefined): Promise<void> {
    const wakeAtMs = this.#wakeAt(decidedWakeAtMs);
    if (this.#slept.waiting && this.#slept.wakeAtMs === wakeAtMs) return;
    await store.sleepRun(this.#deps.db, this.#row, this.#state.sequence, {
      waiting: true,
      wakeAt: wakeAtMs === undefined ? null : new Date(wakeAtMs),
    });
  }

  async #waitForWork(wakeAtMs: number | undefined): Promise<void> {
    const delay = wakeAtMs === undefined ? undefined : Math.max(0, wakeAtMs - this.#deps.clock.now().getTime());
    await new Promise<void>((resolve) => {
      const timer = delay === undefined ? undefined : setTimeout(resolve, Math.min(delay, 60_000));
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
      if (this.#finished.length > 0 || this.#stopping.aborted) this.#wake();
    });
    this.#wake = () => {};
  }

  /** Work whose node has ended without it (a timeout, a cancelled run) is broken off. */
  #abortAbandoned(): void {
    for (const [commandId, controller] of this.#inFlight) if (!this.#state.active.has(commandId)) controller.abort();
  }

  /**
   * Somebody else has written to this run. Who has nothing in hand stops: whoever wrote goes on, or has queued a job.
   * Who has reads again, and goes on only to bring that in.
   */
  async #lost(): Promise<boolean> {
    this.#held = [];
    if (this.#inFlight.size === 0 && this.#finished.length === 0) return false;
    const row = await store.findRun(this.#deps.db, this.#row.appId, this.#row.id);
    if (!row) return false;
    const entries = await store.listEntries(this.#deps.db, row);
    this.#state = foldJournal(this.#graph, entries.map(store.readEntry));
    this.#leftAlone.clear();
    return true;
  }

  #around(): Surroundings {
    return {
      nowMs: this.#deps.clock.now().getTime(),
      input: this.#row.input ?? this.#row.payload,
      timeoutSeconds: this.#row.timeoutSeconds ?? undefined,
      newCommandId: () => formatId('command', newUuid()),
      newTimerId: () => formatId('timer', newUuid()),
    };
  }
}

/** The journal has gone on without us. */
class Conflict extends Error {}

/** The journal could not be written at all: no failure of the node, the job is tried again. */
class NotWritten extends Error {
  override readonly cause: unknown;

  constructor(cause: unknown) {
    super('The journal could not be written.');
    this.cause = cause;
  }
}

const childIdKinds = { run: 'automationRun', extraction: 'extraction', ingestion: 'ingestion' } as const;

function signalEntry(
  node: GraphNode,
  members: Record<string, unknown>,
  attempt: Parameters<typeof nodeDraft>[0],
  around: Surroundings,
): DraftEntry {
  const seconds = node.timeout_seconds;
  const fires = seconds === undefined ? {} : { fires_at: new Date(around.nowMs + seconds * 1_000).toISOString() };
  const entry = nodeDraft(attempt, around, 'signal_waiting', { payload: { name: members.name, ...fires } });
  return seconds === undefined ? entry : { ...entry, timerId: around.newTimerId() };
}

/** What a fan-out must remember: its items. A single value that JSONata gives counts as a list of one. */
function fanOutPayload(node: GraphNode, members: Record<string, unknown>): Record<string, unknown> {
  if (node.kind === 'parallel') return { items: nestedNodes(node).map((inner) => inner.id) };
  const { items: value } = members;
  const items = value === null || value === undefined ? [] : Array.isArray(value) ? value : [value];
  if (items.length > graphLimits.itemsMax)
    throw new NodeFailure('too_many_items', `There are ${items.length} items; ${graphLimits.itemsMax} are allowed.`);
  if (Buffer.byteLength(JSON.stringify(items)) > graphLimits.outputBytesMax)
    throw new NodeFailure('items_too_large', `The items are larger than ${graphLimits.outputBytesMax} bytes.`);
  return { items, concurrency: members.concurrency ?? 4 };
}

/** What the author of the graph is told. A lost database is no failure of the node: the job is tried again. */
function nodeErrorOf(error: unknown, log: Logger): NodeError {
  if (error instanceof NodeFailure) return { code: error.code, message: error.message };
  if (error instanceof AppError) return { code: error.code, message: error.message };
  if (error instanceof ExpressionError) return { code: 'expression_failed', message: error.message };
  if (isLostDatabase(error)) throw error;
  log.error({ err: error }, 'a node failed unexpectedly');
  return { code: 'internal_error', message: 'The node failed for a reason inside the server.' };
}

function isLostDatabase(error: unknown): boolean {
  const code = typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
  return /^(CONNECTION_|CONNECT_TIMEOUT|ECONN|EPIPE|08|57P|53|40)/.test(code);
}
