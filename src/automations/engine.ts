import { type Graph, type GraphNode, graphLimits, nestedNodes } from './graph.ts';
import type { DraftEntry, EntryMetadata, JournalEntry } from './journal.ts';
import type { NodeError } from './nodes/kind.ts';

/**
 * The engine is two pure functions. `foldJournal` makes a run's state out of its journal; `decide` says what comes
 * next. Neither reads a clock, a database or anything else: a worker that picks a run up folds and goes on.
 */

export type RunStatus = 'pending' | 'running' | 'completed' | 'failed' | 'cancelled';
export type RunError = NodeError & { node_id?: string };

/** One node at work: everything between its first `node_started` and its end. */
export type Execution = {
  commandId: string;
  nodeId: string;
  kind: string;
  parent: string | undefined;
  index: number;
  attempt: number;
  startedAtMs: number;
  /**
   * `working`: started, no result yet. `timer`, `signal`, `child`: waits. `child_ended`: its child has ended.
   * `retry`: waits for its next attempt. `fan_out`: its nodes are at work.
   */
  phase: 'working' | 'timer' | 'signal' | 'child' | 'child_ended' | 'retry' | 'fan_out';
  /** When the timer of this phase fires, if it has one. */
  dueAtMs?: number;
  timerId?: string;
  signal?: string;
  child?: { kind: string; id: string };
  fanOut?: FanOut;
};

type FanOut = {
  items: readonly unknown[];
  concurrency: number;
  started: Set<number>;
  /** Outputs by index; what is not in it is not done. */
  results: Map<number, unknown>;
  failure: (NodeError & { node_id: string }) | undefined;
};

export type RunState = {
  sequence: number;
  status: RunStatus;
  input: unknown;
  startedAtMs: number | undefined;
  /** The next node at the top, when none is at work there. */
  cursor: string | undefined;
  /** How the run is to end, once nothing more is to be done. */
  ending: { status: 'completed'; result: unknown } | { status: 'failed'; error: RunError } | undefined;
  /** What `$nodes` shows. */
  outputs: Record<string, unknown>;
  /** Executions by command, oldest first. */
  active: Map<string, Execution>;
  /** Signals that no wait has taken yet. */
  signals: { sequence: number; name: string; payload: unknown }[];
};

export function emptyState(): RunState {
  return {
    sequence: 0,
    status: 'pending',
    input: undefined,
    startedAtMs: undefined,
    cursor: undefined,
    ending: undefined,
    outputs: {},
    active: new Map(),
    signals: [],
  };
}

/** The state that a journal, or its beginning, adds up to. */
export function foldJournal(graph: Graph, entries: readonly JournalEntry[]): RunState {
  const state = emptyState();
  for (const entry of entries) applyEntry(graph, state, entry);
  return state;
}

/** One step of the fold, in place. Throws when the entry does not follow the last one. */
export function applyEntry(graph: Graph, state: RunState, entry: JournalEntry): void {
  if (entry.sequence !== state.sequence + 1)
    throw new Error(`Journal entry ${entry.sequence} does not follow ${state.sequence}.`);
  state.sequence = entry.sequence;
  const { record } = entry;
  const execution = entry.commandId === undefined ? undefined : state.active.get(entry.commandId);
  switch (entry.type) {
    case 'run_started':
      state.status = 'running';
      state.input = record.payload;
      state.startedAtMs = Date.parse(record.timestamp);
      state.cursor = graph.startNode;
      return;
    case 'node_started':
      startExecution(graph, state, entry, execution);
      return;
    case 'timer_started':
      if (execution) wait(execution, 'timer', entry);
      return;
    case 'signal_waiting':
      if (execution) {
        wait(execution, 'signal', entry);
        execution.signal = String(memberOf(record.payload, 'name'));
      }
      return;
    case 'child_run_started':
      if (execution) {
        wait(execution, 'child', entry);
        execution.child = record.payload as { kind: string; id: string };
      }
      return;
    case 'child_run_ended':
      if (execution) execution.phase = 'child_ended';
      return;
    case 'timer_fired':
    case 'signal_timed_out':
    case 'run_cancel_requested':
      return;
    case 'signal_received':
      state.signals.push({
        sequence: entry.sequence,
        name: String(memberOf(record.payload, 'name')),
        payload: memberOf(record.payload, 'payload'),
      });
      return;
    case 'node_completed':
      if (execution) completeExecution(graph, state, execution, entry);
      return;
    case 'node_failed':
      if (execution && record.metadata?.will_retry !== true)
        failExecution(graph, state, execution, record.payload as NodeError);
      return;
    case 'node_retry_scheduled':
      if (execution) {
        endDescendants(state, execution.commandId);
        delete execution.fanOut;
        wait(execution, 'retry', entry);
      }
      return;
    case 'run_completed':
    case 'run_failed':
    case 'run_cancelled':
      state.status =
        entry.type === 'run_completed' ? 'completed' : entry.type === 'run_failed' ? 'failed' : 'cancelled';
      state.cursor = undefined;
      state.active.clear();
      return;
  }
}

function startExecution(graph: Graph, state: RunState, entry: JournalEntry, known: Execution | undefined): void {
  const { record } = entry;
  const node = graph.nodes.get(entry.nodeId ?? '');
  if (!node || entry.commandId === undefined) throw new Error(`Journal entry ${entry.sequence} names no node.`);
  const metadata = record.metadata ?? {};
  const execution: Execution = known ?? {
    commandId: entry.commandId,
    nodeId: node.id,
    kind: node.kind,
    parent: metadata.parent_command_id,
    index: metadata.index ?? 0,
    attempt: 1,
    startedAtMs: 0,
    phase: 'working',
  };
  execution.attempt = metadata.attempt ?? 1;
  execution.startedAtMs = Date.parse(record.timestamp);
  execution.phase = 'working';
  delete execution.dueAtMs;
  delete execution.timerId;
  const items = memberOf(record.payload, 'items');
  if (isFanOut(node) && Array.isArray(items)) {
    const concurrency = memberOf(record.payload, 'concurrency');
    execution.phase = 'fan_out';
    execution.fanOut = {
      items,
      concurrency: typeof concurrency === 'number' ? concurrency : items.length,
      started: new Set(),
      results: new Map(),
      failure: undefined,
    };
  }
  state.active.set(execution.commandId, execution);
  if (execution.parent === undefined) {
    state.cursor = undefined;
    return;
  }
  state.active.get(execution.parent)?.fanOut?.started.add(execution.index);
}

function isFanOut(node: GraphNode): boolean {
  return node.kind === 'for_each' || node.kind === 'parallel';
}

function wait(execution: Execution, phase: Execution['phase'], entry: JournalEntry): void {
  execution.phase = phase;
  const due = memberOf(entry.record.payload, 'fires_at');
  if (typeof due === 'string') execution.dueAtMs = Date.parse(due);
  else delete execution.dueAtMs;
  if (entry.timerId !== undefined) execution.timerId = entry.timerId;
}

function completeExecution(graph: Graph, state: RunState, execution: Execution, entry: JournalEntry): void {
  const output = entry.record.payload ?? null;
  const metadata = entry.record.metadata ?? {};
  state.active.delete(execution.commandId);
  endDescendants(state, execution.commandId);
  if (metadata.signal_sequence !== undefined)
    state.signals = state.signals.filter((signal) => signal.sequence !== metadata.signal_sequence);
  const node = graph.nodes.get(execution.nodeId);
  if (!node) return;
  if (execution.parent !== undefined) {
    const parent = state.active.get(execution.parent);
    parent?.fanOut?.results.set(execution.index, output);
    if (parent?.kind === 'parallel' && parent.parent === undefined) state.outputs[node.id] = output;
    return;
  }
  state.outputs[node.id] = output;
  if (node.kind === 'complete') state.ending = { status: 'completed', result: output };
  else if (node.kind === 'fail') {
    const { code, message } = output as NodeError;
    state.ending = { status: 'failed', error: { code, message, node_id: node.id } };
  } else goOn(state, successor(node, output, metadata), output);
}

function successor(node: GraphNode, output: unknown, metadata: EntryMetadata): string | undefined {
  if (metadata.timed_out === true) return node.on_timeout as string;
  if (node.kind !== 'conditional') return node.on_success;
  return (memberOf(output, 'result') === true ? node.on_true : node.on_false) as string;
}

function goOn(state: RunState, next: string | undefined, output: unknown): void {
  state.cursor = next;
  if (next === undefined) state.ending = { status: 'completed', result: output };
}

function failExecution(graph: Graph, state: RunState, execution: Execution, error: NodeError): void {
  state.active.delete(execution.commandId);
  endDescendants(state, execution.commandId);
  if (execution.parent !== undefined) {
    const fanOut = state.active.get(execution.parent)?.fanOut;
    if (fanOut) fanOut.failure ??= { ...error, node_id: execution.nodeId };
    return;
  }
  state.outputs[execution.nodeId] = { error };
  const onError = graph.nodes.get(execution.nodeId)?.on_error;
  if (onError !== undefined) state.cursor = onError;
  else state.ending = { status: 'failed', error: { ...error, node_id: execution.nodeId } };
}

/** What a node that has ended had started inside itself counts no more. */
function endDescendants(state: RunState, commandId: string): void {
  for (const execution of [...state.active.values()]) {
    if (execution.parent !== commandId || !state.active.has(execution.commandId)) continue;
    state.active.delete(execution.commandId);
    endDescendants(state, execution.commandId);
  }
}

/** The `$item` and `$index` that a node sees: those of the nearest `for_each` around it. */
export function itemOf(
  state: RunState,
  parent: string | undefined,
  index: number,
): { item: unknown; index: number } | undefined {
  let commandId = parent;
  let at = index;
  while (commandId !== undefined) {
    const around = state.active.get(commandId);
    if (!around) return undefined;
    if (around.kind === 'for_each') return { item: around.fanOut?.items[at], index: at };
    commandId = around.parent;
    at = around.index;
  }
  return undefined;
}

/** What is to be done next. Several commands may be carried out at once, in any order. */
export type Command =
  /** Begin a node, or its next attempt: resolve its members and do its work. */
  | { do: 'start'; node: GraphNode; attempt: number; commandId: string; parent: string | undefined; index: number }
  /** A node that was started and has no result: do its work again, unless it is being done. */
  | { do: 'work'; execution: Execution }
  /** See whether the child has ended. */
  | { do: 'check'; execution: Execution }
  /** Write what follows from the journal and the time alone. */
  | { do: 'write'; entries: DraftEntry[] };

export type Decision = { ended: true } | { ended: false; commands: Command[]; wakeAtMs: number | undefined };

export type Surroundings = {
  nowMs: number;
  /** The run's input, for its first entry. */
  input: unknown;
  timeoutSeconds: number | undefined;
  journalEntriesMax?: number;
  newCommandId(): string;
  newTimerId(): string;
};

/** Some entries are kept for the end of a run that reaches its limit. */
const reservedEntries = 3;

/** Says what comes next for a run in this state at this time. */
export function decide(graph: Graph, state: RunState, around: Surroundings): Decision {
  if (state.status !== 'pending' && state.status !== 'running') return { ended: true };
  const write = (...entries: DraftEntry[]): Decision => ({
    ended: false,
    commands: [{ do: 'write', entries }],
    wakeAtMs: undefined,
  });
  if (state.status === 'pending') return write(draft(around, 'run_started', { payload: around.input ?? null }));
  const runDueMs =
    around.timeoutSeconds === undefined ? undefined : (state.startedAtMs ?? 0) + around.timeoutSeconds * 1_000;
  if (state.ending?.status === 'completed')
    return write(draft(around, 'run_completed', { payload: state.ending.result ?? null }));
  if (state.ending?.status === 'failed') return write(draft(around, 'run_failed', { payload: state.ending.error }));
  if (runDueMs !== undefined && runDueMs <= around.nowMs)
    return write(
      draft(around, 'run_failed', {
        payload: { code: 'timeout', message: `The run took longer than ${around.timeoutSeconds} seconds.` },
      }),
    );
  const entriesMax = around.journalEntriesMax ?? graphLimits.journalEntriesMax;
  if (state.sequence > entriesMax - reservedEntries - 4)
    return write(
      draft(around, 'run_failed', {
        payload: { code: 'journal_limit', message: `The run's journal reached its limit of ${entriesMax} entries.` },
      }),
    );

  const commands: Command[] = [];
  const dues: number[] = runDueMs === undefined ? [] : [runDueMs];
  if (state.cursor !== undefined) {
    const node = graph.nodes.get(state.cursor);
    if (!node) throw new Error(`The graph has no node "${state.cursor}".`);
    commands.push({
      do: 'start',
      node,
      attempt: 1,
      commandId: around.newCommandId(),
      parent: undefined,
      index: 0,
    });
  }
  for (const execution of state.active.values()) decideExecution(graph, state, execution, around, commands, dues);
  return { ended: false, commands, wakeAtMs: dues.length === 0 ? undefined : Math.min(...dues) };
}

function decideExecution(
  graph: Graph,
  state: RunState,
  execution: Execution,
  around: Surroundings,
  commands: Command[],
  dues: number[],
): void {
  const node = graph.nodes.get(execution.nodeId);
  if (!node) return;
  if (execution.phase !== 'retry' && execution.phase !== 'signal' && node.timeout_seconds !== undefined) {
    const deadline = execution.startedAtMs + node.timeout_seconds * 1_000;
    if (deadline <= around.nowMs) {
      const error = { code: 'timeout', message: `The node took longer than ${node.timeout_seconds} seconds.` };
      commands.push({ do: 'write', entries: failureEntries(node, execution, error, around) });
      return;
    }
    dues.push(deadline);
  }
  const due = execution.dueAtMs !== undefined && execution.dueAtMs <= around.nowMs;
  if (execution.dueAtMs !== undefined && !due) dues.push(execution.dueAtMs);
  switch (execution.phase) {
    case 'working':
    case 'child_ended':
      commands.push({ do: 'work', execution });
      return;
    case 'child':
      commands.push({ do: 'check', execution });
      return;
    case 'retry':
      if (due)
        commands.push({
          do: 'start',
          node,
          attempt: execution.attempt + 1,
          commandId: execution.commandId,
          parent: execution.parent,
          index: execution.index,
        });
      return;
    case 'timer':
      if (due) commands.push({ do: 'write', entries: fireEntries(node, execution, around) });
      return;
    case 'signal':
      decideSignal(state, node, execution, due, around, commands);
      return;
    case 'fan_out':
      decideFanOut(state, node, execution, around, commands);
      return;
  }
}

function fireEntries(node: GraphNode, execution: Execution, around: Surroundings): DraftEntry[] {
  const firedAt = { fired_at: new Date(around.nowMs).toISOString() };
  return [
    { ...nodeDraft(execution, around, 'timer_fired', { payload: firedAt }), ...timerOf(execution) },
    ...endEntries(node, execution, firedAt, around),
  ];
}

/** Two waits for one name take its signals in the order in which they began to wait. */
function decideSignal(
  state: RunState,
  node: GraphNode,
  execution: Execution,
  due: boolean,
  around: Surroundings,
  commands: Command[],
): void {
  const waiters = [...state.active.values()].filter(
    (other) => other.phase === 'signal' && other.signal === execution.signal,
  );
  const signals = state.signals.filter((signal) => signal.name === execution.signal);
  const signal = signals[waiters.indexOf(execution)];
  if (signal) {
    const entries = endEntries(node, execution, signal.payload, around, { signal_sequence: signal.sequence });
    commands.push({ do: 'write', entries });
  } else if (due) {
    const timedOut = { ...nodeDraft(execution, around, 'signal_timed_out', {}), ...timerOf(execution) };
    const error = { code: 'timeout', message: `The signal "${execution.signal}" did not come in time.` };
    const rest =
      node.on_timeout === undefined
        ? failureEntries(node, execution, error, around)
        : endEntries(node, execution, null, around, { timed_out: true });
    commands.push({ do: 'write', entries: [timedOut, ...rest] });
  }
}

function decideFanOut(
  state: RunState,
  node: GraphNode,
  execution: Execution,
  around: Surroundings,
  commands: Command[],
): void {
  const fanOut = execution.fanOut;
  if (!fanOut) return;
  if (fanOut.failure) {
    const { node_id, ...error } = fanOut.failure;
    const failed = { code: error.code, message: `Node "${node_id}" failed: ${error.message}` };
    commands.push({ do: 'write', entries: failureEntries(node, execution, failed, around) });
    return;
  }
  const nested = nestedNodes(node);
  if (fanOut.results.size === fanOut.items.length) {
    const results = fanOut.items.map((_item, index) => fanOut.results.get(index));
    const output =
      node.kind === 'parallel' ? Object.fromEntries(nested.map((inner, index) => [inner.id, results[index]])) : results;
    commands.push({ do: 'write', entries: endEntries(node, execution, output, around) });
    return;
  }
  const atWork = [...state.active.values()].filter((other) => other.parent === execution.commandId).length;
  let free = fanOut.concurrency - atWork;
  for (let index = 0; index < fanOut.items.length && free > 0; index++) {
    if (fanOut.started.has(index)) continue;
    free -= 1;
    const inner = node.kind === 'parallel' ? nested[index] : nested[0];
    if (!inner) return;
    commands.push({
      do: 'start',
      node: inner,
      attempt: 1,
      commandId: around.newCommandId(),
      parent: execution.commandId,
      index,
    });
  }
}

/** The entry that begins an attempt. `payload` is what the engine must remember of it: the items of a fan-out. */
export function startEntry(
  command: Extract<Command, { do: 'start' }>,
  around: Surroundings,
  record: { payload?: unknown; context?: Record<string, unknown> },
): DraftEntry {
  const inside = command.parent === undefined ? {} : { parent_command_id: command.parent, index: command.index };
  return nodeDraft(attemptOf(command, around), around, 'node_started', { ...record, metadata: inside });
}

/** What `endEntries` and `failureEntries` need of an attempt that begins now. */
export function attemptOf(command: Extract<Command, { do: 'start' }>, around: Surroundings): Attempt {
  return {
    commandId: command.commandId,
    nodeId: command.node.id,
    attempt: command.attempt,
    startedAtMs: around.nowMs,
  };
}

export type Attempt = Pick<Execution, 'commandId' | 'nodeId' | 'attempt' | 'startedAtMs'>;

/** The entries that end a node with an output; an output over the limit makes it a failed attempt. */
export function endEntries(
  node: GraphNode,
  attempt: Attempt,
  output: unknown,
  around: Surroundings,
  metadata: EntryMetadata = {},
): DraftEntry[] {
  const payload = output ?? null;
  if (Buffer.byteLength(JSON.stringify(payload)) > graphLimits.outputBytesMax) {
    const message = `The output is larger than ${graphLimits.outputBytesMax} bytes.`;
    return failureEntries(node, attempt, { code: 'output_too_large', message }, around);
  }
  return [nodeDraft(attempt, around, 'node_completed', { payload, metadata })];
}

/** The entries of a failed attempt: the next one scheduled if the node has any left, else the node's end. */
export function failureEntries(
  node: GraphNode,
  execution: Attempt,
  error: NodeError,
  around: Surroundings,
): DraftEntry[] {
  const { retry } = node;
  if (!retry || execution.attempt >= retry.max_attempts)
    return [nodeDraft(execution, around, 'node_failed', { payload: error })];
  const delayMs = retryDelayMs(retry, execution.attempt);
  return [
    nodeDraft(execution, around, 'node_failed', { payload: error, metadata: { will_retry: true } }),
    {
      ...nodeDraft(execution, around, 'node_retry_scheduled', {
        payload: { fires_at: new Date(around.nowMs + delayMs).toISOString() },
      }),
      timerId: around.newTimerId(),
    },
  ];
}

const retryDelayMsMax = 24 * 3_600_000;

/** The wait after the given failed attempt: initial_seconds × factor^(attempt − 1), a day at most. */
export function retryDelayMs(retry: { initial_seconds?: number; factor?: number }, attempt: number): number {
  const seconds = (retry.initial_seconds ?? 1) * (retry.factor ?? 2) ** (attempt - 1);
  return Math.min(seconds * 1_000, retryDelayMsMax);
}

/** An entry of one node's execution, with its attempt and how long it has taken. */
export function nodeDraft(
  execution: Attempt,
  around: Surroundings,
  type: DraftEntry['type'],
  record: { payload?: unknown; metadata?: EntryMetadata; context?: Record<string, unknown> },
): DraftEntry {
  const ends = type === 'node_completed' || type === 'node_failed';
  const metadata: EntryMetadata = {
    attempt: execution.attempt,
    ...(ends ? { duration_ms: Math.max(0, around.nowMs - execution.startedAtMs) } : {}),
    ...record.metadata,
  };
  return {
    ...draft(around, type, { ...record, metadata }),
    nodeId: execution.nodeId,
    commandId: execution.commandId,
  };
}

function draft(
  around: Surroundings,
  type: DraftEntry['type'],
  record: { payload?: unknown; metadata?: EntryMetadata; context?: Record<string, unknown> },
): DraftEntry {
  return { type, record: { ...record, timestamp: new Date(around.nowMs).toISOString() } };
}

function timerOf(execution: Execution): { timerId?: string } {
  return execution.timerId === undefined ? {} : { timerId: execution.timerId };
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
